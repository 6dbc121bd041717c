"""Reads JSON objects, one per line, from bytes as they arrive: the streams of Ollama's own API.

A line ends at LF, CR or both, which JSON text contains only escaped; blank lines and a byte order mark before
the first one are ignored. If the body ends before the last line feed, `close` returns the last line, and its
reader decides whether it is complete.
"""

from __future__ import annotations

from pytest_openclaw.providers.sse import Event

_BOM = b"\xef\xbb\xbf"


class LineStream:
    """Turns chunks of bytes, cut anywhere, into events, one for each line that is not blank.

    Attributes:
        pending_bytes: received after the chunk that completed the last event.
    """

    def __init__(self) -> None:
        self.pending_bytes = 0
        self._line: list[bytes] = []
        self._at_start = True

    def feed(self, chunk: bytes) -> list[Event]:
        """Return the lines that `chunk` completes, in order."""
        if not chunk:
            return []
        lines = chunk.splitlines()
        rest = lines.pop() if chunk[-1:] not in b"\r\n" else b""
        if lines:
            lines[0] = b"".join((*self._line, lines[0]))
            self._line = []
        if rest:
            self._line.append(rest)
        events = [event for line in lines if (event := self._event(line))]
        self.pending_bytes = 0 if events else self.pending_bytes + len(chunk)
        return events

    def close(self) -> Event | None:
        """Return the last line without a line feed, if there is one."""
        line, self._line = b"".join(self._line), []
        return self._event(line)

    def _event(self, line: bytes) -> Event | None:
        if self._at_start:
            self._at_start = False
            line = line.removeprefix(_BOM)
        # Broken bytes become U+FFFD here; a character cannot be cut, since a line is whole.
        text = line.decode("utf-8", "replace").strip(" \t")
        return Event("message", text) if text else None
