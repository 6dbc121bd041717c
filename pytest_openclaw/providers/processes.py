"""Runs a program in its own process group: yields its lines as they arrive, and leaves no process behind."""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import os
import shlex
import shutil
import signal
import subprocess
import sys
import tempfile
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, cast

from pytest_openclaw.core.private import FOLDER_MODE
from pytest_openclaw.core.text import valid_text
from pytest_openclaw.providers import limits
from pytest_openclaw.types import faults
from pytest_openclaw.types.faults import CallFailed

if sys.platform == "win32":
    import psutil

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from pytest_openclaw.types.protocols import ProviderSetup

STDERR_TAIL_BYTES = 4096
# After the program's exit its output is in the pipe; only processes that it started still keep it open.
DRAIN_S = 0.5
GRACE_S = 2.0
# It reads until this process has ended for any reason, and then kills the group in its argument.
_KEEPER = ("/bin/sh", "-c", 'read -r _; kill -s KILL -- "-$0"')


@dataclass(frozen=True, kw_only=True)
class Program:
    """A program to run: command, complete environment, folder and input."""

    argv: tuple[str, ...]
    env: Mapping[str, str] = field(repr=False)
    cwd: Path
    stdin: bytes = field(default=b"", repr=False)
    keeps_stdin: bool = False


@dataclass(frozen=True, kw_only=True)
class CalledModel:
    """The model that a program was called for, for messages.

    Attributes:
        name: the provider's.
        where: the address of the model's server, or its name.
        timeout_s: seconds for one answer.
        login: a sentence with the hint how to get credentials, for a program that needs them.
    """

    name: str
    model: str
    where: str
    timeout_s: float
    login: str = ""


def find_program(setup: ProviderSetup, command: str, install: str) -> tuple[str, ...]:
    """Return a command with its program as an absolute path.

    Args:
        setup: of the provider that needs it.
        command: as the user wrote it, with arguments.
        install: how to get it, for the message.

    Raises:
        CallFailed: there is no such program.
    """
    try:
        name, *rest = shlex.split(command, posix=os.name == "posix")
    except ValueError:  # an unclosed quote, or only blanks
        name, rest = command, []
    found = shutil.which(name, path=setup.environ.get("PATH", os.defpath))
    if found is None:
        hint = f"there is no command {name!r}. Install {install}."
        raise CallFailed(faults.not_installed(setup.name, hint))
    return (str(Path(found).absolute()), *rest)


@contextlib.contextmanager
def new_folders(*names: str, within: Path | None = None) -> Iterator[Path]:
    """Make a folder with these folders in it; remove it at the end.

    Its path is resolved, because OpenClaw compares paths in their real form.

    Args:
        *names: of the folders in it.
        within: an existing folder; the new one then has the lowest number that is free there, so that
            calls one after the other have the same path.
    """
    if within is None:
        made = tempfile.TemporaryDirectory(prefix="openclaw-", ignore_cleanup_errors=True)
        with made as path:
            yield _with_folders(Path(path), names)
        return
    numbered = _new_numbered(within)
    try:
        yield _with_folders(numbered, names)
    finally:
        shutil.rmtree(numbered, ignore_errors=True)


def _new_numbered(within: Path) -> Path:
    for number in itertools.count():
        with contextlib.suppress(FileExistsError):
            (within / str(number)).mkdir(FOLDER_MODE)
            break
    return within / str(number)


def _with_folders(folder: Path, names: Iterable[str]) -> Path:
    folder = folder.resolve()
    for name in names:
        (folder / name).mkdir(FOLDER_MODE)
    return folder


class Running(asyncio.SubprocessProtocol):
    """A running program. The caller that starts it must `stop` it.

    Its output is limited to `limits.MOST_BYTES`, and a line of it to `limits.MOST_EVENT_BYTES`.

    Attributes:
        exit_status: None while it runs, or if this process ended it; negative for a signal.
        flooded: the limit for which it was killed, such as `more than 64 MiB`; empty if it exceeded none.
    """

    def __init__(self) -> None:
        self.exit_status: int | None = None
        self.flooded = ""
        self._exited = asyncio.Event()
        self._is_ended_here = False
        self._lines: asyncio.Queue[bytes | None] = asyncio.Queue()
        self._unfinished: list[bytes] = []
        self._received_bytes = 0
        self._line_bytes = 0
        self._stderr = b""
        self._keeper: subprocess.Popen[bytes] | None = None

    @property
    def stderr(self) -> str:
        """The end of what it wrote to stderr, at most `STDERR_TAIL_BYTES`."""
        return self._stderr.decode("utf-8", "replace").strip()

    async def next_line(self) -> bytes | None:
        """Return the next line of its output, without the line feed; None at the end."""
        line = await self._lines.get()
        if line is None:
            self._lines.put_nowait(None)
        return line

    async def read_lines(self, lines: list[bytes]) -> None:
        """Add the lines of its output to a list, up to the end."""
        while (line := await self.next_line()) is not None:
            lines.append(line)

    def send(self, data: bytes) -> None:
        """Add to its input; one that has closed it does not get it."""
        self._stdin.write(data)

    def end_input(self) -> None:
        """Close its input, after what was sent."""
        self._stdin.close()

    async def exits_within(self, seconds: float) -> bool:
        """Wait for its exit at most this long; return whether it has exited."""
        with contextlib.suppress(TimeoutError):  # the return value is False then
            await asyncio.wait_for(self._exited.wait(), seconds)
        return self._exited.is_set()

    async def stop(self) -> None:
        """End its whole group: SIGTERM first, SIGKILL after `GRACE_S`; then close the pipes."""
        try:
            if not self._exited.is_set():
                self._end(kill=False)
                await self.exits_within(GRACE_S)
        finally:
            self._end(kill=True)
            self._dismiss_keeper()
            await self.exits_within(GRACE_S)
            self._transport.close()

    def appoint_keeper(self) -> None:
        """Start a process that ends the group if this process is killed before it can `stop` it."""
        if sys.platform != "win32":
            self._keeper = subprocess.Popen(  # noqa: S603 - a script of our own
                [*_KEEPER, str(self._pid)],
                stdin=subprocess.PIPE,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                start_new_session=True,
            )

    # --- what asyncio calls ---------------------------------------------------------------------

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """The program has started."""
        self._transport = cast("asyncio.SubprocessTransport", transport)
        self._pid = self._transport.get_pid()
        self._stdin = cast("asyncio.WriteTransport", self._transport.get_pipe_transport(0))

    def pipe_data_received(self, fd: int, data: bytes) -> None:
        """Receive bytes from stdout (1) or stderr (2)."""
        if fd == 2:
            self._stderr = (self._stderr + data)[-STDERR_TAIL_BYTES:]
            return
        self._received_bytes += len(data)
        if self._received_bytes > limits.MOST_BYTES:
            self._flood(f"more than {limits.mebibytes(limits.MOST_BYTES)}")
            return
        self._unfinished.append(data)
        if b"\n" in data:  # joined only here: a line of many pieces is not searched again for each of them
            *whole, rest = b"".join(self._unfinished).split(b"\n")
            self._unfinished = [rest] if rest else []
            for line in whole:
                self._lines.put_nowait(line)
            self._line_bytes = len(rest)
        else:
            self._line_bytes += len(data)
        if self._line_bytes > limits.MOST_EVENT_BYTES:
            self._flood(f"a line of more than {limits.mebibytes(limits.MOST_EVENT_BYTES)}")

    def pipe_connection_lost(self, fd: int, exc: Exception | None) -> None:
        """Note that a pipe was closed; stdout's end is the end of the lines."""
        del exc  # a program that does not read its input to the end is no error
        if fd == 1:
            self._end_lines()

    def process_exited(self) -> None:
        """Note that the program has exited; other processes with its pipes do not keep the lines open."""
        if not self._is_ended_here:
            self.exit_status = self._transport.get_returncode()
        self._exited.set()
        asyncio.get_running_loop().call_later(DRAIN_S, self._end_lines)

    # --- how ----------------------------------------------------------------------------------

    def _end_lines(self) -> None:
        if last := b"".join(self._unfinished):
            self._lines.put_nowait(last)
        self._unfinished = []
        self._lines.put_nowait(None)

    def _dismiss_keeper(self) -> None:
        if self._keeper is not None:
            self._keeper.kill()
            self._keeper.wait()
            assert self._keeper.stdin is not None, "it reads a pipe"
            self._keeper.stdin.close()

    def _flood(self, what: str) -> None:
        if not self.flooded:
            self.flooded = what
            self._unfinished = []
            self._lines.put_nowait(None)
            self._end(kill=True)

    def _end(self, *, kill: bool) -> None:
        self._is_ended_here = True
        if sys.platform == "win32":  # no process groups; its descendants are found through the process
            with contextlib.suppress(psutil.NoSuchProcess):
                program = psutil.Process(self._pid)
                for process in [*program.children(recursive=True), program]:
                    process.kill()
        else:
            # No process is left, or (macOS) only zombies: there is nothing to end.
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(self._pid, signal.SIGKILL if kill else signal.SIGTERM)


async def start(program: Program) -> Running:
    """Start a program as the leader of a new process group and send its input.

    Raises:
        OSError: it cannot be started.
    """
    _, running = await asyncio.get_running_loop().subprocess_exec(
        Running,
        *program.argv,
        env=program.env,
        cwd=program.cwd,
        start_new_session=True,
    )
    running.send(program.stdin)
    if not program.keeps_stdin:
        running.end_input()
    try:
        running.appoint_keeper()
    except OSError:
        await running.stop()
        raise
    return running


async def start_for(name: str, program: Program) -> Running:
    """Start a program for a provider.

    Raises:
        CallFailed: it cannot be started.
    """
    try:
        return await start(program)
    except OSError as error:
        why = f"the command {program.argv[0]!r} cannot be started: {error.strerror or error}"
        raise CallFailed(faults.cli_failed(name, why)) from error


async def first_line_for(name: str, program: Program, *, within_s: float) -> str:
    """Return the first line of a program's output, such as its version; empty if none arrives in time.

    Raises:
        CallFailed: it cannot be started.
    """
    running = await start_for(name, program)
    try:
        async with asyncio.timeout(within_s):
            line = await running.next_line()
    except TimeoutError:
        return ""
    finally:
        await running.stop()
    return valid_text((line or b"").decode("utf-8", "replace").strip())
