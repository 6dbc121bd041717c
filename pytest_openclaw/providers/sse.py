"""Server-sent events, read from bytes as they arrive.

The WHATWG standard's rules, without `id` and `retry`, which only a reconnecting client needs. Three
things that the standard drops are read, because model servers send them:

- a last event without a blank line, such as `[DONE]`: `close` returns it, and its reader decides whether
  it is complete;
- a field `error`, as older llama.cpp servers name the event of an error;
- a line of bare JSON, as a gateway writes when it fails in the middle of a stream.

httpx2's own `EventSource` is not used: it demands one content type, decodes by that type's charset, keeps
a byte order mark in the first field's name, holds a line that ends in CR back until more bytes come (which
would delay the first token), and stops at events over 1 MiB.
"""

from __future__ import annotations

from typing import NamedTuple

_BOM = b"\xef\xbb\xbf"


class Event(NamedTuple):
    """One event: its type (`message` unless named) and its data lines, joined by line feeds."""

    type: str
    data: str


class EventStream:
    """Turns chunks of bytes, cut anywhere, into events.

    Attributes:
        pending_bytes: received after the chunk that completed the last event.
    """

    def __init__(self) -> None:
        self.pending_bytes = 0
        self._line: list[bytes] = []
        self._type = ""
        self._data: list[str] = []
        self._at_start = True
        self._after_cr = False

    def feed(self, chunk: bytes) -> list[Event]:
        """Return the events that `chunk` completes, in order."""
        events = [event for line in self._lines(chunk) if (event := self._read(line))]
        self.pending_bytes = 0 if events else self.pending_bytes + len(chunk)
        return events

    def close(self) -> Event | None:
        """Return the last event without a blank line, if there is one."""
        line, self._line = self._without_bom(b"".join(self._line)), []
        return (self._read(line) if line else None) or self._read(b"")

    def _lines(self, chunk: bytes) -> list[bytes]:
        """Complete lines without their ends; CR counts at once, and an LF that follows later is skipped."""
        if self._after_cr and chunk[:1] == b"\n":
            chunk = chunk[1:]
        if not chunk:
            return []
        self._after_cr = chunk[-1:] == b"\r"
        lines = chunk.splitlines()
        rest = lines.pop() if chunk[-1:] not in b"\r\n" else b""
        if lines:
            lines[0] = self._without_bom(b"".join((*self._line, lines[0])))
            self._line = []
        if rest:
            self._line.append(rest)
        return lines

    def _without_bom(self, line: bytes) -> bytes:
        if not self._at_start:
            return line
        self._at_start = False
        return line.removeprefix(_BOM)

    def _read(self, line: bytes) -> Event | None:
        """Read a line; return the event that it ends, if it ends one."""
        if not line:
            return self._dispatch()
        # Broken bytes become U+FFFD here; a character cannot be cut, since a line is whole.
        text = line.decode("utf-8", "replace")
        name, _, value = text.partition(":")
        value = value.removeprefix(" ")
        if name == "data":
            self._data.append(value)
        elif name == "event":
            self._type = value
        elif name == "error":
            self._type, self._data = "error", [*self._data, value]
        elif text.startswith("{"):
            self._data.append(text)
        return None

    def _dispatch(self) -> Event | None:
        """End the event; an event without data is ignored."""
        event = Event(self._type or "message", "\n".join(self._data))
        self._type, self._data = "", []
        return event if event.data else None
