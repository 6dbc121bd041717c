"""A server on loopback while its context is active."""

from __future__ import annotations

import threading
from abc import ABC, abstractmethod
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Self


class LoopbackServer(ABC):
    """Starts a server, and closes it.

    Attributes:
        url: of its root, without a slash.
    """

    def __enter__(self) -> Self:
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), self._handler())
        self.url = f"http://127.0.0.1:{self._server.server_address[1]}"
        threading.Thread(target=self._server.serve_forever, daemon=True).start()
        return self

    def __exit__(self, *exc: object) -> None:
        self._server.shutdown()
        self._server.server_close()

    @abstractmethod
    def _handler(self) -> type[BaseHTTPRequestHandler]:
        """Return the class that answers its requests."""


class QuietHandler(BaseHTTPRequestHandler):
    """Logs nothing."""

    def send(self, status: int, kind: str, body: bytes) -> None:
        """Send an answer, with its content type."""
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *args: object) -> None:
        return
