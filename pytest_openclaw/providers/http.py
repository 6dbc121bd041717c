"""The only module that uses HTTP: sends a request and yields the answer's bytes, or raises with the reason.

`stream.py` interprets answers. No redirect is followed to another origin, so neither a key nor a prompt is
ever sent to an unintended server.
"""

from __future__ import annotations

import asyncio
import errno
import json
import socket
import ssl
import time
from contextlib import aclosing
from dataclasses import replace
from typing import TYPE_CHECKING, Protocol
from urllib.parse import urljoin, urlsplit

from pytest_openclaw.providers.address import is_loopback, origin_of
from pytest_openclaw.providers.http_errors import (
    ConnectError,
    ConnectTimeout,
    HttpError,
    NetworkError,
    ProtocolError,
    ProxyError,
    UrlError,
)
from pytest_openclaw.providers.transport import Outgoing, Sending, Transport
from pytest_openclaw.providers.wire_errors import error_of_body, retry_after_s, shortened
from pytest_openclaw.types import faults
from pytest_openclaw.types.faults import CallFailed

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from pytest_openclaw.providers.connection import Head
    from pytest_openclaw.providers.http_call import Call
    from pytest_openclaw.types.replies import Fault

CONNECT_TIMEOUT_S = 30.0
ERROR_BODY_TIMEOUT_S = 5.0
LONGEST_ERROR_BODY_BYTES = 1 << 18
MOST_REDIRECTS = 3
# A compressing proxy delays tokens until it has enough of them.
_HEADERS = {"user-agent": "pytest-openclaw", "accept-encoding": "identity"}
_SUCCESS = range(200, 300)
_REDIRECTS = (301, 302, 303, 307, 308)
_NO_WAY = (errno.ENETUNREACH, errno.EHOSTUNREACH, errno.EHOSTDOWN, errno.ETIMEDOUT, errno.EADDRNOTAVAIL)


class HttpAnswer(Protocol):
    """An answer whose body is still arriving."""

    @property
    def head(self) -> Head:
        """The status and the headers."""
        ...

    @property
    def has_ended(self) -> bool:
        """Whether all of it has arrived."""
        ...

    async def read(self) -> list[tuple[bytes, float]]:
        """Return what has arrived of the body since the last call, decompressed; nothing at its end.

        Each piece has its arrival time by `time.perf_counter`; with a proxy, the time of reading.

        Raises:
            HttpError: the connection broke, or the compression is broken.
        """
        ...

    async def aclose(self) -> None:
        """Close the connection, unless the whole answer has arrived."""
        ...


class HttpEdge:
    """Connections of one provider, opened on first use in the loop that uses them."""

    def __init__(self, name: str) -> None:
        self.name = name
        self._senders: dict[tuple[str, str, int | None], _Sender] = {}

    async def open(self, call: Call, sent: Callable[[float], None] = lambda _: None) -> HttpAnswer:
        """Send the call and return its successful answer, which the caller reads and closes.

        Args:
            call: the request.
            sent: see `Sending`.

        Raises:
            CallFailed: there is no answer, or it is an error or a redirect to another origin.
        """
        content = None if call.body is None else json.dumps(call.body).encode()
        request = Outgoing(call.url, {**_HEADERS, **call.headers}, content)
        answer = await self._send(call, request, sent)
        for _ in range(MOST_REDIRECTS):
            target = _target(answer.head, request.url)
            if not target or not _may_follow(answer.head, request.url, target):
                break
            await answer.aclose()
            request = request._replace(url=target)
            answer = await self._send(call, request, sent)
        if answer.head.status in _SUCCESS:
            return answer
        async with aclosing(answer):
            raise CallFailed(await self._refusal(call, answer, request.url))

    async def aclose(self) -> None:
        """Close all connections; a later call opens new ones."""
        senders, self._senders = self._senders, {}
        for sender in senders.values():
            await sender.aclose()

    async def _send(self, call: Call, request: Outgoing, sent: Callable[[float], None]) -> HttpAnswer:
        sending = Sending(sent)
        try:
            sender = self._sender(request.url)
            try:
                return await sender.send(request, sending)
            except (NetworkError, ProtocolError) as error:
                # Servers may close a kept connection at any time (llama.cpp after each stream), also when it
                # is just used again. The server is still available: the request is sent over a new one.
                if sending.over_new_connection or not _is_loss(error):
                    raise
                return await sender.send(request, sending)
        except HttpError as error:
            # Without the cause: tracebacks are written, and the cause's locals hold the headers.
            raise CallFailed(self._no_answer(call, error)) from None

    def _sender(self, url: str) -> _Sender:
        origin = origin_of(url)
        if origin not in self._senders:
            self._senders[origin] = _new_sender(scheme=origin[0], host=origin[1])
        return self._senders[origin]

    def _no_answer(self, call: Call, error: Exception) -> Fault:
        why = call.hide(shortened(str(error)))
        where = call.base_url
        match error:
            case ConnectTimeout():
                return faults.unreachable(self.name, where, f"no connection within {CONNECT_TIMEOUT_S:g} s")
            case ConnectError():
                reason = _reason(error)
                if absence := _absence(reason):
                    return faults.unreachable(self.name, where, absence)
                return faults.connection_lost(
                    self.name, reason.strerror if reason and reason.strerror else why
                )
            case ProxyError() | UrlError():
                return faults.unreachable(self.name, where, why)
            case NetworkError():
                return faults.connection_lost(self.name, "reset by the server")
            case ProtocolError() if _is_loss(error):
                return faults.connection_lost(self.name, "closed by the server")
        return faults.malformed(self.name, f"no HTTP answer: {why}")

    async def _refusal(self, call: Call, answer: HttpAnswer, url: str) -> Fault:
        head = answer.head
        if head.status in _REDIRECTS:
            error = faults.WireError(status=head.status, message=_redirect_text(head, url))
        else:
            error = error_of_body(head.status, await _error_body(answer), phrase=head.phrase)
        wait = retry_after_s(head.headers, now_s=time.time())
        fault = faults.refused_by_server(self.name, call.model, call.hide_in(error), retry_after_s=wait)
        if fault.failure_type not in ("http_404", "http_405"):
            return fault
        where = call.hide(shortened(_shown(url)))
        return replace(fault, message=f"{fault.message.rstrip('.')}. The request went to {where}.")


class _Sender(Protocol):
    """Sends requests to one origin."""

    async def send(self, request: Outgoing, sending: Sending) -> HttpAnswer:
        """Return the answer, whose body is still to be read."""
        ...

    async def aclose(self) -> None:
        """Close the connections."""
        ...


class _Direct:
    """Sends without httpx2's client: no cookies, proxies or redirects."""

    def __init__(self, transport: Transport) -> None:
        self._transport = transport
        self.aclose = transport.aclose

    async def send(self, request: Outgoing, sending: Sending) -> HttpAnswer:
        answer = await self._transport.send(request, sending)
        if "content-encoding" not in answer.head.headers:
            return answer
        from pytest_openclaw.providers.by_httpx2 import decompressed

        return decompressed(answer)


def _is_loss(error: Exception) -> bool:
    """Whether the connection was reset, or closed before any byte of an answer."""
    return isinstance(error, NetworkError) or "without sending" in str(error)


def _new_sender(*, scheme: str, host: str) -> _Sender:
    # A proxy in the environment must not see requests to this machine.
    trust_env = not is_loopback(host)
    if trust_env and _has_proxy(scheme, host):
        from pytest_openclaw.providers.by_httpx2 import ByProxy

        return ByProxy(connect_s=CONNECT_TIMEOUT_S)
    ssl_context = None
    if scheme == "https":
        import httpx2

        ssl_context = httpx2.create_ssl_context(trust_env=trust_env)
    return _Direct(Transport(ssl_context, connect_s=CONNECT_TIMEOUT_S))


def _has_proxy(scheme: str, host: str) -> bool:
    """Whether the environment names a proxy for a server, which then needs httpx2's own transport."""
    from urllib.request import getproxies, proxy_bypass

    proxies = getproxies()
    return ("all" in proxies or scheme in proxies) and not proxy_bypass(host)


def _target(head: Head, url: str) -> str | None:
    """Return the target of a redirect of `url`; None if it has none."""
    if head.status not in _REDIRECTS or not (location := head.headers.get("location")):
        return None
    try:
        target = urljoin(url, location)
        origin_of(target)
    except ValueError:  # no URL
        return None
    return target


def _may_follow(head: Head, url: str, target: str) -> bool:
    """Whether method, body and origin are unchanged."""
    return head.status in (307, 308) and origin_of(target) == origin_of(url)


def _redirect_text(head: Head, url: str) -> str:
    target = _target(head, url)
    if target is None:
        return "redirected without saying where"
    where = shortened(_shown(target))
    if _may_follow(head, url, target):
        return f"redirected more than {MOST_REDIRECTS} times, at last to {where}"
    return f"redirected to {where}, and no prompt or key is sent there. If it is right, name that address."


async def _error_body(answer: HttpAnswer) -> bytes:
    """Return as much of an error's body as arrives soon; the status is known, so errors do not matter."""
    body = bytearray()
    try:
        async with asyncio.timeout(ERROR_BODY_TIMEOUT_S):
            while len(body) < LONGEST_ERROR_BODY_BYTES and (arrived := await answer.read()):
                for piece, _ in arrived:
                    body += piece
    except (HttpError, TimeoutError):
        return bytes(body)
    return bytes(body)


def _reason(error: BaseException) -> OSError | None:
    """Return the operating system's error behind a library's; of several addresses, a refusal first."""
    known = [cause for cause in _causes(error) if isinstance(cause, OSError) and cause.errno is not None]
    refused = [cause for cause in known if isinstance(cause, ConnectionRefusedError)]
    return next(iter(refused or known), None)


def _causes(error: BaseException) -> Iterator[BaseException]:
    yield error
    inner = error.exceptions if isinstance(error, BaseExceptionGroup) else ()
    for cause in (*inner, error.__cause__ or error.__context__):
        if cause is not None:
            yield from _causes(cause)


def _absence(reason: OSError | None) -> str | None:
    """Return why there is no server; None if there may be one and the connection to it was lost."""
    if isinstance(reason, socket.gaierror):
        return "unknown host"
    if isinstance(reason, ssl.SSLCertVerificationError):
        return f"its certificate is not trusted: {reason.verify_message}"
    if isinstance(reason, ssl.SSLError) and not isinstance(reason, ssl.SSLEOFError):
        return f"no TLS: {reason.reason}"
    if isinstance(reason, ConnectionRefusedError):
        return "connection refused"
    if reason is not None and reason.errno in _NO_WAY:
        return "there is no way to that host"
    return None


def _shown(url: str) -> str:
    """Return a URL without user info and query, which may be secret."""
    parts = urlsplit(url)
    return f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}{parts.path}"
