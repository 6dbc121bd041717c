"""A loopback HTTP server for POST requests with JSON; it takes the place of OpenClaw's model server."""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager
from http import HTTPStatus
from typing import TYPE_CHECKING, Any, NamedTuple

import h11

from pytest_openclaw.providers.wire import load_object, objects_in, text_in

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable

    from pytest_openclaw.util.files import JsonObject

REQUEST_TIMEOUT_S = 30.0
_PIECE_BYTES = 64 << 10
_REFUSED = b'{"error": {"message": "this request is not forwarded", "type": "invalid_request_error"}}'


class Incoming(NamedTuple):
    """A request; `body` is None unless it is a JSON object."""

    path: str
    authorization: str
    body: JsonObject | None


class Outgoing(NamedTuple):
    """An answer; by default, the request is refused."""

    status: int
    kind: str = "application/json"
    body: bytes = _REFUSED


@asynccontextmanager
async def listening(answer: Callable[[Incoming], Awaitable[Outgoing]]) -> AsyncIterator[str]:
    """Run a server and yield its base URL, such as `http://127.0.0.1:4711`."""

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            async with asyncio.timeout(REQUEST_TIMEOUT_S):
                incoming = await _read(reader)
            status, kind, body = await answer(incoming)
            phrase = HTTPStatus(status).phrase
            head = f"HTTP/1.1 {status} {phrase}\r\ncontent-type: {kind}\r\nconnection: close\r\n\r\n"
            writer.write(head.encode("latin-1") + body)
            await writer.drain()
        except (TimeoutError, ConnectionError, h11.RemoteProtocolError):
            return  # OpenClaw has exited or was killed
        finally:
            writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    try:
        yield f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
    finally:
        server.close()


async def _read(reader: asyncio.StreamReader) -> Incoming:
    parser = h11.Connection(h11.SERVER)
    path = authorization = ""
    data = bytearray()
    while not isinstance(event := parser.next_event(), h11.EndOfMessage):
        if event is h11.NEED_DATA:
            parser.receive_data(await reader.read(_PIECE_BYTES))
        elif isinstance(event, h11.Request):
            authorization = dict(event.headers).get(b"authorization", b"").decode("latin-1")
            path = event.target.decode("latin-1")
        elif isinstance(event, h11.Data):
            data += event.data
        else:
            raise ConnectionResetError
    return Incoming(path, authorization, load_object(data.decode("utf-8", "replace")))


def messages_of(body: JsonObject) -> list[JsonObject]:
    """Return the messages of a request, which the Responses API calls `input`."""
    return objects_in(body.get("messages") or body.get("input"))


def text_of(content: Any) -> str:
    """Return the text of a message, which may be a list of parts."""
    return text_in(content) or "".join(text_in(part.get("text")) for part in objects_in(content))
