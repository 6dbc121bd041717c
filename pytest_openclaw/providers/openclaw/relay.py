"""A relay on loopback between OpenClaw and the model: it forwards requests and records the exchange.

OpenClaw's own report has neither times nor the arguments of calls; the relay records both, with the same
readers as the other providers. OpenClaw never gets the key, only a token for this call.
"""

from __future__ import annotations

import asyncio
import hmac
import json
import secrets
import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import h11

from pytest_openclaw.openclaw.captured import messages_of, system_of, text_of
from pytest_openclaw.providers.exchange import Exchange
from pytest_openclaw.providers.http import HttpClient
from pytest_openclaw.providers.json_values import objects_in, text_in
from pytest_openclaw.providers.wire_errors import load_object, shortened
from pytest_openclaw.util.text import counted
from pytest_openclaw.values import faults
from pytest_openclaw.values.faults import CallFailed

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from pytest_openclaw.providers.over_http import OverHttp
    from pytest_openclaw.util.json_types import JsonObject
    from pytest_openclaw.values.replies import Fault
    from pytest_openclaw.values.tool_calls import ToolCall

HEAD_S = 30.0
MOST_HEAD_BYTES = 64 << 10
MOST_REQUEST_BYTES = 64 << 20
_PIECE_BYTES = 64 << 10
_STATUS_LINE = {
    200: "200 OK",
    400: "400 Bad Request",
    401: "401 Unauthorized",
    404: "404 Not Found",
    502: "502 Bad Gateway",
}


@dataclass
class RecordedRun:
    """The record of one run of OpenClaw.

    Attributes:
        first_at: when the first request arrived, by `time.perf_counter`; the time before is OpenClaw's start.
        exchanges: one for each request to the model, in order.
        results: for each but the first, the results of the previous one's calls.
        offered: names of the tools in the first request.
        offering: for each exchange, whether its request offered tools.
        fault: why a request has no answer.
        broke: an exception in our own code.
        over: set when the run should be ended.

    """

    first_at: float | None = None
    exchanges: list[Exchange] = field(default_factory=list)
    results: list[tuple[str, ...]] = field(default_factory=list)
    offered: tuple[str, ...] = ()
    offering: list[bool] = field(default_factory=list)
    fault: Fault | None = None
    broke: Exception | None = None
    over: asyncio.Event = field(default_factory=asyncio.Event)


class Relay:
    """The server, running while it is entered.

    Args:
        server: receives the requests.
        model: its name on the server.
        name: of the provider, for messages.
        timeout_s: seconds for each answer of the server.
        most_turns: the most requests to forward, 0 for any number; the run is over when another one arrives.
        may_pass: answers with other calls are not forwarded, and end the run; None forwards all.
        n_images: pictures that the first request must contain; OpenClaw goes on without one that it cannot
            load.
        own_tools: names of the suite's own tools, which the first request must offer, or list in its system
            text; OpenClaw goes on without one that it does not take.

    """

    def __init__(
        self,
        server: OverHttp,
        model: str,
        *,
        name: str,
        timeout_s: float,
        most_turns: int = 0,
        may_pass: Callable[[ToolCall], bool] | None = None,
        n_images: int = 0,
        own_tools: Sequence[str] = (),
    ) -> None:
        self.received = RecordedRun()
        self.token = secrets.token_urlsafe(24)
        self._server, self._model = server, model
        self._timeout_s = timeout_s
        self._most_turns, self._may_pass = most_turns, may_pass
        self._n_images, self._own_tools = n_images, own_tools
        self._client = HttpClient(name)
        self._n_known_messages = 0

    @property
    def url(self) -> str:
        """The base URL for OpenClaw, to which it adds the API's own path."""
        host, port = self._listening.sockets[0].getsockname()[:2]
        return f"http://{host}:{port}"

    def begin_run(self) -> None:
        """Record another run of OpenClaw; the one before has ended."""
        self.received = RecordedRun()

    async def __aenter__(self) -> Relay:
        """Start listening."""
        self._listening = await asyncio.start_server(self._serve, "127.0.0.1", 0)
        return self

    async def __aexit__(self, *_: object) -> None:
        """Close everything."""
        self._listening.close()
        await self._client.aclose()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            await self._answer(reader, writer)
        except (TimeoutError, ConnectionError, asyncio.IncompleteReadError):
            return  # OpenClaw has exited or was ended
        except Exception as error:
            self.received.broke = error  # the provider raises it
            self.received.over.set()
        finally:
            writer.close()

    async def _answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Forward a request if it is OpenClaw's; the body of any other is not read."""
        incoming = _Incoming(reader)
        async with asyncio.timeout(HEAD_S):
            head = await incoming.head()
        if head is None or not self._is_ours(head):
            await _refuse(writer, 401)
        elif (head.method, head.target.partition(b"?")[0]) != (b"POST", self._server.path.encode()):
            await _refuse(writer, 404)
        else:
            async with asyncio.timeout(HEAD_S):
                text = (await incoming.body()).decode("utf-8", "replace")
            if (body := load_object(text)) is not None:
                await self._pass_on(body, writer)
            else:
                await self._reject(incoming.error or f"no JSON object: {shortened(text)}", writer)

    def _is_ours(self, head: h11.Request) -> bool:
        fields = dict(head.headers)
        return hmac.compare_digest(fields.get(b"authorization", b""), f"Bearer {self.token}".encode())

    async def _reject(self, why: str, writer: asyncio.StreamWriter) -> None:
        """End the run: OpenClaw has sent a malformed request."""
        said = f"OpenClaw sent a request that cannot be read: {why}."
        self._end(faults.cli_failed(self._client.name, said))
        await _refuse(writer, 400)

    def _end(self, fault: Fault) -> None:
        self.received.fault = fault
        self.received.over.set()

    async def _give_up(self, writer: asyncio.StreamWriter, why: str) -> None:
        """End the run: this OpenClaw cannot play the request."""
        self._end(faults.cannot_play(self._client.name, why))
        await _refuse(writer, 502)

    def _why_not_shown(self, body: JsonObject) -> str:
        """Return as a sentence that pictures or tools of the prompt are missing; empty if none is."""
        n_sent = sum(map(_n_images_in, messages_of(body)))
        if n_sent < self._n_images:
            return f"this OpenClaw sends {n_sent} of the prompt's {counted(self._n_images, 'picture')}."
        known = json.dumps([body.get("tools"), system_of(body)])
        missing = ", ".join([name for name in self._own_tools if name not in known][:3])
        plugin = "the plugin that adds the prompt's tools"
        return f"this OpenClaw does not take {missing} from {plugin}." if missing else ""

    async def _pass_on(self, body: JsonObject, writer: asyncio.StreamWriter) -> None:
        received = self.received
        if why := self._why_not_shown(body):
            await self._give_up(writer, why)
            return
        self._n_images, self._own_tools = 0, ()  # OpenClaw may leave them out of later requests
        if received.first_at is None:
            received.first_at = time.perf_counter()
        if not received.exchanges:  # a last request may offer no tools
            received.offered = tuple(_names_of(body.get("tools")))
        if received.exchanges:
            received.results.append(_results_in(messages_of(body)[self._n_known_messages :]))
        self._n_known_messages = len(messages_of(body))
        is_last = 0 < self._most_turns <= len(received.exchanges)
        if received.over.is_set() or is_last:
            received.over.set()
            await _refuse(writer, 502)
            return
        exchange = Exchange(streaming=True)
        received.exchanges.append(exchange)
        received.offering.append(bool(body.get("tools")))
        answer = _PassedOn(writer, hold=self._may_pass is not None)
        call = self._server.passed_on(self._server.path, body, model=self._model)
        try:
            await self._client.ask(
                call, self._server.dialect, exchange, timeout_s=self._timeout_s, copy=answer
            )
        except CallFailed as failed:
            # The run makes and counts retries; OpenClaw would retry for a minute.
            self._end(failed.fault)
            if not answer.has_started:
                await _refuse(writer, 502)
            return
        if self._may_pass is None or all(map(self._may_pass, exchange.reply().tool_calls)):
            await answer.finish()
        else:
            received.over.set()


class _PassedOn:
    """An answer that is forwarded to OpenClaw; with `hold` only when it is complete."""

    def __init__(self, writer: asyncio.StreamWriter, *, hold: bool) -> None:
        self.has_started = False
        self._writer, self._hold = writer, hold
        self._kind = ""
        self._held: list[bytes] = []

    async def begin(self, kind: str) -> None:
        """See `Copy`."""
        self._kind = kind
        if not self._hold:
            await self._begin()

    async def write(self, piece: bytes) -> None:
        """See `Copy`."""
        if self._hold:
            self._held.append(piece)
        else:
            self._writer.write(piece)
            await self._writer.drain()

    async def finish(self) -> None:
        """Send the held answer."""
        if self._hold:
            await self._begin()
            self._writer.writelines(self._held)
            await self._writer.drain()

    async def _begin(self) -> None:
        self.has_started = True
        await _begin(self._writer, 200, self._kind)


class _Incoming:
    """A request that is arriving.

    Attributes:
        error: why its body is malformed; empty if it is not.

    """

    def __init__(self, reader: asyncio.StreamReader) -> None:
        self.error = ""
        self._reader = reader
        self._parser = h11.Connection(h11.SERVER, max_incomplete_event_size=MOST_HEAD_BYTES)

    async def head(self) -> h11.Request | None:
        """Read up to the end of the head; return None if the bytes are not HTTP."""
        try:
            event = await self._next()
        except h11.RemoteProtocolError:
            return None
        return event if isinstance(event, h11.Request) else None

    async def body(self) -> bytes:
        """Read up to the end, or to an error; then it is empty."""
        pieces = bytearray()
        try:
            while isinstance(event := await self._next(), h11.Data):
                pieces += event.data
                if len(pieces) > MOST_REQUEST_BYTES:
                    self.error = f"it is longer than {MOST_REQUEST_BYTES >> 20} MiB"
                    return b""
        except h11.RemoteProtocolError as error:
            self.error = str(error)
            return b""
        return bytes(pieces)

    async def _next(self) -> object:
        while (event := self._parser.next_event()) is h11.NEED_DATA:
            if not (data := await self._reader.read(_PIECE_BYTES)):
                raise asyncio.IncompleteReadError(data, None)
            self._parser.receive_data(data)
        return event


async def _begin(writer: asyncio.StreamWriter, status: int, kind: str) -> None:
    head = f"HTTP/1.1 {_STATUS_LINE[status]}\r\ncontent-type: {kind}\r\nconnection: close\r\n\r\n"
    writer.write(head.encode("latin-1"))
    await writer.drain()


async def _refuse(writer: asyncio.StreamWriter, status: int) -> None:
    await _begin(writer, status, "application/json")
    writer.write(b'{"error": {"message": "this request is not passed on", "type": "invalid_request_error"}}')
    await writer.drain()


def _names_of(tools: Any) -> list[str]:
    """Return the names of the offered tools, in the format of any API."""
    entries = objects_in(tools)
    functions = [entry.get("function") if "function" in entry else entry for entry in entries]
    return [name for one in functions if isinstance(one, dict) and (name := text_in(one.get("name")))]


def _results_in(messages: Sequence[JsonObject]) -> tuple[str, ...]:
    """Return the results of the latest turn's calls: those after the model's last message.

    Args:
        messages: the new ones; none if OpenClaw leaves out the turn.

    """
    results: list[str] = []
    for entry in reversed(messages):
        if entry.get("role") == "tool":
            results.append(text_of(entry.get("content")))
        elif entry.get("type") == "function_call_output":
            results.append(text_of(entry.get("output")))
        elif entry.get("role") == "assistant" or entry.get("type") == "function_call":
            break
    return tuple(reversed(results))


def _n_images_in(message: JsonObject) -> int:
    """Return the number of pictures in a message, in the format of any API."""
    own = message.get("images")  # Ollama's
    parts = objects_in(message.get("content"))
    kinds = ("image", "image_url", "input_image")
    return (len(own) if isinstance(own, list) else 0) + sum(part.get("type") in kinds for part in parts)
