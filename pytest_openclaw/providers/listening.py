"""Reads an HTTP answer into an `Exchange`: a stream of events or one object, up to its end mark.

One timeout bounds the whole attempt, also for a server that sends slowly or sends comments to keep the
connection alive. After the end mark an error of the connection does not matter.
"""

from __future__ import annotations

import asyncio
from contextlib import aclosing
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Protocol

from pytest_openclaw.core.text import valid_text
from pytest_openclaw.providers import limits
from pytest_openclaw.providers.http_errors import BrokenFraming, DecodingError, HttpError
from pytest_openclaw.providers.ndjson import LineStream
from pytest_openclaw.providers.sse import Event, EventStream
from pytest_openclaw.providers.wire_errors import error_of_object, load_object, page_title, shortened
from pytest_openclaw.types import faults
from pytest_openclaw.types.faults import CallFailed

if TYPE_CHECKING:
    from collections.abc import Callable

    from pytest_openclaw.core.json_types import JsonObject
    from pytest_openclaw.providers.connection import Head
    from pytest_openclaw.providers.exchange import Exchange
    from pytest_openclaw.providers.http import HttpAnswer, HttpEdge
    from pytest_openclaw.providers.http_call import Call, Dialect
    from pytest_openclaw.types.replies import Fault, Reply

EVENT_TYPES = frozenset({"text/event-stream"})
LINE_TYPES = frozenset({"application/x-ndjson", "application/ndjson", "application/jsonl"})
#: seconds to wait for the counts, which some servers send after the end mark
USAGE_TIMEOUT_S = 2.0
#: seconds to wait for the body's end, after which the connection can be used again
LINGER_TIMEOUT_S = 0.2


class Copy(Protocol):
    """Receives the bytes of an answer while it is read."""

    async def begin(self, kind: str) -> None:
        """Receive the answer's content type."""
        ...

    async def write(self, piece: bytes) -> None:
        """Receive the next piece of its body."""
        ...


async def listen(
    edge: HttpEdge,
    call: Call,
    dialect: Dialect,
    exchange: Exchange,
    *,
    timeout_s: float,
    copy: Copy | None = None,
) -> Reply:
    """Send the call and read the answer to its end.

    Args:
        edge: the provider's connections.
        call: the request.
        dialect: parses the answer.
        exchange: new; its `streaming` is whether a stream was requested.
        timeout_s: seconds for the whole attempt.
        copy: receives the bytes of a successful answer.

    Raises:
        CallFailed: the answer is missing or incomplete; the fault has the received part and its times.
    """
    try:
        async with (
            asyncio.timeout(timeout_s) as scope,
            aclosing(await edge.open(call, exchange.receive_sent)) as answer,
        ):
            await _Listener(edge.name, call, dialect, exchange, scope, answer, copy).receive()
        return exchange.reply()
    except TimeoutError:
        fault = faults.timed_out(edge.name, timeout_s)
    except DecodingError as error:
        fault = faults.malformed(edge.name, f"its compression is broken: {shortened(str(error))}")
    except BrokenFraming as error:
        fault = faults.malformed(edge.name, f"it is not HTTP: {shortened(str(error))}")
    except HttpError:
        fault = faults.stream_broken(edge.name, "the connection was lost in the middle of the answer")
    except CallFailed as failed:
        fault = failed.fault
    if exchange.ended:
        return exchange.reply()
    raw = call.hide(exchange.raw() or fault.raw)
    raise CallFailed(replace(fault, raw=raw, timing=exchange.timing(), usage=exchange.reply().usage))


async def fetch_object(edge: HttpEdge, call: Call, *, timeout_s: float) -> JsonObject:
    """Send a small request about the server itself and return the object in its answer.

    Raises:
        CallFailed: the answer is not an object.
    """
    try:
        async with asyncio.timeout(timeout_s), aclosing(await edge.open(call)) as answer:
            text = await _whole_text(answer, _Limit(edge.name, answer.head, limits.MOST_EVENT_BYTES))
    except TimeoutError:
        raise CallFailed(faults.timed_out(edge.name, timeout_s)) from None
    except HttpError:
        raise CallFailed(faults.stream_broken(edge.name, "the connection was lost")) from None
    payload = load_object(text)
    if payload is None:
        raise CallFailed(_no_object(edge.name, call, text))
    return payload


@dataclass(slots=True)
class _Listener:
    """Reads one answer.

    Attributes:
        is_done: the stream has said that nothing follows.
    """

    name: str
    call: Call
    dialect: Dialect
    exchange: Exchange
    scope: asyncio.Timeout
    answer: HttpAnswer
    copy: Copy | None
    is_done: bool = False

    async def receive(self) -> None:
        content_type = self.answer.head.headers.get("content-type", "")
        if self.copy is not None:
            await self.copy.begin(content_type)
        kind = content_type.partition(";")[0].strip().lower()
        # Some servers omit the type of a stream; a stream that was not requested has its type.
        self.exchange.streaming = kind in (LINE_TYPES if self.dialect.by_lines else EVENT_TYPES) or (
            self.exchange.streaming and "json" not in kind and kind != "text/html"
        )
        if self.exchange.streaming:
            await self._receive_stream()
        else:
            limit = _Limit(self.name, self.answer.head, limits.MOST_EVENT_BYTES)
            self._receive_whole(
                await _whole_text(self.answer, limit, self.copy, self.exchange.receive_arrival)
            )

    async def _receive_stream(self) -> None:
        answer, copy, exchange, events = self.answer, self.copy, self.exchange, self._events()
        limit = _Limit(self.name, answer.head, limits.MOST_BYTES)
        while arrived := await answer.read():
            for piece, arrived_at in arrived:
                limit.add(piece)
                if copy is not None:
                    await copy.write(piece)
                exchange.receive_arrival(arrived_at)
                for event in events.feed(piece):
                    self._take(event)
                _check_event(self.name, events)
                if exchange.ended and (copy is not None or not answer.has_ended):
                    self._hasten()
        self._close(events)

    def _events(self) -> EventStream | LineStream:
        return LineStream() if self.dialect.by_lines else EventStream()

    def _close(self, events: EventStream | LineStream) -> None:
        if not self.exchange.ended and (cut := events.close()):
            self._take_cut(cut)
        if not self.exchange.ended:
            raise CallFailed(faults.stream_broken(self.name, f"it ended without {self.dialect.end_mark}"))

    def _take(self, event: Event) -> None:
        if event.data == "[DONE]":
            if self.dialect.done_ends:
                self.exchange.receive_end()
                self.is_done = True
            return
        payload = load_object(event.data)
        if event.type == "error":
            error: faults.WireError | None = error_of_object(event.data if payload is None else payload)
        elif payload is None:
            raise CallFailed(_no_object(self.name, self.call, event.data))
        else:
            error = self.dialect.read(payload, self.exchange)
        if error is not None:
            raise CallFailed(self._fault(error))

    def _take_cut(self, event: Event) -> None:
        """Read a last event whose end is missing, if it is complete otherwise."""
        if event.data == "[DONE]" or event.type == "error" or load_object(event.data) is not None:
            self._take(event)

    def _receive_whole(self, text: str) -> None:
        payload = load_object(text)
        if payload is None and self.dialect.by_lines and "\n" in text.strip():
            self._receive_lines(text)
            return
        if payload is None:
            raise CallFailed(_no_object(self.name, self.call, text))
        error = self.dialect.read(payload, self.exchange)
        if error is not None:
            raise CallFailed(self._fault(error))
        if not self.dialect.is_whole(payload):
            why = f"this holds no answer: {self.call.hide(shortened(text))}"
            raise CallFailed(faults.malformed(self.name, why, raw=valid_text(text)))
        self.exchange.receive_end()

    def _receive_lines(self, text: str) -> None:
        """Read a stream with the content type of an object; a proxy that renames it may also buffer it."""
        events = self._events()
        for event in events.feed(text.encode("utf-8", "replace")):
            self._take(event)
        self._close(events)

    def _fault(self, error: faults.WireError) -> Fault:
        error = self.call.hide_in(error)
        if self.exchange.has_tokens and not error.written:
            said = error.message or error.code or error.type or "no reason given"
            return faults.stream_broken(self.name, f"after the first tokens the server says: {said}")
        return faults.refused_by_server(self.name, self.call.model, error)

    def _hasten(self) -> None:
        """After the end mark, shorten the timeout to what may still be useful."""
        if self.scope.expired():
            return
        soon = LINGER_TIMEOUT_S if self.is_done or self.exchange.has_usage else USAGE_TIMEOUT_S
        latest = asyncio.get_running_loop().time() + soon
        when = self.scope.when()
        if when is None or when > latest:
            self.scope.reschedule(latest)


class _Limit:
    """Counts the bytes of a body.

    Raises:
        CallFailed: the body, or its stated length, is longer than `most_bytes`.
    """

    def __init__(self, name: str, head: Head, most_bytes: int) -> None:
        self._name = name
        self._most_bytes = self._left_bytes = most_bytes
        claimed = head.headers.get("content-length", "")
        if claimed.isdecimal() and int(claimed) > most_bytes:
            raise self._too_much()

    def add(self, piece: bytes) -> None:
        """Count a piece."""
        self._left_bytes -= len(piece)
        if self._left_bytes < 0:
            raise self._too_much()

    def _too_much(self) -> CallFailed:
        longest = limits.mebibytes(self._most_bytes)
        return CallFailed(faults.malformed(self._name, f"it is longer than {longest}"))


def _check_event(name: str, events: EventStream | LineStream) -> None:
    """Reject an unfinished event that is too long already.

    Raises:
        CallFailed: it is longer than `MOST_EVENT_BYTES`.
    """
    if events.pending_bytes > limits.MOST_EVENT_BYTES:
        longest = limits.mebibytes(limits.MOST_EVENT_BYTES)
        raise CallFailed(faults.malformed(name, f"an event of it is longer than {longest}"))


async def _whole_text(
    answer: HttpAnswer,
    limit: _Limit,
    copy: Copy | None = None,
    receive_arrival: Callable[[float], None] = lambda _: None,
) -> str:
    body = []
    while arrived := await answer.read():
        for piece, arrived_at in arrived:
            limit.add(piece)
            if copy is not None:
                await copy.write(piece)
            body.append(piece)
            receive_arrival(arrived_at)
    return b"".join(body).decode("utf-8-sig", "replace")


def _no_object(name: str, call: Call, text: str) -> Fault:
    what = page_title(text.strip()) or (
        f"no JSON object: {shortened(text)}" if text.strip() else "it is empty"
    )
    return faults.malformed(name, call.hide(what), raw=valid_text(text))
