"""A model on loopback that plays turns: chat completions, streamed, and what it was asked."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Sequence
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any


class ScriptedModel:
    """The server, while it is entered; each request gets the next turn, the last one again and again.

    A turn is a text, a list of calls `(name, arguments)` with the arguments as JSON text, an HTTP status, or
    `HANG`.
    """

    HANG = object()

    def __init__(self, *turns: Any) -> None:
        self.asked: list[dict[str, Any]] = []
        self.keys: list[str | None] = []
        self._turns: Sequence[Any] = turns

    @property
    def url(self) -> str:
        """The base URL."""
        return f"http://127.0.0.1:{self._server.server_address[1]}/v1"

    def __enter__(self) -> ScriptedModel:
        model = self
        self._gone = threading.Event()

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                model._answer(self)

            def log_message(self, *args: object) -> None:
                return

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        threading.Thread(target=self._server.serve_forever, daemon=True).start()
        return self

    def __exit__(self, *exc: object) -> None:
        self._gone.set()
        self._server.shutdown()
        self._server.server_close()

    def _answer(self, handler: BaseHTTPRequestHandler) -> None:
        body = json.loads(handler.rfile.read(int(handler.headers["Content-Length"])))
        turn = self._turns[min(len(self.asked), len(self._turns) - 1)]
        self.asked.append(body)
        self.keys.append(handler.headers.get("Authorization"))
        if turn is self.HANG:
            self._gone.wait(60)
        if isinstance(turn, int):
            said = json.dumps({"error": {"message": "not today", "type": "server_error"}}).encode()
            handler.send_response(turn)
            handler.send_header("Content-Type", "application/json")
            handler.send_header("Content-Length", str(len(said)))
            handler.end_headers()
            handler.wfile.write(said)
            return
        handler.send_response(200)
        handler.send_header("Content-Type", "text/event-stream")
        handler.end_headers()
        for chunk in self._chunks(turn, body["model"]):
            handler.wfile.write(f"data: {chunk}\n\n".encode())
            handler.wfile.flush()
            time.sleep(0.01)

    def _chunks(self, turn: Any, model: str) -> list[str]:
        if isinstance(turn, str):
            deltas, end = [{"role": "assistant", "content": turn}], "stop"
        else:
            number = len(self.asked)
            deltas = [
                {
                    "tool_calls": [
                        {
                            "index": index,
                            "id": f"call_{number}_{index}",
                            "type": "function",
                            "function": {"name": name, "arguments": arguments},
                        }
                    ]
                }
                for index, (name, arguments) in enumerate(turn or [])
            ]
            end = "tool_calls"
        choices = [{"index": 0, "delta": delta, "finish_reason": None} for delta in deltas]
        choices.append({"index": 0, "delta": {}, "finish_reason": end})
        head = {"id": "c1", "object": "chat.completion.chunk", "model": model}
        usage = {"prompt_tokens": 11, "completion_tokens": 3, "total_tokens": 14}
        chunks = [json.dumps({**head, "choices": [choice]}) for choice in choices]
        return [*chunks, json.dumps({**head, "choices": [], "usage": usage}), "[DONE]"]
