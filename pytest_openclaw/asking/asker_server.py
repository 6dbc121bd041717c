"""The asker's end of its sockets: who is connected, and when it ends.

It ends when the last client has said goodbye. A client whose connection broke may be replaced, as a crashed
xdist worker is: the asker waits `LINGER_S` for that, and sends nothing while no client is connected.
"""

from __future__ import annotations

import asyncio
import contextlib
import pickle
import socket
import traceback
from typing import TYPE_CHECKING

from pytest_openclaw.asking.frames import Frames, framed
from pytest_openclaw.asking.messages import Goodbye, Hello, JobResult, Left
from pytest_openclaw.core.errors import AskingBroke, HostDied

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    from pytest_openclaw.asking.asker import Asker
    from pytest_openclaw.asking.frames import ByReference
    from pytest_openclaw.asking.messages import FromAsker, FromClient
    from pytest_openclaw.core.redact import Redactor

LINGER_S = 20.0
SENDING_S = 10.0


class AskerServer:
    """Lets clients use an asker over a socket.

    Args:
        make: makes the asker, and what takes secrets out of its messages, at the first client's greeting.
        address: the file that says where the socket is; it is removed when no further client is served.
            Without one, the socket is the connection of the only client.
        secret: the first frame of a client, where any user of the machine could connect.
        codec: for clients in this process. Others get pickled messages, without secrets.
        is_awaited: whether a first client may still come, asked every `LINGER_S`.
    """

    def __init__(
        self,
        make: Callable[[Hello], tuple[Asker, Redactor]],
        address: Path | None,
        secret: bytes = b"",
        codec: ByReference | None = None,
        is_awaited: Callable[[], bool] = lambda: False,
    ) -> None:
        self._is_awaited = is_awaited
        self._make = make
        self._address = address
        self.secret = secret
        self._codec = codec
        self._asker: Asker | None = None
        self._redactor: Redactor | None = None
        self._open: set[_Connection] = set()
        self._connected: set[_Connection] = set()
        self._leaving: _Connection | None = None
        self._n_missing = 1  # the one that has started this asker
        self._waiting: asyncio.TimerHandle | None = None
        self._is_alone = False
        self._has_ended = asyncio.Event()

    async def serve(self, listener: socket.socket) -> None:
        """Serve until the end."""
        listener.setblocking(False)
        self._wait_for_missing()
        try:
            server = await self._accept(listener)
            await self._has_ended.wait()
            if self._asker:
                self._asker.end()
            if self._address:
                self._address.unlink(missing_ok=True)
            if server:
                server.close()
            left = await self._asker.close() if self._asker else Left()
            if self._leaving:
                await self._leaving.end(left)
        finally:
            if self._asker:
                self._asker.shut()
            # Closing takes a pass of the loop, and a loop that ends before leaves the socket open.
            await asyncio.gather(*(connection.close() for connection in self._open))

    async def _accept(self, listener: socket.socket) -> asyncio.Server | None:
        loop = asyncio.get_running_loop()
        if self._address is None:
            await loop.connect_accepted_socket(lambda: _Connection(self), listener)
            return None
        if listener.family == getattr(socket, "AF_UNIX", None):
            return await loop.create_unix_server(lambda: _Connection(self), sock=listener)
        return await loop.create_server(lambda: _Connection(self), sock=listener)

    def end(self) -> None:
        """End, even with connected clients."""
        self._has_ended.set()

    def open(self, connection: _Connection) -> None:
        """Keep a new connection, to close it at the end."""
        self._open.add(connection)

    def greet(self, connection: _Connection, hello: Hello) -> None:
        """Serve a new client, perhaps in place of one that was lost."""
        if self._asker is None:
            self._asker, self._redactor = self._make(hello)
        self._is_alone = hello.is_alone
        self._n_missing = max(0, self._n_missing - 1)
        self._connected.add(connection)
        self._asker.join(connection, hello)
        self._asker.awaits_client = self._n_missing > 0
        if self._leaving:
            self._leaving.deliver(Left())
            self._leaving = None

    def receive(self, connection: _Connection, message: FromClient) -> None:
        """Do what a client asks for."""
        assert self._asker is not None, "a client greets first"
        if not isinstance(message, Goodbye):
            self._asker.receive(connection, message)
            return
        self._forget(connection)
        if self._connected:
            connection.deliver(Left())
            return
        self._leaving = connection
        if not self._n_missing:
            self._has_ended.set()

    def lose(self, connection: _Connection) -> None:
        """Wait for another client in place of one that broke off."""
        self._open.discard(connection)
        if connection is self._leaving:
            self._leaving = None
        elif connection in self._connected:
            self._forget(connection)
            self._n_missing += 1
            if self._asker:
                self._asker.awaits_client = True
            self._wait_for_missing()

    def to_bytes(self, messages: Sequence[FromAsker]) -> bytes:
        """Return messages as they are sent; what they share is in one pickle once."""
        return (
            self._codec.dumps(messages) if self._codec else _pickled([*map(self._without_secrets, messages)])
        )

    def from_bytes(self, frame: bytes) -> Sequence[FromClient]:
        """Return the messages that a client has sent."""
        messages: Sequence[FromClient] = (self._codec or pickle).loads(frame)
        return messages

    def _without_secrets(self, message: FromAsker) -> FromAsker:
        """Take secrets out of what is said in words, before anything shortens it and leaves half of one."""
        match message:
            case JobResult():
                return self._redacted(message)
            case Left():
                return message._replace(results=[self._redacted(result) for result in message.results])
        return message

    def _redacted(self, result: JobResult) -> JobResult:
        error, redactor = result.error, self._redactor
        if redactor is None or not (error or result.notes):
            return result
        if error and not isinstance(error, HostDied):
            broke = AskingBroke(redactor.text(f"{type(error).__name__}: {error}"))
            broke.add_note(redactor.text("".join(traceback.format_exception(error))))
            error = broke
        return result._replace(error=error, notes=redactor.value(result.notes))

    def _forget(self, connection: _Connection) -> None:
        assert self._asker is not None, "a client greets first"
        self._connected.discard(connection)
        self._asker.leave(connection)

    def _wait_for_missing(self) -> None:
        if self._waiting:
            self._waiting.cancel()
        patience_s = 0.0 if self._is_alone else LINGER_S
        self._waiting = asyncio.get_running_loop().call_later(patience_s, self._give_up_missing)

    def _give_up_missing(self) -> None:
        if self._asker is None and self._is_awaited():
            self._wait_for_missing()
            return
        self._n_missing = 0
        if self._asker:
            self._asker.awaits_client = False
        if not self._connected:
            self._has_ended.set()


class _Connection(asyncio.Protocol):
    """A client's connection."""

    def __init__(self, server: AskerServer) -> None:
        self._server = server
        self._frames = Frames()
        self._is_trusted = not server.secret
        self._is_lost = asyncio.Event()
        self._unsent: list[FromAsker] = []

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport), "a socket's transport"
        self._transport = transport
        self._server.open(self)

    def data_received(self, data: bytes) -> None:
        for frame in self._frames.feed(data):
            if not self._is_trusted:
                if frame != self._server.secret:
                    self._transport.abort()
                    return
                self._is_trusted = True
                continue
            for message in self._server.from_bytes(frame):
                if isinstance(message, Hello):
                    self._server.greet(self, message)
                else:
                    self._server.receive(self, message)

    def connection_lost(self, _: Exception | None) -> None:
        self._is_lost.set()
        self._server.lose(self)

    def deliver(self, message: FromAsker) -> None:
        """Send a message, in one piece with others of this pass of the loop; see `Client`."""
        if not self._unsent:
            asyncio.get_running_loop().call_soon(self._send)
        self._unsent.append(message)

    def _send(self) -> None:
        unsent, self._unsent = self._unsent, []
        if unsent:
            self._transport.write(framed(self._server.to_bytes(unsent)))

    async def end(self, left: Left) -> None:
        """Send the last message, and wait until it is read."""
        self.deliver(left)
        # A socket holds some 200 KB; answers beyond that are sent while the other side reads.
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(self._is_lost.wait(), SENDING_S)

    async def close(self) -> None:
        """Close the connection."""
        self._send()
        self._transport.abort()
        await self._is_lost.wait()


def _pickled(messages: Sequence[FromAsker]) -> bytes:
    try:
        return pickle.dumps(messages)
    except Exception:  # a plugin's provider may put anything into a reply
        return pickle.dumps([*map(_portable, messages)])


def _portable(message: FromAsker) -> FromAsker:
    try:
        pickle.dumps(message)
    except Exception as error:
        if not isinstance(message, JobResult):
            raise
        broke = AskingBroke(f"the reply cannot be sent to another process: {type(error).__name__}: {error}")
        return message._replace(ending=None, error=broke)
    return message
