"""Anthropic's Messages API, on Anthropic's or any other server.

Requests and events are as in https://platform.claude.com/docs/en/api/messages and its page on streaming.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import replace
from types import MappingProxyType
from typing import ClassVar

from pytest_openclaw.providers import wire
from pytest_openclaw.providers.address import Address
from pytest_openclaw.providers.answer import Answer
from pytest_openclaw.providers.over_http import OverHttp
from pytest_openclaw.providers.stream import Dialect
from pytest_openclaw.util.files import JsonObject
from pytest_openclaw.values.faults import WireError
from pytest_openclaw.values.replies import Image, Turn
from pytest_openclaw.values.requests import Request
from pytest_openclaw.values.settings import THINKING_ROOM_TOKENS
from pytest_openclaw.values.tool_calls import ToolCall

API_VERSION = "2023-06-01"
_BEARER_ENV = "ANTHROPIC_AUTH_TOKEN"
_COUNTS = {
    "uncached_tokens": "input_tokens",
    "output_tokens": "output_tokens",
    "reasoning_tokens": "output_tokens_details.thinking_tokens",
    "cached_tokens": "cache_read_input_tokens",
    "cache_write_tokens": "cache_creation_input_tokens",
    "cache_write_1h_tokens": "cache_creation.ephemeral_1h_input_tokens",
}
_SIGNED = frozenset({"thinking", "redacted_thinking"})


# --- requests -----------------------------------------------------------------------------------


def messages_body(request: Request, refused: Collection[str] = ()) -> JsonObject:
    """Return the body of `/messages`; some models refuse a temperature, and thinking excludes it.

    Newer models refuse a budget of thinking tokens, and older ones a level:
    https://platform.claude.com/docs/en/build-with-claude/adaptive-thinking
    """
    body: JsonObject = {
        "model": request.model,
        "max_tokens": request.max_output_tokens,
        "messages": _messages(request),
        "stream": request.stream,
        **wire.chosen(system=request.system),
    }
    if request.thinking_level:
        budget = THINKING_ROOM_TOKENS[request.thinking_level]
        if "level" in refused:
            body["thinking"] = {"type": "enabled", "budget_tokens": budget}
            body["max_tokens"] = max(request.max_output_tokens, budget + 1)
        else:
            # Some models show their thoughts only as a summary.
            body["thinking"] = {"type": "adaptive", "display": "summarized"}
            body["output_config"] = {"effort": request.thinking_level}
    elif "temperature" not in refused and request.temperature is not None:
        # The highest temperature is 1 in Anthropic's API and 2 in a request.
        body["temperature"] = min(request.temperature, 1.0)
    if request.tools:
        body["tools"] = [wire.function_of(tool, "input_schema") for tool in request.tools]
    return body


def _messages(request: Request) -> list[JsonObject]:
    messages: list[JsonObject] = []
    conversation = request.conversation
    for received, turn in zip(conversation, wire.with_ids(conversation), strict=True):
        if turn.user is not None:
            messages.append({"role": "user", "content": wire.users_content(turn, image_block)})
        # A message without content is refused.
        if said := [*_blocks(received, turn)]:
            messages.append({"role": "assistant", "content": said})
        if turn.results:
            results = [
                {"type": "tool_result", "tool_use_id": call.id, "content": result}
                for call, result in zip(turn.calls, turn.results, strict=False)
            ]
            messages.append({"role": "user", "content": results})
    return messages


def image_block(image: Image) -> JsonObject:
    """Return an image as a block of a message."""
    source = {"type": "base64", "media_type": image.media_type, "data": image.base64}
    return {"type": "image", "source": source}


def _blocks(received: Turn, turn: Turn) -> Iterator[JsonObject]:
    """Yield a turn's blocks: its signed thoughts unchanged, its text, and its calls."""
    yield from received.carried
    if turn.text.strip():  # the API refuses a blank text
        yield {"type": "text", "text": turn.text}
    for call in turn.calls:
        given = wire.load_object(call.arguments) or {}  # in the API the input can only be an object
        yield {"type": "tool_use", "id": call.id, "name": call.name, "input": given}


# --- answers ------------------------------------------------------------------------------------


def read_messages(payload: JsonObject, answer: Answer) -> WireError | None:
    """Add a stream's event, or a whole message, to the answer so far; return the error that it reports."""
    index = wire.count_in(payload, "index")
    match payload.get("type"):
        case "message_start":
            message = wire.object_in(payload, "message")
            answer.receive_model(wire.text_in(message, "model"))
            _read_usage(wire.object_in(message, "usage"), answer, at_start=True)
        case "content_block_start":
            _read_block(wire.object_in(payload, "content_block"), index, answer)
        case "content_block_delta":
            _read_delta(wire.object_in(payload, "delta"), index, answer)
        case "message_delta":
            _read_usage(wire.object_in(payload, "usage"), answer)
            return _read_end(wire.object_in(payload, "delta"), answer)
        case "message_stop":
            answer.receive_end()
        case "message":
            return _read_whole(payload, answer)
    return None


def _read_block(block: JsonObject, index: int | None, answer: Answer) -> None:
    """Read the start of a block, which some gateways send with all of its text."""
    answer.receive_whole("text", wire.text_in(block, "text"), key=index, starts=True)
    answer.receive_whole("reasoning", wire.text_in(block, "thinking"), key=index, starts=True)
    if block.get("type") == "tool_use":
        # An empty input may also stand for the pieces that follow.
        answer.receive_tool_call(_call_in(block), key=index)
    if wire.text_in(block, "type") in _SIGNED:
        answer.receive_block(block, key=index)


def _read_delta(delta: JsonObject, index: int | None, answer: Answer) -> None:
    text = wire.text_in(delta, "text")
    thinking = wire.text_in(delta, "thinking")
    match delta.get("type"):
        case "text_delta":
            answer.receive_text(text, key=index)
        case "thinking_delta":
            answer.receive_text(thinking, "reasoning", key=index)
            answer.receive_block({"thinking": thinking}, key=index)
        case "signature_delta":
            answer.receive_block({"signature": wire.text_in(delta, "signature")}, key=index)
        case "input_json_delta":
            arguments = wire.json_text(delta.get("partial_json"))
            answer.receive_tool_call(ToolCall(name="", arguments=arguments), key=index)


def _read_whole(message: JsonObject, answer: Answer) -> WireError | None:
    """Read a whole message, which may come after the events of its blocks."""
    answer.receive_model(wire.text_in(message, "model"))
    blocks = wire.objects_in(message, "content")
    is_new = not answer.has_tokens
    answer.receive_whole("reasoning", "".join(wire.text_in(block, "thinking") for block in blocks))
    answer.receive_whole("text", "".join(wire.text_in(block, "text") for block in blocks))
    answer.receive_calls([_call_in(block) for block in blocks if block.get("type") == "tool_use"])
    for block in blocks if is_new else ():
        if wire.text_in(block, "type") in _SIGNED:
            answer.receive_block(block)
    _read_usage(wire.object_in(message, "usage"), answer)
    return _read_end(message, answer)


def _call_in(block: JsonObject) -> ToolCall:
    given = block.get("input")
    return wire.call_in(block, given if isinstance(given, str) else wire.object_in(given))


def _read_end(holder: JsonObject, answer: Answer) -> WireError | None:
    if not (reason := wire.text_in(holder, "stop_reason")):
        return None
    said = wire.text_in(holder, "stop_details.explanation")
    return answer.receive_finish_word(reason, said=said)


def _read_usage(usage: JsonObject, answer: Answer, *, at_start: bool = False) -> None:
    """Set the counts; at the start of a message the count of its output is only a placeholder."""
    if usage:
        counts = wire.counts_in(usage, _COUNTS)
        answer.receive_usage(**counts | ({"output_tokens": None} if at_start else {}))


class AnthropicMessages(OverHttp):
    """Anthropic through its Messages API; as an endpoint of the ini, any server with that API.

    The key is in `ANTHROPIC_API_KEY`, which is sent as `x-api-key`, else in
    `ANTHROPIC_AUTH_TOKEN`, which is sent as a bearer token, as Anthropic's own client does.
    """

    name: ClassVar[str] = "anthropic_messages"
    takes: ClassVar[frozenset[str]] = OverHttp.takes - {"seed"}
    key_header: ClassVar[str] = "x-api-key"
    needs_key: ClassVar[bool] = True
    own_url: ClassVar[str | None] = "https://api.anthropic.com/v1"
    base_env: ClassVar[str | None] = "ANTHROPIC_BASE_URL"
    key_envs: ClassVar[tuple[str, ...]] = ("ANTHROPIC_API_KEY", _BEARER_ENV)
    path: ClassVar[str] = "/messages"
    # The most that one page of the list may have; without it there are 20.
    models_path: ClassVar[str] = "/models?limit=1000"
    headers: ClassVar[Mapping[str, str]] = MappingProxyType({"anthropic-version": API_VERSION})
    refusable: ClassVar[Mapping[str, str]] = {
        "temperature": "temperature",
        "level": "adaptive|output_config|effort",
    }
    dialect: ClassVar[Dialect] = Dialect(
        messages_body, read_messages, end_mark="a stop_reason or message_stop"
    )

    def find_address(self) -> Address:
        """Return the server's address; `/v1` may be left out after a path, as in Anthropic's own variable."""
        address = super().find_address()
        return replace(address, base_url=f"{address.root_url}/v1")

    def key_headers(self, key: str) -> Mapping[str, str]:
        """Return the headers with the key."""
        if self.key_env == _BEARER_ENV:
            return {"authorization": f"Bearer {key}"}
        return super().key_headers(key)
