"""Sends requests by httpx2 and maps its errors to faults; no other module uses HTTP.

No redirect is followed to another origin, so neither a key nor a prompt is ever sent to an unintended server.
One timeout bounds the whole attempt, also for a server that sends slowly or sends comments to keep the
connection alive. After the end mark of an answer an error of the connection does not matter.
"""

from __future__ import annotations

import asyncio
import errno
import json
import logging
import socket
import ssl
import time
from contextlib import aclosing
from dataclasses import replace
from http.cookiejar import CookieJar, DefaultCookiePolicy
from typing import TYPE_CHECKING
from urllib.parse import urljoin, urlsplit

import httpx2

from pytest_openclaw.providers.address import is_loopback, origin_of
from pytest_openclaw.providers.wire import error_of_body, retry_after_s, shortened
from pytest_openclaw.values import faults
from pytest_openclaw.values.faults import CallFailed

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pytest_openclaw.providers.stream import AnswerBody, Call
    from pytest_openclaw.values.replies import Fault

CONNECT_TIMEOUT_S = 30.0
ERROR_BODY_TIMEOUT_S = 5.0
LONGEST_ERROR_BODY_BYTES = 1 << 18
MOST_REDIRECTS = 3
# A compressing proxy delays tokens until it has enough of them.
_HEADERS = {"user-agent": "pytest-openclaw", "accept-encoding": "identity"}
_REDIRECTS = (301, 302, 303, 307, 308)
_NO_WAY = (errno.ENETUNREACH, errno.EHOSTUNREACH, errno.EHOSTDOWN, errno.ETIMEDOUT, errno.EADDRNOTAVAIL)
_EXTRAS = {"br": "brotli", "zstd": "zstd"}
"""Compressions, and the extras of httpx2 that decode them."""

# They would log every request from the asker's thread into whichever test is running.
for _library in map(logging.getLogger, ("httpx2", "httpcore2")):
    if _library.level == logging.NOTSET:
        _library.setLevel(logging.WARNING)


class HttpClient:
    """The connections of one provider, opened on first use in the loop that uses them."""

    def __init__(self, name: str) -> None:
        self.name = name
        self._clients: dict[bool, httpx2.AsyncClient] = {}

    async def send(self, call: Call, body: AnswerBody, *, timeout_s: float) -> None:
        """Send a call and read the body of its answer to the end.

        Raises:
            CallFailed: there is no answer, or it is an error, incomplete, or a redirect to another origin.
        """
        url, n_redirects = call.url, 0
        was_lost = False
        fault: Fault | None
        try:
            async with asyncio.timeout(timeout_s):
                while True:
                    client, trace = self._client_for(url), _Trace(body)
                    try:
                        response = await client.send(_request(call, url, trace), stream=True)
                    except (httpx2.HTTPError, httpx2.InvalidURL) as error:
                        if trace.has_connected or was_lost or not _is_loss(error):
                            raise CallFailed(self._no_answer(call, error)) from None
                        # Servers may close a kept connection at any time (llama.cpp after each stream), also
                        # when it is just used again: the request is sent over a new one.
                        was_lost = True
                        continue
                    async with aclosing(response):
                        if response.is_success:
                            await self._read(response, body, client.headers["accept-encoding"])
                            return
                        target = _target(response, url) if n_redirects < MOST_REDIRECTS else None
                        if target is None or not _may_follow(response, url, target):
                            raise CallFailed(await self._refusal(call, response, url))
                    url, n_redirects = target, n_redirects + 1
        except TimeoutError:
            fault = faults.timed_out(self.name, timeout_s)
        except httpx2.HTTPError as error:
            fault = self._broken(error)
        except CallFailed as failed:
            fault = failed.fault
        # Raised here, it has no cause: tracebacks are written, and the locals of a cause hold the headers.
        if fault := body.lost(fault):
            raise CallFailed(fault)

    async def aclose(self) -> None:
        """Close all connections; a later call opens new ones."""
        clients, self._clients = self._clients, {}
        for client in clients.values():
            await client.aclose()

    def _client_for(self, url: str) -> httpx2.AsyncClient:
        # A proxy in the environment must not see requests to this machine.
        trust_env = not is_loopback(origin_of(url)[1])
        if trust_env not in self._clients:
            self._clients[trust_env] = httpx2.AsyncClient(
                trust_env=trust_env,
                timeout=httpx2.Timeout(None, connect=CONNECT_TIMEOUT_S),
                limits=httpx2.Limits(max_connections=None, max_keepalive_connections=None),
                # Cookies of one cell must not be sent with the next.
                cookies=CookieJar(DefaultCookiePolicy(allowed_domains=())),
            )
        return self._clients[trust_env]

    async def _read(self, response: httpx2.Response, body: AnswerBody, decodable: str) -> None:
        if why := _why_unreadable(response, decodable):
            raise CallFailed(faults.malformed(self.name, f"its compression is broken: {why}"))
        body.begin(response.headers)
        left_bytes = body.most_bytes
        too_long = faults.malformed(self.name, f"it is longer than {left_bytes >> 20} MiB")
        claimed = response.headers.get("content-length", "")
        if claimed.isdecimal() and int(claimed) > left_bytes:
            raise CallFailed(too_long)
        pieces = response.aiter_bytes()
        while True:
            patience_s = body.patience_s
            try:
                async with asyncio.timeout(patience_s):
                    piece = await anext(pieces, None)
            except TimeoutError:
                if patience_s is None:
                    raise
                piece = None
            if piece is None:
                break
            left_bytes -= len(piece)
            if left_bytes < 0:
                raise CallFailed(too_long)
            body.feed(piece)
        body.close()

    # --- failures ---------------------------------------------------------------------------------

    def _broken(self, error: httpx2.HTTPError) -> Fault:
        """Return the fault of an answer that broke off."""
        if isinstance(error, httpx2.DecodingError):
            return faults.malformed(self.name, f"its compression is broken: {shortened(str(error))}")
        if isinstance(error, httpx2.RemoteProtocolError) and "peer closed" not in str(error):
            return faults.malformed(self.name, f"it is not HTTP: {shortened(str(error))}")
        return faults.stream_broken(self.name, "the connection was lost in the middle of the answer")

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
            case httpx2.ProxyError() | httpx2.InvalidURL() | httpx2.UnsupportedProtocol():
                return faults.unreachable(self.name, where, why)
            case httpx2.NetworkError():
                return faults.connection_lost(self.name, "reset by the server")
            case httpx2.RemoteProtocolError() if _is_loss(error):
                return faults.connection_lost(self.name, "closed by the server")
        return faults.malformed(self.name, f"no HTTP answer: {why}")

    async def _refusal(self, call: Call, response: httpx2.Response, url: str) -> Fault:
        if response.status_code in _REDIRECTS:
            error = faults.WireError(status=response.status_code, message=_redirect_text(response, url))
        else:
            body = await _error_body(response)
            error = error_of_body(response.status_code, body, phrase=response.reason_phrase)
        wait = retry_after_s(response.headers, now_s=time.time())
        fault = faults.refused_by_server(self.name, call.model, call.hide_in(error), retry_after_s=wait)
        if fault.failure_type not in ("http_404", "http_405"):
            return fault
        where = call.hide(shortened(_shown(url)))
        return replace(fault, message=f"{fault.message.rstrip('.')}. The request went to {where}.")


class _Trace:
    """Follows httpx2's steps of sending a request."""

    def __init__(self, body: AnswerBody) -> None:
        self.has_connected = False
        self._body = body

    async def __call__(self, event: str, _: object) -> None:
        if event.startswith("connection."):
            self.has_connected = True
        elif event.endswith("send_request_headers.started"):
            self._body.sent(time.perf_counter())


def _why_unreadable(response: httpx2.Response, decodable: str) -> str:
    """Return what is missing to read a compressed body; nothing if it can be read."""
    given = response.headers.get("content-encoding", "").split(",")
    for coding in sorted({coding.strip().lower() for coding in given} - {"", "identity"}):
        if coding not in decodable.split(", "):
            hint = f"; pip install 'httpx2[{_EXTRAS[coding]}]'" if coding in _EXTRAS else ""
            return f"content-encoding {coding} was not asked for and cannot be decoded here{hint}"
    return ""


def _request(call: Call, url: str, trace: _Trace) -> httpx2.Request:
    """Build the request without the client, which would add headers of its own."""
    return httpx2.Request(
        "GET" if call.body is None else "POST",
        url,
        headers={**_HEADERS, **call.headers},
        content=None if call.body is None else json.dumps(call.body).encode(),
        extensions={"trace": trace, "timeout": httpx2.Timeout(None, connect=CONNECT_TIMEOUT_S).as_dict()},
    )


def _is_loss(error: Exception) -> bool:
    """Whether the connection was reset, or closed before any byte of an answer."""
    return isinstance(error, httpx2.NetworkError) or "without sending" in str(error)


def _target(response: httpx2.Response, url: str) -> str | None:
    """Return the target of a redirect of `url`; None if it has none."""
    location = response.headers.get("location")
    if response.status_code not in _REDIRECTS or not location:
        return None
    try:
        target = urljoin(url, location)
        origin_of(target)
    except ValueError:  # not a URL
        return None
    return target


def _may_follow(response: httpx2.Response, url: str, target: str) -> bool:
    """Whether a redirect keeps method, body and origin."""
    return response.status_code in (307, 308) and origin_of(target) == origin_of(url)


def _redirect_text(response: httpx2.Response, url: str) -> str:
    if (target := _target(response, url)) is None:
        return "redirected without saying where"
    where = shortened(_shown(target))
    if _may_follow(response, url, target):
        return f"redirected more than {MOST_REDIRECTS} times, at last to {where}"
    return f"redirected to {where}, and no prompt or key is sent there. If it is right, name that address."


async def _error_body(response: httpx2.Response) -> bytes:
    """Return as much of an error's body as arrives soon; the status is known, so errors do not matter."""
    body = bytearray()
    try:
        async with asyncio.timeout(ERROR_BODY_TIMEOUT_S):
            async for piece in response.aiter_bytes():
                body += piece
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
        return "no route to that host"
    return None


def _shown(url: str) -> str:
    """Return a URL without user info and query, which may be secret."""
    parts = urlsplit(url)
    return f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}{parts.path}"
