"""Sends requests over kept HTTP/1.1 connections, for many concurrent streams and accurate times.

Without httpx2's requests and responses a call takes a fifth less CPU time.
"""

from __future__ import annotations

import asyncio
import os
import re
import socket
import time
from collections import defaultdict
from functools import lru_cache
from typing import TYPE_CHECKING, NamedTuple

from pytest_openclaw.providers.connection import Bell, Connection
from pytest_openclaw.providers.http_errors import ConnectError, ConnectTimeout, HttpError, UrlError

if TYPE_CHECKING:
    import ssl
    from collections.abc import Callable, Mapping

    from pytest_openclaw.providers.connection import ArrivingResponse

#: A kept connection is not used longer: a firewall may have dropped it without notice.
KEPT_S = 5.0
#: asyncio reads 256 KiB at a time into new memory, which costs 17 µs a read, three times the read itself.
BUFFER_BYTES = 64 << 10
#: RFC 8305: how long one address of a host may take before the next one is tried beside it
NEXT_ADDRESS_S = 0.25
_DEFAULT_PORTS = {"http": 80, "https": 443}
_LAST_PORT = 65535
# Of these httpx2 changes nothing.
_PLAIN_URL = re.compile(
    r"(https?)://([a-z0-9](?:[a-z0-9.-]*[a-z0-9])?)(?::([1-9][0-9]{0,4}))?((?:/(?!\.)[A-Za-z0-9._~:@!$&'()*+,;=-]*)+)"
)
_NO_HEADER = re.compile(r"[\0\r\n]")
_ERRNO = re.compile(r"\[Errno (\d+)\]")

Origin = tuple[str, str, int]


class Outgoing(NamedTuple):
    """A request.

    Attributes:
        headers: names in lower case, without `host` and `content-length`. With `connection: close` the
            request is the last one on its connection.
        content: the body; None is a GET, other requests are a POST.
    """

    url: str
    headers: Mapping[str, str]
    content: bytes | None


class Sending:
    """What is known of the sending of a request.

    Args:
        sent: called with the time, by `time.perf_counter`, when the request is passed to the socket; again if
            it is sent again.

    Attributes:
        over_new_connection: a connection was opened for it.
    """

    def __init__(self, sent: Callable[[float], None]) -> None:
        self.sent = sent
        self.over_new_connection = False


class Transport:
    """Sends requests, over one connection per concurrent request.

    Args:
        ssl_context: for https.
        connect_s: how long a connection may take to open.
    """

    def __init__(self, ssl_context: ssl.SSLContext | None = None, *, connect_s: float) -> None:
        if ssl_context is not None:
            ssl_context.set_alpn_protocols(["http/1.1"])
        self._ssl_context = ssl_context
        self._connect_s = connect_s
        self._buffer = memoryview(bytearray(BUFFER_BYTES))
        self._bell = Bell()
        self._open: set[Connection] = set()
        self._free: defaultdict[Origin, list[Connection]] = defaultdict(list)

    async def send(self, request: Outgoing, sending: Sending) -> ArrivingResponse:
        """Send the request and return its answer, whose body is still arriving.

        Raises:
            HttpError: there is no answer, or the URL is none.
        """
        place = _place_of(request.url)
        data = _bytes_of(request, place)
        connection = self._kept(place.origin)
        if connection is None:
            sending.over_new_connection = True
            connection = await self._connected(place.origin)
        sending.sent(time.perf_counter())
        answer = connection.send(data, is_last=request.headers.get("connection") == "close")
        try:
            await answer.receive_whole_head()
        except BaseException:
            connection.abort()
            raise
        return answer

    async def aclose(self) -> None:
        """Close all connections, and wait until they are closed."""
        closing = [connection.lost for connection in self._open]
        for connection in [*self._open]:
            connection.abort()
        await asyncio.gather(*closing)

    # --- how ------------------------------------------------------------------------------------

    def _kept(self, origin: Origin) -> Connection | None:
        """Return the free connection that was used last; close those that are too old."""
        free = self._free[origin]
        while free:
            connection = free.pop()
            if time.monotonic() - connection.free_since < KEPT_S:
                return connection
            connection.abort()
        return None

    async def _connected(self, origin: Origin) -> Connection:
        scheme, host, port = origin

        def begin() -> Connection:
            return Connection(
                self._buffer,
                self._bell,
                self._free[origin].append,
                lambda connection: self._forget(origin, connection),
            )

        if scheme == "https" and self._ssl_context is None:
            raise HttpError("https without certificates to trust")
        scope = asyncio.timeout(self._connect_s)
        try:
            async with scope:
                _, connection = await asyncio.get_running_loop().create_connection(
                    begin,
                    host,
                    port,
                    ssl=self._ssl_context if scheme == "https" else None,
                    happy_eyeballs_delay=NEXT_ADDRESS_S,
                )
        except (OSError, UnicodeError) as error:
            if scope.expired():
                raise ConnectTimeout(f"no connection within {self._connect_s:g} s") from None
            raise ConnectError(str(error)) from _cause(error)
        if not connection.lost.done():
            self._open.add(connection)
        return connection

    def _forget(self, origin: Origin, connection: Connection) -> None:
        self._open.discard(connection)
        if connection in self._free[origin]:
            self._free[origin].remove(connection)


class _Place(NamedTuple):
    """Where a URL leads: the server, and how a request to it begins after its method."""

    origin: Origin
    begin: str


@lru_cache(maxsize=64)
def _place_of(text: str) -> _Place:
    if (plain := _PLAIN_URL.fullmatch(text)) and int(plain[3] or 0) <= _LAST_PORT:
        scheme, host, given, path = plain.groups()
        port = int(given or _DEFAULT_PORTS[scheme])
        netloc = host if port == _DEFAULT_PORTS[scheme] else f"{host}:{port}"
        return _Place((scheme, host, port), f" {path} HTTP/1.1\r\nHost: {netloc}")
    import httpx2  # it encodes names and paths, and loads for 20 ms

    try:
        url = httpx2.URL(text)
    except httpx2.InvalidURL as error:
        raise UrlError(str(error)) from None
    if url.scheme not in _DEFAULT_PORTS:
        raise HttpError(f"{url.scheme}:// is neither http:// nor https://")
    port = url.port or _DEFAULT_PORTS[url.scheme]
    if port > _LAST_PORT:
        raise HttpError(f"there is no port {port}")
    path, netloc = url.raw_path.decode("ascii"), url.netloc.decode("ascii")
    return _Place((url.scheme, url.raw_host.decode("ascii"), port), f" {path} HTTP/1.1\r\nHost: {netloc}")


def _bytes_of(request: Outgoing, place: _Place) -> bytes:
    """Return the request's bytes.

    Raises:
        HttpError: a header would be parsed as more than one.
    """
    lines = [f"{name}: {value}" for name, value in request.headers.items()]
    if any(map(_NO_HEADER.search, lines)):
        raise HttpError("a header holds a line break")
    content = request.content
    if content is not None:
        lines.append(f"Content-Length: {len(content)}")
    method = "GET" if content is None else "POST"
    head = "\r\n".join((f"{method}{place.begin}", *lines, "", ""))
    return head.encode("ascii") + (content or b"")


def _cause(error: OSError | UnicodeError) -> BaseException:
    """Return the operating system's error: asyncio joins those of several addresses into one text."""
    if isinstance(error, UnicodeError):
        return socket.gaierror(socket.EAI_NONAME, "no name of a host")
    numbers = [] if error.errno is not None else [int(number) for number in _ERRNO.findall(str(error))]
    errors = [OSError(number, os.strerror(number)) for number in numbers]
    return ExceptionGroup("no address answers", errors) if errors else error
