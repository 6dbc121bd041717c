"""How a turn of a scripted model goes over the wire, by path: chat completions, Ollama's own API, Responses."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

INPUT_TOKENS, OUTPUT_TOKENS = 11, 3


@dataclass(frozen=True)
class Wire:
    """An API.

    Attributes:
        kind: the content type of a stream.
        pieces: a text, or calls `(name, arguments)`; the model; the request's number → what is sent.
    """

    kind: str
    pieces: Callable[[Any, str, int], Iterator[str]]


def _chat(turn: Any, model: str, number: int) -> Iterator[str]:
    deltas: list[dict[str, Any]] = []
    if isinstance(turn, str):
        deltas.append({"role": "assistant", "content": turn})
    for index, (name, arguments) in _calls(turn):
        function = {"name": name, "arguments": arguments}
        call = {"index": index, "id": f"call_{number}_{index}", "type": "function", "function": function}
        deltas.append({"tool_calls": [call]})
    head = {"id": "c1", "object": "chat.completion.chunk", "model": model}
    for delta in deltas:
        yield _data({**head, "choices": [{"index": 0, "delta": delta, "finish_reason": None}]})
    end = "stop" if isinstance(turn, str) else "tool_calls"
    yield _data({**head, "choices": [{"index": 0, "delta": {}, "finish_reason": end}]})
    total = INPUT_TOKENS + OUTPUT_TOKENS
    usage = {"prompt_tokens": INPUT_TOKENS, "completion_tokens": OUTPUT_TOKENS, "total_tokens": total}
    yield _data({**head, "choices": [], "usage": usage})
    yield "data: [DONE]\n\n"


def _ollama(turn: Any, model: str, number: int) -> Iterator[str]:
    del number  # its calls have no ids
    head = {"model": model, "created_at": "2026-11-22T10:00:00Z"}
    calls = [
        {"function": {"name": name, "arguments": json.loads(arguments)}}
        for _, (name, arguments) in _calls(turn)
    ]
    said = {"content": turn} if isinstance(turn, str) else {"content": "", "tool_calls": calls}
    yield json.dumps({**head, "message": {"role": "assistant", **said}, "done": False}) + "\n"
    counts = {"prompt_eval_count": INPUT_TOKENS, "eval_count": OUTPUT_TOKENS}
    end = {"message": {"role": "assistant", "content": ""}, "done": True, "done_reason": "stop"}
    yield json.dumps({**head, **end, **counts}) + "\n"


def _responses(turn: Any, model: str, number: int) -> Iterator[str]:
    response = {"id": f"resp_{number}", "object": "response", "model": model, "created_at": 1795000000}
    started = {**response, "status": "in_progress", "output": []}
    yield _event("response.created", response=started)
    output: list[dict[str, Any]] = []
    if isinstance(turn, str):
        item = {"type": "message", "id": f"msg_{number}", "role": "assistant"}
        part = {"type": "output_text", "text": "", "annotations": []}
        at = {"item_id": item["id"], "output_index": 0}
        done = {**item, "status": "completed", "content": [{**part, "text": turn}]}
        yield _event(
            "response.output_item.added",
            output_index=0,
            item={**item, "status": "in_progress", "content": []},
        )
        yield _event("response.content_part.added", **at, content_index=0, part=part)
        yield _event("response.output_text.delta", **at, content_index=0, delta=turn)
        yield _event("response.output_text.done", **at, content_index=0, text=turn)
        yield _event("response.content_part.done", **at, content_index=0, part={**part, "text": turn})
        yield _event("response.output_item.done", output_index=0, item=done)
        output.append(done)
    for index, (name, arguments) in _calls(turn):
        call = {"type": "function_call", "id": f"fc_{number}_{index}", "name": name}
        call |= {"call_id": f"call_{number}_{index}", "arguments": "", "status": "in_progress"}
        done = {**call, "arguments": arguments, "status": "completed"}
        at = {"item_id": call["id"], "output_index": index}
        yield _event("response.output_item.added", output_index=index, item=call)
        yield _event("response.function_call_arguments.delta", **at, delta=arguments)
        yield _event("response.function_call_arguments.done", **at, arguments=arguments)
        yield _event("response.output_item.done", output_index=index, item=done)
        output.append(done)
    total = INPUT_TOKENS + OUTPUT_TOKENS
    usage = {"input_tokens": INPUT_TOKENS, "output_tokens": OUTPUT_TOKENS, "total_tokens": total}
    ended = {**response, "status": "completed", "output": output, "usage": usage}
    yield _event("response.completed", response=ended)


def _calls(turn: Any) -> Iterator[tuple[int, tuple[str, str]]]:
    return iter(enumerate([] if isinstance(turn, str) else turn or []))


def _data(payload: dict[str, Any]) -> str:
    return f"data: {json.dumps(payload)}\n\n"


def _event(kind: str, **payload: Any) -> str:
    return f"event: {kind}\n{_data({'type': kind, **payload})}"


WIRES = {
    "/v1/chat/completions": Wire("text/event-stream", _chat),
    "/api/chat": Wire("application/x-ndjson", _ollama),
    "/v1/responses": Wire("text/event-stream", _responses),
}
