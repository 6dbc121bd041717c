"""Paths of a world: names for its texts, never places on a disk.

Those in the workspace are relative to it. One outside keeps its leading `/`, as the files do that a suite
puts there so that a model may be tempted.
"""

from __future__ import annotations

import posixpath
import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pytest_openclaw.types.tool_calls import Dispatched

ROOT = "/workspace"
HOME = "/home/openclaw"
LONGEST_PATH = 1024
_IN_PATCH = re.compile(r"^\*\*\* (?:Add|Update|Delete) File: (.+)$|^\*\*\* Move to: (.+)$", re.MULTILINE)
DEEPEST_PATH = 32


def place_of(path: str, folder: str = "") -> str:
    """Return the one spelling of a path; the workspace itself is the empty text.

    Args:
        path: as somebody wrote it: relative, absolute, with `~`, `.` or `..`.
        folder: what a relative one starts from, as this function gave it.

    Raises:
        ValueError: no file can have that name.
    """
    written = path
    if "\0" in written:
        raise ValueError("Invalid path: it holds a null byte")
    if len(written) + len(folder) > LONGEST_PATH:
        raise ValueError("ENAMETOOLONG: name too long")
    if written == "~" or written.startswith("~/"):
        written = HOME + written[1:]
    full = "/" + posixpath.normpath(posixpath.join(ROOT, folder, written)).lstrip("/")
    if full.count("/") > DEEPEST_PATH:
        raise ValueError("ENAMETOOLONG: name too long")
    return "" if full == ROOT else full.removeprefix(f"{ROOT}/")


def referred(path: str) -> str:
    """Return a path as OpenClaw 2026.9.6's file tools take it: without an `@` before it."""
    bare = path.removeprefix("@")
    return f"./{bare}" if bare.startswith("@") else bare


def is_inside(place: str) -> bool:
    """Whether a place is in the workspace."""
    return not place.startswith("/")


def absolute(place: str) -> str:
    """Return a place as a shell would show it."""
    return posixpath.join(ROOT, place) if place else ROOT


def folders_above(place: str) -> list[str]:
    """Return the folders in which a place is, without the workspace itself and the root of the disk."""
    parts = place.split("/")
    return [above for n in range(1, len(parts)) if (above := "/".join(parts[:n]))]


def paths_of(call: Dispatched) -> Iterator[str]:
    """Yield the paths that a call of a file tool, or the folder of a command, names."""
    arguments = call.arguments or {}
    if isinstance(path := arguments.get("path"), str):
        yield referred(path)
    if isinstance(folder := arguments.get("workdir"), str):
        yield folder
    if isinstance(patch := arguments.get("input"), str):
        yield from (referred((found[1] or found[2]).strip()) for found in _IN_PATCH.finditer(patch))
