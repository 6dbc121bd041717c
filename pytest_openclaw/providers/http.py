"""The only module that uses HTTP: sends a request and yields the answer's bytes, or raises with the reason.

`listening.py` interprets answers. No redirect is followed to another origin, so neither a key nor a prompt is
ever sent to an unintended server.
"""

from __future__ import annotations

import asyncio
import errno
import functools
import json
import socket
import ssl
import time
from contextlib import aclosing, asynccontextmanager
from dataclasses import replace
from http.cookiejar import CookieJar, DefaultCookiePolicy
from typing import TYPE_CHECKING, Protocol
from urllib.parse import urljoin, urlsplit
from urllib.request import getproxies, proxy_bypass

import httpx2

from pytest_openclaw.providers.address import is_loopback, origin_of
from pytest_openclaw.providers.transport import ANSWER, Transport
from pytest_openclaw.providers.wire_errors import error_of_body, retry_after_s, shortened
from pytest_openclaw.types import faults
from pytest_openclaw.types.faults import CallFailed

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, AsyncIterator, Callable, Iterator

    from pytest_openclaw.providers.connection import ArrivingResponse
    from pytest_openclaw.providers.http_call import Call
    from pytest_openclaw.types.replies import Fault

CONNECT_TIMEOUT_S = 30.0
ERROR_BODY_TIMEOUT_S = 5.0
LONGEST_ERROR_BODY_BYTES = 1 << 18
MOST_REDIRECTS = 3
# A compressing proxy delays tokens until it has enough of them.
_HEADERS = {"user-agent": "pytest-openclaw", "accept-encoding": "identity"}
_REDIRECTS = (301, 302, 303, 307, 308)
_NO_WAY = (errno.ENETUNREACH, errno.EHOSTUNREACH, errno.EHOSTDOWN, errno.ETIMEDOUT, errno.EADDRNOTAVAIL)


class HttpEdge:
    """Connections of one provider, opened on first use in the loop that uses them."""

    def __init__(self, name: str) -> None:
        self.name = name
        self._senders: dict[tuple[str, str, int | None], _Sender] = {}

    @asynccontextmanager
    async def opened(
        self, call: Call, sent: Callable[[float], None] = lambda _: None
    ) -> AsyncIterator[httpx2.Response]:
        """Send the call and yield its successful response, whose body is still to be read.

        Args:
            call: the request.
            sent: called with the time, by `time.perf_counter`, when the request was passed to the socket;
                again if it is sent again.

        Raises:
            CallFailed: there is no answer, or it is an error or a redirect to another origin.
            httpx2.HTTPError: the connection broke while the body was read.
        """
        response = await self._send(call, sent)
        try:
            if not response.is_success:
                raise CallFailed(await self._refusal(call, response))
            yield response
        finally:
            await response.aclose()

    def prepare(self, url: str) -> None:
        """Get ready to send to `url` now, because loading TLS certificates takes longer than a token."""
        self._sender(url)

    async def aclose(self) -> None:
        """Close all connections; a later call opens new ones."""
        senders, self._senders = self._senders, {}
        for sender in senders.values():
            await sender.aclose()

    async def _send(self, call: Call, sent: Callable[[float], None]) -> httpx2.Response:
        response = await self._send_once(call, call.url, sent)
        for _ in range(MOST_REDIRECTS):
            target = _target(response)
            if not target or not _may_follow(response, target):
                break
            await response.aclose()
            response = await self._send_once(call, target, sent)
        return response

    async def _send_once(self, call: Call, url: str, sent: Callable[[float], None]) -> httpx2.Response:
        sender = self._sender(url)
        sending = _Sending(sent)
        try:
            request = _request(call, url)
            request.extensions["trace"] = sending.note
            try:
                return await sender.send(request)
            except (httpx2.NetworkError, httpx2.RemoteProtocolError) as error:
                # Servers may close a kept connection at any time (llama.cpp after each stream), also when it
                # is just used again. The server is still available: the request is sent over a new one.
                if sending.over_new_connection or not _is_loss(error):
                    raise
                return await sender.send(request)
        except (httpx2.HTTPError, httpx2.InvalidURL) as error:
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
            case httpx2.ConnectTimeout():
                return faults.unreachable(self.name, where, f"no connection within {CONNECT_TIMEOUT_S:g} s")
            case httpx2.ConnectError():
                reason = _reason(error)
                if absence := _absence(reason):
                    return faults.unreachable(self.name, where, absence)
                return faults.connection_lost(
                    self.name, reason.strerror if reason and reason.strerror else why
                )
            case httpx2.ProxyError() | httpx2.InvalidURL():
                return faults.unreachable(self.name, where, why)
            case httpx2.NetworkError():
                return faults.connection_lost(self.name, "reset by the server")
            case httpx2.RemoteProtocolError() if _is_loss(error):
                return faults.connection_lost(self.name, "closed by the server")
        return faults.malformed(self.name, f"no HTTP answer: {why}")

    async def _refusal(self, call: Call, response: httpx2.Response) -> Fault:
        if response.status_code in _REDIRECTS:
            error = faults.WireError(status=response.status_code, message=_redirect_text(response))
        else:
            body = await _error_body(response)
            error = error_of_body(response.status_code, body, phrase=response.reason_phrase)
        hide = call.hide
        error = replace(error, code=hide(error.code), type=hide(error.type), message=hide(error.message))
        wait = retry_after_s(response.headers, now_s=time.time())
        return faults.refused_by_server(self.name, call.model, error, retry_after_s=wait)


async def pieces(response: httpx2.Response) -> AsyncGenerator[tuple[bytes, float]]:
    """Yield the body's bytes, decompressed, each piece with its arrival time by `time.perf_counter`.

    With a proxy it is the time of reading.
    """
    answer: ArrivingResponse | None = response.extensions.get(ANSWER)
    if answer is not None and "content-encoding" not in response.headers:
        while arrived := await answer.read():
            for piece in arrived:
                yield piece
        return
    async with aclosing(response.aiter_bytes()) as decoded:
        async for data in decoded:
            yield data, time.perf_counter() if answer is None else answer.arrived_at


class _Sender(Protocol):
    """Sends requests to one origin."""

    async def send(self, request: httpx2.Request) -> httpx2.Response:
        """Return the response, whose body is still to be read."""
        ...

    async def aclose(self) -> None:
        """Close the connections."""
        ...


class _Direct:
    """Sends without httpx2's client, which takes 14 µs of a call: no cookies, proxies or redirects."""

    def __init__(self, transport: Transport) -> None:
        self._transport = transport
        self.aclose = transport.aclose

    async def send(self, request: httpx2.Request) -> httpx2.Response:
        request.extensions["timeout"] = {"connect": CONNECT_TIMEOUT_S}
        response = await self._transport.handle_async_request(request)
        response.request = request
        return response


class _ByProxy:
    """Sends through the proxy of the environment, without limits: endpoints limit the requests."""

    def __init__(self) -> None:
        self._client = httpx2.AsyncClient(
            timeout=httpx2.Timeout(None, connect=CONNECT_TIMEOUT_S),
            limits=httpx2.Limits(max_connections=None, max_keepalive_connections=None),
            # Cookies of one cell must not be sent with the next.
            cookies=CookieJar(DefaultCookiePolicy(allowed_domains=())),
        )
        self.aclose = self._client.aclose

    async def send(self, request: httpx2.Request) -> httpx2.Response:
        return await self._client.send(request, stream=True)


class _Sending:
    """Records from a transport when a request was sent, and whether a connection was opened for it."""

    def __init__(self, sent: Callable[[float], None]) -> None:
        self.over_new_connection = False
        self._sent = sent

    async def note(self, event: str, _: object) -> None:
        """Receive an event of the transport."""
        if event.startswith("connection."):
            self.over_new_connection = True
        elif event.endswith("send_request_headers.started"):
            self._sent(time.perf_counter())


def _is_loss(error: Exception) -> bool:
    """Whether the connection was reset, or closed before any byte of an answer."""
    return isinstance(error, httpx2.NetworkError) or "without sending" in str(error)


@functools.lru_cache(maxsize=64)
def _parsed(url: str) -> httpx2.URL:
    return httpx2.URL(url)


def _request(call: Call, url: str) -> httpx2.Request:
    """Return the request, built without the client, which would double the client's cost."""
    content = None if call.body is None else json.dumps(call.body).encode()
    method = "GET" if content is None else "POST"
    return httpx2.Request(method, _parsed(url), headers={**_HEADERS, **call.headers}, content=content)


def _new_sender(*, scheme: str, host: str) -> _Sender:
    # A proxy in the environment must not see requests to this machine.
    trust_env = not is_loopback(host)
    if trust_env and _has_proxy(scheme, host):
        return _ByProxy()
    # Loading certificates takes 25 ms, and plain connections need none.
    return _Direct(Transport(httpx2.create_ssl_context(trust_env=trust_env) if scheme == "https" else None))


def _has_proxy(scheme: str, host: str) -> bool:
    """Whether the environment names a proxy for a server, which then needs httpx2's own transport."""
    proxies = getproxies()
    return ("all" in proxies or scheme in proxies) and not proxy_bypass(host)


def _target(response: httpx2.Response) -> str | None:
    """Return the target of a redirect; None if it has none."""
    if response.status_code not in _REDIRECTS or not (location := response.headers.get("location")):
        return None
    try:
        target = urljoin(str(response.url), location)
        origin_of(target)
    except ValueError:  # no URL
        return None
    return target


def _may_follow(response: httpx2.Response, target: str) -> bool:
    """Whether method, body and origin are unchanged."""
    return response.status_code in (307, 308) and origin_of(target) == origin_of(str(response.url))


def _redirect_text(response: httpx2.Response) -> str:
    target = _target(response)
    if target is None:
        return "redirected without saying where"
    where = shortened(_shown(target))
    if _may_follow(response, target):
        return f"redirected more than {MOST_REDIRECTS} times, at last to {where}"
    return f"redirected to {where}, and no prompt or key is sent there. If it is right, name that address."


async def _error_body(response: httpx2.Response) -> bytes:
    """Return as much of an error's body as arrives soon; the status is known, so errors do not matter."""
    body = bytearray()
    try:
        async with asyncio.timeout(ERROR_BODY_TIMEOUT_S), aclosing(response.aiter_bytes()) as chunks:
            async for chunk in chunks:
                body += chunk
                if len(body) >= LONGEST_ERROR_BODY_BYTES:
                    break
    except (httpx2.HTTPError, TimeoutError):
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
