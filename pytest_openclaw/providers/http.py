"""Sends requests with httpx2 and maps its errors to faults; no other module uses HTTP.

No redirect is followed, so neither a key nor a prompt is ever sent to an unintended server. One timeout
limits the whole attempt, even if a server sends slowly, or sends comments to keep the connection alive. After
the end mark of an answer, an error of the connection does not matter.
"""

from __future__ import annotations

import asyncio
import errno
import json
import logging
import socket
import ssl
import time
import zlib
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Iterator
from contextlib import aclosing, asynccontextmanager, suppress
from dataclasses import replace
from functools import partial
from http.cookiejar import CookieJar, DefaultCookiePolicy
from typing import TYPE_CHECKING

import httpx2

from pytest_openclaw.providers import stream
from pytest_openclaw.providers.address import is_loopback
from pytest_openclaw.providers.server_errors import error_in, error_of_body, retry_after_s, shortened
from pytest_openclaw.providers.stream import AnswerBody, HttpCall
from pytest_openclaw.providers.wire import load_object
from pytest_openclaw.values import faults
from pytest_openclaw.values.faults import CallFailed
from pytest_openclaw.values.replies import Fault

if TYPE_CHECKING:
    from pytest_openclaw.util.files import JsonObject

CONNECT_TIMEOUT_S = 30.0
LONGEST_ERROR_BODY_BYTES = 1 << 18
_BYTES_AT_ONCE = 1 << 12
PROXY_REFUSES = "the proxy of this machine refuses the request:"
# A proxy that compresses would delay tokens until it has enough of them.
_HEADERS = {"user-agent": "pytest-openclaw", "accept-encoding": "identity"}
_ZLIB = {"gzip", "x-gzip", "deflate"}
_BROKEN = (httpx2.HTTPError, ssl.SSLError)  # the library passes on the latter while it reads
_NO_WAY = (errno.ENETUNREACH, errno.EHOSTUNREACH, errno.EHOSTDOWN, errno.ETIMEDOUT, errno.EADDRNOTAVAIL)

# Otherwise these libraries log every request from the asker's thread into whichever test is running.
for _library in map(logging.getLogger, ("httpx2", "httpcore2")):
    if _library.level == logging.NOTSET:
        _library.setLevel(logging.WARNING)


class HttpClient:
    """The connections of one provider to one server, opened on first use in the loop that uses them.

    Methods raise `CallFailed` if there is no answer, or the answer is an error, incomplete, or a redirect.
    """

    def __init__(self, name: str) -> None:
        self.name = name
        self._client: httpx2.AsyncClient | None = None
        # Whether the server has once kept a connection open after an answer without its end mark.
        self._is_silent = False

    async def send(self, call: HttpCall, body: AnswerBody, *, timeout_s: float) -> None:
        """Send a call and read the body of its answer to the end."""
        try:
            async with self._responding(call, timeout_s, body.start) as response:
                await self._read(response, body)
        except CallFailed as failed:
            if lost := body.lost(failed.fault):
                raise CallFailed(lost) from None

    async def fetch(self, call: HttpCall, *, timeout_s: float) -> JsonObject:
        """Send a call and return the JSON object that answers it."""
        async with self._responding(call, timeout_s) as response:
            text = (await _beginning(response, stream.MOST_EVENT_BYTES)).decode("utf-8-sig", "replace")
        if (found := load_object(text)) is None:
            raise CallFailed(stream.no_object(self.name, text))
        if error := error_in(found):
            raise CallFailed(faults.refused_by_server(self.name, call.model, error))
        return found

    async def aclose(self) -> None:
        """Close all connections; a later call opens new ones."""
        client, self._client = self._client, None
        if client:
            await client.aclose()

    @asynccontextmanager
    async def _responding(
        self, call: HttpCall, timeout_s: float, on_sent: Callable[[], None] = lambda: None
    ) -> AsyncIterator[httpx2.Response]:
        """Send a call and yield its response, which is no error; the timeout includes reading it."""
        # A fault has no cause: tracebacks are written, and a cause's locals have the headers.
        try:
            async with asyncio.timeout(timeout_s), aclosing(await self._response(call, on_sent)) as response:
                listed = response.headers.get_list("content-encoding", split_commas=True)
                codings = [one for one in map(str.lower, map(str.strip, listed)) if one != "identity"]
                is_readable = len(codings) < 2  # a few bytes could keep more decoders busy for hours
                if response.is_success and not is_readable:
                    raise CallFailed(faults.malformed(self.name, "it is compressed more than once"))
                if codings:
                    vars(response)["aiter_raw"] = partial(_limited, response.aiter_raw(), codings[0])
                if _ZLIB & {*codings}:  # `_limited` decompresses it
                    del response.headers["content-encoding"]
                if not response.is_success:
                    raise CallFailed(await self._refusal(call, response, is_readable=is_readable))
                yield response
        except TimeoutError:
            raise CallFailed(faults.timed_out(self.name, timeout_s)) from None
        except RecursionError:  # perhaps in the next request, which repeats blocks of an answer
            raise CallFailed(faults.malformed(self.name, "it is nested too deep")) from None
        except _BROKEN as error:
            raise CallFailed(self._broken(error)) from None

    async def _response(
        self, call: HttpCall, on_sent: Callable[[], None], *, is_second: bool = False
    ) -> httpx2.Response:
        try:
            self._client = self._client or _new_client(httpx2.URL(call.url))
        except httpx2.InvalidURL as error:  # of the server or of a proxy
            raise CallFailed(self._no_answer(call, error)) from None
        has_connected = False

        async def trace(step: str, _: object) -> None:
            nonlocal has_connected
            has_connected |= step.startswith("connection.")
            if step.endswith("send_request_headers.started"):
                on_sent()

        # Built without the client, which would add headers of its own.
        request = httpx2.Request(
            "GET" if call.body is None else "POST",
            call.url,
            headers={**_HEADERS, **call.headers},
            content=None if call.body is None else json.dumps(call.body).encode(),
            extensions={"trace": trace, "timeout": httpx2.Timeout(None, connect=CONNECT_TIMEOUT_S).as_dict()},
        )
        try:
            return await self._client.send(request, stream=True)
        except (*_BROKEN, httpx2.InvalidURL, ValueError) as error:  # the last, for a host in `Location`
            if has_connected or is_second or not _is_loss(error):
                raise CallFailed(self._no_answer(call, error)) from None
        # Servers may close an idle connection at any time (llama.cpp after each stream), even just as it is
        # used again; then the request is sent over a new connection.
        return await self._response(call, on_sent, is_second=True)

    async def _read(self, response: httpx2.Response, body: AnswerBody) -> None:
        body.kind = response.headers.get("content-type", "")
        if self._is_silent:
            body.silence_s = stream.KNOWN_SILENCE_S
        pieces, n_bytes = response.aiter_bytes(), 0
        while True:
            patience_s = body.patience_s
            try:
                async with asyncio.timeout(patience_s):
                    piece = await anext(pieces, None)
            except TimeoutError:
                if patience_s is None:
                    raise
                self._is_silent |= patience_s == body.silence_s
                piece = None
            if piece is None:
                break
            if (n_bytes := n_bytes + len(piece)) > stream.MOST_BYTES:
                why = f"it is longer than {stream.MOST_BYTES >> 20} MiB"
                raise CallFailed(faults.malformed(self.name, why))
            for start in range(0, len(piece), _BYTES_AT_ONCE):
                body.feed(piece[start : start + _BYTES_AT_ONCE])
                await asyncio.sleep(0)  # some bytes take microseconds each
        body.close()

    # --- failures ---------------------------------------------------------------------------------

    def _broken(self, error: Exception) -> Fault:
        said = shortened(str(error))
        if isinstance(error, httpx2.DecodingError):
            return faults.malformed(self.name, f"its compression is broken: {said}")
        if isinstance(error, httpx2.RemoteProtocolError) and "peer closed" not in said:
            return faults.malformed(self.name, f"it is not HTTP: {said}")
        return faults.stream_broken(self.name, "the connection was lost in the middle of the answer")

    def _no_answer(self, call: HttpCall, error: Exception) -> Fault:
        why = shortened(str(error))
        if isinstance(error, httpx2.ConnectTimeout):
            why = f"no connection within {CONNECT_TIMEOUT_S:g} s"
        elif isinstance(error, httpx2.ConnectError):
            causes = [*_causes(error)]
            absence = next(filter(None, map(_absence, causes)), None)
            if absence is None:
                words = [cause.strerror for cause in causes if isinstance(cause, OSError) and cause.strerror]
                return faults.connection_lost(self.name, words[0] if words else why)
            why = absence
        elif isinstance(error, httpx2.ProxyError):
            why = f"{PROXY_REFUSES} {str(error)[:3]}"  # the rest may repeat the proxy's password
        elif not isinstance(error, (httpx2.InvalidURL, httpx2.UnsupportedProtocol)):
            if _is_loss(error):
                return faults.connection_lost(self.name, "closed by the server")
            return faults.malformed(self.name, f"no HTTP answer: {why}")
        return faults.unreachable(self.name, call.base_url, why)

    async def _refusal(self, call: HttpCall, response: httpx2.Response, *, is_readable: bool) -> Fault:
        status = response.status_code
        if status == 407:
            return faults.unreachable(self.name, call.base_url, f"{PROXY_REFUSES} 407")
        if target := response.next_request:
            words = f"redirected to {_shown(target.url)}, and no prompt or key is sent there. "
            words += "If it is right, name that address."
            error = faults.WireError(status=status, message=words)
        else:
            body = await _beginning(response, LONGEST_ERROR_BODY_BYTES) if is_readable else b""
            error = error_of_body(status, body, phrase=response.reason_phrase)
        wait = retry_after_s(response.headers, now_s=time.time())
        fault = faults.refused_by_server(self.name, call.model, error, retry_after_s=wait)
        if fault.failure_type not in ("http_404", "http_405"):
            return fault
        where = _shown(response.request.url)
        return replace(fault, message=f"{fault.message.rstrip('.')}. The request went to {where}.")


def _new_client(url: httpx2.URL) -> httpx2.AsyncClient:
    is_far = not is_loopback(url.host)
    return httpx2.AsyncClient(
        # A proxy in the environment must not see requests to this machine.
        trust_env=is_far,
        verify=httpx2.create_ssl_context(trust_env=is_far or url.scheme == "https"),
        limits=httpx2.Limits(max_connections=None, max_keepalive_connections=None),
        # Cookies of one cell must not be sent with the next cell.
        cookies=CookieJar(DefaultCookiePolicy(allowed_domains=())),
    )


def _is_loss(error: Exception) -> bool:
    """Whether the connection was reset, or closed before any byte of an answer."""
    return isinstance(error, httpx2.NetworkError) or "without sending" in str(error)


async def _limited(pieces: AsyncGenerator[bytes, None], coding: str) -> AsyncGenerator[bytes, None]:
    """Yield a compressed body, or what zlib makes of its members; bytes after their end are not read."""
    n_left, unzip = stream.MOST_EVENT_BYTES, None
    async with aclosing(pieces):
        async for piece in pieces:
            if (n_left := n_left - len(piece)) < 0:
                raise httpx2.DecodingError("it is too long")
            rest = piece if coding in _ZLIB else b""
            if not rest:
                yield piece
            while rest:
                await asyncio.sleep(0)  # as in `_read`
                if unzip is None or (unzip.eof and rest[0] == 0x1F):
                    # The first byte shows the form: gzip, or deflate with or without a header.
                    unzip = zlib.decompressobj({15: 31, 8: 15}.get(rest[0] & 15, -15))
                if unzip.eof:
                    return
                try:
                    yield unzip.decompress(rest, 1 << 20)
                except zlib.error as error:
                    raise httpx2.DecodingError(str(error)) from None
                rest = unzip.unconsumed_tail or unzip.unused_data
    if unzip:
        yield unzip.flush()


async def _beginning(response: httpx2.Response, most_bytes: int) -> bytes:
    """Return the beginning of a body, or the bytes before the connection was lost."""
    body = bytearray()
    with suppress(*_BROKEN):
        async for piece in response.aiter_bytes():
            body += piece
            if len(body) >= most_bytes:
                break
            await asyncio.sleep(0)  # as in `_read`
    return bytes(body)


def _causes(error: BaseException) -> Iterator[BaseException]:
    yield error
    inner = error.exceptions if isinstance(error, BaseExceptionGroup) else ()
    for cause in (*inner, error.__cause__ or error.__context__):
        if cause is not None:
            yield from _causes(cause)


def _absence(reason: BaseException) -> str | None:
    """Return why there is no server; None if there may be a server and the connection to it was lost."""
    match reason:
        case socket.gaierror():
            return "unknown host"
        case ConnectionRefusedError():
            return "connection refused"
        case ssl.SSLCertVerificationError():
            why = f"its certificate is not trusted: {reason.verify_message.rstrip('.')}"
            is_unknown = reason.verify_code in (18, 19, 20, 21)  # OpenSSL's, of an unknown signer
            return f"{why}; set SSL_CERT_FILE to the certificate that signed it" if is_unknown else why
        case ssl.SSLError() if reason.reason == "WRONG_VERSION_NUMBER":
            return "it does not speak TLS; does its address begin with http://?"
        case OSError() if reason.errno in _NO_WAY:
            return "no route to that host"
    return None


def _shown(url: httpx2.URL) -> str:
    """Return a URL without user info and query, which may be secret."""
    return shortened(str(url.copy_with(userinfo=b"", query=None, fragment=None)))
