"""Reads JSON objects, one per line, from bytes as they arrive: the streams of Ollama's own API.

A line ends at LF, CR or both, which JSON text contains only escaped; blank lines and a byte order mark before
the first one are ignored. If the body ends before the last line feed, `close` returns the last line, and its
reader decides whether it is complete.
"""

from __future__ import annotations

from pytest_openclaw.providers.sse import Event, EventStream


class LineStream(EventStream):
    """Turns chunks of bytes, cut anywhere, into events, one for each line that is not blank."""

    def _read(self, line: bytes) -> Event | None:
        text = line.decode("utf-8", "replace").strip(" \t")
        return Event("message", text) if text else None
