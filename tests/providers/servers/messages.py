"""A Messages API on loopback for the Claude CLI: it answers by `mode` and records its requests.

Modes: `ok`, `thinking`, `tool_use`, `length`, `refusal`, `empty`, `silent` (sends nothing), `hang` (after the
first words), `cut` (likewise), `error_event`, `overflow`, `billing`, or an HTTP status such as `429`.

With `turns` it plays a conversation instead: each is a list of blocks, `Text` or `ToolUse`; a request is
answered with the turn after those that it contains. A turn that is a string is a mode.
"""

from __future__ import annotations

import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING, Any, NamedTuple, cast

if TYPE_CHECKING:
    from collections.abc import Sequence
    from types import TracebackType

ERROR_TYPES = {
    400: "invalid_request_error",
    401: "authentication_error",
    403: "permission_error",
    404: "not_found_error",
    429: "rate_limit_error",
    500: "api_error",
    529: "overloaded_error",
}
ERRORS: dict[str, tuple[int, str, str]] = {
    "overflow": (400, "invalid_request_error", "prompt is too long: 210000 tokens > 200000 maximum"),
    "billing": (400, "invalid_request_error", "Your credit balance is too low to access the Anthropic API."),
}
USAGE = {
    "input_tokens": 11,
    "cache_read_input_tokens": 5,
    "cache_creation_input_tokens": 2,
    "output_tokens": 1,
}
THINKING = (("thinking", "Let me"), ("thinking", " see."), ("text", "Four"), ("text", "."))
WORDS = (("text", "Hello"), ("text", " from"), ("text", " stub"))

Event = dict[str, Any]


class Text(NamedTuple):
    """A block of text."""

    text: str


class ToolUse(NamedTuple):
    """A call of a tool; its input is any text, sent in two pieces."""

    name: str
    input: str
    id: str = "toolu_1"


Block = Text | ToolUse


class MessagesServer:
    """Serves one mode while entered; `requests` holds the bodies, `headers` the headers of each."""

    def __init__(self, mode: str = "ok", *, turns: Sequence[Sequence[Block] | str] = ()) -> None:
        self.mode = mode
        self.turns = turns
        self.requests: list[dict[str, Any]] = []
        self.headers: list[dict[str, str]] = []
        self.released = threading.Event()
        self._http = _HttpServer(("127.0.0.1", 0), _Handler)
        self._http.api = self
        self._thread = threading.Thread(target=self._http.serve_forever, kwargs={"poll_interval": 0.02})

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._http.server_port}"

    def __enter__(self) -> MessagesServer:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.released.set()
        self._http.shutdown()
        self._thread.join()
        self._http.server_close()


class _HttpServer(ThreadingHTTPServer):
    api: MessagesServer


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    @property
    def _api(self) -> MessagesServer:
        return cast(_HttpServer, self.server).api

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the base's name
        return

    def do_HEAD(self) -> None:
        self.send_response(200)
        self.send_header("content-length", "0")
        self.end_headers()

    def do_GET(self) -> None:
        self.do_HEAD()

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["content-length"])))
        self._api.requests.append(body)
        self._api.headers.append(dict(self.headers))
        self.close_connection = True
        mode: Sequence[Block] | str = self._api.mode
        if self._api.turns:
            happened = sum(message["role"] == "assistant" for message in body["messages"])
            mode = self._api.turns[min(happened, len(self._api.turns) - 1)]
        try:
            self._answer(str(body.get("model")), mode)
        except ConnectionError:  # the CLI was killed meanwhile, as some tests intend
            return

    def _answer(self, model: str, mode: Sequence[Block] | str) -> None:
        if mode == "silent":
            self._api.released.wait()
            return
        if isinstance(mode, str) and mode.isdigit():
            status = int(mode)
            self._refuse(status, ERROR_TYPES[status], f"stub says {status}")
            return
        if isinstance(mode, str) and mode in ERRORS:
            self._refuse(*ERRORS[mode])
            return
        self.send_response(200)
        self.send_header("content-type", "text/event-stream")
        self.send_header("connection", "close")
        self.end_headers()
        for event in _events(mode, model, f"msg_{len(self._api.requests)}"):
            self.wfile.write(f"event: {event['type']}\ndata: {json.dumps(event)}\n\n".encode())
            self.wfile.flush()
        if mode == "hang":
            self._api.released.wait()

    def _refuse(self, status: int, kind: str, message: str) -> None:
        body = json.dumps({"type": "error", "error": {"type": kind, "message": message}}).encode()
        self.send_response(status)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(body)))
        self.send_header("connection", "close")
        self.end_headers()
        self.wfile.write(body)


def _events(mode: Sequence[Block] | str, model: str, message_id: str) -> list[Event]:
    message = {"id": message_id, "type": "message", "role": "assistant", "content": [], "model": model}
    start = {
        "type": "message_start",
        "message": message | {"stop_reason": None, "stop_sequence": None, "usage": USAGE},
    }
    if not isinstance(mode, str):
        calls = any(isinstance(block, ToolUse) for block in mode)
        blocks = [event for index, block in enumerate(mode) for event in _block(index, block)]
        return [start, *blocks, *_end("tool_use" if calls else "end_turn")]
    if mode == "error_event":
        error = {"type": "overloaded_error", "message": "Overloaded"}
        return [start, *_blocks(WORDS)[:2], {"type": "error", "error": error}]
    if mode in {"hang", "cut"}:
        return [start, *_blocks(WORDS)[:3]]
    if mode == "tool_use":
        return [start, *_block(0, ToolUse("Bash", '{"command": "echo hi"}')), *_end("tool_use")]
    if mode in {"refusal", "empty"}:
        return [start, *_end("refusal" if mode == "refusal" else "end_turn")]
    blocks = _blocks(THINKING if mode == "thinking" else WORDS)
    return [start, *blocks, *_end("max_tokens" if mode == "length" else "end_turn")]


def _blocks(pieces: tuple[tuple[str, str], ...]) -> list[Event]:
    """Content blocks, one per channel, for consecutive pieces of (channel, text)."""
    events: list[Event] = []
    index, open_channel = -1, ""
    for channel, text in pieces:
        if channel != open_channel:
            if open_channel:
                events.append({"type": "content_block_stop", "index": index})
            index, open_channel = index + 1, channel
            block = {"type": channel, channel: ""} | ({"signature": ""} if channel == "thinking" else {})
            events.append({"type": "content_block_start", "index": index, "content_block": block})
        delta = {"type": f"{channel}_delta", channel: text}
        events.append({"type": "content_block_delta", "index": index, "delta": delta})
    return [*events, {"type": "content_block_stop", "index": index}]


def _block(index: int, block: Block) -> list[Event]:
    deltas: list[Event]
    if isinstance(block, Text):
        start: Event = {"type": "text", "text": ""}
        deltas = [{"type": "text_delta", "text": block.text}]
    else:
        start = {"type": "tool_use", "id": block.id, "name": block.name, "input": {}}
        pieces = (block.input[:9], block.input[9:])
        deltas = [{"type": "input_json_delta", "partial_json": piece} for piece in pieces]
    return [
        {"type": "content_block_start", "index": index, "content_block": start},
        *({"type": "content_block_delta", "index": index, "delta": delta} for delta in deltas),
        {"type": "content_block_stop", "index": index},
    ]


def _end(stop_reason: str) -> list[Event]:
    delta = {"stop_reason": stop_reason, "stop_sequence": None}
    return [
        {"type": "message_delta", "delta": delta, "usage": {"output_tokens": 3}},
        {"type": "message_stop"},
    ]
