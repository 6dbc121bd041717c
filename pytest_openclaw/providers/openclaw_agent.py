"""`openclaw_agent`: models through the installed OpenClaw, one `agent exec` per request.

A request with further messages of the user is a session, with one start of OpenClaw for each of them. Earlier
messages are refused: a session of OpenClaw has only what has happened in it.

A model's name is `provider/model`, as in OpenClaw. `ollama/…` and `openai/…` use the same servers as the
other providers; any other provider is the server at `OPENCLAW_AGENT_BASE_URL`, or of the endpoint's line,
with chat completions. OpenClaw reaches them through `openclaw/relay.py`, which records times, calls and their
results; times are the model's, without OpenClaw's start.

OpenClaw writes its own system prompt, and sends no temperature. Tools are OpenClaw's tools with the prompt's
names, with OpenClaw's descriptions. Those that it does not have are added by `openclaw/agent_plugin.py`.
"""

from __future__ import annotations

import asyncio
import tempfile
import time
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar

from pytest_openclaw.providers import processes
from pytest_openclaw.providers.mcp_tools import what_broke
from pytest_openclaw.providers.ollama_native import OllamaNative
from pytest_openclaw.providers.ollama_openai import OllamaOpenAI
from pytest_openclaw.providers.openai_responses import OpenAIResponses
from pytest_openclaw.providers.openclaw.agent_plugin import lay_out_plugin
from pytest_openclaw.providers.openclaw.call import (
    ModelRoute,
    arguments,
    config_of,
    environment,
    find_command,
    is_session,
    may_pass,
    most_requests,
    own_tools,
    scratch_folder,
    why_no_shell,
    why_not_askable,
    with_pictures,
    write_config,
    write_message,
)
from pytest_openclaw.providers.openclaw.envelope import CalledModel, find_envelope, read_envelope
from pytest_openclaw.providers.openclaw.recorded_reply import (
    answering,
    broken_after,
    joined,
    reply_of,
    with_world_paths,
)
from pytest_openclaw.providers.processes import Program, Running
from pytest_openclaw.providers.wire_errors import shortened
from pytest_openclaw.util.errors import TargetError
from pytest_openclaw.util.redact import Redactor
from pytest_openclaw.util.text import valid_text
from pytest_openclaw.values import faults
from pytest_openclaw.values.faults import CallFailed
from pytest_openclaw.values.protocols import Provider, ProviderSetup
from pytest_openclaw.values.replies import Fault
from pytest_openclaw.values.requests import LISTED
from pytest_openclaw.values.worlds import World

if TYPE_CHECKING:
    from pytest_openclaw.providers.openclaw.call import AgentScratch
    from pytest_openclaw.providers.openclaw.disk import Stage
    from pytest_openclaw.providers.openclaw.relay import Relay
    from pytest_openclaw.providers.over_http import OverHttp
    from pytest_openclaw.util.json_types import JsonObject
    from pytest_openclaw.values.replies import Reply
    from pytest_openclaw.values.requests import Request

BASE_ENV = "OPENCLAW_AGENT_BASE_URL"
KEY_ENV = "OPENCLAW_AGENT_API_KEY"
VERSION_TIMEOUT_S = 60.0


class OpenClawAgent(Provider):
    """Models of any server, called by OpenClaw's own agent."""

    name = "openclaw_agent"
    takes_tools: ClassVar[bool] = True
    takes: ClassVar[frozenset[str]] = frozenset({"images"})
    takes_messages: ClassVar[bool] = True
    plays_worlds: ClassVar[bool] = True
    is_openclaw: ClassVar[bool] = True

    def __init__(self, setup: ProviderSetup) -> None:
        super().__init__(setup)
        self._servers: dict[str, OverHttp] = {}
        self._version: str | None = None
        self._kept: tempfile.TemporaryDirectory[str] | None = None

    @property
    def is_local(self) -> bool:
        """Always true: OpenClaw itself runs here, and uses a core for six seconds or more of each call."""
        return True

    @property
    def secrets(self) -> tuple[str, ...]:
        """The keys of all servers that it may use."""
        environ = self.setup.environ
        names = (KEY_ENV, "OPENAI_API_KEY", "OLLAMA_API_KEY", self.setup.key_env)
        keys = tuple(key for name in names if name and (key := environ.get(name, "").strip()))
        return keys + tuple(secret for server in self._servers.values() for secret in server.secrets)

    def describe(self) -> JsonObject:
        """The server for models of other providers."""
        return {
            "base_url": self.setup.base_url,
            "base_env": BASE_ENV,
            "key_env": self.setup.key_env or KEY_ENV,
        }

    async def models(self) -> tuple[str, ...]:
        """Raise an error: OpenClaw accepts any model."""
        why = f"OpenClaw may be given any model. Name one, for example {self.setup.name}/ollama/qwen3:8b."
        raise CallFailed(faults.cli_failed(self.setup.name, why))

    async def fingerprint(self, model: str) -> JsonObject:
        """Return OpenClaw's version, as it prints it, and the server's address."""
        route, server = self._way_to(model)
        if self._version is None:
            self._version = await self._ask_version()
        facts = {"api": route.api, "base_url": server.address.base_url}
        return {"cli_version": self._version, **facts} if self._version else facts

    async def ask(self, request: Request) -> Reply:
        """Run OpenClaw once, in its own folders, and record its exchange with the model.

        Raises:
            CallFailed: there is no reply.

        """
        # Imported here, because it loads the HTTP library, which only the process that sends requests needs.
        from pytest_openclaw.providers.openclaw.relay import Relay

        if request.turns and request.world is None:
            request = replace(request, world=World())
        command = find_command(self.setup)
        if why := why_not_askable(request):
            raise CallFailed(faults.cannot_play(self.setup.name, why))
        route, server = self._way_to(request.model)
        if request.images and not await server.may_see(route.model):
            raise CallFailed(faults.sees_no_images(self.setup.name, request.model))
        compiled, calls = self._kept_folders()
        with scratch_folder(request.world, compiled=compiled, within=calls) as scratch:
            if why := why_no_shell(request, scratch):
                raise CallFailed(faults.cannot_play(self.setup.name, why))
            own = own_tools(request)
            plugins = lay_out_plugin(scratch.folder / "plugin", own)
            relay = Relay(
                server,
                route.model,
                name=self.setup.name,
                timeout_s=request.timeout_s,
                most_turns=most_requests(request),
                may_pass=may_pass(request),
                n_images=len(request.images),
                own_tools=[tool.name for tool in own],
            )
            async with relay:
                program = Program(
                    argv=(*command, *arguments(request, scratch, route=route)),
                    env=environment(scratch, self.setup.environ, of_session=is_session(request)),
                    cwd=scratch.workspace,
                )
                config = config_of(
                    request, scratch, route=route, url=relay.url, token=relay.token, plugins=plugins
                )
                write_config(scratch, config)
                outcome = await self._hold(program, scratch, relay, request, server)
            if request.world is not None:
                outcome = self._played(outcome, scratch.stage, request.world)
        if isinstance(outcome, Fault):
            message = Redactor.of((*self.secrets, relay.token)).text(outcome.message)
            raise CallFailed(replace(outcome, message=message))
        return outcome

    async def aclose(self) -> None:
        """Close connections and folders."""
        for server in self._servers.values():
            await server.aclose()
        if self._kept is not None:
            self._kept.cleanup()
            self._kept = None

    # --- how ----------------------------------------------------------------------------------

    def _kept_folders(self) -> tuple[Path, Path]:
        """Return the folder of Node's compile cache, and the one in which each call has its own.

        OpenClaw's system prompt names the folders of a call. If they differed, a server's prompt cache would
        end at the first of them, and each call would have to read most of the prompt again.
        """
        if self._kept is None:
            self._kept = tempfile.TemporaryDirectory(prefix="openclaw-", ignore_cleanup_errors=True)
        folders = Path(self._kept.name) / "compiled", Path(self._kept.name) / "calls"
        for folder in folders:
            folder.mkdir(exist_ok=True)
        return folders

    def _way_to(self, name: str) -> tuple[ModelRoute, OverHttp]:
        """Return the route that OpenClaw uses for a model, and the real server."""
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
        server = self._servers[provider]
        api = {"ollama_native": "ollama", "openai_responses": "openai-responses"}.get(server.name)
        return ModelRoute(provider=provider, model=model, api=api or "openai-completions"), server

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

    async def _hold(
        self, program: Program, scratch: AgentScratch, relay: Relay, request: Request, server: OverHttp
    ) -> Reply | Fault:
        """Start OpenClaw once for each message of the user, until a run ends without an answer."""
        runs: list[Reply] = []
        for text in (with_pictures(request, scratch), *request.turns):
            said = scratch.stage.disk.with_real_paths(text) if request.world else text
            program = replace(program, stdin=write_message(scratch, said))
            relay.begin_run()
            outcome = await self._converse(program, relay, request, server)
            if isinstance(outcome, Fault):
                return broken_after(runs, outcome)
            runs.append(answering(outcome, text) if runs else outcome)
            if outcome.ended_by != "answer":
                break
        return joined(runs)

    async def _converse(
        self, program: Program, relay: Relay, request: Request, server: OverHttp
    ) -> Reply | Fault:
        began = time.perf_counter()
        running = await processes.start(self.setup.name, program)
        received = relay.received
        try:
            async with asyncio.timeout(self._patience_s(request)):
                lines = await _lines_until(running, received.over)
                if not received.over.is_set():
                    await running.wait_exit(processes.DRAIN_S)
        except TimeoutError:
            raw = received.exchanges[-1].raw() if received.exchanges else ""
            return faults.timed_out(self.setup.name, request.timeout_s, raw)
        finally:
            await running.stop()
        if received.broke is not None:
            raise received.broke
        if received.fault is not None:  # models of another server may still be available
            scope = "target" if received.fault.scope == "endpoint" else received.fault.scope
            return replace(received.fault, scope=scope)
        wanted = request.tools if request.surface == LISTED else ()
        lacking = [tool.name for tool in wanted if tool.name not in received.offered]
        if received.exchanges and lacking:
            why = f"this OpenClaw does not offer {', '.join(lacking[:3])} without a gateway."
            return faults.cannot_play(self.setup.name, why)
        if received.over.is_set():
            return reply_of(received, None, request, began=began)
        envelope = find_envelope(valid_text(b"\n".join(lines).decode("utf-8", "replace")), running.stderr)
        if envelope is None:
            return self._without_result(running)
        called = CalledModel(
            name=self.setup.name,
            model=request.model,
            where=server.address.base_url,
            timeout_s=request.timeout_s,
        )
        result = read_envelope(envelope, called)
        if isinstance(result, Fault):
            return result
        return reply_of(received, result, request, began=began)

    def _played(self, outcome: Reply | Fault, stage: Stage, world: World) -> Reply | Fault:
        if broken := what_broke(stage.world_file):
            return faults.broke(self.setup.name, f"the shell of the world: {broken}")
        if isinstance(outcome, Fault):
            return outcome
        return replace(with_world_paths(outcome, stage.disk), world=stage.state(world))

    def _patience_s(self, request: Request) -> float:
        return request.timeout_s * (request.world.steps if request.world else 1 + request.lookup_turns)

    def _without_result(self, running: Running) -> Fault:
        words = f": {shortened(running.stderr)}" if running.stderr else ""
        if running.flooded:
            words = f" after {running.flooded}"
        status = running.exit_status
        return faults.program_ended(self.setup.name, "OpenClaw", status, f" without its JSON{words}")

    async def _ask_version(self) -> str:
        with scratch_folder() as scratch:
            program = Program(
                argv=(*find_command(self.setup), "--version"),
                env=environment(scratch, self.setup.environ),
                cwd=scratch.workspace,
            )
            return await processes.first_line(self.setup.name, program, within_s=VERSION_TIMEOUT_S)


async def _lines_until(running: Running, over: asyncio.Event) -> list[bytes]:
    """Return the lines of a program up to its end, or until `over` is set."""
    lines: list[bytes] = []
    tasks = [asyncio.ensure_future(running.read_lines(lines)), asyncio.ensure_future(over.wait())]
    try:
        await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
    return lines
