"""The folders of one call of OpenClaw: the world on disk, and the program in the place of a shell.

In a suite the workspace is `/workspace`; on disk it is another folder for each call. One path is replaced by
the other in files, commands, calls and results.

OpenClaw's exec calls `$SHELL -c COMMAND`, in the workspace or in the model's folder. The program there sends
the command to the relay, which answers it as in a scripted exchange (`worlds/shell.py`): by the suite's
answers, or in a sandboxed bash on the files on disk. Nothing is executed, and no other file is used.
"""

from __future__ import annotations

import errno
import json
import re
import shlex
import sys
import threading
from contextlib import suppress
from typing import TYPE_CHECKING

from pytest_openclaw.util.files import write_private
from pytest_openclaw.util.text import file_bytes, valid_text
from pytest_openclaw.values.worlds import WorldState
from pytest_openclaw.worlds.shell import Exec, Ran, TimedOutError
from pytest_openclaw.worlds.workspace import ROOT, ToolError, Workspace, checked_path, is_inside

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from pytest_openclaw.values.worlds import World

MISUSE, TIMED_OUT = 2, 124
SHELL_PATH = "/shell"
"""The relay's path for commands."""
# Errors of a name, or of an existing file with that name, not of the disk.
_REFUSALS = (
    *(errno.ENAMETOOLONG, errno.EINVAL, errno.EILSEQ),
    *(errno.EEXIST, errno.EISDIR, errno.ENOENT, errno.ENOTDIR, errno.ENOTEMPTY),
)
# OpenClaw's own folder in a workspace.
_OWN = ".openclaw"
# Without a world OpenClaw never executes commands. If it did, this would be its shell.
_NO_SHELL = "#!/bin/sh\necho 'no command is run here' >&2\nexit 126\n"
# The shell of a world. Its Python is isolated, because OpenClaw passes on variables that a model may set.
_SHELL = """\
import http.client, json, os, sys
relay = http.client.HTTPConnection({host!r})
body = json.dumps({{"folder": os.getcwd(), "arguments": sys.argv[1:]}})
relay.request("POST", {path!r}, body, {{"Authorization": "Bearer {token}"}})
ran = json.load(relay.getresponse())
sys.stdout.buffer.write(ran["output"].encode())
sys.exit(ran["code"])
"""


class Scratch:
    """The folders and files of one call.

    Args:
        folder: of this call, without links; `workspace` in it exists and is empty.
        world: None for a call that may execute nothing.
        compiled: the folder of Node's compile cache.
    """

    def __init__(self, folder: Path, world: World | None = None, compiled: Path | None = None) -> None:
        self.folder = folder
        self.compiled = compiled or folder / "compiled"
        self.workspace = folder / "workspace"
        self.config = folder / "openclaw.json"
        self.message = folder / "message.txt"
        self.shell = folder / "shell"
        self._program = folder / "shell.py"
        # Whole names: neither `a/workspace` nor `/workspace-2` nor `/workspace.txt`. Anything may precede the
        # real path: in JSON for example the `n` of a line end.
        real, end = str(self.workspace), r"(?!\.?[\w-])"
        forms = "|".join(map(re.escape, sorted({self.workspace.as_posix(), real, json.dumps(real)[1:-1]})))
        self._root = re.compile(rf"(?<![\w.~/-]){re.escape(ROOT)}{end}")
        self._real = re.compile(rf"(?:{forms}){end}")
        self._lock = threading.Lock()
        self._start = Workspace({**world.memory, **world.files} if world else {})
        self._exec = Exec(self._start, world) if world else None

    def with_real_paths(self, text: str) -> str:
        """Replace the world's path of the workspace by the real one."""
        return self._root.sub(lambda _: self.workspace.as_posix(), text)

    def with_world_paths(self, text: str) -> str:
        """Replace the real path of the workspace by the world's."""
        return self._real.sub(lambda _: ROOT, text)

    def lay_out(self) -> None:
        """Write the shell, and the files of the world."""
        start = shlex.join([sys.executable, "-I", "-S", str(self._program)])
        self.shell.write_text(f'#!/bin/sh\nexec {start} "$@"\n' if self._exec else _NO_SHELL, "utf-8")
        self.shell.chmod(0o700)
        for path, text in self._start.files.items():
            if is_inside(path):
                self._write(path, text)

    def connect_shell(self, url: str, token: str) -> None:
        """Write the program of the shell, with the relay's address and token."""
        host = url.removeprefix("http://")
        write_private(self._program, _SHELL.format(host=host, path=SHELL_PATH, token=token).encode())

    def play(self, folder: str, arguments: Sequence[str]) -> Ran:
        """Play a command of the model in a folder on disk; `arguments` are those of a shell, `-c COMMAND`.

        Commands are played one at a time.

        Raises:
            OpenClawError: a suite's pattern cannot be decided.
        """
        if self._exec is None or len(arguments) != 2 or arguments[0] != "-c":
            return Ran("sh: only sh -c COMMAND is played here", MISUSE)
        with self._lock:
            workspace = self._exec.workspace = self._load()
            try:
                inside = checked_path(self.with_world_paths(folder))
                ran = self._exec.run(self.with_world_paths(valid_text(arguments[1])).strip(), inside)
            except ToolError as error:
                ran = Ran(f"sh: {error}", 1)
            except TimedOutError:
                ran = Ran("sh: the command timed out", TIMED_OUT)
            try:
                self._store(workspace)
            except ToolError as error:
                ran = Ran(f"{ran.output}\nsh: {error}".lstrip(), 1)
        return Ran(self.with_real_paths(valid_text(ran.output)), ran.code)

    def state(self) -> WorldState | None:
        """Return the current state of the world; None without one."""
        if self._exec is None:
            return None
        with self._lock:
            start, files = self._start.start, self._load().files
        return WorldState(
            files=files,
            ran=tuple(self._exec.ran),
            parts=tuple(self._exec.parts),
            unrecorded=tuple(self._exec.unrecorded),
            changed=tuple(sorted(path for path in {*start, *files} if start.get(path) != files.get(path))),
            start=start,
        )

    def _load(self) -> Workspace:
        """Return the files and folders on disk, and those outside the workspace, which are only in memory."""
        assert self._exec is not None, "there is a world"
        last = self._exec.workspace
        files = {path: text for path, text in last.files.items() if not is_inside(path)}
        folders = {path for path in last.folders if not is_inside(path)}
        for path in sorted(self.workspace.rglob("*")):
            name = path.relative_to(self.workspace).as_posix()
            if name.partition("/")[0] == _OWN:
                continue
            if path.is_dir():
                folders.add(name)
            else:
                with suppress(FileNotFoundError):  # OpenClaw is just removing it
                    files[name] = self.with_world_paths(path.read_bytes().decode("utf-8", "surrogateescape"))
        return Workspace(files, folders)

    def _store(self, workspace: Workspace) -> None:
        """Write the changes to the workspace since `_load`; unchanged files are not touched.

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

    def _write(self, path: str, text: str) -> None:
        """Write a file that OpenClaw may read at the same time."""
        file, new = self.workspace / path, self.folder / "new"
        file.parent.mkdir(parents=True, exist_ok=True)
        new.write_bytes(file_bytes(self.with_real_paths(text)))
        new.replace(file)
