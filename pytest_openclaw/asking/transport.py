"""Where the asking runs: in a process of its own, or in a thread of this one.

The built-in providers are asked in a child process, because there the moment at which a token arrives is
read while tests run: a validator that keeps the interpreter busy delays nothing. The child ends when its
socket closes, however this process ends. A guest's provider lives in a conftest file of this process, so
it is asked in a thread.

The test thread itself reads the child's socket when it waits for a reply; no thread stands in between.
What it does not read yet stays in the child, whose loop is never held up by that.

Measured on 2 cores against a server that logs its own times (docs/performance.md): a median error of
`ttft_ms` of 0.30 ms at 64 in flight, also while every validator burns 2 ms of CPU; a prototype that
asked in a thread was 25 ms off then. The second process costs 0.5 ms of CPU a cell, beside the first.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import pickle
import queue
import select
import socket
import subprocess
import sys
import threading
import time
from collections import deque
from concurrent.futures import wait
from dataclasses import replace
from typing import TYPE_CHECKING, Protocol

from pytest_openclaw.asking.fetching import Alive, Fetcher, JobResult, Waiting
from pytest_openclaw.asking.frames import Frames, framed
from pytest_openclaw.asking.job_loop import Desk
from pytest_openclaw.core.clock import anchor_s
from pytest_openclaw.core.errors import HostDied
from pytest_openclaw.core.private import open_private
from pytest_openclaw.core.signals import how_it_ended, is_hurried, whole_step

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path

    from pytest_openclaw.asking.fetching import Job
    from pytest_openclaw.asking.shared_limits import Others
    from pytest_openclaw.types.protocols import Provider, ProviderSetup
    from pytest_openclaw.types.settings import Settings

CLOSING_S = 12.0
_POLL_S = 1.0
_LOOK_S = 0.1
_RECEIVE_BYTES = 1 << 18
_LONGEST_POLL_MS = 2**31 - 1

Message = JobResult | Waiting | Alive


class Host(Protocol):
    """Takes jobs and gives back what they brought, in any order."""

    def send(self, job: Job) -> None:
        """Give it a job; it begins when there is room in the job's part of its endpoint."""
        ...

    def receive(self, timeout_s: float, take: Callable[[Message], None]) -> None:
        """Wait for the next message, and let it be taken: an interruption comes before that or after it.

        Raises:
            HostDied: it has ended, or has said nothing for `timeout_s`.
        """
        ...

    def close(self) -> list[Message]:
        """End it, and return what it had finished by then; what is under way is given up."""
        ...


class ThreadHost:
    """An event loop in a thread; the providers are those of this process."""

    def __init__(
        self, providers: Mapping[str, Provider], settings: Settings, shared_dir: Path, others: Others = "none"
    ) -> None:
        self._messages: deque[Message] = deque()
        # Rings for each message. What a queue hands over is lost if the wait for it is interrupted just then.
        self._bell: queue.SimpleQueue[None] = queue.SimpleQueue()
        self._loop = asyncio.new_event_loop()
        self._desk = Desk(
            Fetcher(providers, settings, shared_dir, self._deliver, others), deliver=self._deliver
        )
        self._loop.call_soon(self._desk.open)
        self._thread = threading.Thread(target=self._serve, name="openclaw-asking", daemon=True)
        self._thread.start()

    def send(self, job: Job) -> None:
        """See `Host`."""
        with contextlib.suppress(RuntimeError):  # the loop has ended, which `receive` tells
            self._loop.call_soon_threadsafe(self._desk.accept, job)

    def receive(self, timeout_s: float, take: Callable[[Message], None]) -> None:
        """See `Host`."""
        latest = time.monotonic() + timeout_s
        while not self._messages:
            try:
                self._bell.get(timeout=_POLL_S)
            except queue.Empty:
                if not self._thread.is_alive():
                    raise HostDied("the thread that asks has died") from None
                if time.monotonic() > latest:
                    raise HostDied(f"the thread that asks said nothing for {timeout_s:g} s") from None
        with whole_step:
            take(self._messages.popleft())

    def close(self) -> list[Message]:
        """See `Host`."""
        if self._thread.is_alive():
            closing = asyncio.run_coroutine_threadsafe(self._desk.close(), self._loop)
            try:
                # What a provider raises now, or that it does not end, must not cost the run its summary.
                latest = time.monotonic() + CLOSING_S
                while not wait([closing], _LOOK_S).done and time.monotonic() < latest and not is_hurried():
                    pass
            finally:
                with contextlib.suppress(RuntimeError):  # it has ended by itself
                    self._loop.call_soon_threadsafe(self._loop.stop)
                self._thread.join(_POLL_S)
        return list(self._messages)

    def _deliver(self, message: Message) -> None:
        self._messages.append(message)
        self._bell.put(None)

    def _serve(self) -> None:
        asyncio.set_event_loop(self._loop)
        try:
            self._loop.run_forever()
        finally:
            # A job that comes in while the others end would be left behind.
            self._desk.shut()
            left = asyncio.all_tasks(self._loop)
            for task in left:
                task.cancel()
            if left:
                self._loop.run_until_complete(asyncio.wait(left, timeout=_POLL_S))
            self._loop.close()


# The child must find the modules that this process finds, whatever put them on its path.
_START = (
    "import sys, json; sys.path[:] = json.loads(sys.argv[1]);"
    "from pytest_openclaw.asking.asker_process import main; main(int(sys.argv[2]))"
)


class ProcessHost:
    """A child process; the providers are made anew there.

    Raises:
        OSError: on making, if it cannot be started.
    """

    def __init__(
        self, providers: Mapping[str, Provider], settings: Settings, shared_dir: Path, others: Others = "none"
    ) -> None:
        self._log = shared_dir / f"asking-{os.getpid()}.log"
        places = json.dumps([str(place) for place in sys.path])
        self._socket, theirs = socket.socketpair()
        try:
            with theirs, open_private(self._log, "ab") as log:
                self._process = subprocess.Popen(  # noqa: S603 - this interpreter
                    [sys.executable, "-c", _START, places, str(theirs.fileno())],
                    stdin=subprocess.DEVNULL,
                    stdout=log,
                    stderr=log,
                    pass_fds=[theirs.fileno()],
                )
        except BaseException:
            self._socket.close()
            raise
        self._poll = select.poll()
        self._poll.register(self._socket, select.POLLIN)
        self._frames = Frames()
        self._messages: deque[Message] = deque()
        makings = {
            name: (type(provider).__module__, type(provider).__qualname__, _portable(provider.setup))
            for name, provider in providers.items()
        }
        beginning = (makings, settings, shared_dir, others, anchor_s())
        self._write(pickle.dumps(beginning), settings.timeout_s)

    @staticmethod
    def can_ask(provider: Provider) -> bool:
        """Whether a child could make this provider anew: it is built in, and sockets can be handed over."""
        return os.name == "posix" and type(provider).__module__.startswith("pytest_openclaw.providers.")

    def send(self, job: Job) -> None:
        """See `Host`."""
        self._write(pickle.dumps(job), job.request.timeout_s)

    def receive(self, timeout_s: float, take: Callable[[Message], None]) -> None:
        """See `Host`."""
        while not self._messages:
            try:
                is_open = self._read(timeout_s)
            except TimeoutError:
                raise HostDied(f"the process that asks said nothing for {timeout_s:g} s") from None
            if not is_open:
                raise HostDied(self._epitaph())
        with whole_step:
            take(self._messages.popleft())

    def close(self) -> list[Message]:
        """See `Host`."""
        try:
            # The child sees the end of its input, and closes its own side when it has ended everything.
            with contextlib.suppress(OSError):
                self._socket.shutdown(socket.SHUT_WR)
                while self._read_while_closing():
                    pass
            with contextlib.suppress(subprocess.TimeoutExpired):
                self._process.wait(_POLL_S)
        finally:
            self._socket.close()
            if self._process.poll() is None:
                self._process.kill()
                self._process.wait()
        return list(self._messages)

    def _read_while_closing(self) -> bool:
        """Take what has come, and where the session is hurried, wait for nothing more; False at the end.

        Raises:
            TimeoutError: nothing has come for as long as may be waited.
        """
        latest = time.monotonic() + CLOSING_S
        while not is_hurried():
            try:
                return self._read(_LOOK_S)
            except TimeoutError:
                if time.monotonic() > latest:
                    raise
        return self._read(0.0)

    def _read(self, timeout_s: float) -> bool:
        """Take what has come; False at the end.

        Raises:
            TimeoutError: nothing has come for so long.
        """
        if not self._poll.poll(min(timeout_s * 1000, _LONGEST_POLL_MS)):
            raise TimeoutError
        # A piece that is lost between its reading and its taking would garble all that come after it.
        with whole_step:
            try:
                chunk = self._socket.recv(_RECEIVE_BYTES)
            except OSError:  # it died with jobs that it had not read
                return False
            for frame in self._frames.feed(chunk):
                self._messages.append(pickle.loads(frame))  # noqa: S301 - our own child's
        return bool(chunk)

    def _write(self, frame: bytes, timeout_s: float) -> None:
        # Where the child has died, `receive` tells it, once for all that wait.
        with contextlib.suppress(OSError):
            try:
                self._socket.settimeout(timeout_s)
                self._socket.sendall(framed(frame))
            except TimeoutError:
                # It hangs, and has taken a part, so that it could not understand what comes next.
                self._process.kill()

    def _epitaph(self) -> str:
        try:
            status = self._process.wait(_POLL_S)
        except subprocess.TimeoutExpired:
            return "the process that asks has closed its connection"
        last = self._log.read_text("utf-8", "replace").strip().splitlines()[-1:] if self._log.exists() else []
        return " ".join([f"the process that asks {how_it_ended(status)}.", *last])


def _portable(setup: ProviderSetup) -> ProviderSetup:
    return replace(setup, environ=dict(setup.environ))
