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
import json
import os
import pickle
import secrets
import select
import signal
import socket
import subprocess
import sys
import threading
import time
from collections import deque
from typing import TYPE_CHECKING, Any

from pytest_openclaw.asking.frames import ByReference, Frames, framed
from pytest_openclaw.asking.journal import note_start
from pytest_openclaw.asking.messages import Goodbye, Left
from pytest_openclaw.core.errors import HostDied
from pytest_openclaw.core.locks import LockFile
from pytest_openclaw.core.private import FILE_MODE, open_private
from pytest_openclaw.core.redact import Redactor
from pytest_openclaw.core.run_once import read_json, write_json
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
_LONGEST_PATH = 100
"""Bytes of a Unix socket's path; the kernels allow 104 to 108."""
_BACKLOG = 128
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


# The process must find the modules that this process finds, whatever put them on its path.
_START = (
    "import sys, json; sys.path[:] = json.loads(sys.argv[1]);"
    "from pytest_openclaw.asking.asker_process import main; main(int(sys.argv[2]), *sys.argv[3:])"
)


def runs_in_process(provider: Provider) -> bool:
    """Whether another process could make this provider: it is built in, and sockets can be inherited."""
    return os.name == "posix" and is_built_in(provider)


def start_process(listener: socket.socket, address: Path, secret: str) -> subprocess.Popen[bytes]:
    """Start an asker in a process of its own.

    Raises:
        OSError: it cannot be started.
    """
    places = json.dumps([str(one) for one in sys.path])
    with open_private(address.with_suffix(".log"), "ab") as log:
        return subprocess.Popen(  # noqa: S603 - this interpreter
            [sys.executable, "-c", _START, places, str(listener.fileno()), str(address), secret],
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            pass_fds=[listener.fileno()],
        )


def connect(place: Path, start: Callable[[socket.socket, Path, str], Any]) -> tuple[Link, Any]:
    """Connect to the asker at `place`; start it if there is none.

    Args:
        place: a path in the run's shared folder, without a suffix; equal for all that share an asker.
        start: starts one, from a listening socket, the file with its address, and the secret; returns what it
            has started.

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
        listener, where = _listen(place)
        with listener:
            note_start(place.with_suffix(".journal"))
            address = _address(place)
            started = start(listener, address, where.get("secret", ""))
            pid = started.pid if isinstance(started, subprocess.Popen) else None
            # Connections wait in the listener's queue until the asker is ready for them.
            write_json(address, {**where, "pid": pid})
            if connected := _dial(place):
                return connected, started
    raise HostDied("the asker has ended before it could be reached")


def _address(place: Path) -> Path:
    return place.with_suffix(".json")


def _listen(place: Path) -> tuple[socket.socket, dict[str, Any]]:
    """Return a listening socket, and how to reach it."""
    path = str(place.with_suffix(".sock"))
    if hasattr(socket, "AF_UNIX") and len(os.fsencode(path)) <= _LONGEST_PATH:
        with contextlib.suppress(FileNotFoundError):
            os.unlink(path)  # noqa: PTH108 - of an asker that died
        listener = socket.socket(socket.AF_UNIX)
        listener.bind(path)
        os.chmod(path, FILE_MODE)  # noqa: PTH101
        where: dict[str, Any] = {"path": path}
    else:
        # Any user of the machine could connect here; only this one can read the secret.
        listener = socket.create_server(("127.0.0.1", 0))
        where = {"port": listener.getsockname()[1], "secret": secrets.token_hex(16)}
    listener.listen(_BACKLOG)
    return listener, where


def _dial(place: Path) -> Link | None:
    where = read_json(_address(place))
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
        frame = b"".join(framed(self._codec.dumps(message)) for message in messages)
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
                self._messages.append(self._codec.loads(frame))
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
