"""Paths in a world: they name its texts, never files on a disk.

A normal path is relative to the workspace; outside the workspace it begins with `/`, such as the path of
a file with which a suite tempts a model.
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
LONGEST_PATH, LONGEST_NAME = 1024, 255
"""Bytes of a path, and of a name in it."""
_IN_PATCH = re.compile(r"^\*\*\* (?:Add|Update|Delete) File: (.+)$|^\*\*\* Move to: (.+)$", re.MULTILINE)
DEEPEST_PATH = 32


def normal_path(path: str, folder: str = "") -> str:
    """Return the normal form of a path; it is empty for the workspace itself.

    Raises:
        ValueError: a file cannot have that name.
    """
    if "\0" in path:
        raise ValueError("Invalid path: it holds a null byte")
    if len(f"{folder}{path}".encode("utf-8", "replace")) > LONGEST_PATH:
        raise ValueError("ENAMETOOLONG: name too long")
    if path == "~" or path.startswith("~/"):
        path = HOME + path[1:]
    full = "/" + posixpath.normpath(posixpath.join(ROOT, folder, path)).lstrip("/")
    names = full.encode("utf-8", "replace").split(b"/")
    if len(names) - 1 > DEEPEST_PATH or max(map(len, names)) > LONGEST_NAME:
        raise ValueError("ENAMETOOLONG: name too long")
    return "" if full == ROOT else full.removeprefix(f"{ROOT}/")


def without_at_sign(path: str) -> str:
    """Return a path as OpenClaw 2026.9.6's file tools read it: without a leading `@`."""
    bare = path.removeprefix("@")
    return f"./{bare}" if bare.startswith("@") else bare


def is_inside(path: str) -> bool:
    """Whether a normal path is in the workspace."""
    return not path.startswith("/")


def absolute(path: str) -> str:
    """Return a normal path as a shell shows it."""
    return posixpath.join(ROOT, path) if path else ROOT


def folders_above(path: str) -> list[str]:
    """Return the parents of a normal path, without the workspace and the root folder."""
    parts = path.split("/")
    return [above for n in range(1, len(parts)) if (above := "/".join(parts[:n]))]


def paths_of(call: Dispatched) -> Iterator[str]:
    """Yield the paths that a call names: of a file tool or a patch, or a command's folder."""
    arguments = call.arguments or {}
    if isinstance(path := arguments.get("path"), str):
        yield without_at_sign(path)
    if isinstance(folder := arguments.get("workdir"), str):
        yield folder
    if isinstance(patch := arguments.get("input"), str):
        yield from (without_at_sign((found[1] or found[2]).strip()) for found in _IN_PATCH.finditer(patch))
