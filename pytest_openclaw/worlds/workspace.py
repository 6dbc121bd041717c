"""The files of a world while it is played: texts by place, with a limited total size."""

from __future__ import annotations

import json
import math
from typing import TYPE_CHECKING, Any

from pytest_openclaw.openclaw.paths import ROOT, absolute, folders_above, is_inside, place_of, referred

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

ROOM_CHARS = 1_000_000
"""The most characters that may be written into a world in total."""
MOST_CHARS = 16_000_000
"""The most characters in a world: with four bytes per character, these are 64 MB."""
MOST_FILES = 2000
_NO_ROOM = "ENOSPC: no space left on device"
_SCRATCH_HINT = (
    ". Use a relative path under `.openclaw/tmp/` inside the workspace for scratch/temp/meta files that file"
    " tools need to read or write later."
)


class ToolError(Exception):
    """A tool failed; the message is sent to the model."""


class Workspace:
    """Texts by place; see `paths.place_of`.

    Args:
        files: path → text, as a suite wrote them.
        folders: places of folders, in addition to those of the files.
    """

    def __init__(self, files: Mapping[str, str], folders: Iterable[str] = ()) -> None:
        self.files = {place_of(path): text for path, text in files.items()}
        self.folders = set(folders)
        for place in (*self.files, *folders):
            self.folders.update(folders_above(place))
        self.start, self.start_folders = dict(self.files), frozenset(self.folders)
        self.spilled: set[str] = set()
        self._room = max(0, min(ROOM_CHARS, MOST_CHARS - sum(map(len, self.files.values()))))
        self._new_entries_left = MOST_FILES

    def is_folder(self, place: str) -> bool:
        """Whether there is a folder of this name."""
        return place in ("", "/") or place in self.folders

    def entries(self, place: str) -> list[str]:
        """Return the names in a folder, folders with a trailing `/`, in alphabetical order."""
        below = f"{absolute(place).rstrip('/')}/"
        names: set[str] = set()
        for one in (*self.files, *(f"{folder}/" for folder in self.folders)):
            full = absolute(one)
            if full.startswith(below) and full != below:
                name, slash, _ = full.removeprefix(below).partition("/")
                names.add(name + slash)
        return sorted(names)

    def put(self, place: str, text: str | None) -> None:
        """Write a file, or remove it if the text is None.

        Raises:
            ToolError: it is a folder, is below a file, or exceeds the size limit.
        """
        if text is None:
            self.remove(place)
            return
        if self.is_folder(place):
            raise ToolError("not a file")
        self._check_above(place)
        self.take_room(len(text))
        if place not in self.files:
            self._add(place)
        self.files[place] = text

    def make_folder(self, place: str) -> None:
        """Make a folder and those above it; raises as `put` does."""
        if place in self.files:
            raise ToolError(f"EEXIST: file already exists: {absolute(place)}")
        self._check_above(place)
        if not self.is_folder(place):
            self._add(place)
            self.folders.add(place)

    def spill(self, place: str, text: str) -> None:
        """Keep a text outside the workspace that takes no room and is not a change of the world."""
        self.folders.update(folders_above(place))
        self.files[place] = text
        self.spilled.add(place)

    def remove(self, place: str) -> None:
        """Remove a file or an empty folder; its parent folders are kept."""
        self.files.pop(place, None)
        self.folders.discard(place)

    def take_room(self, chars: int) -> None:
        """Count text against the limit, even if it is removed later.

        Raises:
            ToolError: the limit is exceeded.
        """
        if chars > self._room:
            raise ToolError(_NO_ROOM)
        self._room -= chars

    def _add(self, place: str) -> None:
        if not self._new_entries_left:
            raise ToolError(_NO_ROOM)
        self._new_entries_left -= 1
        self.folders.update(folders_above(place))

    def _check_above(self, place: str) -> None:
        for above in folders_above(place):
            if above in self.files:
                raise ToolError(f"Path component is not a directory: {absolute(above)}")


# --- the arguments of a call, whose types may differ in a suite's own tool of the same name ---------


def pretty(value: Any) -> str:
    """Return a value as OpenClaw's tools write it."""
    return json.dumps(value, ensure_ascii=False, indent=2)


def named_place(path: str) -> str:
    """Return the place of a path in a call.

    Raises:
        ToolError: a file cannot have that name.
    """
    try:
        return place_of(path)
    except ValueError as error:
        raise ToolError(str(error)) from None


def inside(path: str, hint: str = _SCRATCH_HINT) -> str:
    """Return the place of a path in the call of a file tool.

    Raises:
        ToolError: it is outside the workspace, or a file cannot have that name.
    """
    place = named_place(referred(path))
    if not is_inside(place):
        raise ToolError(f"Path escapes sandbox root ({ROOT}): {path}{hint}")
    return place


def text_of(arguments: Mapping[str, Any], key: str, default: str | None = None) -> str:
    """Return an argument that must be a text.

    Raises:
        ToolError: it is not a text, and there is no default.
    """
    value = arguments.get(key, default)
    if not isinstance(value, str):
        raise ToolError(f"{key} required")
    return value


def whole_of(arguments: Mapping[str, Any], key: str, default: int, *, least: int = 1) -> int:
    """Return an argument as a whole number of at least `least`; the default if it is another value."""
    value = arguments.get(key)
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
        return default
    return max(least, int(value))
