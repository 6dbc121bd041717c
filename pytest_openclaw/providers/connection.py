"""One HTTP/1.1 connection: bytes as they come off the socket → an answer's head and the pieces of its body.

Each piece knows when its bytes arrived: the clock is read before anything is done with them. Nothing here
waits for a reader, so the bytes of all sockets that are ready together are stamped before any is parsed
further than its HTTP framing.
"""

from __future__ import annotations

import asyncio
import time
from collections import deque
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import httptools
import httpx2

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable

#: bytes in a row without any of a body; who sends more of a head, or of chunk extensions, means no good
MOST_FRAMING_BYTES = 256 << 10
#: bytes that are read ahead of the reader
MOST_UNREAD_BYTES = 1 << 20
#: readers woken in one pass of the loop. With 64 streams in lock-step the 95th percentile of e2e_ms' error is
#: 2.0 ms when all are woken at once, 1.3 ms with 4, 0.5 ms with 1, which costs a fifth more CPU.
MOST_WOKEN = 4
#: a smaller status is that of a notice that precedes the answer, such as 103 Early Hints
_FIRST_ANSWER = 200
# What servers send and other clients accept: bare line feeds, folded or odd headers, blanks behind a chunk's
# size, a length beside chunks. Of a second length, even an equal one, the parser cannot be told.
_LENIENCIES = {
    "lenient_headers": True,
    "lenient_chunked_length": True,
    "lenient_version": True,
    "lenient_optional_cr_before_lf": True,
    "lenient_spaces_after_chunk_size": True,
}


class BrokenFraming(httpx2.RemoteProtocolError):
    """The server sent bytes that are not HTTP."""


@dataclass
class Head:
    """An answer's status line and headers, and whether they tell where its body ends."""

    status: int = 0
    phrase: bytes = b""
    headers: list[tuple[bytes, bytes]] = field(default_factory=list)
    has_length: bool = False


class Bell:
    """Wakes the readers of one loop, a few in each of its passes.

    All at once they would keep the loop from its sockets until the last of them has parsed what came; what
    arrives in the meantime would be dated too late.
    """

    def __init__(self) -> None:
        self._rung = 0
        self._waiting: deque[asyncio.Future[None]] = deque()

    def ring(self, reader: asyncio.Future[None]) -> None:
        """Wake the reader, now or in one of the next passes."""
        if not self._rung:
            asyncio.get_running_loop().call_soon(self._next_pass)
        if self._rung == MOST_WOKEN:
            self._waiting.append(reader)
            return
        self._rung += 1
        if not reader.done():
            reader.set_result(None)

    def _next_pass(self) -> None:
        self._rung = 0
        for _ in range(min(MOST_WOKEN, len(self._waiting))):
            self.ring(self._waiting.popleft())


class ArrivingResponse(httpx2.AsyncByteStream):
    """An answer while it arrives: its head, then its body by `read` or by iteration.

    Attributes:
        arrived_at: when the piece that the iteration gave last had arrived, by `time.perf_counter`.
    """

    def __init__(self, connection: Connection, bell: Bell) -> None:
        self.arrived_at = 0.0
        self._connection = connection
        self._bell = bell
        self._head: Head | None = None
        self._pieces: list[tuple[bytes, float]] = []
        self._unread = 0
        self._ended = False
        self._error: httpx2.TransportError | None = None
        self._reader: asyncio.Future[None] | None = None

    async def head(self) -> Head:
        """Wait for the head and return it.

        Raises:
            httpx2.TransportError: the connection ended before it.
        """
        while self._head is None:
            if self._error is not None:
                raise self._error
            await self._news()
        return self._head

    async def read(self) -> list[tuple[bytes, float]]:
        """Wait for more of the body.

        Returns:
            All pieces that have come since the last call, each with the moment of its arrival by
            `time.perf_counter`; none at the body's end.

        Raises:
            httpx2.TransportError: the connection broke, or closed before the body's end.
        """
        while not self._pieces:
            if self._error is not None:
                raise self._error
            if self._ended:
                return []
            self._connection.resume()
            await self._news()
        pieces, self._pieces = self._pieces, []
        self._unread = 0
        return pieces

    async def __aiter__(self) -> AsyncIterator[bytes]:
        """Give the body's bytes, as httpx2 wants them."""
        while pieces := await self.read():
            for piece, self.arrived_at in pieces:
                yield piece

    async def aclose(self) -> None:
        """Close the connection, unless all of the answer has come."""
        if not self._ended:
            self._connection.abort()

    # --- what the connection tells --------------------------------------------------------------

    def receive_head(self, head: Head) -> None:
        """Take the head."""
        self._head = head
        self._wake()

    def receive_piece(self, piece: bytes, arrived_at: float) -> bool:
        """Take a piece of the body; True if enough is unread now."""
        self._pieces.append((piece, arrived_at))
        self._unread += len(piece)
        self._wake()
        return self._unread > MOST_UNREAD_BYTES

    def receive_end(self, error: httpx2.TransportError | None = None) -> None:
        """Take the end, in order or with an error; what follows the first one does not count."""
        if not self._ended:
            self._ended, self._error = True, error
            self._wake()

    # --- how ------------------------------------------------------------------------------------

    async def _news(self) -> None:
        self._reader = asyncio.get_running_loop().create_future()
        await self._reader

    def _wake(self) -> None:
        reader, self._reader = self._reader, None
        if reader is not None:
            self._bell.ring(reader)


class Connection(asyncio.BufferedProtocol):
    """A connection that carries one request and its answer at a time.

    Args:
        buffer: what bytes are received into; nothing is left there, so connections of one loop share it.
        bell: wakes who reads an answer.
        on_free: told when an answer has ended in order and another request may be sent.
        on_lost: told when the connection has ended.

    Attributes:
        free_since: when the last answer ended, by `time.monotonic`.
        lost: done when the connection has ended.
    """

    def __init__(
        self,
        buffer: memoryview,
        bell: Bell,
        on_free: Callable[[Connection], None],
        on_lost: Callable[[Connection], None],
    ) -> None:
        self._buffer = self._receiving = buffer
        self._bell = bell
        self.free_since = 0.0
        self.lost: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._on_free = on_free
        self._on_lost = on_lost
        self._transport: asyncio.Transport | None = None
        self._parser = httptools.HttpResponseParser(self)
        self._parser.set_dangerous_leniencies(**_LENIENCIES)
        self._answer: ArrivingResponse | None = None
        self._head = Head()
        self._body: list[bytes] = []
        self._framing_bytes = 0
        self._is_last = False
        self._is_kept = False
        self._is_complete = False
        self._is_paused = False

    def send(self, request: bytes, *, is_last: bool) -> ArrivingResponse:
        """Send a request, and give its answer while it arrives.

        Args:
            request: all its bytes.
            is_last: whether the connection shall end with it.
        """
        answer = ArrivingResponse(self, self._bell)
        if self._transport is None:
            answer.receive_end(_no_answer())
            return answer
        self._answer, self._head = answer, Head()
        self._framing_bytes = 0
        self._is_last, self._is_complete = is_last, False
        self._transport.write(request)
        return answer

    def resume(self) -> None:
        """Read on, now that what came has been taken."""
        if self._is_paused and self._transport is not None:
            self._is_paused = False
            self._transport.resume_reading()

    def abort(self) -> None:
        """Close the connection, whatever is under way."""
        if self._transport is not None:
            self._transport.abort()

    # --- what asyncio tells ---------------------------------------------------------------------

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Begin; a TLS connection begins when its handshake is done."""
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport

    def get_buffer(self, sizehint: int) -> memoryview:
        """Say where bytes shall go."""
        # TLS hints at all that it holds. What it cannot hand over at once is lost if the end comes with it.
        fits = sizehint <= len(self._buffer)
        self._receiving = self._buffer if fits else memoryview(bytearray(sizehint))
        return self._receiving

    def buffer_updated(self, nbytes: int) -> None:
        """Take bytes."""
        arrived_at = time.perf_counter()
        answer = self._answer
        if answer is None:  # nobody asked
            self.abort()
            return
        error = self._parse(self._receiving[:nbytes])
        if self._body:
            self._framing_bytes = 0
            if answer.receive_piece(b"".join(self._body), arrived_at):
                self._pause()
            self._body.clear()
        else:
            self._framing_bytes += nbytes
            if self._framing_bytes > MOST_FRAMING_BYTES:
                error = f"more than {MOST_FRAMING_BYTES >> 10} KiB without an answer in them"
        if self._is_complete:
            self._end_answer(answer, is_spoiled=error is not None)
        elif error is not None:
            answer.receive_end(BrokenFraming(error))
            self.abort()

    def eof_received(self) -> None:
        """Take the server's end of the connection, which is also the end of a body without a length."""
        self._end_by_close()
        self.abort()

    def connection_lost(self, error: Exception | None) -> None:
        """End."""
        if error is None:
            self._end_by_close()
        elif self._answer is not None:
            broken = httpx2.ReadError(str(error))
            broken.__cause__ = error
            self._answer.receive_end(broken)
        self._answer, self._transport = None, None
        self._on_lost(self)
        if not self.lost.done():
            self.lost.set_result(None)

    # --- what the parser tells ------------------------------------------------------------------

    def on_message_begin(self) -> None:
        """Begin a head, also that of a notice before the answer's own."""
        if self._is_complete:
            raise ValueError("more than was asked for")
        self._head = Head()

    def on_status(self, phrase: bytes) -> None:
        """Take a piece of the status line's words."""
        self._head.phrase += phrase

    def on_header(self, name: bytes, value: bytes) -> None:
        """Take a header; those that come after the body are left out."""
        if self._head.status:
            return
        value = value.strip()
        self._head.headers.append((name, value))
        match name.lower():
            case b"content-length":
                self._head.has_length = True
            case b"transfer-encoding":
                self._head.has_length = value.lower().endswith(b"chunked")

    def on_headers_complete(self) -> None:
        """Give the head to the answer, unless it is that of a notice."""
        self._head.status = self._parser.get_status_code()
        self._is_kept = self._parser.should_keep_alive()
        if self._head.status >= _FIRST_ANSWER and self._answer is not None:
            self._answer.receive_head(self._head)

    def on_body(self, piece: bytes) -> None:
        """Take a piece of the body."""
        self._body.append(piece)

    def on_message_complete(self) -> None:
        """End the answer, unless it was a notice."""
        self._is_complete = self._head.status >= _FIRST_ANSWER

    # --- how ------------------------------------------------------------------------------------

    def _parse(self, data: memoryview) -> str | None:
        """Parse, and say what is wrong."""
        try:
            self._parser.feed_data(data)
        except httptools.HttpParserUpgrade:
            return "it switches to another protocol unasked"
        except httptools.HttpParserError as error:
            return str(error) if self._head.status else f"{error} in {bytes(data[:60])!r}"
        return None

    def _pause(self) -> None:
        if not (self._is_paused or self._is_complete) and self._transport is not None:
            self._is_paused = True
            self._transport.pause_reading()

    def _end_answer(self, answer: ArrivingResponse, *, is_spoiled: bool) -> None:
        self._answer = None
        answer.receive_end()
        self.resume()
        if is_spoiled or self._is_last or not self._is_kept:
            self.abort()
        else:
            self.free_since = time.monotonic()
            self._on_free(self)

    def _end_by_close(self) -> None:
        if self._answer is None:
            return
        if self._head.status < _FIRST_ANSWER:
            self._answer.receive_end(_no_answer())
        elif self._head.has_length:
            self._answer.receive_end(httpx2.RemoteProtocolError("closed before the body's end"))
        else:
            self._answer.receive_end()


def _no_answer() -> httpx2.RemoteProtocolError:
    return httpx2.RemoteProtocolError("Server disconnected without sending a response.")
