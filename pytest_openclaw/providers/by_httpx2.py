"""What httpx2 does for us: requests through a proxy, and compressed bodies. Loaded where either is needed."""

from __future__ import annotations

import time
from contextlib import contextmanager
from http.cookiejar import CookieJar, DefaultCookiePolicy
from typing import TYPE_CHECKING

import httpx2
from httpx2._decoders import SUPPORTED_DECODERS

from pytest_openclaw.providers import http_errors
from pytest_openclaw.providers.connection import Head

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator, Mapping

    from pytest_openclaw.providers.connection import ArrivingResponse
    from pytest_openclaw.providers.transport import Outgoing, Sending

# The first that fits.
_ERRORS: Mapping[type[Exception], type[http_errors.HttpError]] = {
    httpx2.ConnectTimeout: http_errors.ConnectTimeout,
    httpx2.ConnectError: http_errors.ConnectError,
    httpx2.NetworkError: http_errors.NetworkError,
    httpx2.ProxyError: http_errors.ProxyError,
    httpx2.RemoteProtocolError: http_errors.ProtocolError,
    httpx2.DecodingError: http_errors.DecodingError,
    httpx2.HTTPError: http_errors.HttpError,
    httpx2.InvalidURL: http_errors.UrlError,
}


class ByProxy:
    """Sends through the proxy of the environment, without limits: endpoints limit the requests.

    Args:
        connect_s: how long a connection may take to open.
    """

    def __init__(self, *, connect_s: float) -> None:
        self._client = httpx2.AsyncClient(
            timeout=httpx2.Timeout(None, connect=connect_s),
            limits=httpx2.Limits(max_connections=None, max_keepalive_connections=None),
            # Cookies of one cell must not be sent with the next.
            cookies=CookieJar(DefaultCookiePolicy(allowed_domains=())),
        )
        self.aclose = self._client.aclose

    async def send(self, request: Outgoing, sending: Sending) -> ReceivedBody:
        """Send a request and return its answer.

        Raises:
            HttpError: there is no answer.
        """

        async def note(event: str, _: object) -> None:
            if event.startswith("connection."):
                sending.over_new_connection = True
            elif event.endswith("send_request_headers.started"):
                sending.sent(time.perf_counter())

        url, headers, content = request
        method = "GET" if content is None else "POST"
        with _our_errors():
            # Built without the client, which would add headers of its own.
            outgoing = httpx2.Request(
                method, url, headers=dict(headers), content=content, extensions={"trace": note}
            )
            response = await self._client.send(outgoing, stream=True)
        return ReceivedBody(
            response, Head(response.status_code, response.reason_phrase, dict(response.headers.items()))
        )


class ReceivedBody:
    """An answer that httpx2 decompresses, or that its client has received.

    Args:
        response: its body is still to be read.
        head: its head.
        arriving: dates the pieces of the body; without it the time of reading counts.
    """

    has_ended = False  # which httpx2 does not say

    def __init__(
        self, response: httpx2.Response, head: Head, arriving: ArrivingResponse | None = None
    ) -> None:
        self.head = head
        self._response = response
        self._arriving = arriving
        self._body = response.aiter_bytes()
        self._unreadable = _unreadable(head)

    async def read(self) -> list[tuple[bytes, float]]:
        """Return what has arrived of the body since the last call; see `HttpAnswer`."""
        if self._unreadable:
            raise http_errors.DecodingError(self._unreadable)
        with _our_errors():
            piece = await anext(self._body, None)
        if piece is None:
            return []
        return [(piece, self._arriving.arrived_at if self._arriving else time.perf_counter())]

    async def aclose(self) -> None:
        """Close the connection, unless the whole answer has arrived."""
        await self._body.aclose()
        await self._response.aclose()


def decompressed(answer: ArrivingResponse) -> ReceivedBody:
    """Return an answer with the body decompressed, by its `content-encoding`."""
    head = answer.head
    headers = httpx2.Headers({"content-encoding": head.headers["content-encoding"]}, encoding="utf-8")
    return ReceivedBody(httpx2.Response(head.status, headers=headers, stream=_Stream(answer)), head, answer)


def _unreadable(head: Head) -> str:
    """Return what is missing to read a compressed body; nothing if it can be read."""
    codings = {coding.strip().lower() for coding in head.headers.get("content-encoding", "").split(",")}
    if unknown := sorted(codings - {"", *SUPPORTED_DECODERS}):
        extra = {"br": "brotli", "zstd": "zstd"}.get(unknown[0])
        hint = f"; pip install 'httpx2[{extra}]'" if extra else ""
        return f"content-encoding {unknown[0]} was not asked for and cannot be decoded here{hint}"
    return ""


class _Stream(httpx2.AsyncByteStream):
    def __init__(self, answer: ArrivingResponse) -> None:
        self._answer = answer
        self.aclose = answer.aclose  # type: ignore[method-assign]

    def __aiter__(self) -> AsyncIterator[bytes]:
        return aiter(self._answer)


@contextmanager
def _our_errors() -> Iterator[None]:
    try:
        yield
    except (httpx2.HTTPError, httpx2.InvalidURL) as error:
        kind = next(ours for theirs, ours in _ERRORS.items() if isinstance(error, theirs))
        raise kind(str(error)) from error
