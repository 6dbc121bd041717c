"""OpenAI's Responses API, on OpenAI's or any other server."""

from __future__ import annotations

from collections.abc import Collection, Hashable, Iterator, Mapping
from typing import ClassVar

from pytest_openclaw.providers import wire
from pytest_openclaw.providers.answer import CHANNELS, Answer, Channel
from pytest_openclaw.providers.over_http import OverHttp
from pytest_openclaw.providers.stream import Dialect
from pytest_openclaw.util.files import JsonObject
from pytest_openclaw.values.faults import WireError
from pytest_openclaw.values.replies import Image
from pytest_openclaw.values.requests import Request
from pytest_openclaw.values.tool_calls import ToolCall

_COUNTS = {
    "input_tokens": "input_tokens",
    "output_tokens": "output_tokens",
    "total_tokens": "total_tokens",
    "reasoning_tokens": "output_tokens_details.reasoning_tokens",
    "cached_tokens": "input_tokens_details.cached_tokens cache_read_input_tokens",
    "cache_write_tokens": "input_tokens_details.cache_write_tokens cache_creation_input_tokens",
}
_ENDS = ("response.completed", "response.incomplete", "response.failed", "response.cancelled")


# --- requests -----------------------------------------------------------------------------------


def responses_body(request: Request, refused: Collection[str] = ()) -> JsonObject:
    """Return the body of `/responses`; some models refuse a temperature, and reasoning excludes it."""
    body: JsonObject = {
        "model": request.model,
        "input": _items(request) if len(request.conversation) > 1 or request.images else request.prompt,
        "max_output_tokens": request.max_output_tokens,
        "stream": request.stream,
        "store": False,
    }
    if request.system is not None:
        body["instructions"] = request.system
    if request.thinking_level:
        body["reasoning"] = {"effort": request.thinking_level}
    else:
        temperature = None if "temperature" in refused else request.temperature
        body |= wire.chosen(temperature=temperature)
    if request.tools:
        # In this API, `strict` is true by default, which most schemas do not support.
        functions = map(wire.function_of, request.tools)
        body["tools"] = [{"type": "function", **function, "strict": False} for function in functions]
    return body


def _items(request: Request) -> list[JsonObject]:
    """Return the whole conversation, because nothing is stored on the server."""
    items: list[JsonObject] = []
    for number, turn in enumerate(wire.with_ids(request.conversation)):
        if turn.user is not None:
            content = wire.users_content(turn, _image, kind="input_text")
            items.append({"type": "message", "role": "user", "content": content})
        if turn.text:
            # The original item; servers reject an item without id or status.
            said = {"type": "output_text", "text": turn.text, "annotations": []}
            item = {"type": "message", "id": f"msg_{number}", "role": "assistant", "status": "completed"}
            items.append({**item, "content": [said]})
        items += [
            {"type": "function_call", "call_id": call.id, "name": call.name, "arguments": call.arguments}
            for call in turn.calls
        ]
        items += [
            {"type": "function_call_output", "call_id": call.id, "output": result}
            for call, result in zip(turn.calls, turn.results, strict=False)
        ]
    return items


def _image(image: Image) -> JsonObject:
    # Servers with this API may require `detail`, which the official client always sends.
    return {"type": "input_image", "detail": "auto", "image_url": image.data_uri}


# --- answers ------------------------------------------------------------------------------------


def read_responses(payload: JsonObject, answer: Answer) -> WireError | None:
    """Add a stream's event, or a whole response, to the answer so far; return the error that it reports."""
    kind = wire.text_in(payload, "type")
    if kind in _ENDS or payload.get("object") == "response":
        return _read_end(wire.object_in(payload, "response") or payload, answer)
    name, is_whole = kind.removeprefix("response."), kind.endswith(".done")
    if name == "created":
        answer.receive_model(wire.text_in(payload, "response.model"))
    elif name.startswith("output_item."):
        _read_item(payload, answer, starts=not is_whole)
    elif name.startswith("function_call_arguments."):
        arguments = wire.text_in(payload, "arguments" if is_whole else "delta")
        answer.receive_tool_call(ToolCall(name="", arguments=arguments), key=_key(payload), whole=is_whole)
    elif channel := _channel_of(name):
        part = "summary" if "summary" in name else "content"
        key = _block_key(payload, part, wire.count_in(payload.get(f"{part}_index")) or 0)
        if is_whole:
            answer.receive_whole(channel, _text_of(payload), key=key)
        else:
            answer.receive_text(wire.text_in(payload, "delta"), channel, key=key)
    return None


def _read_item(event: JsonObject, answer: Answer, *, starts: bool) -> None:
    """Add an item that starts, or that is complete."""
    item = wire.object_in(event, "item")
    if item.get("type") == "function_call":
        answer.receive_tool_call(_call_in(item), key=_key(event, item), whole=True)
    for channel, part, index, text in _texts_of(item):
        key = _block_key({"item_id": item.get("id"), **event}, part, index)
        answer.receive_whole(channel, text, key=key, starts=starts)


def _read_end(response: JsonObject, answer: Answer) -> WireError | None:
    """Add a whole response; at the end of a stream, it repeats the deltas."""
    answer.receive_model(wire.text_in(response, "model"))
    status = response.get("status")
    if status in ("failed", "cancelled"):
        return WireError(message=f"the response is {status}")
    items = wire.objects_in(response, "output")
    texts = [text for item in items for text in _texts_of(item)]
    for channel in CHANNELS:
        answer.receive_whole(channel, "".join(text for of, _, _, text in texts if of == channel))
    answer.receive_calls([_call_in(item) for item in items if item.get("type") == "function_call"])
    if usage := wire.object_in(response, "usage"):
        answer.receive_usage(**wire.counts_in(usage, _COUNTS))
    why = wire.text_in(response, "incomplete_details.reason")
    failure = answer.receive_finish_word(why or ("incomplete" if status == "incomplete" else "stop"))
    if failure is None:
        answer.receive_end()
    return failure


def _channel_of(name: str) -> Channel | None:
    """Return the channel of an event or a part; servers have several names for reasoning."""
    if "reasoning" in name or name == "summary_text":
        return "reasoning"
    if "refusal" in name:
        return "refusal"
    return "text" if name.startswith(("output_text", "text")) else None


def _text_of(part: JsonObject) -> str:
    return wire.text_in(part, "text") or wire.text_in(part, "refusal")


def _texts_of(item: JsonObject) -> Iterator[tuple[Channel, str, int, str]]:
    """Yield the texts of an item: channel, `content` or `summary`, the index there, and the text."""
    is_thought = item.get("type") == "reasoning"
    for kind in ("content", "summary") if is_thought or item.get("type") == "message" else ():
        for index, part in enumerate(wire.objects_in(item.get(kind))):
            channel = "reasoning" if is_thought else _channel_of(wire.text_in(part, "type"))
            if channel is not None:
                yield channel, kind, index, _text_of(part)


def _call_in(item: JsonObject) -> ToolCall:
    return wire.call_in(item, item.get("arguments"), id_key="call_id")


def _key(event: JsonObject, item: JsonObject | None = None) -> str | int | None:
    """Return the common key of a call's events; llama.cpp sends the call's id instead of the item's."""
    item = item or {}
    ids = (event.get("item_id"), item.get("id"), item.get("call_id"))
    return next(filter(None, map(wire.text_in, ids)), None) or wire.count_in(event, "output_index")


def _block_key(event: JsonObject, part: str, index: int) -> Hashable:
    """Return the key of a text; some servers omit the number of its item, others the item's id."""
    number = wire.count_in(event, "output_index")
    return (wire.text_in(event, "item_id") if number is None else number), part, index


class OpenAIResponses(OverHttp):
    """OpenAI through its Responses API; as an endpoint of the ini, any server with that API."""

    name: ClassVar[str] = "openai_responses"
    api: ClassVar[str] = "openai-responses"
    takes: ClassVar[frozenset[str]] = OverHttp.takes - {"seed"}
    needs_key: ClassVar[bool] = True
    own_url: ClassVar[str | None] = "https://api.openai.com/v1"
    base_env: ClassVar[str | None] = "OPENAI_BASE_URL"
    key_envs: ClassVar[tuple[str, ...]] = ("OPENAI_API_KEY",)
    path: ClassVar[str] = "/responses"
    refusable: ClassVar[Mapping[str, str]] = {"temperature": "(?=.*temperature).*support"}
    dialect: ClassVar[Dialect] = Dialect(responses_body, read_responses, end_mark="response.completed")
