"""An HTTP server on loopback in the place of OpenClaw's model server: it reads POST requests with JSON."""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager
from http import HTTPStatus
from typing import TYPE_CHECKING, NamedTuple

import h11

from pytest_openclaw.providers.wire import load_object, shortened

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable

    from pytest_openclaw.util.files import JsonObject

PATIENCE_S = 30.0
MOST_HEAD_BYTES = 64 << 10
MOST_BODY_BYTES = 64 << 20
_PIECE_BYTES = 64 << 10
_REFUSED = b'{"error": {"message": "this request is not passed on", "type": "invalid_request_error"}}'


class Incoming(NamedTuple):
    """A request.

    Attributes:
        path: without its query; empty if it is not a POST request.
        body: None if it is malformed, for the reason in `error`.
    """

    path: str
    authorization: str
    body: JsonObject | None
    error: str


class Outgoing(NamedTuple):
    """An answer, by default the refusal to pass a request on."""

    status: int
    kind: str = "application/json"
    body: bytes = _REFUSED


@asynccontextmanager
async def listening(answer: Callable[[Incoming], Awaitable[Outgoing]]) -> AsyncIterator[str]:
    """Run a server; yields the first part of its address, such as `http://127.0.0.1:4711`."""

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            async with asyncio.timeout(PATIENCE_S):
                incoming = await _read(reader)
            status, kind, body = await answer(incoming)
            phrase = HTTPStatus(status).phrase
            head = f"HTTP/1.1 {status} {phrase}\r\ncontent-type: {kind}\r\nconnection: close\r\n\r\n"
            writer.write(head.encode("latin-1") + body)
            await writer.drain()
        except (TimeoutError, ConnectionError, asyncio.IncompleteReadError):
            return  # OpenClaw has exited or was ended
        finally:
            writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    try:
        yield f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
    finally:
        server.close()


async def _read(reader: asyncio.StreamReader) -> Incoming:
    parser = h11.Connection(h11.SERVER, max_incomplete_event_size=MOST_HEAD_BYTES)
    path = authorization = error = ""
    data = bytearray()
    try:
        while not isinstance(event := parser.next_event(), h11.EndOfMessage) and not error:
            if event is h11.NEED_DATA:
                if not (piece := await reader.read(_PIECE_BYTES)):
                    raise asyncio.IncompleteReadError(piece, None)
                parser.receive_data(piece)
            elif isinstance(event, h11.Request):
                authorization = dict(event.headers).get(b"authorization", b"").decode("latin-1")
                if event.method == b"POST":
                    path = event.target.partition(b"?")[0].decode("latin-1")
            elif isinstance(event, h11.Data):
                data += event.data
                if len(data) > MOST_BODY_BYTES:
                    error = f"it is longer than {MOST_BODY_BYTES >> 20} MiB"
    except h11.RemoteProtocolError as broken:
        error = str(broken)
    text = data.decode("utf-8", "replace")
    body = None if error else load_object(text)
    if body is None and not error:
        error = f"no JSON object: {shortened(text)}"
    return Incoming(path, authorization, body, error)
