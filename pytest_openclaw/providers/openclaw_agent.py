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

import asyncio
import tempfile
from contextlib import contextmanager
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar

from pytest_openclaw.providers.chat_completions import OllamaOpenAI
from pytest_openclaw.providers.ollama_native import OllamaNative
from pytest_openclaw.providers.openai_responses import OpenAIResponses
from pytest_openclaw.providers.openclaw.call import (
    arguments_of,
    environment,
    find_command,
    scratch_folder,
    sections_of,
    why_no_shell,
    why_not_askable,
    write_config,
    write_images,
)
from pytest_openclaw.providers.openclaw.relay import Relay, broken_after
from pytest_openclaw.providers.prices import summed
from pytest_openclaw.providers.processes import Program, ProgramProvider
from pytest_openclaw.util.errors import TargetError
from pytest_openclaw.util.files import write_private
from pytest_openclaw.util.text import valid_text
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
        with scratch_folder(request.world, within=Path(self._kept.name)) as scratch:
            if why := why_no_shell(request, scratch):
                raise CallFailed(faults.cannot_play(name, why))
            relay = Relay(server, model, name=name, request=request, scratch=scratch)
            async with relay.running() as (url, token):
                scratch.connect_shell(url, token)
                entry = {
                    "id": model,
                    "reasoning": request.thinking_level is not None,
                    "input": ["text", "image"] if request.images else ["text"],
                    "maxTokens": request.max_output_tokens,
                }
                sections = sections_of(request, scratch)
                write_config(scratch, provider, entry, url=url, key=token, api=server.api, **sections)
                outcome = await self._converse(request, scratch, relay)
            if isinstance(outcome, Fault):
                raise CallFailed(outcome)
            return replace(outcome, world=await asyncio.to_thread(scratch.state))

    async def aclose(self) -> None:
        """Close connections and folders."""
        for server in self._servers.values():
            await server.aclose()
        if "_kept" in vars(self):
            self._kept.cleanup()

    def _program(self, scratch: Scratch, *arguments: str) -> Program:
        return Program(
            argv=(*find_command(self.setup), *arguments),
            env=environment(scratch, self.setup.environ),
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
        for text in (write_images(request, scratch), *request.turns):
            prompt = in_new_conversation(text)
            session += prompt is not None
            sent = scratch.with_real_paths(prompt or text) if request.world else prompt or text
            write_private(scratch.message, valid_text(sent).encode())
            outcome = await relay.run(self._program(scratch, *arguments_of(request, scratch, session)))
            if isinstance(outcome, Fault):
                return broken_after(runs, outcome)
            if runs:
                turns = [replace(turn, user=text) for turn in outcome.turns[:1]]
                outcome = replace(outcome, turns=(*turns, *outcome.turns[1:]))
            runs.append(outcome)
            if outcome.ended_by != "answer":
                break
        return summed(runs)
