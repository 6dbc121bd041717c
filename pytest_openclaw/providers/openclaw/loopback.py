"""An HTTP server on loopback in the place of OpenClaw's model server: it reads POST requests with JSON."""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager
from http import HTTPStatus
from typing import TYPE_CHECKING

import h11

from pytest_openclaw.providers.wire import load_object, shortened

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable

    from pytest_openclaw.util.json_types import JsonObject

PATIENCE_S = 30.0
MOST_HEAD_BYTES = 64 << 10
MOST_BODY_BYTES = 64 << 20
_PIECE_BYTES = 64 << 10
_REFUSED = b'{"error": {"message": "this request is not passed on", "type": "invalid_request_error"}}'


class Incoming:
    """A request that is arriving.

    Attributes:
        path: without its query; empty if it is not a POST request.
        authorization: that header; empty if it is missing, or the bytes are not HTTP.
        error: why its body is malformed; empty if it is not.
    """

    def __init__(self, reader: asyncio.StreamReader) -> None:
        self.path = self.authorization = self.error = ""
        self._reader = reader
        self._parser = h11.Connection(h11.SERVER, max_incomplete_event_size=MOST_HEAD_BYTES)

    async def read_head(self) -> None:
        """Read up to the end of the head."""
        try:
            head = await self._next()
        except h11.RemoteProtocolError:
            return
        if isinstance(head, h11.Request):
            fields = dict(head.headers)
            self.authorization = fields.get(b"authorization", b"").decode("latin-1")
            if head.method == b"POST":
                self.path = head.target.partition(b"?")[0].decode("latin-1")

    async def read_json(self) -> JsonObject | None:
        """Read the body; return None if it is malformed."""
        pieces = bytearray()
        try:
            async with asyncio.timeout(PATIENCE_S):
                while isinstance(event := await self._next(), h11.Data):
                    pieces += event.data
                    if len(pieces) > MOST_BODY_BYTES:
                        self.error = f"it is longer than {MOST_BODY_BYTES >> 20} MiB"
                        return None
        except h11.RemoteProtocolError as error:
            self.error = str(error)
            return None
        text = pieces.decode("utf-8", "replace")
        body = load_object(text)
        if body is None:
            self.error = f"no JSON object: {shortened(text)}"
        return body

    async def _next(self) -> object:
        while (event := self._parser.next_event()) is h11.NEED_DATA:
            if not (data := await self._reader.read(_PIECE_BYTES)):
                raise asyncio.IncompleteReadError(data, None)
            self._parser.receive_data(data)
        return event


@asynccontextmanager
async def listening(
    answer: Callable[[Incoming, asyncio.StreamWriter], Awaitable[None]],
) -> AsyncIterator[str]:
    """Run a server; yields the first part of its address, such as `http://127.0.0.1:4711`.

    Args:
        answer: called with each request whose head has arrived. A lost connection ends it without an error.
    """

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        incoming = Incoming(reader)
        try:
            async with asyncio.timeout(PATIENCE_S):
                await incoming.read_head()
            await answer(incoming, writer)
        except (TimeoutError, ConnectionError, asyncio.IncompleteReadError):
            return  # OpenClaw has exited or was ended
        finally:
            writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    try:
        yield f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
    finally:
        server.close()


async def send(writer: asyncio.StreamWriter, status: int, kind: str, body: bytes) -> None:
    """Send a whole answer, of this content type."""
    head = (
        f"HTTP/1.1 {status} {HTTPStatus(status).phrase}\r\ncontent-type: {kind}\r\nconnection: close\r\n\r\n"
    )
    writer.write(head.encode("latin-1") + body)
    await writer.drain()


async def refuse(writer: asyncio.StreamWriter, status: int) -> None:
    """Answer that a request is not passed on."""
    await send(writer, status, "application/json", _REFUSED)
