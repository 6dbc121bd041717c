"""Frames on a byte stream: a length of four bytes, then as many bytes.

A frame has the messages that are sent together: pickled, or within one process passed by reference.
"""

from __future__ import annotations

import itertools
import struct
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator

_LENGTH = struct.Struct("!I")


def framed(content: bytes) -> bytes:
    """Return the frame as it is sent on the stream."""
    return _LENGTH.pack(len(content)) + content


class Frames:
    """Turns chunks of bytes, cut anywhere, into frames."""

    def __init__(self) -> None:
        self._rest = bytearray()

    def feed(self, chunk: bytes) -> Iterator[bytes]:
        """Yield the contents of the frames that `chunk` completes, in order."""
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
    """Makes bytes of an object as `pickle` does, for one process: the number of an object that is kept."""

    def __init__(self) -> None:
        self._kept: dict[bytes, Any] = {}
        self._numbers = itertools.count()

    def dumps(self, content: object) -> bytes:
        """Return the bytes for an object."""
        key = str(next(self._numbers)).encode()
        self._kept[key] = content
        return key

    def loads(self, key: bytes) -> Any:
        """Return the object of these bytes, once."""
        return self._kept.pop(key)
