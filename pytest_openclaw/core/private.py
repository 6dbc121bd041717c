"""Files for this user alone, whatever the umask: tokens, keys, prompts, configs, logs."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from io import BufferedWriter
    from pathlib import Path

FILE_MODE = 0o600
FOLDER_MODE = 0o700


def open_private(path: Path, mode: Literal["wb", "ab"]) -> BufferedWriter:
    """Open a file for writing; a new one is readable and writable by its owner only."""
    return open(path, mode, opener=_create)


def write_private(path: Path, data: bytes) -> None:
    """Write a whole file that no other user may read."""
    with open_private(path, "wb") as file:
        file.write(data)


def _create(path: str, flags: int) -> int:
    return os.open(path, flags, FILE_MODE)
