"""Web pages on loopback, and a search engine that finds the first of them."""

import json
import time

from tests.openclaw.loopback import LoopbackServer

#: about the time of a page of a world, whose number of digits is part of a result
PAUSE_S = 0.12


class Site(LoopbackServer):
    """The server of these pages (path → text), while it is entered."""

    def __init__(self, pages):
        self._pages = pages

    def _answer(self, handler, body):
        time.sleep(PAUSE_S)
        if handler.path.endswith("/web_search"):
            first, text = next(iter(self._pages.items()))
            found = {"title": "Bakery", "url": f"{self.url}{first}", "content": text}
            handler.send(200, "application/json", json.dumps({"results": [found]}).encode())
        elif handler.path in self._pages:
            handler.send(200, "text/plain; charset=utf-8", self._pages[handler.path].encode())
        else:
            handler.send(404, "text/plain", b"Not Found")
