"""A server on loopback for a program that we start: OpenClaw's model and shell, the Claude CLI's tools."""

from __future__ import annotations

import asyncio
import hmac
import secrets
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from http import HTTPStatus
from typing import TYPE_CHECKING, NamedTuple

import h11

from pytest_openclaw.providers.wire import load_object

if TYPE_CHECKING:
    from pytest_openclaw.util.files import JsonObject

REQUEST_TIMEOUT_S = 30.0
MOST_BYTES = 64 << 20  # of a request: a conversation with its pictures
_PIECE_BYTES = 64 << 10
_REFUSED = b'{"error": {"message": "this request is not forwarded", "type": "invalid_request_error"}}'


class Outgoing(NamedTuple):
    """An answer; by default, the request is refused."""

    status: int
    kind: str = "application/json"
    body: bytes = _REFUSED


@asynccontextmanager
async def listening(
    answer: Callable[[str, JsonObject | None], Awaitable[Outgoing]],
) -> AsyncIterator[tuple[str, str]]:
    """Run a server; yield its base URL, such as `http://127.0.0.1:4711`, and the bearer token of its client.

    `answer` receives the path of a request and its body, None unless it is a JSON object.
    """
    token = secrets.token_urlsafe(24)

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            async with asyncio.timeout(REQUEST_TIMEOUT_S):
                path, data, refusal = await _read(reader, f"Bearer {token}".encode())
            request = load_object(data.decode("utf-8", "replace"))
            status, kind, body = refusal or await answer(path, request)
            phrase = HTTPStatus(status).phrase
            head = f"HTTP/1.1 {status} {phrase}\r\ncontent-type: {kind}\r\nconnection: close\r\n\r\n"
            writer.write(head.encode("latin-1") + body)
            await writer.drain()
        except (TimeoutError, ConnectionError, h11.RemoteProtocolError):
            return  # the program has exited or was killed
        finally:
            writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    try:
        yield f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}", token
    finally:
        server.close()


async def _read(reader: asyncio.StreamReader, expected: bytes) -> tuple[str, bytearray, Outgoing | None]:
    """Return the path and the body of a request, and why it is refused: then its body is not read on."""
    parser = h11.Connection(h11.SERVER)
    path, data = "", bytearray()
    while not isinstance(event := parser.next_event(), h11.EndOfMessage):
        if event is h11.NEED_DATA:
            parser.receive_data(await reader.read(_PIECE_BYTES))
        elif isinstance(event, h11.Request):
            if not hmac.compare_digest(dict(event.headers).get(b"authorization", b""), expected):
                return "", data, Outgoing(401)
            path = event.target.decode("latin-1")
        elif isinstance(event, h11.Data):
            data += event.data
            if len(data) > MOST_BYTES:
                return "", bytearray(), Outgoing(413)
        else:
            raise ConnectionResetError
    return path, data, None
