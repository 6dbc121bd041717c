"""Parses a prompt's `images`, the pictures that are sent with it."""

from __future__ import annotations

from pathlib import PurePosixPath, PureWindowsPath
from typing import TYPE_CHECKING, Any

from pytest_openclaw.suites.wording import kind_of, shown
from pytest_openclaw.types.images import FORMATS, Image, media_type_of

if TYPE_CHECKING:
    from collections.abc import Callable

MOST_IMAGES = 20
"""In one request, as many as Anthropic takes in full size: https://platform.claude.com/docs/en/build-with-claude/vision"""
MOST_BYTES = 3_932_160
"""Of a picture; it has 5 MiB as base64, which is Anthropic's limit and the smallest of all."""
MOST_BYTES_TOGETHER = 4 * MOST_BYTES
"""Of all pictures; they have 20 MiB as base64, Gemini's limit for a request with data in it."""
_HINT = 'Write paths in brackets, such as ["chart.png"].'
_LFS = b"version https://git-lfs.github.com/"


def read_images(value: Any, read_file: Callable[[str], bytes]) -> tuple[Image, ...]:
    """Return the pictures of a suite's `images`.

    Args:
        value: as the author wrote it.
        read_file: returns a file of the suite's folder, or at most `MOST_BYTES` and one more of it; raises
            `ValueError` if there is no such file.

    Raises:
        ValueError: an entry is no path of a picture beside the suite; the message says which, and why.
    """
    if not isinstance(value, list):
        raise ValueError(f"are {kind_of(value)}, not a list. {_HINT}")
    if not value:
        raise ValueError(f"are an empty list. Leave the key out. {_HINT}")
    if len(value) > MOST_IMAGES:
        raise ValueError(f"are {len(value)} pictures. Name at most {MOST_IMAGES}.")
    images = []
    for place, path in enumerate(value, 1):
        try:
            images.append(_image(path, read_file))
        except ValueError as error:
            raise ValueError(f"no. {place} {error}") from None
    if (n_bytes := sum(len(image.data) for image in images)) > MOST_BYTES_TOGETHER:
        raise ValueError(
            f"have {n_bytes:,} bytes together. Some APIs take no request with more than"
            f" {MOST_BYTES_TOGETHER:,}, so make them smaller, or leave some out."
        )
    return tuple(images)


def _image(path: Any, read_file: Callable[[str], bytes]) -> Image:
    if not isinstance(path, str):
        raise ValueError(f"is {kind_of(path)}, not a path. {_HINT}")
    if not path.strip():
        raise ValueError(f"is blank. {_HINT}")
    if why := _why_not_beside(path):
        raise ValueError(f"{shown(path)} {why}")
    data = read_file(path)
    if len(data) > MOST_BYTES:
        raise ValueError(
            f"{shown(path)} has more than {MOST_BYTES:,} bytes, which some APIs refuse. Make it smaller."
        )
    if media_type := media_type_of(data):
        return Image(path=path, media_type=media_type, data=data)
    if data.startswith(_LFS):
        raise ValueError(f"{shown(path)} is only Git LFS's pointer to a picture. Run: git lfs pull")
    formats = f"{', '.join(FORMATS[:-1])} or {FORMATS[-1]}"
    raise ValueError(f"{shown(path)} is no picture by its first bytes. Save it as {formats}.")


def _why_not_beside(path: str) -> str:
    """Return why a path cannot be one of a file in the suite's folder; empty if it can."""
    if "\\" in path:
        return "has a backslash. Write / between folders."
    if "://" in path or path.startswith("data:"):
        return "is an address. Only files beside the suite are sent, so save the picture there."
    if PurePosixPath(path).is_absolute() or PureWindowsPath(path).drive:
        return "is an absolute path. Copy the picture beside the suite, and write its path from there."
    if ".." in PurePosixPath(path).parts:
        return "leads out of the suite's folder. Copy the picture beside the suite, or into a folder there."
    return ""
