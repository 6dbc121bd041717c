"""A Messages API on loopback for the Claude CLI, which answers by `mode`; and the events of such an API.

Modes: `ok`, `length`, `refusal`, `empty`, `silent` (sends nothing), `hang` (after the first
words), `cut` (likewise), `error_event`, `overflow`, `billing`, or an HTTP status such as `429`.

With `turns` it plays a conversation instead: each is a list of blocks, `Text` or `ToolUse`; a request is
answered with the turn after those that it contains. A turn that is a string is a mode.
"""

import re
import threading
from typing import Any, NamedTuple

from tests.providers.servers.misbehaving import Close, MisbehavingServer, Script, Wait, sse

ERROR_TYPES = {
    400: "invalid_request_error",
    401: "authentication_error",
    403: "permission_error",
    404: "not_found_error",
    429: "rate_limit_error",
    500: "api_error",
    529: "overloaded_error",
}
ERRORS = {
    "overflow": (400, "invalid_request_error", "prompt is too long: 210000 tokens > 200000 maximum"),
    "billing": (400, "invalid_request_error", "Your credit balance is too low to access the Anthropic API."),
}
USAGE = {
    "input_tokens": 11,
    "cache_read_input_tokens": 5,
    "cache_creation_input_tokens": 2,
    "output_tokens": 1,
}
WORDS = "Hello from stub"

Event = dict[str, Any]


class Text(NamedTuple):
    """A block of text, sent word by word."""

    text: str


class ToolUse(NamedTuple):
    """A call of a tool; its input is any text, sent in two pieces."""

    name: str
    input: str
    id: str = "toolu_1"


class MessagesServer:
    """Serves one mode while entered; `requests` has the bodies, `headers` the headers of each."""

    def __init__(self, mode="ok", *, turns=()):
        self.mode = mode
        self.turns = turns
        self.released = threading.Event()
        self._http = MisbehavingServer()
        self._http.on("*", self._answer)

    @property
    def url(self):
        return self._http.origin

    @property
    def requests(self):
        return [request.json for request in self._posted]

    @property
    def headers(self):
        return [request.headers for request in self._posted]

    @property
    def _posted(self):
        return [request for request in self._http.requests if request.method == "POST"]

    def __enter__(self):
        self._http.__enter__()
        return self

    def __exit__(self, *exc):
        self._http.__exit__(*exc)

    def _answer(self, request):
        if request.method != "POST":
            return Script.answer()
        mode = self.mode
        if self.turns:
            happened = sum(message["role"] == "assistant" for message in request.json["messages"])
            mode = self.turns[min(happened, len(self.turns) - 1)]
        if mode == "silent":
            return Script.of(Wait(self.released), Close())
        if isinstance(mode, str) and mode.isdigit():
            return _refusal(int(mode), ERROR_TYPES[int(mode)], f"stub says {mode}")
        if isinstance(mode, str) and mode in ERRORS:
            return _refusal(*ERRORS[mode])
        events = _events(mode, str(request.json.get("model")), f"msg_{len(self._posted)}")
        steps = [sse(event, event=event["type"]) for event in events]
        return Script.stream(*steps, *([Wait(self.released)] if mode == "hang" else []))


def _refusal(status, kind, message):
    return Script.answer({"type": "error", "error": {"type": kind, "message": message}}, status=status)


def _events(mode, model, message_id):
    message = {"id": message_id, "type": "message", "role": "assistant", "content": [], "model": model}
    began = {
        "type": "message_start",
        "message": message | {"stop_reason": None, "stop_sequence": None, "usage": USAGE},
    }
    if not isinstance(mode, str):
        calls = any(isinstance(block, ToolUse) for block in mode)
        blocks = [event for index, block in enumerate(mode) for event in _block(index, block)]
        return [began, *blocks, *ended("tool_use" if calls else "end_turn", output_tokens=3)]
    words = _block(0, Text(WORDS))
    if mode == "error_event":
        error = {"type": "overloaded_error", "message": "Overloaded"}
        return [began, *words[:2], {"type": "error", "error": error}]
    if mode in {"hang", "cut"}:
        return [began, *words[:3]]
    if mode in {"refusal", "empty"}:
        words = []
    reasons = {"length": "max_tokens", "refusal": "refusal"}
    return [began, *words, *ended(reasons.get(mode, "end_turn"), output_tokens=3)]


def _block(index, block):
    if isinstance(block, Text):
        pieces = re.split("(?= )", block.text)
        return [start(index, "text", text=""), *deltas(index, "text_delta", "text", *pieces), stop(index)]
    return [
        start(index, "tool_use", id=block.id, name=block.name, input={}),
        *deltas(index, "input_json_delta", "partial_json", block.input[:9], block.input[9:]),
        stop(index),
    ]


def start(index, kind, **block):
    return {"type": "content_block_start", "index": index, "content_block": {"type": kind, **block}}


def deltas(index, kind, field, *texts):
    return [
        {"type": "content_block_delta", "index": index, "delta": {"type": kind, field: text}}
        for text in texts
    ]


def stop(index):
    return {"type": "content_block_stop", "index": index}


def ended(reason="end_turn", **usage):
    delta = {"stop_reason": reason, "stop_sequence": None}
    return [
        {"type": "message_delta", "delta": delta, "usage": {"output_tokens": 7, **usage}},
        {"type": "message_stop"},
    ]
