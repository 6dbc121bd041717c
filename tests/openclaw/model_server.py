"""A model on loopback that plays turns, streamed by any of three APIs, and records its requests."""

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from tests.providers.servers.misbehaving import MisbehavingServer, Pause, Script

OUTPUT_TOKENS = 3


@dataclass(frozen=True, kw_only=True)
class Said:
    """A turn: its calls with arguments as JSON text, and its finish reason if it is not the usual one."""

    text: str = ""
    reasoning: str = ""
    calls: tuple[tuple[str, str], ...] = ()
    finish: str = ""


@dataclass(frozen=True, kw_only=True)
class Asked:
    """The request for a turn: its number from 1, and the prompt tokens that the reply reports."""

    model: str
    number: int
    prompt_tokens: int


@dataclass(frozen=True)
class Wire:
    """An API: the content type of a stream, and the pieces to send for a turn and its request."""

    kind: str
    pieces: Callable[[Said, Asked], Iterator[str]]


def _chat(said, asked):
    deltas = []
    if said.reasoning:
        deltas.append({"role": "assistant", "reasoning_content": said.reasoning})
    if said.text or not said.calls:
        deltas.append({"role": "assistant", "content": said.text})
    for index, (name, arguments) in enumerate(said.calls):
        call = {"index": index, "id": f"call_{asked.number}_{index}", "type": "function"}
        deltas.append({"tool_calls": [{**call, "function": {"name": name, "arguments": arguments}}]})
    head = {"id": "c1", "object": "chat.completion.chunk", "model": asked.model}
    for delta in deltas:
        yield _data({**head, "choices": [{"index": 0, "delta": delta, "finish_reason": None}]})
    end = said.finish or ("tool_calls" if said.calls else "stop")
    yield _data({**head, "choices": [{"index": 0, "delta": {}, "finish_reason": end}]})
    total = asked.prompt_tokens + OUTPUT_TOKENS
    usage = {"prompt_tokens": asked.prompt_tokens, "completion_tokens": OUTPUT_TOKENS, "total_tokens": total}
    yield _data({**head, "choices": [], "usage": usage})
    yield "data: [DONE]\n\n"


def _ollama(said, asked):
    head = {"model": asked.model, "created_at": "2026-11-22T10:00:00Z"}
    message = {"role": "assistant", "content": said.text}
    if said.reasoning:
        message["thinking"] = said.reasoning
    if said.calls:  # without ids
        functions = ({"name": name, "arguments": json.loads(arguments)} for name, arguments in said.calls)
        message["tool_calls"] = [{"function": function} for function in functions]
    yield json.dumps({**head, "message": message, "done": False}) + "\n"
    counts = {"prompt_eval_count": asked.prompt_tokens, "eval_count": OUTPUT_TOKENS}
    end = {"message": {"role": "assistant", "content": ""}, "done": True, "done_reason": "stop"}
    yield json.dumps({**head, **end, **counts}) + "\n"


def _responses(said, asked):
    number, text = asked.number, said.text
    response = {"id": f"resp_{number}", "object": "response", "model": asked.model, "created_at": 1795000000}
    started = {**response, "status": "in_progress", "output": []}
    yield _event("response.created", response=started)
    output = []
    if text:
        item = {"type": "message", "id": f"msg_{number}", "role": "assistant"}
        part = {"type": "output_text", "text": "", "annotations": []}
        at = {"item_id": item["id"], "output_index": 0}
        done = {**item, "status": "completed", "content": [{**part, "text": text}]}
        added = {**item, "status": "in_progress", "content": []}
        yield _event("response.output_item.added", output_index=0, item=added)
        yield _event("response.content_part.added", **at, content_index=0, part=part)
        yield _event("response.output_text.delta", **at, content_index=0, delta=text)
        yield _event("response.output_text.done", **at, content_index=0, text=text)
        yield _event("response.content_part.done", **at, content_index=0, part={**part, "text": text})
        yield _event("response.output_item.done", output_index=0, item=done)
        output.append(done)
    for index, (name, arguments) in enumerate(said.calls, start=len(output)):
        call = {"type": "function_call", "id": f"fc_{number}_{index}", "name": name}
        call |= {"call_id": f"call_{number}_{index}", "arguments": "", "status": "in_progress"}
        done = {**call, "arguments": arguments, "status": "completed"}
        at = {"item_id": call["id"], "output_index": index}
        yield _event("response.output_item.added", output_index=index, item=call)
        yield _event("response.function_call_arguments.delta", **at, delta=arguments)
        yield _event("response.function_call_arguments.done", **at, arguments=arguments)
        yield _event("response.output_item.done", output_index=index, item=done)
        output.append(done)
    total = asked.prompt_tokens + OUTPUT_TOKENS
    usage = {"input_tokens": asked.prompt_tokens, "output_tokens": OUTPUT_TOKENS, "total_tokens": total}
    ended = {**response, "status": "completed", "output": output, "usage": usage}
    yield _event("response.completed", response=ended)


def _data(payload):
    return f"data: {json.dumps(payload)}\n\n"


def _event(kind, **payload):
    return f"event: {kind}\n{_data({'type': kind, **payload})}"


WIRES = {
    "/v1/chat/completions": Wire("text/event-stream", _chat),
    "/api/chat": Wire("application/x-ndjson", _ollama),
    "/v1/responses": Wire("text/event-stream", _responses),
}


class ScriptedModel(MisbehavingServer):
    """Each request gets the next turn, in the format of its path, and the last one is repeated.

    A turn is a text, a list of calls `(name, arguments)` with the arguments as JSON text, a `Said`, an HTTP
    status, or a function that makes one of these from the request.
    """

    def __init__(self, *turns, pause_s=0.01, prompt_tokens=11):
        super().__init__()
        self._pause, self._prompt_tokens = Pause(pause_s), prompt_tokens
        self.asked, self.keys, self.paths = [], [], []
        self._turns = turns
        self.on("*", self._play)

    def _play(self, request):
        if request.path == "/api/show" or not request.body:  # the server does not describe its models
            return Script.answer(status=404)
        turn = self._turns[min(len(self.asked), len(self._turns) - 1)]
        turn = turn(request.json) if callable(turn) else turn
        self.asked.append(request.json)
        self.paths.append(request.path)
        self.keys.append(request.headers.get("authorization"))
        if isinstance(turn, int):
            return Script.answer({"error": {"message": "not today", "type": "server_error"}}, status=turn)
        wire, model = WIRES[request.path], request.json["model"]
        asked = Asked(model=model, number=len(self.asked), prompt_tokens=self._prompt_tokens)
        pieces = [piece.encode() for piece in wire.pieces(_said(turn), asked)]
        steps = (step for piece in pieces for step in (piece, self._pause))
        return Script.stream(*steps, content_type=wire.kind)


def _said(turn):
    if isinstance(turn, Said):
        return turn
    return Said(text=turn) if isinstance(turn, str) else Said(calls=tuple(turn or ()), finish="tool_calls")
