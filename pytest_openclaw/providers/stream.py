"""Reads an answer's bytes into an `Answer`: server-sent events, lines of JSON, or one JSON text.

The form of the bytes decides, not the content type, which gateways change. A stream ends with its end mark,
with the end of the body after a finish reason, or with silence after a finish reason, but not with the finish
reason itself.

Only `event`, `data` and llama.cpp's `error` of server-sent events are read. In addition to the standard, an
event may lack its blank line if it is the last one, or one line of JSON; a line may be bare JSON, which
gateways send when they fail; and a body may be an array of events, as in Gemini's API without `alt=sse`.
"""

from __future__ import annotations

import codecs
import io
import time
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, NamedTuple

from pytest_openclaw.providers.server_errors import error_in, error_of_object, page_title, shortened
from pytest_openclaw.providers.wire import load_object, load_objects
from pytest_openclaw.values import faults
from pytest_openclaw.values.faults import CallFailed, WireError
from pytest_openclaw.values.replies import Fault

if TYPE_CHECKING:
    from pytest_openclaw.providers.answer import Answer
    from pytest_openclaw.util.files import JsonObject
    from pytest_openclaw.values.requests import Request

MOST_BYTES = 64 << 20
"""The limit of a whole body, decompressed."""
MOST_EVENT_BYTES = 16 << 20
"""The limit of an event, a line or a JSON object, which is in memory several times while it is read."""
SILENCE_S, KNOWN_SILENCE_S = 10.0, 2.0
"""The time without a byte after content and a finish reason, after which an answer ends without its end mark.

The second is for an endpoint that has once been silent for the first.
"""
LINGER_S = 0.2
"""The wait for the end of the body after the end mark, so that the connection can be used again."""


@dataclass(frozen=True, kw_only=True)
class HttpCall:
    """One HTTP request.

    Attributes:
        base_url: the server's address as the user knows it; shown in errors.
        body: sent as JSON by POST; None is a GET.
        headers: may contain a key.
        model: for messages.
    """

    base_url: str
    url: str
    body: JsonObject | None
    headers: Mapping[str, str] = field(repr=False)
    model: str = ""


@dataclass(frozen=True)
class Dialect:
    """The requests and answers of one API.

    Attributes:
        body: makes the body for a request, without the parts that the server is known to refuse.
        read: adds one event or a whole answer to the answer so far; returns an error without an error object.
        end_mark: a description of the end of a stream, for messages.
        done_ends: whether `[DONE]` is an end mark.
    """

    body: Callable[[Request, Collection[str]], JsonObject]
    read: Callable[[JsonObject, Answer], WireError | None]
    end_mark: str
    done_ends: bool = False


class AnswerBody:
    """Reads the body of one answer, chunk by chunk; raises `CallFailed` if it is an error or malformed.

    Attributes:
        kind: the content type.
        silence_s: the silence that ends an answer without its end mark.
    """

    def __init__(self, name: str, model: str, dialect: Dialect, answer: Answer) -> None:
        self.kind, self.silence_s = "", SILENCE_S
        self._name, self._model, self._dialect, self._answer = name, model, dialect, answer
        self._events = EventReader()
        self._payload: JsonObject | None = None
        self._ignored = ""

    def start(self) -> None:
        """Start the clock: the request is being sent."""
        self._answer.started = time.perf_counter()

    @property
    def patience_s(self) -> float | None:
        """How long to wait for the next bytes, after which the body counts as ended."""
        if self._answer.is_over:
            return LINGER_S
        return self.silence_s if self._answer.ended and self._answer.has_tokens else None

    def feed(self, piece: bytes) -> None:
        """Read the next bytes, which have just arrived."""
        self._answer.arrived = time.perf_counter()
        if self._answer.is_over:
            return
        events = self._events.feed(piece)
        self._answer.streaming |= self._events.is_stream  # perhaps although no stream was requested
        for event in events:
            self._take(event)
        if self._events.pending_bytes > MOST_EVENT_BYTES:
            why = f"an event of it is longer than {MOST_EVENT_BYTES >> 20} MiB"
            raise CallFailed(faults.malformed(self._name, why))

    def _take(self, event: Event) -> None:
        """Read an event; a text that is not JSON is a heartbeat, such as a date, `ping` or `null`."""
        answer, data = self._answer, event.data.strip()
        if answer.is_over:
            return
        if data == "[DONE]":
            if self._dialect.done_ends or answer.ended:
                answer.receive_end()
            return
        payloads = load_objects(data)
        if event.type == "error":
            self._stop_at(error_of_object(payloads or data))
            return
        for payload in payloads:
            if event.type != "message":  # some servers name the type only there
                payload.setdefault("type", event.type)
            self._payload = payload
            self._stop_at(error_in(payload) or self._dialect.read(payload, answer))
        if payloads:
            return
        if not data.startswith("{"):
            self._ignored = data
        elif not answer.is_complete:
            raise CallFailed(no_object(self._name, data))

    def _stop_at(self, error: WireError | None) -> None:
        if error is None or self._answer.is_complete:
            return
        if self._answer.has_tokens and not error.written:
            said = error.message or error.code or error.type or "no reason given"
            why = f"after the first tokens the server says: {said}"
            raise CallFailed(faults.stream_broken(self._name, why))
        raise CallFailed(faults.refused_by_server(self._name, self._model, error))

    def close(self) -> None:
        """Read the rest, at the end of the body or at a silence that ends the answer."""
        answer, events = self._answer, self._events
        if answer.is_over:
            return
        for event in events.close():
            # A last event without an end is read if it is complete otherwise.
            if event.type == "error" or event.data.strip() == "[DONE]" or load_objects(event.data):
                self._take(event)
        if not events.is_stream:
            self._close_whole(events.text())
        if not answer.ended:
            after = f"; its last words: {shortened(self._ignored)}" if self._ignored else ""
            why = f"it ended without {self._dialect.end_mark}{after}"
            raise CallFailed(faults.stream_broken(self._name, why))

    def _close_whole(self, text: str) -> None:
        if self._payload is None and load_objects(text):
            self._take(Event("message", text))
        was_streaming = self._answer.streaming
        self._answer.receive_at_once()
        if self._payload is None:
            raise CallFailed(no_object(self._name, text))
        if not (self._answer.ended or self._answer.has_tokens):
            why = f"this holds no answer: {shortened(text)}"
            raise CallFailed(faults.malformed(self._name, why, raw=text))
        if not was_streaming:  # a whole answer is complete even without a finish reason
            self._answer.receive_end()

    def lost(self, fault: Fault) -> Fault | None:
        """Return the fault with everything that has arrived; None if the answer is complete anyway."""
        answer = self._answer
        if answer.is_complete:
            return None
        return replace(fault, raw=answer.raw() or fault.raw, timing=answer.timing(), usage=answer.usage())


def no_object(name: str, text: str) -> Fault:
    """Return the fault of an answer without a JSON object."""
    said = f"no JSON object: {shortened(text)}" if text.strip() else "it is empty"
    return faults.malformed(name, page_title(text.strip()) or said, raw=text)


class Event(NamedTuple):
    """One event: its type (`message` unless named) and its data lines, joined by line feeds."""

    type: str
    data: str


class EventReader:
    """Turns chunks of bytes, cut anywhere, into events.

    Attributes:
        is_stream: whether there are server-sent events, or several lines of JSON.
        pending_bytes: the number of bytes received after the chunk that completed the last event.
    """

    def __init__(self) -> None:
        self.is_stream = False
        self.pending_bytes = 0
        decoder = codecs.getincrementaldecoder("utf-8-sig")("replace")
        self._decode = io.IncrementalNewlineDecoder(decoder, translate=True).decode
        self._before: list[str] = []
        self._line: list[str] = []
        self._type = ""
        self._data: list[str] = []
        self._is_text = False
        self._n_objects = 0

    def feed(self, chunk: bytes) -> list[Event]:
        """Return the events that `chunk` completes, in order."""
        text = self._decode(chunk)
        if not self.is_stream:
            self._before.append(text)
        first, *others = text.split("\n")
        self._line.append(first)
        events: list[Event] = []
        if others:  # joined only here, so that a line of many pieces is not searched again for each piece
            lines = ["".join(self._line), *others[:-1]]
            self._line = [others[-1]]
            events = [event for line in lines for event in self._read(line)]
        self.pending_bytes = 0 if events else self.pending_bytes + len(chunk)
        return events

    def close(self) -> list[Event]:
        """Return the last events, which lack their ends."""
        rest = self._decode(b"", final=True)
        self._before.append(rest)
        line = "".join([*self._line, rest])
        return [*self._read(line), *self._read("")] if line else [*self._read("")]

    def text(self) -> str:
        """Return the whole body if it is not a stream."""
        return "".join(self._before)

    def _read(self, line: str) -> Iterator[Event]:
        name, _, value = line.partition(":")
        start = line.lstrip()[:1]
        if self._is_text:
            return
        if not start:
            event = Event(self._type or "message", "\n".join(self._data))
            self._type, self._data = "", []
            if event.data:
                yield event
        elif name == "event":
            self.is_stream, self._type = True, value.removeprefix(" ")
        elif name in ("data", "error"):
            self.is_stream, data = True, value.removeprefix(" ")
            self._type = "error" if name == "error" else self._type
            if not self._data and (load_object(data) is not None or data.strip() == "[DONE]"):
                yield Event(self._type or "message", data)  # a blank line may be missing after it
                self._type = ""
            else:
                self._data.append(data)
        elif start == "{" and (self.is_stream or self._n_objects or load_object(line) is not None):
            self._n_objects += 1
            self.is_stream |= self._n_objects > 1
            yield Event("message", line)
        elif start in "[<{" and not self.is_stream:
            self._is_text = True  # one text of several lines
