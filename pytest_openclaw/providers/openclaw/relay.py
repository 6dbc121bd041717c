"""A loopback server in the place of OpenClaw's model: the relay forwards requests, and makes the reply.

OpenClaw's own report has neither times nor the arguments of calls; the relay records both, with the same
readers as the other providers. OpenClaw never receives the key, only a token for this call.
"""

from __future__ import annotations

import asyncio
import hmac
import json
import secrets
from contextlib import asynccontextmanager
from dataclasses import asdict, dataclass, replace
from functools import partial
from http import HTTPStatus
from typing import TYPE_CHECKING, Any, NamedTuple

import h11

from pytest_openclaw.openclaw.dispatch import dispatch, is_forgotten, promoted_calls
from pytest_openclaw.openclaw.recovery import at_last_step, is_broken, is_given_up
from pytest_openclaw.openclaw.thinking import strip_thinking
from pytest_openclaw.providers import processes
from pytest_openclaw.providers.answer import Answer
from pytest_openclaw.providers.openclaw.call import (
    find_envelope,
    is_lookup,
    offered_tools,
    own_tools,
    read_envelope,
)
from pytest_openclaw.providers.openclaw.workspace import SHELL_PATH
from pytest_openclaw.providers.prices import summed
from pytest_openclaw.providers.server_errors import shortened
from pytest_openclaw.providers.stream import AnswerBody
from pytest_openclaw.providers.wire import load_object, objects_in, text_in
from pytest_openclaw.util.errors import OpenClawError
from pytest_openclaw.util.text import counted
from pytest_openclaw.values import faults
from pytest_openclaw.values.faults import CallFailed
from pytest_openclaw.values.replies import Fault
from pytest_openclaw.values.requests import LISTED

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable, Sequence

    from pytest_openclaw.providers.openclaw.workspace import Scratch
    from pytest_openclaw.providers.over_http import OverHttp
    from pytest_openclaw.providers.processes import Program
    from pytest_openclaw.util.files import JsonObject
    from pytest_openclaw.values.replies import EndedBy, Reply, Turn
    from pytest_openclaw.values.requests import Request
    from pytest_openclaw.values.tool_calls import Tool

REQUEST_TIMEOUT_S = 30.0
_PIECE_BYTES = 64 << 10
_REFUSED = b'{"error": {"message": "this request is not forwarded", "type": "invalid_request_error"}}'


class Outgoing(NamedTuple):
    """An answer; by default, the request is refused."""

    status: int
    kind: str = "application/json"
    body: bytes = _REFUSED


@asynccontextmanager
async def listening(
    answer: Callable[[str, str, JsonObject | None], Awaitable[Outgoing]],
) -> AsyncIterator[str]:
    """Run a server and yield its base URL, such as `http://127.0.0.1:4711`.

    `answer` receives the path and `Authorization` of a request and its body, None unless it is a JSON object.
    """

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            async with asyncio.timeout(REQUEST_TIMEOUT_S):
                request = await _read(reader)
            status, kind, body = await answer(*request)
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


async def _read(reader: asyncio.StreamReader) -> tuple[str, str, JsonObject | None]:
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
    return path, authorization, load_object(data.decode("utf-8", "replace"))


def messages_of(body: JsonObject) -> list[JsonObject]:
    """Return the messages of a request, which the Responses API calls `input`."""
    return objects_in(body.get("messages") or body.get("input"))


def text_of(content: Any) -> str:
    """Return the text of a message, which may be a list of parts."""
    return text_in(content) or "".join(text_in(part.get("text")) for part in objects_in(content))


@dataclass
class RelayedRequest:
    """One request to the model; the next one has the `results` of its calls."""

    answer: Answer
    offers_tools: bool
    results: tuple[str, ...] | None = None


class Relay:
    """The server.

    OpenClaw continues without an image or a tool that it cannot load. The first request must have them.

    The steps of the request's world are the most requests to forward in a run. Without a world, an answer
    with other calls than searches for tools is not forwarded, and ends the run.

    Attributes:
        steps: the requests of the current run of OpenClaw.
        failure: a fault that ended the run, or an exception in our own code.
        over: set when the run should be ended.
    """

    def __init__(
        self, server: OverHttp, model: str, *, name: str, request: Request, scratch: Scratch
    ) -> None:
        # Imported here: it loads the HTTP library, which only the process that sends requests needs.
        from pytest_openclaw.providers.http import HttpClient

        self._token = secrets.token_urlsafe(24)
        self._server, self._model, self._request, self._scratch = server, model, request, scratch
        self._client = HttpClient(name)
        self._n_known_messages = 0
        self._begin_run()

    def _begin_run(self) -> None:
        self.steps: list[RelayedRequest] = []
        self.failure: Fault | Exception | None = None
        self.over = asyncio.Event()

    @asynccontextmanager
    async def running(self) -> AsyncIterator[tuple[str, str]]:
        """Run the server; yield its base URL and its token."""
        async with listening(self._answer) as url:
            try:
                yield url, self._token
            finally:
                await self._client.aclose()

    async def run(self, openclaw: Program) -> Reply | Fault:
        """Run OpenClaw once, and return its exchange with the model as one reply."""
        self._begin_run()
        name, request = self._client.name, self._request
        n_turns = (request.world.steps if request.world else 1) + request.lookup_turns
        printed = await processes.run(name, openclaw, within_s=request.timeout_s * n_turns, until=self.over)
        if isinstance(self.failure, Exception):
            raise self.failure
        if fault := self.failure:  # models of another server may still be available
            return replace(fault, scope="target" if fault.scope == "endpoint" else fault.scope)
        if printed.timed_out:
            said = self.steps[-1].answer.raw() if self.steps else ""
            return faults.timed_out(name, request.timeout_s, said)
        plain = self._scratch.with_world_paths if request.world else str
        if self.over.is_set():
            return reply_of(self.steps, None, request, plain=plain)
        if (envelope := find_envelope(printed.stdout)) is None:
            words = f": {shortened(printed.stderr)}" if printed.stderr else ""
            return faults.program_ended(name, "OpenClaw", printed.exit_status, f" without its JSON{words}")
        result = read_envelope(envelope, request, name=name, where=self._server.address.base_url)
        if isinstance(result, Fault):
            return result
        return reply_of(self.steps, result, request, plain=plain)

    async def _answer(self, path: str, authorization: str, body: JsonObject | None) -> Outgoing:
        if not hmac.compare_digest(authorization.encode(), f"Bearer {self._token}".encode()):
            return Outgoing(401)
        if path not in (self._server.path, SHELL_PATH):
            return Outgoing(404)
        name = self._client.name
        if body is None:
            return self._end(faults.cli_failed(name, "OpenClaw sent a request that is not JSON."), 400)
        try:
            if path == SHELL_PATH:
                return await self._play(body)
            if not self._n_known_messages and (why := self._what_is_missing(body)):
                return self._end(faults.cannot_play(name, f"this OpenClaw {why}"))
            return await self._pass_on(body)
        except Exception as error:
            return self._end(error)  # the provider raises it

    def _end(self, failure: Fault | Exception | None = None, status: int = 502) -> Outgoing:
        """End the run; the first failure counts."""
        self.failure = self.failure or failure
        self.over.set()
        return Outgoing(status)

    async def _play(self, body: JsonObject) -> Outgoing:
        try:
            ran = await asyncio.to_thread(self._scratch.play, body["folder"], body["arguments"])
        except OpenClawError as error:
            return self._end(faults.broke(self._client.name, f"the shell of the world: {error}"))
        return Outgoing(200, body=json.dumps(asdict(ran)).encode())

    def _what_is_missing(self, body: JsonObject) -> str:
        """Return which images or tools the first request lacks; empty if it lacks none."""
        request, messages = self._request, messages_of(body)
        n_sent = sum(map(_n_images_in, messages))
        if n_sent < len(request.images):
            return f"sends {n_sent} of the prompt's {counted(len(request.images), 'image')}."
        # A plugin's tools may be behind the bridge; then the system prompt has their names.
        system = [turn for turn in messages if turn.get("role") in ("system", "developer")]
        known = json.dumps([body.get("tools"), body.get("instructions"), system])
        missing = [tool.name for tool in own_tools(request) if tool.name not in known]
        if request.surface == LISTED:
            offered = _names_of(body.get("tools"))
            missing = sorted(offered_tools(request).difference(offered))
        return f"does not offer {', '.join(missing[:3])} without a gateway." if missing else ""

    async def _pass_on(self, body: JsonObject) -> Outgoing:
        request, messages, server = self._request, messages_of(body), self._server
        if self.steps and self.steps[-1].results is None:
            self.steps[-1].results = _results_in(messages[self._n_known_messages :])
        self._n_known_messages = len(messages)
        # A single question without look-ups has no limit: OpenClaw may repeat it after an empty answer.
        most = request.world.steps if request.world else request.lookup_turns and 1 + request.lookup_turns
        if self.over.is_set() or 0 < most <= len(self.steps):
            return self._end()
        answer = Answer(streaming=True)
        self.steps.append(RelayedRequest(answer, offers_tools=bool(body.get("tools"))))
        held = _Held(self._client.name, self._model, server.dialect, answer)
        call = server.call(server.path, body, model=self._model)
        try:
            await self._client.send(call, held, timeout_s=request.timeout_s)
        except CallFailed as failed:
            # The run makes and counts retries; OpenClaw would retry for a minute.
            return self._end(failed.fault)
        if request.world is None and not all(map(is_lookup, answer.reply().tool_calls)):
            return self._end()
        return Outgoing(200, held.kind, b"".join(held.pieces))


class _Held(AnswerBody):
    """Reads an answer and keeps its bytes."""

    def __init__(self, *arguments: Any) -> None:
        super().__init__(*arguments)
        self.pieces: list[bytes] = []

    def feed(self, piece: bytes) -> None:
        super().feed(piece)
        self.pieces.append(piece)


def _names_of(tools: Any) -> list[str]:
    """Return the names of the offered tools, in the format of any API."""
    entries = objects_in(tools)
    functions = [entry.get("function") if "function" in entry else entry for entry in entries]
    return [name for one in functions if isinstance(one, dict) and (name := text_in(one.get("name")))]


def _results_in(messages: Sequence[JsonObject]) -> tuple[str, ...]:
    """Return the results of the latest turn's calls, which follow the model's last message."""
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
    """Return the number of images in a message, in the format of any API."""
    own = message.get("images")  # Ollama's
    parts = objects_in(message.get("content"))
    kinds = ("image", "image_url", "input_image")
    return (len(own) if isinstance(own, list) else 0) + sum(part.get("type") in kinds for part in parts)


def reply_of(
    steps: Sequence[RelayedRequest],
    result: Reply | None,
    request: Request,
    *,
    plain: Callable[[str], str] = str,
) -> Reply:
    """Return the exchange as one reply.

    The time is the sum over the turns, without the tools' time and OpenClaw's start.
    `result` is OpenClaw's own result; None if OpenClaw was ended before.
    `plain` replaces the real path of the workspace in texts and calls; the raw text is unchanged.
    """
    if not steps:  # it answered by itself
        assert result is not None, "without a request it was not ended"
        return result
    replies = [_reply_of(step, request, plain) for step in steps]
    whole = replace(
        summed(replies),
        # The model's text has precedence over OpenClaw's version of it.
        text=replies[-1].text or (plain(result.text) if result else ""),
    )
    if not request.is_exchange:
        return whole
    turns = [
        _turn(reply, step.results and [*map(plain, step.results)], request.tools if step.offers_tools else ())
        for reply, step in zip(replies, steps, strict=True)
    ]
    ended_by = _ended_by(turns, request, is_over=result is not None)
    if ended_by == "call":  # it is not carried out
        turns[-1] = replace(turns[-1], results=())
    calls = tuple(call for turn in turns for call in turn.calls)
    return replace(whole, tool_calls=calls, turns=tuple(turns), ended_by=ended_by)


def _reply_of(step: RelayedRequest, request: Request, plain: Callable[[str], str]) -> Reply:
    """Return an answer, in which calls are marked if the request offered no tools."""
    reply = step.answer.reply()
    is_unoffered = bool(request.tools) and not step.offers_tools
    calls = tuple(
        replace(call, arguments=plain(call.arguments), unoffered=is_unoffered) for call in reply.tool_calls
    )
    return replace(reply, text=plain(reply.text), reasoning=plain(reply.reasoning), tool_calls=calls)


def _turn(reply: Reply, results: Sequence[str] | None, tools: Sequence[Tool]) -> Turn:
    """Return a reply as a turn, with the result of each call.

    A result is empty for a call whose result OpenClaw does not send to the model.
    """
    # Calls that OpenClaw makes from a text count like others.
    made = reply.tool_calls or promoted_calls(strip_thinking(reply.text), tools)
    left = list(results or ())
    ordered: list[str] = []
    for call in made:
        is_forgotten_call = results is not None and is_forgotten(dispatch(call, tools))
        if not is_forgotten_call and not left:
            break
        ordered.append("" if is_forgotten_call else left.pop(0))
    return reply.as_turn(calls=made, results=tuple(ordered))


def _ended_by(turns: Sequence[Turn], request: Request, *, is_over: bool) -> EndedBy:
    """Return how an exchange ended; `is_over` if OpenClaw has ended by itself."""
    last = turns[-1].calls
    if request.world is None:
        if not all(map(is_lookup, last)):
            return "call"
        return "answer" if is_over or not last else at_last_step(turns)
    if not is_over:
        return at_last_step(turns)
    dispatched = partial(dispatch, tools=request.tools)
    if is_given_up([turn.calls for turn in turns], dispatched):
        return "loop"
    return "malformed_call" if is_broken(last, dispatched) else "answer"


def broken_after(runs: Sequence[Reply], fault: Fault) -> Fault:
    """Return the fault of a session's run with the texts and tokens of earlier runs."""
    if not runs:
        return fault
    before = summed(runs)
    raw = "\n\n".join(filter(None, (before.raw, fault.raw)))
    return replace(fault, raw=raw, turns=(*before.turns, *fault.turns), usage=(*before.usage, *fault.usage))
