"""A server on loopback between OpenClaw and the model: it passes requests on, and hears the exchange.

OpenClaw's own report has neither times nor the arguments of calls; on this way both are heard, by the same
readers that the other providers use. The key stays on this side: OpenClaw has a token for this call alone.
"""

from __future__ import annotations

import asyncio
import hmac
import json
import secrets
import time
from contextlib import aclosing
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import httpx2

from pytest_openclaw import faults
from pytest_openclaw.errors import CallFailed
from pytest_openclaw.providers import limits
from pytest_openclaw.providers.exchange import Exchange
from pytest_openclaw.providers.http import HttpEdge
from pytest_openclaw.providers.json_values import objects_in, text_in
from pytest_openclaw.providers.listening import bounded, check_event
from pytest_openclaw.providers.ndjson import LineStream
from pytest_openclaw.providers.sse import EventStream
from pytest_openclaw.providers.wire_errors import load_object

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Sequence
    from types import TracebackType

    from pytest_openclaw.providers.over_http import OverHttp
    from pytest_openclaw.records import Fault, JsonObject

HEAD_S = 30.0
MOST_BODY_BYTES = 64 << 20
_STATUS_LINE = {
    200: "200 OK",
    401: "401 Unauthorized",
    404: "404 Not Found",
    413: "413 Content Too Large",
    502: "502 Bad Gateway",
}


@dataclass
class Heard:
    """What has been heard of one run of OpenClaw.

    Attributes:
        first_at: when the first request came, by `time.perf_counter`; what was before is OpenClaw's start.
        exchanges: one for each request to the model, in order.
        results: for each, what the calls of the one before it had brought.
        offered: names of the tools in the first request.
        fault: why a request brought nothing.
        over: nothing more is to be heard: the run should be ended.
    """

    first_at: float | None = None
    exchanges: list[Exchange] = field(default_factory=list)
    results: list[tuple[str, ...]] = field(default_factory=list)
    offered: tuple[str, ...] = ()
    fault: Fault | None = None
    over: asyncio.Event = field(default_factory=asyncio.Event)


class Relay:
    """The server, while it is entered.

    Args:
        server: where requests go.
        model: as the server knows it.
        name: of the provider that asks, for the wording.
        hold_calls: answers with calls are not passed on: the run is over then.
        most_turns: so many requests are passed on; the run is over when another one comes.
    """

    def __init__(
        self, server: OverHttp, model: str, *, name: str, hold_calls: bool = False, most_turns: int = 0
    ) -> None:
        self.heard = Heard()
        self.token = secrets.token_urlsafe(24)
        self._server, self._model = server, model
        self._hold_calls, self._most_turns = hold_calls, most_turns
        self._edge = HttpEdge(name)
        self._n_told = 0

    @property
    def url(self) -> str:
        """The base URL for OpenClaw, to which it adds the API's own path."""
        host, port = self._listening.sockets[0].getsockname()[:2]
        return f"http://{host}:{port}"

    async def __aenter__(self) -> Relay:
        """Begin to listen."""
        self._listening = await asyncio.start_server(self._serve, "127.0.0.1", 0)
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Close everything."""
        self._listening.close()
        await self._edge.aclose()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            async with asyncio.timeout(HEAD_S):
                asked = await _read_request(reader)
            if asked is None or not self._is_ours(asked.headers):
                await _answer(writer, 401)
            elif asked.method != "POST" or asked.path != self._server.path:
                await _answer(writer, 404)
            else:
                await self._pass_on(asked.body, writer)
        except (TimeoutError, ConnectionError, asyncio.IncompleteReadError, asyncio.LimitOverrunError):
            return  # OpenClaw has left, or was ended
        finally:
            writer.close()

    def _is_ours(self, headers: dict[str, str]) -> bool:
        told = headers.get("authorization", "").removeprefix("Bearer ")
        return hmac.compare_digest(told.encode(), self.token.encode())

    async def _pass_on(self, body: JsonObject, writer: asyncio.StreamWriter) -> None:
        heard = self.heard
        if heard.first_at is None:
            heard.first_at = time.perf_counter()
        if not heard.exchanges:  # at the end it may ask for words alone
            heard.offered = tuple(_names_of(body.get("tools")))
        if heard.exchanges:
            heard.results.append(_results_in(_messages(body)[self._n_told :]))
        self._n_told = len(_messages(body))
        if heard.over.is_set() or (self._most_turns and len(heard.exchanges) >= self._most_turns):
            heard.over.set()
            await _answer(writer, 502)
            return
        exchange = Exchange(streaming=True)
        heard.exchanges.append(exchange)
        call = self._server.passed_on(self._server.path, body, model=self._model)
        try:
            async with self._edge.opened(call, exchange.hear_sent) as response:
                kind = response.headers.get("content-type", "")
                async with aclosing(bounded(self._edge.name, response, limits.MOST_BYTES)) as arriving:
                    await self._hear(exchange, arriving, kind, writer)
        except CallFailed as failed:
            # Trying again is the run's, and counted there; OpenClaw would go on for a minute.
            self._break(failed.fault)
            await _answer(writer, 502)

    async def _hear(
        self,
        exchange: Exchange,
        arriving: AsyncIterator[tuple[bytes, float]],
        kind: str,
        writer: asyncio.StreamWriter,
    ) -> None:
        held: list[bytes] = []
        reading = _Reading(self._server, exchange, name=self._edge.name, model=self._model)
        if not self._hold_calls:
            await _begin(writer, 200, kind)
        try:
            async for piece, moment in arriving:
                reading.feed(piece, moment)
                if self._hold_calls:
                    held.append(piece)
                else:
                    writer.write(piece)
                    await writer.drain()
        except httpx2.HTTPError as error:
            self._break(faults.stream_broken(self._edge.name, str(error), exchange.raw()))
            return
        except CallFailed as failed:
            self._break(replace(failed.fault, raw=exchange.raw()))
            return
        reading.close()
        exchange.hear_end()
        if reading.fault is not None:
            self._break(reading.fault)
        elif self._hold_calls and exchange.has_tool_calls:
            self.heard.over.set()
        elif self._hold_calls:
            await _begin(writer, 200, kind)
            writer.writelines(held)
            await writer.drain()

    def _break(self, fault: Fault) -> None:
        self.heard.fault = fault
        self.heard.over.set()


class _Reading:
    """The pieces of one answer, on their way into its exchange."""

    def __init__(self, server: OverHttp, exchange: Exchange, *, name: str, model: str) -> None:
        self.fault: Fault | None = None
        self._server, self._exchange = server, exchange
        self._name, self._model = name, model
        self._stream = LineStream() if server.dialect.by_lines else EventStream()

    def feed(self, piece: bytes, moment: float) -> None:
        """Take a piece, cut anywhere, and when it came.

        Raises:
            CallFailed: an event is longer than may be.
        """
        self._exchange.hear_arrival(moment)
        for event in self._stream.feed(piece):
            self._hear(event.data)
        check_event(self._name, self._stream)

    def close(self) -> None:
        """Take what the end has left."""
        if event := self._stream.close():
            self._hear(event.data)

    def _hear(self, data: str) -> None:
        payload = load_object(data)  # None of [DONE] and of what is none of the API's: OpenClaw judges that
        if payload is not None and (error := self._server.dialect.read(payload, self._exchange)):
            name = self._name
            if self._exchange.has_tokens:
                self.fault = faults.stream_broken(name, error.message, self._exchange.raw())
            else:
                self.fault = faults.refused_by_server(name, self._model, error)


@dataclass(frozen=True)
class _Asked:
    method: str
    path: str
    headers: dict[str, str]
    body: JsonObject


async def _read_request(reader: asyncio.StreamReader) -> _Asked | None:
    """Read one request; None if it is none that OpenClaw would send."""
    head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
    first, *lines = head.split("\r\n")
    method, _, rest = first.partition(" ")
    fields = (line.partition(":") for line in lines if line)
    headers = {name.strip().lower(): value.strip() for name, _, value in fields}
    length = headers.get("content-length", "0")
    if "transfer-encoding" in headers:
        raw = await _read_chunks(reader)
    elif length.isdigit() and int(length) <= MOST_BODY_BYTES:
        raw = await reader.readexactly(int(length))
    else:
        return None
    try:
        body = json.loads(raw or b"{}")
    except ValueError:
        return None
    if not isinstance(body, dict):
        return None
    return _Asked(method, rest.partition(" ")[0].partition("?")[0], headers, body)


async def _read_chunks(reader: asyncio.StreamReader) -> bytes:
    pieces: list[bytes] = []
    room = MOST_BODY_BYTES
    while size := int((await reader.readuntil(b"\r\n")).partition(b";")[0], 16):
        room -= size
        if room < 0:
            return b""
        pieces.append(await reader.readexactly(size))
        await reader.readexactly(2)
    return b"".join(pieces)


async def _begin(writer: asyncio.StreamWriter, status: int, kind: str) -> None:
    head = f"HTTP/1.1 {_STATUS_LINE[status]}\r\ncontent-type: {kind}\r\nconnection: close\r\n\r\n"
    writer.write(head.encode("latin-1"))
    await writer.drain()


async def _answer(writer: asyncio.StreamWriter, status: int) -> None:
    await _begin(writer, status, "application/json")
    writer.write(b'{"error": {"message": "this request is not passed on", "type": "invalid_request_error"}}')
    await writer.drain()


def _names_of(tools: Any) -> list[str]:
    """Return the names of offered tools, in the form of any of the APIs."""
    entries = objects_in(tools)
    functions = [entry.get("function") if "function" in entry else entry for entry in entries]
    return [name for one in functions if isinstance(one, dict) and (name := text_in(one.get("name")))]


def _messages(body: JsonObject) -> list[JsonObject]:
    return objects_in(body.get("messages") or body.get("input"))


def _results_in(messages: Sequence[JsonObject]) -> tuple[str, ...]:
    """Return what the calls of the latest turn had brought: the results behind the model's last words.

    Args:
        messages: that are new; of a turn that OpenClaw leaves out there are none.
    """
    results: list[str] = []
    for entry in reversed(messages):
        if entry.get("role") == "tool":
            results.append(_text_of(entry.get("content")))
        elif entry.get("type") == "function_call_output":
            results.append(_text_of(entry.get("output")))
        elif entry.get("role") == "assistant" or entry.get("type") == "function_call":
            break
    return tuple(reversed(results))


def _text_of(content: Any) -> str:
    if isinstance(content, list):
        return "".join(text_in(part.get("text")) for part in objects_in(content))
    return text_in(content)
