"""Leases keep an engine alive: connections that the kernel closes when their holder ends for any reason.

A lease is a loopback connection over which the engine's token was sent and `ok` received. Both sides notice
at once when the other one ends, without a process id, which another process may have by then.
"""

from __future__ import annotations

import asyncio
import hmac
import selectors
import socket
import time
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

LOOPBACK = "127.0.0.1"
#: connections without the token that are open at once; one more closes the oldest of them
MOST_STRANGERS = 32
#: seconds after which a connection without the token is closed; the other side then stops waiting
TOKEN_WITHIN_S = 10.0

_OK = b"ok\n"
_LONGEST_MESSAGE_BYTES = 256


class LeaseServer:
    """The engine's side: grants leases, and returns after the last one has ended.

    Args:
        token: a connection must send it first.
        token_within_s: how long a connection may be open without that.
    """

    def __init__(self, token: str, *, token_within_s: float = TOKEN_WITHIN_S) -> None:
        self._token = token.encode()
        self._token_within_s = token_within_s
        self._strangers: dict[socket.socket, float] = {}  # → its deadline; the oldest comes first
        self._held: set[socket.socket] = set()
        self._given_back: list[socket.socket] = []
        self._selector = selectors.DefaultSelector()
        self._listener = socket.create_server((LOOPBACK, 0), backlog=socket.SOMAXCONN)
        self._listener.setblocking(False)
        self._selector.register(self._listener, selectors.EVENT_READ)

    @property
    def port(self) -> int:
        """The port for leases on 127.0.0.1."""
        return int(self._listener.getsockname()[1])

    def serve_until_unused(self, first_within_s: float, clock: Callable[[], float] = time.monotonic) -> None:
        """Return when the last lease has ended, or when none was taken within `first_within_s`.

        The last holder's connection stays open: it closes with the process, so that the holder knows that
        the engine has ended.
        """
        first_by = clock() + first_within_s
        was_used = False
        while True:
            self._attend(self._wait_s(first_by, clock()), clock)
            was_used = was_used or bool(self._held)
            if self._held:
                self._part_with_former_holders()
            elif was_used or clock() >= first_by:
                return

    def close(self) -> None:
        """Close the listener and every connection."""
        self._part_with_former_holders()
        for key in list(self._selector.get_map().values()):
            if isinstance(key.fileobj, socket.socket):
                key.fileobj.close()
        self._selector.close()

    def _wait_s(self, first_by: float, now: float) -> float | None:
        """Return how long to wait for connections and tokens; None is without a limit."""
        deadlines = [*self._strangers.values(), *(() if self._held else (first_by,))]
        return max(0.0, min(deadlines) - now) if deadlines else None

    def _attend(self, wait_s: float | None, clock: Callable[[], float]) -> None:
        """Wait, read what has arrived, accept one connection, and close those that have timed out."""
        ready = [key.fileobj for key, _ in self._selector.select(wait_s)]
        for connection in ready:
            if connection is not self._listener and isinstance(connection, socket.socket):
                self._read(connection)
        # Last, as it may close a connection whose token has arrived.
        if self._listener in ready:
            self._accept(clock())
        now = clock()
        for connection in [one for one, until in self._strangers.items() if until <= now]:
            self._end(connection)

    def _read(self, connection: socket.socket) -> None:
        said = _receive(connection)
        if connection in self._strangers and hmac.compare_digest(said.strip(), self._token):
            self._grant(connection)
        else:
            self._end(connection)

    def _accept(self, now: float) -> None:
        try:
            connection, _ = self._listener.accept()
        except (BlockingIOError, ConnectionError):
            return  # the caller closed it between its connect and our accept
        if len(self._strangers) == MOST_STRANGERS:
            self._end(next(iter(self._strangers)))
        connection.setblocking(False)
        self._selector.register(connection, selectors.EVENT_READ)
        self._strangers[connection] = now + self._token_within_s

    def _grant(self, connection: socket.socket) -> None:
        try:
            connection.sendall(_OK)
        except OSError:
            self._end(connection)
        else:
            del self._strangers[connection]
            self._held.add(connection)

    def _end(self, connection: socket.socket) -> None:
        self._selector.unregister(connection)
        if connection in self._held:
            self._held.remove(connection)
            self._given_back.append(connection)
        else:
            del self._strangers[connection]
            connection.close()

    def _part_with_former_holders(self) -> None:
        for connection in self._given_back:
            connection.close()
        self._given_back.clear()


async def take_lease(port: int, token: str, within_s: float = TOKEN_WITHIN_S) -> socket.socket | None:
    """Take a lease of the engine at `port`; None if that engine has ended.

    Raises:
        TimeoutError: the connection is accepted but not answered.
    """
    connection = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    connection.setblocking(False)
    granted = False
    try:
        async with asyncio.timeout(within_s):
            granted = await _ask_for_lease(connection, port, token)
    except ConnectionError:
        return None
    finally:
        if not granted:
            connection.close()
    return connection if granted else None


def is_held(lease: socket.socket) -> bool:
    """Whether the engine of a lease is still running."""
    try:
        return lease.recv(1, socket.MSG_PEEK) != b""
    except BlockingIOError:
        return True
    except OSError:
        return False


async def give_back(lease: socket.socket, within_s: float = 5.0) -> None:
    """End a lease and wait until the engine has noticed, or after the last lease has ended."""
    try:
        lease.shutdown(socket.SHUT_WR)
        async with asyncio.timeout(within_s):
            await asyncio.get_running_loop().sock_recv(lease, _LONGEST_MESSAGE_BYTES)
    except (OSError, TimeoutError):
        return  # it has ended already, or is busy: closing our end is enough
    finally:
        lease.close()


async def _ask_for_lease(connection: socket.socket, port: int, token: str) -> bool:
    loop = asyncio.get_running_loop()
    await loop.sock_connect(connection, (LOOPBACK, port))
    await loop.sock_sendall(connection, token.encode() + b"\n")
    return await loop.sock_recv(connection, len(_OK)) == _OK


def _receive(connection: socket.socket) -> bytes:
    try:
        return connection.recv(_LONGEST_MESSAGE_BYTES)
    except ConnectionError:
        return b""
