"""A model on loopback that plays turns, streamed by any of three APIs, and records its requests."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Sequence
from functools import partial
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from tests.openclaw.model_wires import WIRES, Asked, Said

__all__ = ["Said", "ScriptedModel"]


class ScriptedModel:
    """The server, while it is entered; each request gets the next turn, and the last one is repeated.

    A turn is a text, a list of calls `(name, arguments)` with the arguments as JSON text, a `Said`, an HTTP
    status, `HANG`, or a function that makes one of these from the request. It is sent in the format of the requested path; see `model_wires.py`.
    """

    HANG = object()

    def __init__(self, *turns: Any, pause_s: float = 0.01, prompt_tokens: int = 11) -> None:
        self._pause_s, self._prompt_tokens = pause_s, prompt_tokens
        self.asked: list[dict[str, Any]] = []
        self.keys: list[str | None] = []
        self.paths: list[str] = []
        self._turns: Sequence[Any] = turns

    @property
    def root(self) -> str:
        """The base URL of Ollama's own API."""
        return f"http://127.0.0.1:{self._server.server_address[1]}"

    @property
    def url(self) -> str:
        """The base URL of OpenAI's APIs."""
        return f"{self.root}/v1"

    def __enter__(self) -> ScriptedModel:
        model = self
        self._gone = threading.Event()

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                model._answer(self)

            def log_message(self, *args: object) -> None:
                return

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        serve = partial(self._server.serve_forever, poll_interval=0.01)
        threading.Thread(target=serve, daemon=True).start()
        return self

    def __exit__(self, *exc: object) -> None:
        self._gone.set()
        self._server.shutdown()
        self._server.server_close()

    def _answer(self, handler: BaseHTTPRequestHandler) -> None:
        body = json.loads(handler.rfile.read(int(handler.headers["Content-Length"])))
        if handler.path == "/api/show":  # a server with this model's facts, which are none
            handler.send_response(404)
            handler.send_header("Content-Length", "0")
            handler.end_headers()
            return
        turn = self._turns[min(len(self.asked), len(self._turns) - 1)]
        turn = turn(body) if callable(turn) else turn
        self.asked.append(body)
        self.paths.append(handler.path)
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
        wire = WIRES[handler.path]
        handler.send_response(200)
        handler.send_header("Content-Type", wire.kind)
        handler.end_headers()
        asked = Asked(model=body["model"], number=len(self.asked), prompt_tokens=self._prompt_tokens)
        for piece in wire.pieces(_said(turn), asked):
            handler.wfile.write(piece.encode())
            handler.wfile.flush()
            time.sleep(self._pause_s)


def _said(turn: Any) -> Said:
    if isinstance(turn, Said):
        return turn
    return Said(text=turn) if isinstance(turn, str) else Said(calls=tuple(turn or ()), finish="tool_calls")
