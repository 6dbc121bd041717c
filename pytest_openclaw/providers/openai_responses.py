"""OpenAI's Responses API, and every other server with it."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, ClassVar

from pytest_openclaw.providers.earlier_turns import users_content, with_ids
from pytest_openclaw.providers.finishing import finish
from pytest_openclaw.providers.http_call import Dialect
from pytest_openclaw.providers.json_values import count_in, object_in, objects_in, text_in
from pytest_openclaw.providers.over_http import VendorApi
from pytest_openclaw.providers.request_fields import chosen
from pytest_openclaw.providers.token_counts import most_in, settled
from pytest_openclaw.providers.wire_errors import error_in, error_of_object

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pytest_openclaw.core.json_types import JsonObject
    from pytest_openclaw.providers.exchange import Exchange
    from pytest_openclaw.types.faults import WireError
    from pytest_openclaw.types.images import Image
    from pytest_openclaw.types.requests import Request
    from pytest_openclaw.types.tool_calls import Tool

_ENDS = ("response.completed", "response.incomplete", "response.failed", "response.cancelled")


def responses_body(request: Request, *, with_temperature: bool = True) -> JsonObject:
    """Return the body of `/responses` for `request`.

    Args:
        request: the request.
        with_temperature: False for a model that rejects it; reasoning is never requested with one.
    """
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
        body |= chosen(temperature=request.temperature if with_temperature else None, top_p=request.top_p)
    if request.tools:
        body["tools"] = [_offer(tool) for tool in request.tools]
        if request.tool_choice == "required":
            body["tool_choice"] = request.tool_choice
    return body


def read_responses(payload: JsonObject, exchange: Exchange) -> WireError | None:
    """Add an event of a stream, or a whole response, to the exchange.

    Returns:
        The error, if the payload is one.
    """
    kind = payload.get("type")
    if payload.get("object") == "response":
        return _read_end(payload, exchange)
    if not isinstance(kind, str) or kind == "error":
        return error_in(payload)
    if kind in _ENDS:
        return _read_end(object_in(payload.get("response")), exchange)
    if kind.endswith(".delta"):
        _read_delta(kind, payload, exchange)
    elif kind in ("response.output_item.added", "response.output_item.done"):
        _read_call(object_in(payload.get("item")), payload, exchange)
    elif kind == "response.function_call_arguments.done":
        exchange.receive_tool_call(key=_key(payload), arguments=text_in(payload.get("arguments")), whole=True)
    elif kind == "response.created":
        exchange.receive_model(text_in(object_in(payload.get("response")).get("model")))
    return None


def is_response(payload: JsonObject) -> bool:
    """Whether an object is a whole response."""
    return isinstance(payload.get("output"), list)


class OpenAIResponses(VendorApi):
    """OpenAI through its Responses API; as an endpoint of the user's, any server with that API.

    The address is `OPENAI_BASE_URL`, else the ini's, else OpenAI's; an endpoint of the user's has the one
    of its ini line. The key is in `OPENAI_API_KEY`, or in the variable that the line names; without one,
    only a server on this machine is used.
    """

    name: ClassVar[str] = "openai_responses"
    takes_tools: ClassVar[bool] = True
    api: ClassVar[str] = "openai-responses"
    takes: ClassVar[frozenset[str]] = (VendorApi.takes - {"seed"}) | {"images"}
    takes_messages: ClassVar[bool] = True
    vendor_url: ClassVar[str] = "https://api.openai.com/v1"
    base_env: ClassVar[str] = "OPENAI_BASE_URL"
    key_envs: ClassVar[tuple[str, ...]] = ("OPENAI_API_KEY",)
    path: ClassVar[str] = "/responses"
    refusable: ClassVar[Mapping[str, str]] = {"temperature": "(?=.*temperature).*support"}
    dialect: ClassVar[Dialect] = Dialect(
        read=read_responses, is_whole=is_response, end_mark="response.completed", done_ends=False
    )

    def body(self, request: Request) -> JsonObject:
        """Return the JSON body for `request`."""
        return responses_body(request, with_temperature=not self.refused[request.model])


def _offer(tool: Tool) -> JsonObject:
    # Without it, `strict` means true in this API, which most schemas do not support.
    return {
        "type": "function",
        "name": tool.name,
        "description": tool.description,
        "parameters": dict(tool.parameters),
        "strict": False,
    }


def _items(request: Request) -> list[JsonObject]:
    """Return the whole conversation, because nothing is stored on the server."""
    items: list[JsonObject] = []
    for number, turn in enumerate(with_ids(request.conversation)):
        if turn.user is not None:
            content = users_content(turn, _picture, kind="input_text")
            items.append({"type": "message", "role": "user", "content": content})
        if turn.text:
            items.append(_said(turn.text, number))
        items += [
            {"type": "function_call", "call_id": call.id, "name": call.name, "arguments": call.arguments}
            for call in turn.calls
        ]
        items += [
            {"type": "function_call_output", "call_id": call.id, "output": result}
            for call, result in zip(turn.calls, turn.results, strict=False)
        ]
    return items


def _picture(image: Image) -> JsonObject:
    # Servers with this API may require `detail`, which the official client always sends.
    return {"type": "input_image", "detail": "auto", "image_url": image.data_uri}


def _said(text: str, number: int) -> JsonObject:
    """Return a text of the model as its original item; servers reject one without id or status."""
    return {
        "type": "message",
        "id": f"msg_{number}",
        "role": "assistant",
        "status": "completed",
        "content": [{"type": "output_text", "text": text, "annotations": []}],
    }


def _read_delta(kind: str, event: JsonObject, exchange: Exchange) -> None:
    piece = text_in(event.get("delta"))
    if kind == "response.output_text.delta":
        exchange.receive_text(piece)
    elif kind == "response.refusal.delta":
        exchange.receive_refusal(piece)
    elif kind == "response.function_call_arguments.delta":
        exchange.receive_tool_call(key=_key(event), arguments=piece)
    elif "reasoning" in kind:
        # reasoning_text, reasoning_summary_text, and other servers' names for it
        exchange.receive_reasoning(piece)


def _read_call(item: JsonObject, event: JsonObject, exchange: Exchange) -> None:
    if item.get("type") == "function_call":
        exchange.receive_tool_call(
            key=_key(event, item),
            id=text_in(item.get("call_id")) or None,
            name=text_in(item.get("name")) or None,
            arguments=text_in(item.get("arguments")),
            whole=True,
        )


def _read_end(response: JsonObject, exchange: Exchange) -> WireError | None:
    """Add a whole response, or the one that ends a stream, which repeats the deltas."""
    exchange.receive_model(text_in(response.get("model")))
    status = response.get("status")
    if response.get("error") or status in ("failed", "cancelled"):
        error = error_of_object(response.get("error") or {})
        return error if error.message or error.code else replace(error, message=f"the response is {status}")
    _read_output(response.get("output"), exchange)
    _read_usage(object_in(response.get("usage")), exchange)
    why = text_in(object_in(response.get("incomplete_details")).get("reason"))
    if not why and status == "incomplete":
        why = "incomplete"
    return finish(exchange, why or "stop")


def _read_output(output: Any, exchange: Exchange) -> None:
    """Add the items that were not streamed: of thoughts, texts and calls each all or none."""
    items = objects_in(output)
    readers = (
        (exchange.has_reasoning, _read_thoughts),
        (exchange.has_text, _read_texts),
        (exchange.has_tool_calls, _read_whole_call),
    )
    for was_streamed, read in readers:
        for item in () if was_streamed else items:
            read(item, exchange)


def _read_texts(item: JsonObject, exchange: Exchange) -> None:
    if item.get("type") == "message":
        for part in objects_in(item.get("content")):
            exchange.receive_text(text_in(part.get("text")))
            exchange.receive_refusal(text_in(part.get("refusal")))


def _read_whole_call(item: JsonObject, exchange: Exchange) -> None:
    _read_call(item, {}, exchange)


def _read_thoughts(item: JsonObject, exchange: Exchange) -> None:
    if item.get("type") == "reasoning":
        for part in (*objects_in(item.get("content")), *objects_in(item.get("summary"))):
            exchange.receive_reasoning(text_in(part.get("text")))


def _read_usage(usage: JsonObject, exchange: Exchange) -> None:
    if usage:
        cached = most_in(usage, "input_tokens_details.cached_tokens", "cache_read_input_tokens")
        written = most_in(usage, "input_tokens_details.cache_write_tokens", "cache_creation_input_tokens")
        counts = settled(
            count_in(usage.get("input_tokens")),
            count_in(usage.get("output_tokens")),
            total=count_in(usage.get("total_tokens")),
            reasoning=most_in(usage, "output_tokens_details.reasoning_tokens"),
            cached=cached,
            cache_write=written,
        )
        exchange.receive_usage(
            input_tokens=counts.input,
            output_tokens=counts.output,
            reasoning_tokens=counts.reasoning,
            cached_tokens=cached,
            cache_write_tokens=written,
        )


def _key(*holders: JsonObject) -> int | str | None:
    """Return the shared key of one call's events; llama.cpp sends the call's id instead of the item's."""
    for holder in holders:
        for name in ("item_id", "id", "call_id"):
            if isinstance(key := holder.get(name), str) and key:
                return key
    index = holders[0].get("output_index")
    return index if isinstance(index, int) else None
