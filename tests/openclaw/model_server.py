"""A model on loopback that plays turns, streamed by any of three APIs, and records its requests."""

import json
import time
from typing import Any

from tests.openclaw.loopback import LoopbackServer
from tests.openclaw.model_wires import WIRES, Asked, Said

__all__ = ["Said", "ScriptedModel"]


class ScriptedModel(LoopbackServer):
    """The server, while it is entered; each request gets the next turn, and the last one is repeated.

    A turn is a text, a list of calls `(name, arguments)` with the arguments as JSON text, a `Said`, an HTTP
    status, or a function that makes one of these from the request. It is sent in the format of the requested
    path; see `model_wires.py`.
    """

    def __init__(self, *turns, pause_s=0.01, prompt_tokens=11):
        self._pause_s, self._prompt_tokens = pause_s, prompt_tokens
        self.asked: list[dict[str, Any]] = []
        self.keys: list[str | None] = []
        self.paths: list[str] = []
        self._turns = turns

    @property
    def url(self):
        """The base URL of OpenAI's APIs; `root` is the base URL of Ollama's own API."""
        return f"{self.root}/v1"

    def _answer(self, handler, body):
        if handler.path == "/api/show" or not body:  # the server does not describe its models
            handler.send(404, "text/plain", b"")
            return
        request = json.loads(body)
        turn = self._turns[min(len(self.asked), len(self._turns) - 1)]
        turn = turn(request) if callable(turn) else turn
        self.asked.append(request)
        self.paths.append(handler.path)
        self.keys.append(handler.headers.get("Authorization"))
        if isinstance(turn, int):
            error = {"error": {"message": "not today", "type": "server_error"}}
            handler.send(turn, "application/json", json.dumps(error).encode())
            return
        wire = WIRES[handler.path]
        handler.send_response(200)
        handler.send_header("Content-Type", wire.kind)
        handler.end_headers()
        asked = Asked(model=request["model"], number=len(self.asked), prompt_tokens=self._prompt_tokens)
        for piece in wire.pieces(_said(turn), asked):
            handler.wfile.write(piece.encode())
            handler.wfile.flush()
            time.sleep(self._pause_s)


def _said(turn):
    if isinstance(turn, Said):
        return turn
    return Said(text=turn) if isinstance(turn, str) else Said(calls=tuple(turn or ()), finish="tool_calls")
