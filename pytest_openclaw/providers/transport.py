"""Sends requests over kept HTTP/1.1 connections, for many concurrent streams and accurate times.

It speaks httpx2's requests and responses; httpx2's client is used only with a proxy.
"""

from __future__ import annotations

import asyncio
import os
import re
import socket
import time
from collections import defaultdict
from typing import TYPE_CHECKING

import httpx2

from pytest_openclaw.providers.connection import Bell, Connection

if TYPE_CHECKING:
    import ssl

#: A kept connection is not used longer: a firewall may have dropped it without notice.
KEPT_S = 5.0
#: asyncio reads 256 KiB at a time into new memory, which costs 17 µs a read, three times the read itself.
BUFFER_BYTES = 64 << 10
#: RFC 8305: how long one address of a host may take before the next one is tried beside it
NEXT_ADDRESS_S = 0.25
#: in a response's extensions: the `ArrivingResponse`, whose `arrived_at` has the times of the body's pieces
ANSWER = "pytest_openclaw.answer"
_DEFAULT_PORTS = {"http": 80, "https": 443}
_NO_HEADER = re.compile(rb"[\0\r\n]")
_ERRNO = re.compile(r"\[Errno (\d+)\]")

Origin = tuple[str, str, int]


class Transport(httpx2.AsyncBaseTransport):
    """Sends requests with bodies of bytes, over one connection per concurrent request.

    A request's `trace` receives `connection.connect_tcp.started` if a connection is opened for it, and
    `http11.send_request_headers.started` when its bytes are passed to the socket.

    Args:
        ssl_context: for https.
    """

    def __init__(self, ssl_context: ssl.SSLContext | None = None) -> None:
        if ssl_context is not None:
            ssl_context.set_alpn_protocols(["http/1.1"])
        self._ssl_context = ssl_context
        self._buffer = memoryview(bytearray(BUFFER_BYTES))
        self._bell = Bell()
        self._open: set[Connection] = set()
        self._free: defaultdict[Origin, list[Connection]] = defaultdict(list)

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        """Send the request and return its response, whose body is still arriving.

        Raises:
            httpx2.TransportError: there is no response.
        """
        data = _bytes_of(request)
        trace = request.extensions.get("trace")
        origin = _origin_of(request.url)
        connection = self._kept(origin)
        if connection is None:
            if trace is not None:
                await trace("connection.connect_tcp.started", {})
            connection = await self._connected(origin, request.extensions.get("timeout", {}).get("connect"))
        is_last = request.headers.get("connection", "").lower() == "close"
        if trace is not None:
            await trace("http11.send_request_headers.started", {})
        answer = connection.send(data, is_last=is_last)
        try:
            head = await answer.head()
        except BaseException:
            connection.abort()
            raise
        return httpx2.Response(
            head.status,
            headers=head.headers,
            stream=answer,
            extensions={"http_version": b"HTTP/1.1", "reason_phrase": head.phrase, ANSWER: answer},
        )

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

    async def _connected(self, origin: Origin, timeout_s: float | None) -> Connection:
        scheme, host, port = origin

        def begin() -> Connection:
            return Connection(
                self._buffer,
                self._bell,
                self._free[origin].append,
                lambda connection: self._forget(origin, connection),
            )

        if scheme == "https" and self._ssl_context is None:
            raise httpx2.UnsupportedProtocol("https without certificates to trust")
        scope = asyncio.timeout(timeout_s)
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
                raise httpx2.ConnectTimeout(f"no connection within {timeout_s} s") from None
            raise httpx2.ConnectError(str(error)) from _cause(error)
        if not connection.lost.done():
            self._open.add(connection)
        return connection

    def _forget(self, origin: Origin, connection: Connection) -> None:
        self._open.discard(connection)
        if connection in self._free[origin]:
            self._free[origin].remove(connection)


def _origin_of(url: httpx2.URL) -> Origin:
    port = url.port or _DEFAULT_PORTS.get(url.scheme)
    if port is None:
        raise httpx2.UnsupportedProtocol(f"{url.scheme}:// is neither http:// nor https://")
    return url.scheme, url.raw_host.decode("ascii"), port


def _bytes_of(request: httpx2.Request) -> bytes:
    """Return the request's bytes.

    Raises:
        httpx2.LocalProtocolError: a header would be parsed as more than one.
    """
    lines = [
        b"%s %s HTTP/1.1" % (request.method.encode("ascii"), request.url.raw_path),
        *(b"%s: %s" % header for header in request.headers.raw),
    ]
    if any(_NO_HEADER.search(line) for line in lines):
        raise httpx2.LocalProtocolError("a header holds a line break")
    return b"\r\n".join((*lines, b"", request.content))


def _cause(error: OSError | UnicodeError) -> BaseException:
    """Return the operating system's error: asyncio joins those of several addresses into one text."""
    if isinstance(error, UnicodeError):
        return socket.gaierror(socket.EAI_NONAME, "no name of a host")
    numbers = [] if error.errno is not None else [int(number) for number in _ERRNO.findall(str(error))]
    errors = [OSError(number, os.strerror(number)) for number in numbers]
    return ExceptionGroup("no address answers", errors) if errors else error
