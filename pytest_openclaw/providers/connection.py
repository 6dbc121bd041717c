"""One HTTP/1.1 connection: parses the socket's bytes into an answer's head and the pieces of its body.

Each piece has the arrival time of its bytes: the clock is read before anything else. Nothing here waits for a
reader, so the bytes of all ready sockets get their times before any is parsed beyond its HTTP framing.
"""

from __future__ import annotations

import asyncio
import time
from collections import deque
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import httptools

from pytest_openclaw.providers.http_errors import BrokenFraming, HttpError, NetworkError, ProtocolError

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable

#: bytes in a row without any of a body; a longer head, or longer chunk extensions, are an attack
MOST_FRAMING_BYTES = 256 << 10
#: bytes to buffer ahead of the reader
MOST_UNREAD_BYTES = 1 << 20
#: readers woken in one pass of the loop. With 64 streams in lock-step the 95th percentile of e2e_ms' error is
#: 2.0 ms if all are woken at once, 1.3 ms with 4, 0.5 ms with 1, which needs a fifth more CPU.
MOST_WOKEN = 4
#: a smaller status is an informational response before the answer, such as 103 Early Hints
_FIRST_ANSWER = 200
# Servers send these and other clients accept them: bare line feeds, folded or odd headers, blanks after a
# chunk's size, a length beside chunks. The parser has no option for a second length, even an equal one.
_LENIENCIES = {
    "lenient_headers": True,
    "lenient_chunked_length": True,
    "lenient_version": True,
    "lenient_optional_cr_before_lf": True,
    "lenient_spaces_after_chunk_size": True,
}


@dataclass(slots=True)
class Head:
    """An answer's status line and headers, by names in lower case, and whether they define its body's end."""

    status: int = 0
    phrase: str = ""
    headers: dict[str, str] = field(default_factory=dict)
    has_length: bool = False


class Bell:
    """Wakes the readers of one loop, a few in each pass.

    All at once they would block the loop until the last of them has parsed its data, and data that arrives
    meanwhile would get too late a time.
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


class ArrivingResponse:
    """An answer that is arriving: its head, then its body by `read` or by iteration.

    Attributes:
        head: empty until it has arrived.
        has_ended: all of it has arrived, or no more will.
        arrived_at: the arrival time of the piece that the iteration yielded last, by `time.perf_counter`.
    """

    def __init__(self, connection: Connection, bell: Bell) -> None:
        self.head = Head()
        self.has_ended = False
        self.arrived_at = 0.0
        self._connection = connection
        self._bell = bell
        self._pieces: list[tuple[bytes, float]] = []
        self._unread = 0
        self._error: HttpError | None = None
        self._reader: asyncio.Future[None] | None = None

    async def receive_whole_head(self) -> None:
        """Wait for the head.

        Raises:
            HttpError: the connection ended before the head.
        """
        while not self.head.status:
            if self._error is not None:
                raise self._error
            await self._news()

    async def read(self) -> list[tuple[bytes, float]]:
        """Wait for more of the body.

        Returns:
            All pieces since the last call, each with its arrival time by `time.perf_counter`; none at the
            body's end.

        Raises:
            HttpError: the connection broke, or closed before the body's end.
        """
        while not self._pieces:
            if self._error is not None:
                raise self._error
            if self.has_ended:
                return []
            self._connection.resume()
            await self._news()
        pieces, self._pieces = self._pieces, []
        self._unread = 0
        return pieces

    async def __aiter__(self) -> AsyncIterator[bytes]:
        """Yield the body's bytes."""
        while pieces := await self.read():
            for piece, self.arrived_at in pieces:
                yield piece

    async def aclose(self) -> None:
        """Close the connection, unless the whole answer has arrived."""
        if not self.has_ended:
            self._connection.abort()

    # --- for the connection ---------------------------------------------------------------------

    def receive_head(self, head: Head) -> None:
        """Receive the head."""
        self.head = head
        self._wake()

    def receive_piece(self, piece: bytes, arrived_at: float) -> bool:
        """Receive a piece of the body; return whether the buffer is full."""
        self._pieces.append((piece, arrived_at))
        self._unread += len(piece)
        self._wake()
        return self._unread > MOST_UNREAD_BYTES

    def receive_end(self, error: HttpError | None = None) -> None:
        """Receive the regular end or an error; only the first end counts."""
        if not self.has_ended:
            self.has_ended, self._error = True, error
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
    """A connection with one request and its answer at a time.

    Args:
        buffer: receives bytes; nothing stays in it, so the connections of one loop share it.
        bell: wakes the readers of answers.
        on_free: called when an answer has ended regularly and another request may be sent.
        on_lost: called when the connection has ended.

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
        """Send a request, and return its answer while it is arriving.

        Args:
            request: all its bytes.
            is_last: whether to close the connection after it.
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
        """Continue reading, after the buffered pieces have been read."""
        if self._is_paused and self._transport is not None:
            self._is_paused = False
            self._transport.resume_reading()

    def abort(self) -> None:
        """Close the connection at once."""
        if self._transport is not None:
            self._transport.abort()

    # --- callbacks of asyncio -------------------------------------------------------------------

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Start; a TLS connection starts after its handshake."""
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport

    def get_buffer(self, sizehint: int) -> memoryview:
        """Return the buffer for the next bytes."""
        # TLS hints at all its data. Data beyond the buffer would be lost if the connection ends with it.
        fits = sizehint <= len(self._buffer)
        self._receiving = self._buffer if fits else memoryview(bytearray(sizehint))
        return self._receiving

    def buffer_updated(self, nbytes: int) -> None:
        """Receive bytes."""
        arrived_at = time.perf_counter()
        answer = self._answer
        if answer is None:  # there is no request
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
        """Receive the end of the server's data, which also ends a body without a length."""
        self._end_by_close()
        self.abort()

    def connection_lost(self, error: Exception | None) -> None:
        """Note the end of the connection."""
        if error is None:
            self._end_by_close()
        elif self._answer is not None:
            broken = NetworkError(str(error))
            broken.__cause__ = error
            self._answer.receive_end(broken)
        self._answer, self._transport = None, None
        self._on_lost(self)
        if not self.lost.done():
            self.lost.set_result(None)

    # --- callbacks of the parser ----------------------------------------------------------------

    def on_message_begin(self) -> None:
        """Start a head, of the answer or of an informational response."""
        if self._is_complete:
            raise ValueError("more than was asked for")
        self._head = Head()

    def on_status(self, phrase: bytes) -> None:
        """Add a piece of the status line's phrase."""
        self._head.phrase += phrase.decode("ascii", "ignore")

    def on_header(self, name: bytes, value: bytes) -> None:
        """Add a header, to others with its name; trailers are ignored."""
        head = self._head
        if head.status:
            return
        key, text = name.decode("latin-1").lower(), _decoded(value.strip())
        head.headers[key] = f"{head.headers[key]}, {text}" if key in head.headers else text
        if key == "content-length":
            head.has_length = True
        elif key == "transfer-encoding":
            head.has_length = text.lower().endswith("chunked")

    def on_headers_complete(self) -> None:
        """Pass the head to the answer, unless it is informational."""
        self._head.status = self._parser.get_status_code()
        self._is_kept = self._parser.should_keep_alive()
        if self._head.status >= _FIRST_ANSWER and self._answer is not None:
            self._answer.receive_head(self._head)

    def on_body(self, piece: bytes) -> None:
        """Add a piece of the body."""
        self._body.append(piece)

    def on_message_complete(self) -> None:
        """End the answer, unless it was informational."""
        self._is_complete = self._head.status >= _FIRST_ANSWER

    # --- how ------------------------------------------------------------------------------------

    def _parse(self, data: memoryview) -> str | None:
        """Parse, and return the error if there is one."""
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
            self._answer.receive_end(ProtocolError("closed before the body's end"))
        else:
            self._answer.receive_end()


def _decoded(value: bytes) -> str:
    try:
        return value.decode()
    except UnicodeDecodeError:
        return value.decode("latin-1")


def _no_answer() -> ProtocolError:
    return ProtocolError("Server disconnected without sending a response.")
