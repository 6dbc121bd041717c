"""`openclaw_agent`: models through the installed OpenClaw, one session per request.

OpenClaw is started once for each message of the user. Prompts with earlier messages are refused, because a
session of OpenClaw begins without messages.

A model's name is `provider/model`, as in OpenClaw. `ollama/…` and `openai/…` use the same servers as the
other providers; any other provider is the server at `OPENCLAW_AGENT_BASE_URL`, or in the endpoint's line,
with chat completions. OpenClaw reaches the servers through `openclaw/relay.py`, which records times, calls
and their results; times are the model's, without OpenClaw's start.

OpenClaw writes its own system prompt, and sends no temperature. Tools are OpenClaw's tools with the prompt's
names, with OpenClaw's descriptions. Our plugin adds the tools that OpenClaw does not have.
"""

from __future__ import annotations

import tempfile
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar

from pytest_openclaw.providers import processes
from pytest_openclaw.providers.chat_completions import OllamaOpenAI
from pytest_openclaw.providers.mcp_tools import what_broke
from pytest_openclaw.providers.ollama_native import OllamaNative
from pytest_openclaw.providers.openai_responses import OpenAIResponses
from pytest_openclaw.providers.openclaw.call import (
    Call,
    environment,
    find_command,
    find_envelope,
    read_envelope,
    scratch_folder,
    why_not_askable,
)
from pytest_openclaw.providers.openclaw.relay import Relay, broken_after, reply_of
from pytest_openclaw.providers.prices import summed
from pytest_openclaw.providers.processes import Program, ProgramProvider
from pytest_openclaw.providers.server_errors import shortened
from pytest_openclaw.util.errors import TargetError
from pytest_openclaw.values import faults
from pytest_openclaw.values.faults import CallFailed
from pytest_openclaw.values.replies import Fault
from pytest_openclaw.values.requests import in_new_conversation
from pytest_openclaw.values.worlds import World

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pytest_openclaw.providers.openclaw.workspace import Scratch
    from pytest_openclaw.providers.over_http import OverHttp
    from pytest_openclaw.util.files import JsonObject
    from pytest_openclaw.values.protocols import ProviderSetup
    from pytest_openclaw.values.replies import Reply
    from pytest_openclaw.values.requests import Request

BASE_ENV = "OPENCLAW_AGENT_BASE_URL"
KEY_ENV = "OPENCLAW_AGENT_API_KEY"


class OpenClawAgent(ProgramProvider):
    """Models of any server, called by OpenClaw's own agent."""

    name = "openclaw_agent"
    is_openclaw: ClassVar[bool] = True

    def __init__(self, setup: ProviderSetup) -> None:
        super().__init__(setup)
        self._servers: dict[str, OverHttp] = {}
        self._kept: tempfile.TemporaryDirectory[str] | None = None

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
        with scratch_folder() as scratch:
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
        find_command(self.setup)  # first, because without it nothing else matters
        if why := why_not_askable(request):
            raise CallFailed(faults.cannot_play(name, why))
        provider, model, server = self._way_to(request.model)
        if request.images and not await server.may_see(model):
            raise CallFailed(faults.sees_no_images(name, request.model))
        compiled, calls = self._kept_folders()
        with scratch_folder(request.world, compiled=compiled, within=calls) as scratch:
            call = Call(request, scratch, provider, model, server.api)
            if why := call.why_no_shell:
                raise CallFailed(faults.cannot_play(name, why))
            relay = Relay(server, model, name=name, request=request)
            async with relay.running():
                call.write_files(relay.url, relay.token)
                outcome = await self._converse(call, relay, server)
            if broken := what_broke(scratch.world_file):
                outcome = faults.broke(name, f"the shell of the world: {broken}")
            if isinstance(outcome, Fault):
                raise CallFailed(outcome)
            return replace(outcome, world=scratch.state(request.world)) if request.world else outcome

    async def aclose(self) -> None:
        """Close connections and folders."""
        for server in self._servers.values():
            await server.aclose()
        if self._kept is not None:
            self._kept.cleanup()
            self._kept = None

    def _program(self, scratch: Scratch, *arguments: str) -> Program:
        return Program(
            argv=(*find_command(self.setup), *arguments),
            env=environment(scratch, self.setup.environ),
            cwd=scratch.workspace,
        )

    def _kept_folders(self) -> tuple[Path, Path]:
        """Return the folder of Node's compile cache, and the parent of the folders of calls.

        OpenClaw's system prompt names the folders of a call. If they differed, a server's prompt cache would
        end at the first name, and the server would read most of the prompt again for each call.
        """
        if self._kept is None:
            self._kept = tempfile.TemporaryDirectory(prefix="openclaw-", ignore_cleanup_errors=True)
        folders = Path(self._kept.name) / "compiled", Path(self._kept.name) / "calls"
        for folder in folders:
            folder.mkdir(exist_ok=True)
        return folders

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

    async def _converse(self, call: Call, relay: Relay, server: OverHttp) -> Reply | Fault:
        """Start OpenClaw once for each message of the user, until a run ends without an answer."""
        runs: list[Reply] = []
        for text in (call.write_images(), *call.request.turns):
            relay.begin_run()
            if (prompt := in_new_conversation(text)) is not None:
                call = replace(call, session=call.session + 1)
            call.write_message(prompt or text)
            outcome = await self._run(call, relay, server.address.base_url)
            if isinstance(outcome, Fault):
                return broken_after(runs, outcome)
            if runs:
                turns = [replace(turn, user=text) for turn in outcome.turns[:1]]
                outcome = replace(outcome, turns=(*turns, *outcome.turns[1:]))
            runs.append(outcome)
            if outcome.ended_by != "answer":
                break
        return summed(runs)

    async def _run(self, call: Call, relay: Relay, where: str) -> Reply | Fault:
        name, run, request = self.setup.name, relay.run, call.request
        plain = call.scratch.with_world_paths if request.world else str
        n_turns = request.world.steps if request.world else 1 + request.lookup_turns
        program = self._program(call.scratch, *call.arguments())
        printed = await processes.run(name, program, within_s=request.timeout_s * n_turns, until=run.over)
        if run.broke is not None:
            raise run.broke
        if run.fault is not None:  # models of another server may still be available
            return replace(run.fault, scope="target" if run.fault.scope == "endpoint" else run.fault.scope)
        if printed.timed_out:
            return faults.timed_out(name, request.timeout_s, run.steps[-1].answer.raw() if run.steps else "")
        if run.over.is_set():
            return reply_of(run, None, request, plain=plain)
        envelope = find_envelope(printed.stdout)
        if envelope is None:
            words = f": {shortened(printed.stderr)}" if printed.stderr else ""
            how = f" without its JSON{words}"
            return faults.program_ended(name, "OpenClaw", printed.exit_status, how)
        result = read_envelope(envelope, request, name=name, where=where)
        if isinstance(result, Fault):
            return result
        return reply_of(run, result, request, plain=plain)
