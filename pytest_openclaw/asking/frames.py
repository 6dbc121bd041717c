"""Messages on a byte stream: a length of four bytes, then as many bytes.

They are pickled, or within one process passed by reference.
"""

from __future__ import annotations

import itertools
import struct
from typing import TYPE_CHECKING, Any

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


class ByReference:
    """Makes bytes of messages as `pickle` does, for one process: the number of a message that is kept."""

    def __init__(self) -> None:
        self._kept: dict[bytes, Any] = {}
        self._numbers = itertools.count()

    def dumps(self, message: object) -> bytes:
        """Return the bytes for a message."""
        key = str(next(self._numbers)).encode()
        self._kept[key] = message
        return key

    def loads(self, key: bytes) -> Any:
        """Return the message of these bytes, once."""
        return self._kept.pop(key)
