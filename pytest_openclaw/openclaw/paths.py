"""Paths of a world: names of its texts, never places on a disk.

Paths in the workspace are relative to it. Paths outside keep the leading `/`, such as those of files with
which a suite tempts a model.
"""

from __future__ import annotations

import posixpath
import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pytest_openclaw.values.tool_calls import Dispatched

ROOT = "/workspace"
HOME = "/home/openclaw"
SCRATCH = "/tmp"  # noqa: S108
LONGEST_PATH = 1024
_IN_PATCH = re.compile(r"^\*\*\* (?:Add|Update|Delete) File: (.+)$|^\*\*\* Move to: (.+)$", re.MULTILINE)
DEEPEST_PATH = 32


def place_of(path: str, folder: str = "") -> str:
    """Return the normal form of a path; the workspace itself is the empty text.

    Raises:
        ValueError: a file cannot have that name.
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
    """Return a path as OpenClaw 2026.9.6's file tools read it: without a leading `@`."""
    bare = path.removeprefix("@")
    return f"./{bare}" if bare.startswith("@") else bare


def is_inside(place: str) -> bool:
    """Whether a place is in the workspace."""
    return not place.startswith("/")


def absolute(place: str) -> str:
    """Return a place as a shell shows it."""
    return posixpath.join(ROOT, place) if place else ROOT


def folders_above(place: str) -> list[str]:
    """Return the parent folders of a place, without the workspace itself and the root of the disk."""
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
