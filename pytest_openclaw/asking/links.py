"""How a test process reaches the asker: over a socket, to a process or to a thread.

The built-in providers are asked in a process of their own, because there the moment at which a token
arrives is read while tests run: a validator that keeps the interpreter busy delays nothing. A plugin's
provider lives in a conftest file, so it is asked in a thread: of the test process in a plain session, and
under xdist of one process that all workers of the machine reach over the same kind of socket.

The test thread itself reads the socket when it waits for a reply; no thread is in between. What it does not
read yet stays in the asker, whose loop is never held up by that.

Measured on 2 cores against a server that logs its own times (docs/performance.md): a median error of
`ttft_ms` of 0.30 ms at 64 in flight, also while every validator burns 2 ms of CPU; a prototype that
asked in a thread was 25 ms off then. The second process costs 0.2 ms of CPU a cell, beside the first.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import pickle
import select
import signal
import socket
import subprocess
import threading
import time
from collections import deque
from typing import TYPE_CHECKING, Any

from pytest_openclaw.asking.frames import ByReference, Frames, framed
from pytest_openclaw.asking.journal import note_start
from pytest_openclaw.asking.messages import Goodbye, Left
from pytest_openclaw.asking.starting import address_of, start
from pytest_openclaw.core.errors import HostDied
from pytest_openclaw.core.locks import LockFile
from pytest_openclaw.core.redact import Redactor
from pytest_openclaw.core.run_once import read_json
from pytest_openclaw.core.signals import how_it_ended, is_hurried, whole_step
from pytest_openclaw.providers import is_built_in

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path

    from pytest_openclaw.asking.messages import FromAsker, FromClient
    from pytest_openclaw.types.protocols import Provider

CLOSING_S = 35.0
"""Until an asker has answered a goodbye: it may wait for a lost client, then gives up what is under way."""
_POLL_S = 1.0
_LOOK_S = 0.1
_RECEIVE_BYTES = 1 << 18
_LONGEST_POLL_MS = 2**31 - 1
ASKER = "the process that asks"
_CLOSED = " has ended."


class AskerThread:
    """An asker in a thread of this process that serves a socket, until its last client has gone.

    Args:
        providers: by name.
        listener: where clients connect; this process's own end of a pair if there is no `address`.
        address: see `AskerServer`.
        secret: see `AskerServer`.
        codec: see `AskerServer`.
    """

    def __init__(
        self,
        providers: Mapping[str, Provider],
        listener: socket.socket,
        address: Path | None = None,
        secret: str = "",
        codec: ByReference | None = None,
    ):
        # Most sessions have an asker process, and then need no more than the client.
        from pytest_openclaw.asking.asker_process import make_asker
        from pytest_openclaw.asking.asker_server import AskerServer

        redactor = Redactor.of_run(providers.values(), os.environ)
        self._server = AskerServer(
            lambda hello: (make_asker(providers, hello), redactor), address, secret.encode(), codec
        )
        self._loop = asyncio.new_event_loop()
        self._listener = listener.dup()  # the one that is given is closed
        self._thread = threading.Thread(target=self._serve, name="openclaw-asking", daemon=True)
        self._thread.start()

    def wait(self) -> None:
        """Wait until its last client has gone, but not where the session is hurried."""
        latest = time.monotonic() + CLOSING_S
        while self._thread.is_alive() and time.monotonic() < latest and not is_hurried():
            self._thread.join(_LOOK_S)

    def end(self) -> None:
        """End it, even with connected clients."""
        with contextlib.suppress(RuntimeError):  # it has ended by itself
            self._loop.call_soon_threadsafe(self._server.end)
        self._thread.join(CLOSING_S)

    def _serve(self) -> None:
        asyncio.set_event_loop(self._loop)
        serving = self._loop.create_task(self._server.serve(self._listener))
        serving.add_done_callback(lambda task: None if task.cancelled() else self._loop.stop())
        try:
            self._loop.run_forever()
        finally:  # a provider may have stopped the loop
            left = asyncio.all_tasks(self._loop)
            for task in left:
                task.cancel()
            if left:
                self._loop.run_until_complete(asyncio.wait(left, timeout=_POLL_S))
            self._loop.close()


def own_thread(place: Path, providers: Mapping[str, Provider]) -> tuple[Link, AskerThread]:
    """Start an asker in a thread of this process, for this process alone.

    Its messages are passed by reference, so exceptions arrive as they were raised.

    Raises:
        HostDied: it died too often.
    """
    note_start(place.with_suffix(".journal"))
    codec = ByReference()
    ours, theirs = socket.socketpair()
    with theirs:
        return Link(ours, None, codec), AskerThread(providers, theirs, codec=codec)


# --- over a socket ------------------------------------------------------------------------------


def runs_in_process(provider: Provider) -> bool:
    """Whether another process could make this provider: it is built in, and sockets can be inherited."""
    return os.name == "posix" and is_built_in(provider)


def connect(place: Path, starter: Callable[[socket.socket, Path, str], Any]) -> tuple[Link, Any]:
    """Connect to the asker at `place`; start it by `starter` if there is none; see `start`.

    Returns:
        The link, and what was started.

    Raises:
        OSError: it cannot be started.
        HostDied: it died too often.
    """
    if connected := _dial(place):
        return connected, None
    with LockFile(place.with_suffix(".lock")):
        if connected := _dial(place):
            return connected, None
        started = start(place, starter)
        if connected := _dial(place):
            return connected, started
    raise HostDied("the asker has ended before it could be reached")


def _dial(place: Path) -> Link | None:
    where = read_json(address_of(place))
    if where is None:
        return None
    is_unix = "path" in where
    connection = socket.socket(socket.AF_UNIX if is_unix else socket.AF_INET)
    try:
        connection.connect(where["path"] if is_unix else ("127.0.0.1", where["port"]))
        if not is_unix:
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            connection.sendall(framed(where["secret"].encode()))
    except OSError:
        connection.close()
        return None
    return Link(connection, where["pid"])


class Link:
    """A connection to an asker.

    Attributes:
        longest_send_s: after so long an asker that reads nothing is ended.

    Args:
        connection: the connected socket.
        pid: of the asker; None if it is a thread.
        codec: makes bytes of messages, and messages of bytes; the asker's end has the same.
    """

    def __init__(self, connection: socket.socket, pid: int | None, codec: ByReference | None = None) -> None:
        self.longest_send_s = 60.0
        self._socket = connection
        self._pid = pid
        self._who = "the thread that asks" if pid is None else ASKER
        self._codec = codec or pickle
        self._poll = select.poll() if hasattr(select, "poll") else None
        if self._poll:
            self._poll.register(connection, select.POLLIN)
        self._frames = Frames()
        self._messages: deque[FromAsker] = deque()
        self._sending = threading.Lock()
        self._is_closed = False

    def send(self, *messages: FromClient) -> None:
        """Send messages, from any thread; that the asker has died is reported by `receive`.

        They go in one piece, because each one wakes the asker: 50 µs of this process.
        """
        if not messages:
            return
        is_main = threading.current_thread() is threading.main_thread()
        frame = framed(self._codec.dumps(messages))
        # Half a frame would garble all that come after it.
        with whole_step if is_main else contextlib.nullcontext(), self._sending:
            if self._is_closed:
                return
            with contextlib.suppress(OSError):  # it has died, which `receive` reports
                try:
                    self._socket.settimeout(self.longest_send_s)
                    self._socket.sendall(frame)
                except TimeoutError:
                    self._end_asker()

    def receive(self, timeout_s: float, take: Callable[[FromAsker], None]) -> None:
        """Wait for the next message and pass it to `take`: an interruption comes before that or after it.

        Raises:
            HostDied: the asker has ended, or has sent nothing for `timeout_s`.
        """
        while not self._messages:
            try:
                is_open = self._read(timeout_s)
            except TimeoutError:
                self._end_asker()
                raise HostDied(f"{self._who} said nothing for {timeout_s:g} s") from None
            if not is_open:
                raise HostDied(f"{self._who}{_CLOSED}")
        with whole_step:
            take(self._messages.popleft())

    def receive_arrived(self, take: Callable[[FromAsker], None]) -> bool:
        """Pass on the next message if it has arrived; return whether it has.

        Raises:
            HostDied: the asker has ended.
        """
        if not self._messages and self._is_readable(0.0) and not self._read(0.0):
            raise HostDied(f"{self._who}{_CLOSED}")
        if not self._messages:
            return False
        with whole_step:
            take(self._messages.popleft())
        return True

    def goodbye(self, take: Callable[[FromAsker], None]) -> None:
        """Say goodbye, and pass on what comes until the asker has answered that, within `CLOSING_S`."""
        self.longest_send_s = _POLL_S
        self.send(Goodbye())
        latest = time.monotonic() + CLOSING_S
        is_open, has_answered = True, False
        while not has_answered and is_open and time.monotonic() < latest and not is_hurried():
            with contextlib.suppress(TimeoutError):
                is_open = self._read(_LOOK_S)
            has_answered = any(isinstance(message, Left) for message in self._messages)
        if is_open and not has_answered:
            with contextlib.suppress(TimeoutError):
                self._read(0.0)
            self._end_asker()
        while self._messages:
            take(self._messages.popleft())

    def close(self) -> None:
        """Disconnect."""
        self._is_closed = True
        self._socket.close()

    def _read(self, timeout_s: float) -> bool:
        """Take what has come; False at the end.

        Raises:
            TimeoutError: nothing has come for so long.
        """
        if not self._is_readable(timeout_s):
            raise TimeoutError
        # A piece that is lost between its reading and its taking would garble all that come after it.
        with whole_step:
            try:
                chunk = self._socket.recv(_RECEIVE_BYTES)
            except OSError:  # it died with messages that it had not read
                return False
            for frame in self._frames.feed(chunk):
                self._messages.extend(self._codec.loads(frame))
        return bool(chunk)

    def _is_readable(self, timeout_s: float) -> bool:
        if self._poll:
            return bool(self._poll.poll(min(timeout_s * 1000, _LONGEST_POLL_MS)))
        return bool(select.select([self._socket], [], [], timeout_s)[0])

    def _end_asker(self) -> None:
        if self._pid is not None:
            with contextlib.suppress(ProcessLookupError):
                os.kill(self._pid, signal.SIGKILL)


def exit_reason(place: Path, started: Any, error: HostDied) -> str:
    """Return how an asker ended; only the process that started it knows the exit status.

    Args:
        place: see `connect`.
        started: what this process has started, if it has.
        error: what the link reports.
    """
    text = str(error)
    if isinstance(started, subprocess.Popen):
        with contextlib.suppress(subprocess.TimeoutExpired):
            ended = how_it_ended(started.wait(_POLL_S))
            text = f"{ASKER} {ended}." if text.endswith(_CLOSED) else text
    log = place.with_suffix(".log")
    last = log.read_text("utf-8", "replace").strip().splitlines()[-1:] if log.exists() else []
    return " ".join([text, *last])
