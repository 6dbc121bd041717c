"""Web pages on loopback, and a search engine that finds the first of them."""

import time

from tests.providers.servers.misbehaving import MisbehavingServer, Script

#: about the time of a page of a world, whose number of digits is part of a result
PAUSE_S = 0.12


class Site(MisbehavingServer):
    def __init__(self, pages):
        super().__init__()
        self._pages = pages
        self.on("*", self._serve_page)

    def _serve_page(self, request):
        time.sleep(PAUSE_S)
        if request.path.endswith("/web_search"):
            first, text = next(iter(self._pages.items()))
            found = {"title": "Bakery", "url": f"{self.origin}{first}", "content": text}
            return Script.answer({"results": [found]})
        if request.path in self._pages:
            return Script.answer(self._pages[request.path], content_type="text/plain; charset=utf-8")
        return Script.answer("Not Found", status=404, content_type="text/plain")
