"""A picture that is sent with a prompt."""

from __future__ import annotations

import hashlib
from base64 import b64encode
from dataclasses import dataclass, field
from functools import cached_property
from typing import Literal, get_args

MediaType = Literal["image/png", "image/jpeg", "image/gif", "image/webp"]
"""The formats that every API with pictures accepts."""
FORMATS = [media_type.partition("/")[2].upper() for media_type in get_args(MediaType)]


@dataclass(frozen=True, kw_only=True)
class Image:
    """A picture of a suite, as it is on disk.

    Attributes:
        path: as its suite has it: relative to the suite's folder, with `/`.
        data: the file.
    """

    path: str
    media_type: MediaType
    data: bytes = field(repr=False)

    @cached_property
    def sha256(self) -> str:
        """The hash of the file, which is part of the prompt's definition."""
        return hashlib.sha256(self.data).hexdigest()

    @property
    def base64(self) -> str:
        """The file as it is on the wire."""
        return b64encode(self.data).decode("ascii")

    @property
    def data_uri(self) -> str:
        """The file as an address that contains it."""
        return f"data:{self.media_type};base64,{self.base64}"


def media_type_of(data: bytes) -> MediaType | None:
    """Return the format by the first bytes of a file; None if it is no picture, or one of another format."""
    if data.startswith(b"\x89PNG\r\n\x1a\n"):
        return "image/png"
    if data.startswith(b"\xff\xd8\xff"):
        return "image/jpeg"
    if data.startswith((b"GIF87a", b"GIF89a")):
        return "image/gif"
    if data.startswith(b"RIFF") and data[8:12] == b"WEBP":
        return "image/webp"
    return None
