"""Web pages on loopback, and a search engine that finds the first of them."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Mapping
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

#: about the time of a page of a world, whose number of digits is part of a result
PAUSE_S = 0.12


class Site:
    """The server, while it is entered.

    Args:
        pages: path → text; others are missing.
    """

    def __init__(self, pages: Mapping[str, str]) -> None:
        self._pages = pages

    def __enter__(self) -> Site:
        site = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                self.rfile.read(int(self.headers.get("Content-Length") or 0))
                self.do_GET()

            def do_GET(self) -> None:
                time.sleep(PAUSE_S)
                status, kind, body = site._answer(self.path)
                self.send_response(status)
                self.send_header("Content-Type", kind)
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *args: object) -> None:
                return

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self._server.server_address[1]}"
        threading.Thread(target=self._server.serve_forever, daemon=True).start()
        return self

    def __exit__(self, *exc: object) -> None:
        self._server.shutdown()
        self._server.server_close()

    def _answer(self, path: str) -> tuple[int, str, bytes]:
        """Return status, content type and body."""
        if path.endswith("/web_search"):
            first, text = next(iter(self._pages.items()))
            found = {"title": "Bakery", "url": f"{self.url}{first}", "content": text}
            return 200, "application/json", json.dumps({"results": [found]}).encode()
        if path in self._pages:
            return 200, "text/plain; charset=utf-8", self._pages[path].encode()
        return 404, "text/plain", b"Not Found"
