"""The folders of one call of OpenClaw: the world on disk, and the program in the place of a shell.

In a suite the workspace is `/workspace`; on disk it is another folder for each call. One path is replaced by
the other in files, commands, calls and results.

OpenClaw's exec calls `$SHELL -c COMMAND`, in the workspace or in the model's folder. The command is answered
as in a scripted exchange (`worlds/shell.py`): by the suite's answers, or in a sandboxed bash on the files on
disk. Nothing is executed, and nothing else is read or written.
"""

from __future__ import annotations

import errno
import json
import os
import re
import shlex
import sys
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from pytest_openclaw.providers.mcp_tools import dump_offer, load_offer, write_error
from pytest_openclaw.util.files import LockFile
from pytest_openclaw.util.text import file_bytes, valid_text
from pytest_openclaw.values.worlds import WorldState
from pytest_openclaw.worlds.shell import Exec, Ran, TimedOutError
from pytest_openclaw.worlds.workspace import ROOT, ToolError, Workspace, checked_path, is_inside, normal_path

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from pytest_openclaw.util.files import JsonObject
    from pytest_openclaw.values.worlds import World

# Errors of a name, or of an existing file with that name, not of the disk.
_REFUSALS = (
    *(errno.ENAMETOOLONG, errno.EINVAL, errno.EILSEQ),
    *(errno.EEXIST, errno.EISDIR, errno.ENOENT, errno.ENOTDIR, errno.ENOTEMPTY),
)
# OpenClaw's own folder in a workspace.
_OWN = ".openclaw"
# Without a world OpenClaw never executes commands. If it did, this would be its shell.
_NO_SHELL = "#!/bin/sh\necho 'no command is run here' >&2\nexit 126\n"


class Scratch:
    """The folders and files of one call.

    Args:
        folder: of this call, without links.
        compiled: the folder of Node's compile cache, with which later starts take two thirds of the time;
            None is within `folder`.
    """

    def __init__(self, folder: Path, compiled: Path | None = None) -> None:
        self.folder = folder
        self.compiled = compiled or folder / "compiled"
        self.workspace = folder / "workspace"
        self.config = folder / "openclaw.json"
        self.message = folder / "message.txt"
        self.shell = folder / "shell"
        # The model does not see these: the world, its state outside the workspace, the lock of a command.
        self.world_file = folder / "world.json"
        self.played_file = folder / "played.json"
        self.lock_file = folder / "lock"
        # Whole names: neither `a/workspace` nor `/workspace-2` nor `/workspace.txt`. Anything may precede the
        # real path: in JSON for example the `n` of a line end.
        real, end = str(self.workspace), r"(?!\.?[\w-])"
        forms = "|".join(map(re.escape, sorted({self.workspace.as_posix(), real, json.dumps(real)[1:-1]})))
        self._root = re.compile(rf"(?<![\w.~/-]){re.escape(ROOT)}{end}")
        self._real = re.compile(rf"(?:{forms}){end}")

    def with_real_paths(self, text: str) -> str:
        """Replace the world's path of the workspace by the real one."""
        return self._root.sub(lambda _: self.workspace.as_posix(), text)

    def with_world_paths(self, text: str) -> str:
        """Replace the real path of the workspace by the world's."""
        return self._real.sub(lambda _: ROOT, text)

    def lay_out(self, world: World | None) -> None:
        """Write the shell, and the files of a world; the workspace exists and is empty."""
        self.shell.write_text(_NO_SHELL if world is None else _script(self.folder), encoding="utf-8")
        self.shell.chmod(0o700)
        if world is None:
            return
        self.world_file.write_text(dump_offer((), world), "utf-8")
        files = _files_of(world)
        for path in filter(is_inside, files):
            self._write(path, files[path])
        self.save(Workspace({path: text for path, text in files.items() if not is_inside(path)}))

    def state(self, world: World) -> WorldState:
        """Return the current state."""
        played = self._played()
        start, files = _files_of(world), {**self._read()[0], **played["outside"]}
        changed = sorted(path for path in {*start, *files} if start.get(path) != files.get(path))
        return WorldState(
            files=files,
            ran=tuple(played["ran"]),
            parts=tuple(tuple(map(tuple, parts)) for parts in played["parts"]),
            unrecorded=tuple(played["unrecorded"]),
            changed=tuple(changed),
            start=start,
        )

    def load(self) -> Workspace:
        """Return the workspace in memory."""
        played, (files, folders) = self._played(), self._read()
        return Workspace({**played["outside"], **files}, {*played["folders"], *folders})

    def save(self, workspace: Workspace, shell: Exec | None = None) -> None:
        """Save the world outside the workspace, which is not on disk, and add the commands of a shell."""
        before = self._played() if self.played_file.exists() else {}
        ran, parts, unrecorded = (before.get(key, []) for key in ("ran", "parts", "unrecorded"))
        if shell is not None:
            unrecorded += [len(ran) + n for n in shell.unrecorded]
            ran, parts = [*ran, *shell.ran], [*parts, *shell.parts]
        played = {
            "outside": {path: text for path, text in workspace.files.items() if not is_inside(path)},
            "folders": sorted(path for path in workspace.folders if not is_inside(path)),
            "ran": ran,
            "parts": parts,
            "unrecorded": unrecorded,
        }
        self._replace(self.played_file, json.dumps(played))

    def store(self, workspace: Workspace) -> None:
        """Write the changes to the workspace since `load`; unchanged files are not touched.

        Raises:
            ToolError: the disk cannot have such a file, for example one with too long a name.
        """
        before, after = workspace.start, workspace.files
        try:
            for path in filter(is_inside, before.keys() - after.keys()):
                (self.workspace / path).unlink(missing_ok=True)
            for path in sorted(filter(is_inside, workspace.start_folders - workspace.folders), reverse=True):
                with suppress(OSError):  # it has files of OpenClaw's own, or is gone
                    (self.workspace / path).rmdir()
            for path in filter(is_inside, workspace.folders - workspace.start_folders):
                (self.workspace / path).mkdir(parents=True, exist_ok=True)
            for path in filter(is_inside, after):
                if before.get(path) != after[path]:
                    self._write(path, after[path])
        except OSError as error:
            if error.errno not in _REFUSALS:
                raise
            path = str(error.filename2 or error.filename)
            raise ToolError(f"{self.with_world_paths(path)}: {error.strerror}") from None

    def _played(self) -> JsonObject:
        played: JsonObject = json.loads(self.played_file.read_text("utf-8"))
        return played

    def _read(self) -> tuple[dict[str, str], list[str]]:
        """Return the files, path → text, and the paths of the folders."""
        files: dict[str, str] = {}
        folders: list[str] = []
        for path in sorted(self.workspace.rglob("*")):
            name = path.relative_to(self.workspace).as_posix()
            if name.partition("/")[0] == _OWN:
                continue
            if path.is_dir():
                folders.append(name)
            else:
                with suppress(FileNotFoundError):  # OpenClaw is just removing it
                    files[name] = self.with_world_paths(path.read_bytes().decode("utf-8", "surrogateescape"))
        return files, folders

    def _write(self, path: str, text: str) -> None:
        file = self.workspace / path
        file.parent.mkdir(parents=True, exist_ok=True)
        self._replace(file, self.with_real_paths(text))

    def _replace(self, file: Path, text: str) -> None:
        """Write a file that may be read at the same time."""
        new = self.folder / f"{os.getpid()}.new"
        new.write_bytes(file_bytes(text))
        new.replace(file)


def _files_of(world: World) -> Mapping[str, str]:
    """Return the files at the start, including notes; path → text."""
    return {normal_path(path): text for path, text in {**world.memory, **world.files}.items()}


# --- the shell ----------------------------------------------------------------------------------

MISUSE, NOT_PLAYED, TIMED_OUT = 2, 126, 124


def play(scratch: Scratch, command: str, folder: str) -> Ran:
    """Play a command of the model in a folder on disk, one at a time, and save its effects."""
    _, world = load_offer(scratch.world_file.read_text("utf-8"))
    assert world is not None, "it is laid out with its world"
    with LockFile(scratch.lock_file, waits=True):
        workspace = scratch.load()
        shell = Exec(workspace, world)
        try:
            inside = checked_path(scratch.with_world_paths(folder))
            ran = shell.run(scratch.with_world_paths(command).strip(), inside)
        except ToolError as error:
            ran = Ran(f"sh: {error}", 1)
        except TimedOutError:
            ran = Ran("sh: the command timed out", TIMED_OUT)
        try:
            scratch.store(workspace)
        except ToolError as error:
            ran = Ran(f"{ran.output}\nsh: {error}".lstrip(), 1)
        scratch.save(workspace, shell)
    return Ran(scratch.with_real_paths(valid_text(ran.output)), ran.code)


def main(arguments: Sequence[str]) -> int:
    """Play a command, print its output, and return its exit status.

    The arguments are the folder of the call, and a shell's, `-c COMMAND`.
    """
    scratch = Scratch(Path(arguments[0]))
    if len(arguments) != 3 or arguments[1] != "-c":
        ran = Ran("sh: only sh -c COMMAND is played here", MISUSE)
    else:
        try:
            ran = play(scratch, valid_text(arguments[2]), str(Path.cwd()))
        except Exception as error:
            write_error(scratch.world_file, error)
            ran = Ran("sh: the command cannot be played", NOT_PLAYED)
    sys.stdout.buffer.write(ran.output.encode())
    return ran.code


def _script(folder: Path) -> str:
    """Return the text of the program that takes the place of a shell.

    It starts this interpreter isolated: OpenClaw passes on variables that a model may set.
    """
    import_path = [path or str(Path.cwd()) for path in sys.path]
    code = (
        f"import sys; sys.path[:] = {import_path!r}\n"
        f"from {__name__} import main\n"
        "sys.exit(main(sys.argv[1:]))"
    )
    start = shlex.join([sys.executable, "-I", "-S", "-c", code, str(folder)])
    return f'#!/bin/sh\nexec {start} "$@"\n'
