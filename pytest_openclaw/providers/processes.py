"""Runs a program in its own process group: yields its lines as they arrive, and leaves no process behind."""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import os
import shlex
import shutil
import signal
import sys
import tempfile
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import ClassVar, cast

from pytest_openclaw.providers import BUILTIN
from pytest_openclaw.util.files import FOLDER_MODE, JsonObject
from pytest_openclaw.values import faults
from pytest_openclaw.values.faults import CallFailed
from pytest_openclaw.values.protocols import Provider, ProviderSetup

if sys.platform == "win32":
    import psutil


STDERR_TAIL_BYTES = 4096
MOST_BYTES, MOST_LINE_BYTES = 64 << 20, 16 << 20
"""The limits of a program's output and of one line of it; a program that exceeds one is ended."""
# After the program's exit, its output is in the pipe, which only processes that it started keep open.
DRAIN_S = 0.5
GRACE_S = 2.0


@dataclass(frozen=True, kw_only=True)
class Program:
    """A program to run: command, complete environment, folder and input."""

    argv: tuple[str, ...]
    env: Mapping[str, str] = field(repr=False)
    cwd: Path
    stdin: bytes = field(default=b"", repr=False)
    keeps_stdin: bool = False


def find_program(setup: ProviderSetup, command: str, install: str) -> tuple[str, ...]:
    """Return a command, as the user wrote it, with its program as an absolute path."""
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

    The path is resolved, because OpenClaw compares real paths. With `within`, an existing folder, the new
    folder has the lowest free number in it, so that successive calls have the same path.
    """
    if within is None:
        folder = Path(tempfile.mkdtemp(prefix="openclaw-"))
    else:
        for number in itertools.count():
            folder = within / str(number)
            with contextlib.suppress(FileExistsError):
                folder.mkdir(FOLDER_MODE)
                break
    folder = folder.resolve()
    try:
        for name in names:
            (folder / name).mkdir(FOLDER_MODE)
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


class Running(asyncio.SubprocessProtocol):
    """A running program. The caller that starts it must `stop` it.

    Attributes:
        pid: the process id.
        exit_status: None while the program runs, or if this process ended it; negative for a signal.
        stdout: the output, after `run`.
        timed_out: whether `run` has ended the program because it took too long.
    """

    def __init__(self, name: str = "") -> None:
        self._name, self._n_bytes = name, 0
        self.exit_status: int | None = None
        self.stdout = ""
        self.timed_out = False
        self._exited = asyncio.Event()
        self._is_ended_here = False
        self._output = asyncio.StreamReader(limit=MOST_LINE_BYTES)
        self._has_output_ended = False
        self._stderr = b""

    @property
    def has_exited(self) -> bool:
        """Whether the program has exited, for whatever reason."""
        return self._exited.is_set()

    @property
    def stderr(self) -> str:
        """The end of the program's stderr, at most `STDERR_TAIL_BYTES`."""
        return self._stderr.decode("utf-8", "replace").strip()

    async def next_line(self) -> bytes | None:
        """Return the next line without its end, or None; raise `CallFailed` for too much output."""
        try:
            line = await self._output.readline()
            is_too_long = not line and self._n_bytes > MOST_BYTES
        except ValueError:
            is_too_long = True
        if is_too_long:
            limits = f"{MOST_BYTES >> 20} MiB, or a line of it than {MOST_LINE_BYTES >> 20} MiB"
            raise CallFailed(faults.malformed(self._name, f"it is longer than {limits}"))
        return line.removesuffix(b"\n") if line else None

    def send(self, data: bytes) -> None:
        """Add to the input; a program that has closed its input does not receive it."""
        self._stdin.write(data)

    def end_input(self) -> None:
        """Close the input, after all sent data."""
        self._stdin.close()

    async def wait_exit(self, seconds: float) -> None:
        """Wait for the program's exit, at most this long."""
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(self._exited.wait(), seconds)

    async def stop(self) -> None:
        """End the whole process group: SIGTERM first, SIGKILL after `GRACE_S`; then close the pipes."""
        try:
            if not self.has_exited:
                self._end(kill=False)
                await self.wait_exit(GRACE_S)
        finally:
            self._end(kill=True)
            await self.wait_exit(GRACE_S)
            self._transport.close()

    # --- called by asyncio ---------------------------------------------------------------------

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Keep the transport of the started program."""
        self._transport = cast("asyncio.SubprocessTransport", transport)
        self.pid = self._transport.get_pid()
        self._stdin = cast("asyncio.WriteTransport", self._transport.get_pipe_transport(0))

    def pipe_data_received(self, fd: int, data: bytes) -> None:
        """Receive bytes from stdout (1) or stderr (2)."""
        if fd == 2:
            self._stderr = (self._stderr + data)[-STDERR_TAIL_BYTES:]
        elif not self._has_output_ended:
            self._n_bytes += len(data)
            self._output.feed_data(data)
            if self._n_bytes > MOST_BYTES:
                self._end(kill=True)
                self._end_output()

    def pipe_connection_lost(self, fd: int, exc: Exception | None) -> None:
        """End the lines with stdout."""
        del exc  # a program that does not read its input to the end is not an error
        if fd == 1:
            self._end_output()

    def process_exited(self) -> None:
        """Set the exit status; other processes with its pipes do not keep the lines open."""
        if not self._is_ended_here:
            self.exit_status = self._transport.get_returncode()
        self._exited.set()
        asyncio.get_running_loop().call_later(DRAIN_S, self._end_output)

    def _end_output(self) -> None:
        self._has_output_ended = True
        self._output.feed_eof()

    def _end(self, *, kill: bool) -> None:
        self._is_ended_here = True
        if sys.platform == "win32":  # no process groups; its descendants are found through the process
            with contextlib.suppress(psutil.NoSuchProcess):
                program = psutil.Process(self.pid)
                for process in [*program.children(recursive=True), program]:
                    process.kill()
        else:
            # No process is left, or (macOS) only zombies: there is nothing to end.
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(self.pid, signal.SIGKILL if kill else signal.SIGTERM)


async def start(name: str, program: Program) -> Running:
    """Start a program as the leader of a process group; send its input."""
    try:
        _, running = await asyncio.get_running_loop().subprocess_exec(
            partial(Running, name), *program.argv, env=program.env, cwd=program.cwd, start_new_session=True
        )
    except OSError as error:
        why = f"the command {program.argv[0]!r} cannot be started: {error.strerror or error}"
        raise CallFailed(faults.cli_failed(name, why)) from error
    running.send(program.stdin)
    if not program.keeps_stdin:
        running.end_input()
    return running


async def run(name: str, program: Program, *, within_s: float, until: asyncio.Event | None = None) -> Running:
    """Run a program to its end; end it after a time, or as soon as `until` is set."""
    running = await start(name, program)
    lines: list[bytes] = []

    async def read() -> None:
        while (line := await running.next_line()) is not None:
            lines.append(line)

    reading = asyncio.create_task(read())
    waiting = asyncio.create_task((until or asyncio.Event()).wait())
    try:
        done, _ = await asyncio.wait(
            (reading, waiting), timeout=within_s, return_when=asyncio.FIRST_COMPLETED
        )
        if reading in done:
            reading.result()
            await running.wait_exit(DRAIN_S)
    finally:
        reading.cancel()
        waiting.cancel()
        await running.stop()
    running.stdout = b"\n".join(lines).decode("utf-8", "replace")
    running.timed_out = not done
    return running


VERSION_TIMEOUT_S = 60.0


class ProgramProvider(Provider, ABC):
    """A provider that starts a program for each request, and lets it play the world."""

    takes_tools: ClassVar[bool] = True
    takes: ClassVar[frozenset[str]] = frozenset({"images"})
    takes_messages: ClassVar[bool] = True
    plays_worlds: ClassVar[bool] = True

    def __init__(self, setup: ProviderSetup) -> None:
        super().__init__(setup)
        self._version: str | None = None

    @abstractmethod
    def prepared(self, *arguments: str) -> contextlib.AbstractContextManager[Program]:
        """Return the program with these arguments, in folders that exist while it runs."""

    async def models(self) -> tuple[str, ...]:
        """Raise an error: the program does not list its models."""
        example = next((one.example for one in BUILTIN if one.name == self.name), "MODEL")
        why = f"it does not list its models. Name one, for example {self.setup.name}/{example}."
        raise CallFailed(faults.cli_failed(self.setup.name, why))

    async def fingerprint(self, model: str) -> JsonObject:
        """Return the program's version: the first line that it prints."""
        del model  # one program for all of them
        if self._version is None:
            with self.prepared("--version") as program:
                printed = await run(self.setup.name, program, within_s=VERSION_TIMEOUT_S)
            self._version = printed.stdout.partition("\n")[0].strip()
        return {"cli_version": self._version} if self._version else {}
