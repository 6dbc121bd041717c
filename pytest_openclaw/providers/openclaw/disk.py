"""Writes a world to the local disk, where the real agent works on it, and reads it back.

In a suite the workspace is `/workspace`; on disk it is another folder for each call. This module replaces one
path by the other in files, commands, calls and results.
"""

from __future__ import annotations

import errno
import json
import os
import re
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from pytest_openclaw.openclaw.paths import ROOT, is_inside, place_of
from pytest_openclaw.providers.mcp_tools import dump_offer
from pytest_openclaw.util.errors import OpenClawError
from pytest_openclaw.util.text import valid_text
from pytest_openclaw.values.worlds import WorldState
from pytest_openclaw.worlds.workspace import MOST_CHARS, ToolError, Workspace

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pytest_openclaw.values.worlds import World
    from pytest_openclaw.worlds.shell import Exec

MOST_FILES = 2000
MOST_FOLDERS = 1000
MOST_FILE_BYTES = 4_000_000
# Errors of a name, or of an existing file with that name, not of the disk.
_REFUSALS = (
    *(errno.ENAMETOOLONG, errno.EINVAL, errno.EILSEQ, errno.ELOOP),
    *(errno.EEXIST, errno.EISDIR, errno.ENOENT, errno.ENOTDIR, errno.ENOTEMPTY),
)
# OpenClaw's own folder in a workspace.
_OWN = ".openclaw"


def files_of(world: World) -> dict[str, str]:
    """Return the files at the start, including notes; place → text."""
    return {place_of(path): text for path, text in {**world.memory, **world.files}.items()}


@dataclass(frozen=True)
class Disk:
    """The files of a workspace, without links and huge files.

    Attributes:
        folder: its path, without links.

    """

    folder: Path

    # --- its two paths ---

    @cached_property
    def _patterns(self) -> tuple[re.Pattern[str], re.Pattern[str]]:
        # Whole names: neither `a/workspace` nor `/workspace-2` nor `/workspace.txt`. Anything may precede the
        # real path: in JSON for example the `n` of a line end.
        end = r"(?!\.?[\w-])"
        real = {self.folder.as_posix(), str(self.folder), json.dumps(str(self.folder))[1:-1]}
        return (
            re.compile(rf"(?<![\w.~/-]){re.escape(ROOT)}{end}"),
            re.compile(rf"(?:{'|'.join(map(re.escape, sorted(real)))}){end}"),
        )

    def with_real_paths(self, text: str) -> str:
        """Replace the world's path of the workspace by the real one."""
        return self._patterns[0].sub(lambda _: self.folder.as_posix(), text)

    def with_world_paths(self, text: str) -> str:
        """Replace the real path of the workspace by the world's."""
        return self._patterns[1].sub(lambda _: ROOT, text)

    # --- files ---

    def lay_out(self, files: Mapping[str, str]) -> None:
        """Write files; place → text."""
        for place, text in files.items():
            self._write(place, text)

    def read(self) -> tuple[dict[str, str], list[str]]:
        """Return the files, place → text, and the places of the folders, parents first.

        Files and folders beyond the limits of a world are left out.
        """
        files: dict[str, str] = {}
        folders: list[str] = []
        left = MOST_CHARS
        for path in sorted(self.folder.rglob("*"))[: 2 * MOST_FILES]:
            name = path.relative_to(self.folder).as_posix()
            if name.partition("/")[0] == _OWN or path.is_symlink() or valid_text(name) != name:
                continue
            if path.is_dir() and len(folders) < MOST_FOLDERS:
                folders.append(name)
            elif len(files) < MOST_FILES and (text := _text_of(path, left)) is not None:
                files[name] = self.with_world_paths(text)
                left -= len(text)
        return files, folders

    def load(self, played: Played) -> Workspace:
        """Return the workspace in memory; without names that a command cannot write, such as `a/.`."""
        files, folders = self.read()
        return Workspace(
            {**played.outside, **{name: files[name] for name in files if _is_place(name)}},
            {*played.folders, *filter(_is_place, folders)},
        )

    def store(self, workspace: Workspace) -> None:
        """Write the changes to the workspace since `load`; unchanged files are not touched.

        Raises:
            ToolError: the disk cannot have such a file, for example one with too long a name.

        """
        try:
            self._store(workspace)
        except OSError as error:
            if error.errno not in _REFUSALS:
                raise
            path = str(error.filename2 or error.filename)
            raise ToolError(f"{self.with_world_paths(path)}: {error.strerror}") from None

    def _store(self, workspace: Workspace) -> None:
        before, after = workspace.start, workspace.files
        for place in filter(is_inside, before.keys() - after.keys()):
            self._real(place).unlink(missing_ok=True)
        for place in sorted(filter(is_inside, workspace.start_folders - workspace.folders), reverse=True):
            folder = self._real(place)
            if folder.is_dir() and not any(folder.iterdir()):
                folder.rmdir()
        for place in filter(is_inside, workspace.folders - workspace.start_folders):
            self._real(place).mkdir(parents=True, exist_ok=True)
        for place in filter(is_inside, after):
            if before.get(place) != after[place]:
                self._write(place, after[place])

    def _write(self, place: str, text: str) -> None:
        file = self._real(place)
        file.parent.mkdir(parents=True, exist_ok=True)
        _write_whole(file, self.with_real_paths(valid_text(text)), beside=self.folder)

    def _real(self, place: str) -> Path:
        """Return the path of a place; raise if a link in it leads out of the workspace."""
        path = self.folder / place
        if Path(os.path.realpath(path.parent)) != path.parent or path == self.folder:
            raise OpenClawError(f"{place} leads out of the workspace.")
        return path


def _text_of(file: Path, most: int) -> str | None:
    """Return the text of a file; None if it is no file, huge, or just being removed by OpenClaw."""
    try:
        if not file.is_file() or file.stat().st_size > min(most, MOST_FILE_BYTES):
            return None
        return file.read_bytes().decode("utf-8", "replace")
    except FileNotFoundError:
        return None


def _is_place(name: str) -> bool:
    try:
        return place_of(name) == name
    except ValueError:
        return False


def _write_whole(file: Path, text: str, *, beside: Path) -> None:
    """Write a file atomically: readers see the old content or the new.

    Args:
        file: the file.
        text: its whole content.
        beside: the temporary file is a sibling of this path, so that a reader of the folder does not see it.

    """
    new = beside.with_name(f"{os.getpid()}.new")
    new.write_bytes(text.encode())
    new.replace(file)


@dataclass(frozen=True, kw_only=True)
class Played:
    """The part of a world's state that is not in its workspace.

    Attributes:
        outside: the suite's files outside the workspace, place → text; they are not on disk.
        folders: the folders in which they are or were.
        ran, parts: the commands so far; see `WorldState`.

    """

    outside: Mapping[str, str]
    folders: tuple[str, ...] = ()
    ran: tuple[str, ...] = ()
    parts: tuple[tuple[str, ...], ...] = ()

    @classmethod
    def at_start(cls, world: World) -> Played:
        """Return the state before the first command."""
        return cls(outside={place: text for place, text in files_of(world).items() if not is_inside(place)})

    @classmethod
    def load(cls, file: Path, world: World) -> Played:
        """Return the last saved state, or the start if there is none."""
        if not file.exists():
            return cls.at_start(world)
        data = json.loads(file.read_text("utf-8"))
        return cls(
            outside=data["outside"],
            folders=tuple(data["folders"]),
            ran=tuple(data["ran"]),
            parts=tuple(map(tuple, data["parts"])),
        )

    def after(self, workspace: Workspace, shell: Exec) -> Played:
        """Return the state after some commands that have resulted in this workspace."""
        outside = {place: text for place, text in workspace.files.items() if not is_inside(place)}
        folders = sorted(place for place in workspace.folders if not is_inside(place))
        return Played(
            outside=outside,
            folders=tuple(folders),
            ran=(*self.ran, *shell.ran),
            parts=(*self.parts, *shell.parts),
        )

    def save(self, file: Path) -> None:
        """Write the state to a file."""
        plain = {"outside": dict(self.outside), "folders": self.folders, "ran": self.ran, "parts": self.parts}
        _write_whole(file, json.dumps(plain), beside=file)


@dataclass(frozen=True)
class Stage:
    """The files of a world that is played: its workspace, and files that the model does not see.

    Attributes:
        folder: of one call, without links.

    """

    folder: Path

    @property
    def disk(self) -> Disk:
        """The workspace."""
        return Disk(self.folder / "workspace")

    @property
    def world_file(self) -> Path:
        """The world, as `mcp_tools.dump_offer` writes it."""
        return self.folder / "world.json"

    @property
    def played_file(self) -> Path:
        """The state outside the workspace."""
        return self.folder / "played.json"

    @property
    def lock_file(self) -> Path:
        """Locked by the command that is being played."""
        return self.folder / "lock"

    def lay_out(self, world: World) -> None:
        """Write the world; the workspace exists and is empty."""
        inside = {place: text for place, text in files_of(world).items() if is_inside(place)}
        self.disk.lay_out(inside)
        self.world_file.write_text(dump_offer((), world), "utf-8")

    def state(self, world: World) -> WorldState:
        """Return the current state."""
        played = Played.load(self.played_file, world)
        start, files = files_of(world), {**self.disk.read()[0], **played.outside}
        changed = sorted(place for place in {*start, *files} if start.get(place) != files.get(place))
        return WorldState(files=files, ran=played.ran, parts=played.parts, changed=tuple(changed))
