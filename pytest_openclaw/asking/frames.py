"""Messages on a byte stream: a length of four bytes, then as many bytes."""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

_LENGTH = struct.Struct("!I")


def framed(message: bytes) -> bytes:
    """Return the message as it is sent on the stream."""
    return _LENGTH.pack(len(message)) + message


class Frames:
    """Turns chunks of bytes, cut anywhere, into messages."""

    def __init__(self) -> None:
        self._rest = bytearray()

    def feed(self, chunk: bytes) -> Iterator[bytes]:
        """Yield the messages that `chunk` completes, in order."""
        self._rest += chunk
        start = 0
        while len(self._rest) - start >= _LENGTH.size:
            (length,) = _LENGTH.unpack_from(self._rest, start)
            end = start + _LENGTH.size + length
            if len(self._rest) < end:
                break
            yield bytes(self._rest[start + _LENGTH.size : end])
            start = end
        del self._rest[:start]
