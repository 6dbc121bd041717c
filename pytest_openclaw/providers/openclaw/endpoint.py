"""A model server on loopback that records the first request to a model, and answers none."""

from __future__ import annotations

import secrets
import threading
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING

from pytest_openclaw.providers.wire_errors import load_object
from pytest_openclaw.tools.captured.wire_requests import api_of

if TYPE_CHECKING:
    from pytest_openclaw.core.json_types import JsonObject

MOST_BODY_BYTES = 64 << 20


@dataclass(frozen=True, kw_only=True)
class Recorded:
    """A request: OpenClaw's name of its API, and its JSON."""

    api: str
    body: JsonObject


class CaptureServer:
    """The server, running while it is entered. OpenClaw is ended when `received` is set."""

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
        self.received.set()
        handler.send_error(503)
