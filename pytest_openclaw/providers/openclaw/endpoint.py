"""A model server on loopback that records the first request to a model and sends a minimal answer."""

from __future__ import annotations

import json
import secrets
import threading
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING

from pytest_openclaw.providers.openclaw.past import answer_of
from pytest_openclaw.providers.wire_errors import load_object
from pytest_openclaw.tools.captured.wire_requests import api_of
from pytest_openclaw.types.replies import Turn

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pytest_openclaw.core.json_types import JsonObject

MOST_BODY_BYTES = 64 << 20
ANSWER = "OK"
_SSE, _LINES, _JSON = "text/event-stream", "application/x-ndjson", "application/json"


@dataclass(frozen=True, kw_only=True)
class Recorded:
    """A request: OpenClaw's name of its API, and its JSON."""

    api: str
    body: JsonObject


class CaptureServer:
    """The server, running while it is entered. Each request gets a short answer, which ends the turn."""

    def __init__(self) -> None:
        self.recorded: Recorded | None = None
        self.received = threading.Event()
        # In the address, so that no other user of this machine can send a request.
        self._token = secrets.token_hex(16)

    def url(self, api: str) -> str:
        """Return the base URL for an API; OpenClaw adds the rest of the path."""
        root = f"http://127.0.0.1:{self._server.server_address[1]}/{self._token}"
        return root if api == "ollama" else f"{root}/v1"

    def __enter__(self) -> CaptureServer:
        """Start listening."""
        endpoint = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                endpoint._answer(self)

            def log_message(self, *_: object) -> None:
                return

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        self._thread = threading.Thread(target=self._server.serve_forever, name="openclaw-endpoint")
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        """Close everything."""
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()

    def _answer(self, handler: BaseHTTPRequestHandler) -> None:
        path = handler.path.partition("?")[0]
        length = handler.headers.get("content-length", "")
        api = api_of(path)
        if not path.startswith(f"/{self._token}/") or api is None or not length.isdigit():
            handler.send_error(404)
            return
        raw = handler.rfile.read(min(int(length), MOST_BODY_BYTES))
        body = load_object(raw.decode("utf-8", "replace"))
        if body is None:
            handler.send_error(400)
            return
        if self.recorded is None:
            self.recorded = Recorded(api=api, body=body)
        kind, answer = answer_to(api, body)
        handler.send_response(200)
        handler.send_header("Content-Type", kind)
        handler.send_header("Content-Length", str(len(answer)))
        handler.end_headers()
        handler.wfile.write(answer)
        handler.wfile.flush()
        self.received.set()


def answer_to(api: str, body: JsonObject) -> tuple[str, bytes]:
    """Return the type and the bytes of an answer that ends the turn."""
    model, streams = str(body.get("model", "")), bool(body.get("stream"))
    if api == "ollama":
        end = {"model": model, "message": {"role": "assistant", "content": ANSWER}, "done": True}
        return _LINES, json.dumps({**end, "done_reason": "stop"}).encode() + b"\n"
    if api == "openai-responses":
        events = [*_response_events(model)]
        if not streams:
            return _JSON, json.dumps(events[-1]["response"]).encode()
        return _SSE, b"".join(
            f"event: {event['type']}\ndata: {json.dumps(event)}\n\n".encode() for event in events
        )
    if streams:
        return _SSE, answer_of(Turn(text=ANSWER), model)
    message = {"role": "assistant", "content": ANSWER}
    choice = {"index": 0, "message": message, "finish_reason": "stop"}
    head = {"id": "c1", "object": "chat.completion", "created": 0, "model": model}
    return _JSON, json.dumps({**head, "choices": [choice]}).encode()


def _response_events(model: str) -> Iterator[JsonObject]:
    part = {"type": "output_text", "text": ANSWER, "annotations": []}
    item = {"id": "m1", "type": "message", "role": "assistant"}
    done = {**item, "status": "completed", "content": [part]}
    place = {"output_index": 0, "item_id": "m1", "content_index": 0}
    response = {"id": "r1", "object": "response", "created_at": 0, "model": model}
    yield {"type": "response.created", "response": {**response, "status": "in_progress", "output": []}}
    started = {**item, "status": "in_progress", "content": []}
    yield {"type": "response.output_item.added", "output_index": 0, "item": started}
    yield {"type": "response.content_part.added", **place, "part": {**part, "text": ""}}
    yield {"type": "response.output_text.delta", **place, "delta": ANSWER}
    yield {"type": "response.output_text.done", **place, "text": ANSWER}
    yield {"type": "response.content_part.done", **place, "part": part}
    yield {"type": "response.output_item.done", "output_index": 0, "item": done}
    usage = {"input_tokens": 1, "output_tokens": 1, "total_tokens": 2}
    ended = {**response, "status": "completed", "output": [done], "usage": usage}
    yield {"type": "response.completed", "response": ended}
