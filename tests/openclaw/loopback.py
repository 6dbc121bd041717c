"""A server on loopback while its context is active."""

import threading
from abc import ABC, abstractmethod
from functools import partial
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


class LoopbackServer(ABC):
    """Starts a server, and closes it."""

    @property
    def root(self):
        """The URL of its root, without a slash."""
        return f"http://127.0.0.1:{self._server.server_address[1]}"

    @property
    def url(self):
        """The base URL for its clients."""
        return self.root

    def __enter__(self):
        self._gone = threading.Event()
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), self._handler())
        serve = partial(self._server.serve_forever, poll_interval=0.01)
        threading.Thread(target=serve, daemon=True).start()
        return self

    def __exit__(self, *exc):
        self._gone.set()
        self._server.shutdown()
        self._server.server_close()

    def _handler(self):
        server = self

        class Handler(QuietHandler):
            def do_POST(self):
                server._answer(self, self.rfile.read(int(self.headers.get("Content-Length") or 0)))

            def do_GET(self):
                self.do_POST()

        return Handler

    @abstractmethod
    def _answer(self, handler, body):
        """Answer a request."""


class QuietHandler(BaseHTTPRequestHandler):
    """Logs nothing."""

    def send(self, status, kind, body):
        """Send an answer, with its content type."""
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *args):
        return
