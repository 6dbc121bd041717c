"""Web pages on loopback, and a search engine that finds the first of them."""

from __future__ import annotations

import json
import time
from collections.abc import Mapping
from http.server import BaseHTTPRequestHandler

from tests.openclaw.loopback import LoopbackServer, QuietHandler

#: about the time of a page of a world, whose number of digits is part of a result
PAUSE_S = 0.12


class Site(LoopbackServer):
    """The server, while it is entered.

    Args:
        pages: path → text; others are missing.
    """

    def __init__(self, pages: Mapping[str, str]) -> None:
        self._pages = pages

    def _handler(self) -> type[BaseHTTPRequestHandler]:
        site = self

        class Handler(QuietHandler, BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                self.rfile.read(int(self.headers.get("Content-Length") or 0))
                self.do_GET()

            def do_GET(self) -> None:
                time.sleep(PAUSE_S)
                self.send(*site._answer(self.path))

        return Handler

    def _answer(self, path: str) -> tuple[int, str, bytes]:
        """Return status, content type and body."""
        if path.endswith("/web_search"):
            first, text = next(iter(self._pages.items()))
            found = {"title": "Bakery", "url": f"{self.url}{first}", "content": text}
            return 200, "application/json", json.dumps({"results": [found]}).encode()
        if path in self._pages:
            return 200, "text/plain; charset=utf-8", self._pages[path].encode()
        return 404, "text/plain", b"Not Found"
