"""Anthropic's Messages API, and every server that speaks it too.

Requests and events are as in https://platform.claude.com/docs/en/api/messages and its page on streaming.
"""

from __future__ import annotations

from dataclasses import replace
from types import MappingProxyType
from typing import TYPE_CHECKING, ClassVar

from pytest_openclaw.providers.earlier_turns import users_content, with_ids
from pytest_openclaw.providers.finishing import finish
from pytest_openclaw.providers.fragments import arguments_text
from pytest_openclaw.providers.json_values import count_in, object_in, objects_in, text_in
from pytest_openclaw.providers.over_http import VendorApi
from pytest_openclaw.providers.request_fields import chosen
from pytest_openclaw.providers.stream import Dialect
from pytest_openclaw.providers.wire_errors import error_in, load_object
from pytest_openclaw.values.settings import THINKING_ROOM_TOKENS
from pytest_openclaw.values.tool_calls import ToolCall

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from pytest_openclaw.providers.address import Address
    from pytest_openclaw.providers.exchange import Exchange
    from pytest_openclaw.util.json_types import JsonObject
    from pytest_openclaw.values.faults import WireError
    from pytest_openclaw.values.replies import Image, Turn
    from pytest_openclaw.values.requests import Request

API_VERSION = "2023-06-01"
_BEARER_ENV = "ANTHROPIC_AUTH_TOKEN"
_SIGNED = frozenset({"thinking", "redacted_thinking"})


def messages_body(
    request: Request, *, with_temperature: bool = True, with_budget: bool = False
) -> JsonObject:
    """Return the body of `/messages` that asks `request`.

    Args:
        request: what to ask.
        with_temperature: False for a model that refuses it; thinking is never asked with one.
        with_budget: True for a model that takes a budget of thinking tokens in place of a level.

    """
    body: JsonObject = {
        "model": request.model,
        "max_tokens": request.max_output_tokens,
        "messages": _messages(request),
        "stream": request.stream,
    }
    if request.system is not None:
        body["system"] = request.system
    if request.thinking_level:
        body |= _thinking(request, with_budget=with_budget)
    elif with_temperature and request.temperature is not None:
        # Anthropic's temperatures end at 1, where those of a request end at 2.
        body["temperature"] = min(request.temperature, 1.0)
    body |= chosen(top_p=request.top_p)
    if request.tools:
        body["tools"] = [
            {"name": tool.name, "description": tool.description, "input_schema": dict(tool.parameters)}
            for tool in request.tools
        ]
        if request.tool_choice == "required":
            body["tool_choice"] = {"type": "any"}
    return body


def read_messages(payload: JsonObject, exchange: Exchange) -> WireError | None:
    """Read an event of a stream, or a whole message, into the exchange.

    Returns:
        The error that it is instead, if it is one.

    """
    if error := error_in(payload):
        return error
    index = count_in(payload.get("index"))
    match payload.get("type"):
        case "message_start":
            message = object_in(payload.get("message"))
            exchange.receive_model(text_in(message.get("model")))
            _read_usage(object_in(message.get("usage")), exchange, at_start=True)
        case "content_block_start":
            _read_block(object_in(payload.get("content_block")), index, exchange)
        case "content_block_delta":
            _read_delta(object_in(payload.get("delta")), index, exchange)
        case "message_delta":
            _read_usage(object_in(payload.get("usage")), exchange)
            return _read_end(object_in(payload.get("delta")), exchange)
        case "message_stop":
            exchange.receive_end()
        case "message":
            return _read_whole(payload, exchange)
    return None


def is_message(payload: JsonObject) -> bool:
    """Whether an object is a whole message."""
    return payload.get("type") == "message" and isinstance(payload.get("content"), list)


class AnthropicMessages(VendorApi):
    """Anthropic, by its Messages API; under a name of the user's, any server with that API.

    The address is `ANTHROPIC_BASE_URL`, else the ini's, else Anthropic's; an endpoint of the user's has the
    one of its ini line. The key is in `ANTHROPIC_API_KEY`, which is sent as `x-api-key`, else in
    `ANTHROPIC_AUTH_TOKEN`, which is sent as a bearer token, as Anthropic's own client does. An endpoint's key
    is sent both ways, since gateways differ in which one they read.
    """

    name: ClassVar[str] = "anthropic_messages"
    takes_tools: ClassVar[bool] = True
    takes: ClassVar[frozenset[str]] = (VendorApi.takes - {"seed"}) | {"images"}
    takes_messages: ClassVar[bool] = True
    vendor_url: ClassVar[str] = "https://api.anthropic.com/v1"
    base_env: ClassVar[str] = "ANTHROPIC_BASE_URL"
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
        read=read_messages, is_whole=is_message, end_mark="a stop_reason or message_stop", done_ends=False
    )

    def find_address(self) -> Address:
        """Return where the server is; `/v1` may be left out after a path, as in Anthropic's own variable."""
        address = super().find_address()
        return replace(address, base_url=f"{address.root_url}/v1")

    def key_headers(self, key: str) -> Mapping[str, str]:
        """Return the headers that show the key."""
        own, bearer = {"x-api-key": key}, dict(super().key_headers(key))
        if self.key_env == _BEARER_ENV:
            return bearer
        return own if self.is_vendors or self.address.base_url == self.vendor_url else own | bearer

    def body(self, request: Request) -> JsonObject:
        """Return the JSON body that asks `request`."""
        refused = self.refused[request.model]
        return messages_body(
            request, with_temperature="temperature" not in refused, with_budget="level" in refused
        )


# --- what is sent -------------------------------------------------------------------------------


def _thinking(request: Request, *, with_budget: bool) -> JsonObject:
    """Return what asks for thinking: a level, or for older models a budget.

    Newer models refuse a budget, and older ones a level:
    https://platform.claude.com/docs/en/build-with-claude/adaptive-thinking. Some show their thoughts only if
    they are asked for a summary.
    """
    assert request.thinking_level is not None, "only asked for then"
    if not with_budget:
        return {
            "thinking": {"type": "adaptive", "display": "summarized"},
            "output_config": {"effort": request.thinking_level},
        }
    budget = THINKING_ROOM_TOKENS[request.thinking_level]
    return {
        "thinking": {"type": "enabled", "budget_tokens": budget},
        "max_tokens": max(request.max_output_tokens, budget + 1),
    }


def _messages(request: Request) -> list[JsonObject]:
    messages: list[JsonObject] = []
    conversation = request.conversation
    for received, turn in zip(conversation, with_ids(conversation), strict=True):
        if turn.user is not None:
            messages.append({"role": "user", "content": users_content(turn, image_block)})
        # A message without content is refused.
        if said := [*_blocks(received, turn)]:
            messages.append({"role": "assistant", "content": said})
        if turn.results:
            messages.append({"role": "user", "content": _results(turn)})
    return messages


def image_block(image: Image) -> JsonObject:
    """Return a picture as a block of a message."""
    source = {"type": "base64", "media_type": image.media_type, "data": image.base64}
    return {"type": "image", "source": source}


def _blocks(received: Turn, turn: Turn) -> Iterator[JsonObject]:
    """Give a turn's blocks: signed thoughts exactly as and where they were, with what is sent of its calls.

    Args:
        received: the turn as it was.
        turn: the same one with the ids that are sent.

    """
    ids = [call.id for call in received.calls]
    calls = [*turn.calls]
    if any(block.get("type") in _SIGNED for block in received.carried):
        for block in received.carried:
            kind = block.get("type")
            # The API refuses a blank text.
            if kind in _SIGNED or (kind == "text" and block["text"].strip()):
                yield block
            elif kind == "tool_use" and block.get("id") in ids:
                place = ids.index(block.get("id"))
                ids.pop(place)
                yield _tool_use(calls.pop(place))
    elif turn.text.strip():
        yield {"type": "text", "text": turn.text}
    yield from map(_tool_use, calls)


def _tool_use(call: ToolCall) -> JsonObject:
    # The API has the input as an object and no place for anything else.
    return {"type": "tool_use", "id": call.id, "name": call.name, "input": load_object(call.arguments) or {}}


def _results(turn: Turn) -> list[JsonObject]:
    return [
        {"type": "tool_result", "tool_use_id": call.id, "content": result}
        for call, result in zip(turn.calls, turn.results, strict=False)
    ]


# --- what is read -------------------------------------------------------------------------------


def _read_block(block: JsonObject, index: int | None, exchange: Exchange) -> None:
    """Read the start of a block, which some gateways send with all of its text."""
    exchange.receive_start("text", text_in(block.get("text")), key=index)
    exchange.receive_start("reasoning", text_in(block.get("thinking")), key=index)
    if block.get("type") == "tool_use":
        call = _call_of(block)
        # An empty input is also the place for the pieces to come.
        exchange.receive_tool_call(key=index, id=call.id, name=call.name or None, arguments=call.arguments)
    exchange.receive_block(_carried(block), key=index)


def _carried(block: JsonObject) -> JsonObject:
    """Return what later requests need of a block."""
    match block.get("type"):
        case "text" | "thinking" as kind:
            names = ("text",) if kind == "text" else ("thinking", "signature")
            return {"type": kind, **{name: text_in(block.get(name)) for name in names}}
        case "tool_use":
            return {"type": "tool_use", "id": block.get("id")}
        case "redacted_thinking":
            return block
    return {}


def _read_delta(delta: JsonObject, index: int | None, exchange: Exchange) -> None:
    match delta.get("type"):
        case "text_delta":
            exchange.receive_text(text_in(delta.get("text")), key=index)
            exchange.receive_block({"text": text_in(delta.get("text"))}, key=index)
        case "thinking_delta":
            exchange.receive_reasoning(text_in(delta.get("thinking")), key=index)
            exchange.receive_block({"thinking": text_in(delta.get("thinking"))}, key=index)
        case "signature_delta":
            exchange.receive_block({"signature": text_in(delta.get("signature"))}, key=index)
        case "input_json_delta":
            exchange.receive_tool_call(key=index, arguments=arguments_text(delta.get("partial_json")))


def _read_whole(message: JsonObject, exchange: Exchange) -> WireError | None:
    """Read a whole message, which may come after the events of its blocks."""
    exchange.receive_model(text_in(message.get("model")))
    blocks = objects_in(message.get("content"))
    is_new = not exchange.has_tokens
    exchange.receive_whole("reasoning", "".join(text_in(block.get("thinking")) for block in blocks))
    exchange.receive_whole("text", "".join(text_in(block.get("text")) for block in blocks))
    exchange.receive_calls([_call_of(block) for block in blocks if block.get("type") == "tool_use"])
    for block in blocks if is_new else ():
        exchange.receive_block(_carried(block))
    _read_usage(object_in(message.get("usage")), exchange)
    return _read_end(message, exchange)


def _call_of(block: JsonObject) -> ToolCall:
    given = block.get("input")
    return ToolCall(
        name=text_in(block.get("name")),
        arguments=given if isinstance(given, str) else arguments_text(object_in(given)),
        id=text_in(block.get("id")) or None,
    )


def _read_end(holder: JsonObject, exchange: Exchange) -> WireError | None:
    if not (reason := text_in(holder.get("stop_reason"))):
        return None
    return finish(exchange, reason, said=text_in(object_in(holder.get("stop_details")).get("explanation")))


def _read_usage(usage: JsonObject, exchange: Exchange, *, at_start: bool = False) -> None:
    """Set the counts; that of the input leaves out what came from a cache or went into one.

    Args:
        usage: as the API has it.
        exchange: takes them.
        at_start: the output has just started, so that its count is none.

    """
    if usage:
        created = object_in(usage.get("cache_creation"))
        exchange.receive_usage(
            uncached_tokens=count_in(usage.get("input_tokens")),
            output_tokens=None if at_start else count_in(usage.get("output_tokens")),
            reasoning_tokens=count_in(object_in(usage.get("output_tokens_details")).get("thinking_tokens")),
            cached_tokens=count_in(usage.get("cache_read_input_tokens")),
            cache_write_tokens=count_in(usage.get("cache_creation_input_tokens")),
            cache_write_1h_tokens=count_in(created.get("ephemeral_1h_input_tokens")),
        )
