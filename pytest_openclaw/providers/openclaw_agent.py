"""`openclaw_agent`: models through the installed OpenClaw, one session per request.

OpenClaw is started once for each message of the user. Prompts with earlier messages are refused, because a
session of OpenClaw begins without messages.

A model's name is `provider/model`, as in OpenClaw. `ollama/…` and `openai/…` use the same servers as the
other providers; any other provider is the server at `OPENCLAW_AGENT_BASE_URL`, or in the endpoint's line,
with chat completions. OpenClaw reaches the servers through our relay, a server on loopback, which records the
times and arguments that OpenClaw's own report lacks, with the same readers as the other providers. OpenClaw
never receives the key, only a token for this call.

OpenClaw writes its own system prompt, and sends no temperature. Tools are OpenClaw's tools with the prompt's
names, with OpenClaw's descriptions. Our plugin adds the tools that OpenClaw does not have.
"""

from __future__ import annotations

import asyncio
import json
import tempfile
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager
from dataclasses import asdict, dataclass, replace
from functools import cached_property, partial
from pathlib import Path
from typing import Any, ClassVar

from pytest_openclaw.openclaw.dispatch import dispatch, is_forgotten, promoted_calls
from pytest_openclaw.openclaw.recovery import at_last_step, is_broken, is_given_up
from pytest_openclaw.openclaw.thinking import strip_thinking
from pytest_openclaw.providers import processes
from pytest_openclaw.providers.answer import Answer
from pytest_openclaw.providers.chat_completions import OllamaOpenAI
from pytest_openclaw.providers.loopback import Outgoing, listening
from pytest_openclaw.providers.ollama_native import OllamaNative
from pytest_openclaw.providers.openai_responses import OpenAIResponses
from pytest_openclaw.providers.openclaw import call as openclaw
from pytest_openclaw.providers.openclaw.call import Scratch
from pytest_openclaw.providers.over_http import OverHttp
from pytest_openclaw.providers.prices import summed
from pytest_openclaw.providers.processes import Program, ProgramProvider
from pytest_openclaw.providers.server_errors import shortened
from pytest_openclaw.providers.stream import AnswerBody
from pytest_openclaw.providers.wire import objects_in, text_in
from pytest_openclaw.util.bounded import in_thread
from pytest_openclaw.util.errors import OpenClawError, TargetError
from pytest_openclaw.util.files import JsonObject, write_private
from pytest_openclaw.util.text import counted, valid_text
from pytest_openclaw.values import faults
from pytest_openclaw.values.faults import CallFailed
from pytest_openclaw.values.protocols import ProviderSetup
from pytest_openclaw.values.replies import EndedBy, Fault, Reply, Turn
from pytest_openclaw.values.requests import LISTED, Request, in_new_conversation
from pytest_openclaw.values.tool_calls import Tool
from pytest_openclaw.values.worlds import World

BASE_ENV = "OPENCLAW_AGENT_BASE_URL"
KEY_ENV = "OPENCLAW_AGENT_API_KEY"


class OpenClawAgent(ProgramProvider):
    """Models of any server, called by OpenClaw's own agent."""

    name = "openclaw_agent"
    is_openclaw: ClassVar[bool] = True

    def __init__(self, setup: ProviderSetup) -> None:
        super().__init__(setup)
        self._servers: dict[str, OverHttp] = {}

    @property
    def is_local(self) -> bool:
        """Always true: OpenClaw itself runs here, and uses a core for six seconds or more of each call."""
        return True

    @property
    def secrets(self) -> tuple[str, ...]:
        """The keys of all servers that OpenClaw may use."""
        environ = self.setup.environ
        names = (KEY_ENV, "OPENAI_API_KEY", "OLLAMA_API_KEY", self.setup.key_env)
        keys = tuple(key for name in names if name and (key := environ.get(name, "").strip()))
        return keys + tuple(secret for server in self._servers.values() for secret in server.secrets)

    def describe(self) -> JsonObject:
        """The server for models of other providers."""
        key_env = self.setup.key_env or KEY_ENV
        return {"base_url": self.setup.base_url, "base_env": BASE_ENV, "key_env": key_env}

    @contextmanager
    def prepared(self, *arguments: str) -> Iterator[Program]:
        """Return OpenClaw with these arguments, in folders of its own."""
        with openclaw.scratch_folder() as scratch:
            yield self._program(scratch, *arguments)

    async def fingerprint(self, model: str) -> JsonObject:
        """Return the version that OpenClaw prints, and the server's address."""
        *_, server = self._way_to(model)
        own = await super().fingerprint(model)
        return {**own, "api": server.api, "base_url": server.address.base_url}

    async def ask(self, request: Request) -> Reply:
        """Run OpenClaw once, in its own folders, and record its exchange with the model.

        Raises:
            CallFailed: there is no reply.
        """
        name = self.setup.name
        if request.turns and request.world is None:
            request = replace(request, world=World())
        openclaw.find_command(self.setup)  # first, because without it nothing else matters
        if why := openclaw.why_not_askable(request):
            raise CallFailed(faults.cannot_play(name, why))
        provider, model, server = self._way_to(request.model)
        if request.images and not await server.may_see(model):
            raise CallFailed(faults.sees_no_images(name, request.model))
        with openclaw.scratch_folder(request.world, within=Path(self._kept.name)) as scratch:
            if why := openclaw.why_no_shell(request, scratch):
                raise CallFailed(faults.cannot_play(name, why))
            relay = Relay(server, model, name=name, request=request, scratch=scratch)
            async with relay.running() as (url, token):
                scratch.connect_shell(url, token)
                served = {
                    "id": model,
                    "reasoning": request.thinking_level is not None,
                    "input": ["text", "image"] if request.images else ["text"],
                    "maxTokens": request.max_output_tokens,
                }
                where: JsonObject = {"url": url, "key": token, "api": server.api}
                sections = openclaw.sections_of(request, scratch)
                openclaw.write_config(scratch, provider, served, **where, **sections)
                outcome = await self._converse(request, scratch, relay)
            if isinstance(outcome, Fault):
                raise CallFailed(outcome)
            return replace(outcome, world=await in_thread(scratch.state))

    async def aclose(self) -> None:
        """Close connections and folders."""
        for server in self._servers.values():
            await server.aclose()
        if "_kept" in vars(self):
            self._kept.cleanup()

    def _program(self, scratch: Scratch, *arguments: str) -> Program:
        return Program(
            argv=(*openclaw.find_command(self.setup), *arguments),
            env=openclaw.environment(scratch, self.setup.environ),
            cwd=scratch.workspace,
        )

    @cached_property
    def _kept(self) -> tempfile.TemporaryDirectory[str]:
        """The parent of the folders of calls.

        OpenClaw's system prompt names the folders of a call. If they differed, a server's prompt cache would
        end at the first name, and the server would read most of the prompt again for each call.
        """
        return tempfile.TemporaryDirectory(prefix="openclaw-", ignore_cleanup_errors=True)

    def _way_to(self, name: str) -> tuple[str, str, OverHttp]:
        """Return OpenClaw's names of a model's provider and of the model, and the real server."""
        provider, slash, model = name.partition("/")
        if self.setup.base_url is not None:
            provider, model = "endpoint", name
        elif not (slash and model):
            why = f"there is no OpenClaw provider in {name!r}. Name it, for example ollama/{name}."
            raise CallFailed(faults.cannot_play(self.setup.name, why))
        if provider not in self._servers:
            try:
                self._servers[provider] = self._server_of(provider)
            except TargetError as error:
                raise CallFailed(faults.cannot_play(self.setup.name, str(error))) from error
        return provider, model, self._servers[provider]

    def _server_of(self, provider: str) -> OverHttp:
        own = self.setup
        if own.base_url is None and provider == "ollama":
            return OllamaNative(replace(own, name=OllamaNative.name, options={}))
        if own.base_url is None and provider == "openai":
            return OpenAIResponses(replace(own, name=OpenAIResponses.name))
        base = own.base_url or own.environ.get(BASE_ENV, "").strip()
        if not base:
            raise TargetError(f"it is not known where {provider}'s models are. Set {BASE_ENV}.")
        key_env = own.key_env or (KEY_ENV if own.environ.get(KEY_ENV) else None)
        return OllamaOpenAI(replace(own, base_url=base, key_env=key_env))

    async def _converse(self, request: Request, scratch: Scratch, relay: Relay) -> Reply | Fault:
        """Start OpenClaw once for each message of the user, until a run ends without an answer."""
        runs: list[Reply] = []
        session = 0
        for text in (openclaw.write_images(request, scratch), *request.turns):
            prompt = in_new_conversation(text)
            session += prompt is not None
            sent = scratch.with_real_paths(prompt or text) if request.world else prompt or text
            write_private(scratch.message, valid_text(sent).encode())
            arguments = openclaw.arguments_of(request, scratch, session)
            outcome = await relay.run(self._program(scratch, *arguments))
            if isinstance(outcome, Fault):
                return broken_after(runs, outcome)
            if runs:
                turns = [replace(turn, user=text) for turn in outcome.turns[:1]]
                outcome = replace(outcome, turns=(*turns, *outcome.turns[1:]))
            runs.append(outcome)
            if outcome.ended_by != "answer":
                break
        return summed(runs)


# --- the relay ----------------------------------------------------------------------------------


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
        async with listening(self._answer) as url_and_token:
            try:
                yield url_and_token
            finally:
                await self._client.aclose()

    async def run(self, program: Program) -> Reply | Fault:
        """Run OpenClaw once, and return its exchange with the model as one reply."""
        self._begin_run()
        name, request = self._client.name, self._request
        n_turns = (request.world.steps if request.world else 1) + request.lookup_turns
        printed = await processes.run(name, program, within_s=request.timeout_s * n_turns, until=self.over)
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
        if (envelope := openclaw.find_envelope(printed.stdout)) is None:
            words = f": {shortened(printed.stderr)}" if printed.stderr else ""
            return faults.program_ended(name, "OpenClaw", printed.exit_status, f" without its JSON{words}")
        result = openclaw.read_envelope(envelope, request, name=name)
        if isinstance(result, Fault):
            return result
        return reply_of(self.steps, result, request, plain=plain)

    async def _answer(self, path: str, body: JsonObject | None) -> Outgoing:
        if path not in (self._server.path, openclaw.SHELL_PATH):
            return Outgoing(404)
        name = self._client.name
        if body is None:
            return self._end(faults.cli_failed(name, "OpenClaw sent a request that is not JSON."), 400)
        try:
            if path == openclaw.SHELL_PATH:
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
        folder, words = text_in(body.get("folder")), body.get("arguments")
        arguments = [*map(text_in, words)] if isinstance(words, list) else []
        try:
            ran = await in_thread(lambda: self._scratch.play(folder, arguments))
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
        missing = [tool.name for tool in openclaw.own_tools(request) if tool.name not in known]
        if request.surface == LISTED:
            offered = _names_of(body.get("tools"))
            missing = sorted(openclaw.offered_tools(request).difference(offered))
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
        if request.world is None and not all(map(openclaw.is_lookup, answer.reply().tool_calls)):
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
        if not all(map(openclaw.is_lookup, last)):
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
