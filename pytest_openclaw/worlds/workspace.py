"""A world's paths and files while it is played, and helpers for its tools: arguments, errors, long results.

Paths name texts of a world, never files on a disk. A normal path is relative to the workspace; outside the
workspace it begins with `/`, such as the path of a file with which a suite tempts a model.
"""

from __future__ import annotations

import json
import math
import posixpath
import re
from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
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


# --- files ----------------------------------------------------------------------------------------

ROOM_CHARS = 1_000_000
"""The most characters that may be written into a world in total."""
ENTRY_CHARS = 500
"""The room that a new file or folder takes in addition to its text."""


class ToolError(Exception):
    """A tool failed; the message is sent to the model."""


class Workspace:
    """Texts by normal path (see `paths.normal_path`), with a limited total size.

    `folders` adds folders without files. An impossible change raises `ToolError`.
    """

    def __init__(self, files: Mapping[str, str], folders: Iterable[str] = ()) -> None:
        self.files = {normal_path(path): text for path, text in files.items()}
        self.folders = set(folders)
        for path in (*self.files, *folders):
            self.folders.update(folders_above(path))
        self.start, self.start_folders = dict(self.files), frozenset(self.folders)
        self._room = ROOM_CHARS

    def is_folder(self, path: str) -> bool:
        """Whether the workspace has this folder."""
        return path in ("", "/", HOME, SCRATCH) or path in self.folders

    def entries(self, path: str) -> list[str]:
        """Return the names in a folder, folders with a trailing `/`, in alphabetical order."""
        below = f"{absolute(path).rstrip('/')}/"
        names: set[str] = set()
        for one in (*self.files, *(f"{folder}/" for folder in self.folders)):
            full = absolute(one)
            if full.startswith(below) and full != below:
                name, slash, _ = full.removeprefix(below).partition("/")
                names.add(name + slash)
        return sorted(names)

    def put(self, path: str, text: str) -> None:
        """Write a file."""
        if self.is_folder(path):
            raise ToolError("not a file")
        self._make_room(path, len(text), is_new=path not in self.files)
        self.files[path] = text

    def make_folder(self, path: str) -> None:
        """Make a folder and those above it."""
        if path in self.files:
            raise ToolError(f"EEXIST: file already exists: {absolute(path)}")
        self._make_room(path, 0, is_new=not self.is_folder(path))
        self.folders.add(path)

    def remove(self, path: str) -> None:
        """Remove a file or an empty folder; its parent folders are kept."""
        self.files.pop(path, None)
        self.folders.discard(path)

    def take_room(self, chars: int) -> None:
        """Count text against the limit, even if it is removed later."""
        if chars > self._room:
            raise ToolError("ENOSPC: no space left on device")
        self._room -= chars

    def _make_room(self, path: str, chars: int, *, is_new: bool) -> None:
        above = folders_above(path)
        if file := next((one for one in above if one in self.files), None):
            raise ToolError(f"Path component is not a directory: {absolute(file)}")
        self.take_room(chars + ENTRY_CHARS * is_new)
        self.folders.update(above)


# --- the arguments of a call; a suite's own tool of the same name may have other types ---------------


def pretty(value: Any) -> str:
    """Return a value as OpenClaw's tools write it."""
    return json.dumps(value, ensure_ascii=False, indent=2)


def checked_path(path: str) -> str:
    """Return the normal form of a path in a call; raise `ToolError` if no file can have this name."""
    try:
        return normal_path(path)
    except ValueError as error:
        raise ToolError(str(error)) from None


def inside(path: str) -> str:
    """Return the normal path of a file tool's call; raise `ToolError` for one outside the workspace."""
    normal = checked_path(without_at_sign(path))
    if not is_inside(normal):
        raise ToolError(
            f"Path escapes sandbox root ({ROOT}): {path}. Use a relative path under `.openclaw/tmp/` inside"
            " the workspace for scratch/temp/meta files that file tools need to read or write later."
        )
    return normal


def text_of(arguments: Mapping[str, Any], key: str, default: str | None = None) -> str:
    """Return an argument that must be a text; raise `ToolError` for another value."""
    value = arguments.get(key, default)
    if not isinstance(value, str):
        raise ToolError(f"{key} required")
    return value


def whole_of(arguments: Mapping[str, Any], key: str, default: int, *, least: int = 1) -> int:
    """Return an argument as a whole number of at least `least`; the default if it is not a number."""
    value = arguments.get(key)
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
        return default
    return max(least, int(value))


# --- long results, cut as OpenClaw 2026.9.6 cuts them ---------------------------------------------

# `resolveAutoLiveToolResultMaxChars`: the least context, and the characters of a result.
_RESULT_CHARS = ((200_000, 64_000), (100_000, 32_000), (0, 16_000))
_LEFT_OUT = "\n\n⚠️ [... middle content omitted — showing head and tail ...]\n\n"
_SHOWS_OUTCOME = re.compile(
    r"\b(?:error|exception|failed|fatal|traceback|panic|stack trace|errno|exit code"
    r"|total|summary|result|complete|finished|done)\b|\}\s*\Z",
    re.ASCII,
)
#: characters at the end of a text in which an outcome is looked for
_LAST_CHARS = 2000
_LEAST_KEPT, _MOST_TAIL = 2000, 4000


def result_chars(context_tokens: int) -> int:
    """Return the characters of a result for a model with this context.

    `resolveLiveToolResultMaxChars` and `resolveToolResultContextMaxChars`. OpenClaw counts a Chinese,
    Japanese or Korean character as several Latin ones; here each character counts once.
    """
    most = next(chars for least, chars in _RESULT_CHARS if context_tokens >= least)
    return min(most, max(512, context_tokens // 2))


def cut_mark(chars: int) -> str:
    """Return the note at the end of a result from which so many characters were cut off."""
    return f"[... {chars} more characters truncated; rerun with narrower args if needed]"


def cut_result(text: str, most: int) -> str:
    """Return a result as a model receives it: the whole, the beginning, or the beginning and the end.

    `truncateToolResultText` in its `tool-result-truncation`.
    """
    if len(text) <= most:
        return text
    room = max(0, most - len(cut_mark(len(text))))
    tail_room = min(int(room * 0.3), _MOST_TAIL)
    head_room = room - tail_room - len(_LEFT_OUT)
    if _SHOWS_OUTCOME.search(text[-_LAST_CHARS:].lower()) and head_room > _LEAST_KEPT:
        kept = _head(text[:head_room]) + _LEFT_OUT + _tail(text[-tail_room:])
    else:
        kept = _head(text[:room])
    return kept + cut_mark(len(text) - len(kept))


def _head(text: str) -> str:
    """Return a text without its last, incomplete line, unless this line is long."""
    end = text.rfind("\n")
    return text[:end] if end > len(text) * 0.8 else text


def _tail(text: str) -> str:
    """Return a text without its first, incomplete line, unless this line is long."""
    end = text.find("\n")
    return text[end + 1 :] if 0 <= end < len(text) * 0.2 else text
