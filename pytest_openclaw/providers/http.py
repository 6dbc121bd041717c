"""The only module that uses HTTP: sends a request by httpx2 and reads its answer.

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
from dataclasses import replace
from http.cookiejar import CookieJar, DefaultCookiePolicy
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any, Protocol
from urllib.parse import urljoin, urlsplit

import httpx2

from pytest_openclaw.providers import limits
from pytest_openclaw.providers.address import is_loopback, origin_of
from pytest_openclaw.providers.stream import AnswerReader, SizeLimit, no_object
from pytest_openclaw.providers.wire_errors import error_of_body, load_object, retry_after_s, shortened
from pytest_openclaw.values import faults
from pytest_openclaw.values.faults import CallFailed

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable, Iterator

    from pytest_openclaw.providers.exchange import Exchange
    from pytest_openclaw.providers.stream import Call, Dialect
    from pytest_openclaw.util.json_types import JsonObject
    from pytest_openclaw.values.replies import Fault, Reply

CONNECT_TIMEOUT_S = 30.0
SILENCE_S = 2.0
"""Without a byte after a finish reason: the answer has ended, though its end mark is missing."""
LINGER_S = 0.2
"""For the end of the body after the end mark: the connection can then be used again."""
ERROR_BODY_TIMEOUT_S = 5.0
LONGEST_ERROR_BODY_BYTES = 1 << 18
MOST_REDIRECTS = 3
# A compressing proxy delays tokens until it has enough of them.
_HEADERS = {"user-agent": "pytest-openclaw", "accept-encoding": "identity"}
_REDIRECTS = (301, 302, 303, 307, 308)
_NO_WAY = (errno.ENETUNREACH, errno.EHOSTUNREACH, errno.EHOSTDOWN, errno.ETIMEDOUT, errno.EADDRNOTAVAIL)

# They would log every request from the asker's thread into whichever test is running.
for _library in map(logging.getLogger, ("httpx2", "httpcore2")):
    if _library.level == logging.NOTSET:
        _library.setLevel(logging.WARNING)


class Copy(Protocol):
    """Receives the bytes of an answer while it is read."""

    async def begin(self, kind: str) -> None:
        """Receive the answer's content type."""
        ...

    async def write(self, piece: bytes) -> None:
        """Receive the next piece of its body."""
        ...


class HttpClient:
    """The connections of one provider, opened on first use in the loop that uses them."""

    def __init__(self, name: str) -> None:
        self.name = name
        self._clients: dict[bool, httpx2.AsyncClient] = {}

    async def ask(
        self,
        call: Call,
        dialect: Dialect,
        exchange: Exchange,
        *,
        timeout_s: float,
        copy: Copy | None = None,
    ) -> Reply:
        """Send a call and read the answer to its end.

        Args:
            call: the request.
            dialect: parses the answer.
            exchange: new; its `streaming` is whether a stream was requested.
            timeout_s: seconds for the whole attempt.
            copy: receives the bytes of a successful answer.

        Raises:
            CallFailed: the answer is missing or incomplete; the fault has the received part and its times.

        """
        try:
            async with asyncio.timeout(timeout_s):
                response = await self._send(call, exchange.receive_sent)
                try:
                    await self._read(response, call, dialect, exchange, copy)
                finally:
                    await response.aclose()
            return exchange.reply()
        except TimeoutError:
            fault = faults.timed_out(self.name, timeout_s)
        except httpx2.HTTPError as error:
            fault = self._broken(error)
        except CallFailed as failed:
            fault = failed.fault
        if exchange.is_complete:
            return exchange.reply()
        raw = call.hide(exchange.raw() or fault.raw)
        raise CallFailed(replace(fault, raw=raw, timing=exchange.timing(), usage=exchange.reply().usage))

    async def fetch(self, call: Call, *, timeout_s: float) -> JsonObject:
        """Send a small request about the server itself and return the object in its answer.

        Raises:
            CallFailed: the answer is not an object.

        """
        body = bytearray()
        try:
            async with asyncio.timeout(timeout_s):
                response = await self._send(call)
                try:
                    limit = SizeLimit(self.name, response.headers, limits.MOST_EVENT_BYTES)
                    async for piece in response.aiter_bytes():
                        limit.add(piece)
                        body += piece
                finally:
                    await response.aclose()
        except TimeoutError:
            raise CallFailed(faults.timed_out(self.name, timeout_s)) from None
        except httpx2.HTTPError as error:
            raise CallFailed(self._broken(error)) from None
        text = body.decode("utf-8-sig", "replace")
        if (payload := load_object(text)) is None:
            raise CallFailed(no_object(self.name, call, text))
        return payload

    async def aclose(self) -> None:
        """Close all connections; a later call opens new ones."""
        clients, self._clients = self._clients, {}
        for client in clients.values():
            await client.aclose()

    # --- the answer -------------------------------------------------------------------------------

    async def _read(
        self, response: httpx2.Response, call: Call, dialect: Dialect, exchange: Exchange, copy: Copy | None
    ) -> None:
        if why := _why_unreadable(response):
            raise CallFailed(faults.malformed(self.name, f"its compression is broken: {why}"))
        if copy is not None:
            await copy.begin(response.headers.get("content-type", ""))
        reader = AnswerReader(self.name, call, dialect, exchange, response.headers)
        pieces = response.aiter_bytes()
        while (piece := await _next(pieces, exchange)) is not None:
            exchange.receive_arrival(time.perf_counter())
            if copy is not None:
                await copy.write(piece)
            if not exchange.is_over:
                reader.feed(piece)
        if not exchange.is_over:
            reader.close()

    def _broken(self, error: httpx2.HTTPError) -> Fault:
        """Return the fault of an answer that broke off."""
        if isinstance(error, httpx2.DecodingError):
            return faults.malformed(self.name, f"its compression is broken: {shortened(str(error))}")
        if isinstance(error, httpx2.RemoteProtocolError) and "peer closed" not in str(error):
            return faults.malformed(self.name, f"it is not HTTP: {shortened(str(error))}")
        return faults.stream_broken(self.name, "the connection was lost in the middle of the answer")

    # --- the request ------------------------------------------------------------------------------

    async def _send(self, call: Call, sent: Callable[[float], None] = lambda _: None) -> httpx2.Response:
        """Send the call and return its successful answer, whose body is still arriving; the caller closes it.

        Args:
            call: the request.
            sent: receives the moment, by `time.perf_counter`, at which the request was sent.

        Raises:
            CallFailed: there is no answer, or it is an error or a redirect to another origin.

        """
        url, n_redirects = call.url, 0
        is_new = was_lost = False

        async def note(event: str, _: object) -> None:
            nonlocal is_new
            if event.startswith("connection."):
                is_new = True
            elif event.endswith("send_request_headers.started"):
                sent(time.perf_counter())

        while True:
            is_new = False
            try:
                response = await self._client_for(url).send(_request(call, url, note), stream=True)
            except (httpx2.HTTPError, httpx2.InvalidURL) as error:
                # Servers may close a kept connection at any time (llama.cpp after each stream), also when it
                # is just used again. The server is still available: the request is sent over a new one.
                if not (is_new or was_lost) and _is_loss(error):
                    was_lost = True
                    continue
                # Without the cause: tracebacks are written, and the cause's locals hold the headers.
                raise CallFailed(self._no_answer(call, error)) from None
            if response.is_success:
                return response
            try:
                target = _target(response, url)
                if not target or n_redirects == MOST_REDIRECTS or not _may_follow(response, url, target):
                    raise CallFailed(await self._refusal(call, response, url))
            finally:
                await response.aclose()
            url, n_redirects = target, n_redirects + 1

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


def _why_unreadable(response: httpx2.Response) -> str:
    """Return what is missing to read a compressed body; nothing if it can be read."""
    given = response.headers.get("content-encoding", "").split(",")
    codings = {coding.strip().lower() for coding in given} - {"", "identity", "gzip", "deflate"}
    extras = {  # of httpx2, and the modules that each needs
        "br": ("brotli", ("brotli", "brotlicffi")),
        "zstd": ("zstd", ("backports.zstd", "compression.zstd")),
    }
    for coding in sorted(codings):
        extra, modules = extras.get(coding, ("", ()))
        if not any(map(_is_installed, modules)):
            hint = f"; pip install 'httpx2[{extra}]'" if extra else ""
            return f"content-encoding {coding} was not asked for and cannot be decoded here{hint}"
    return ""


def _is_installed(module: str) -> bool:
    try:
        return find_spec(module) is not None
    except ModuleNotFoundError:  # its package
        return False


async def _next(pieces: AsyncIterator[bytes], exchange: Exchange) -> bytes | None:
    """Return the next bytes of a body; None at its end, and at a silence after the end of the answer."""
    patience_s = LINGER_S if exchange.is_over else SILENCE_S if exchange.ended else None
    try:
        async with asyncio.timeout(patience_s):
            return await anext(pieces, None)
    except TimeoutError:
        if patience_s is None:
            raise
        return None


def _request(call: Call, url: str, note: Callable[[str, Any], Awaitable[None]]) -> httpx2.Request:
    """Build the request without the client, which would add headers of its own."""
    return httpx2.Request(
        "GET" if call.body is None else "POST",
        url,
        headers={**_HEADERS, **call.headers},
        content=None if call.body is None else json.dumps(call.body).encode(),
        extensions={"trace": note, "timeout": httpx2.Timeout(None, connect=CONNECT_TIMEOUT_S).as_dict()},
    )


def _is_loss(error: Exception) -> bool:
    """Whether the connection was reset, or closed before any byte of an answer."""
    return isinstance(error, httpx2.NetworkError) or "without sending" in str(error)


def _target(response: httpx2.Response, url: str) -> str | None:
    """Return the target of a redirect of `url`; None if it has none."""
    if response.status_code not in _REDIRECTS or not (location := response.headers.get("location")):
        return None
    try:
        target = urljoin(url, location)
        origin_of(target)
    except ValueError:  # not a URL
        return None
    return target


def _may_follow(response: httpx2.Response, url: str, target: str) -> bool:
    """Whether method, body and origin are unchanged."""
    return response.status_code in (307, 308) and origin_of(target) == origin_of(url)


def _redirect_text(response: httpx2.Response, url: str) -> str:
    target = _target(response, url)
    if target is None:
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
        return "there is no way to that host"
    return None


def _shown(url: str) -> str:
    """Return a URL without user info and query, which may be secret."""
    parts = urlsplit(url)
    return f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}{parts.path}"
