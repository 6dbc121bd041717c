"""Plays a case, by our own loop and by the real agent, against the same scripted model."""

from __future__ import annotations

import asyncio
import shlex
import shutil
from collections.abc import Mapping
from pathlib import Path

from pytest_openclaw.errors import CallFailed
from pytest_openclaw.protocols import Provider, ProviderSetup
from pytest_openclaw.providers.ollama_openai import OllamaOpenAI
from pytest_openclaw.providers.openclaw_agent import OpenClawAgent
from pytest_openclaw.records import Ending, Fault, Reply, Request
from pytest_openclaw.run.attempt import ask_once
from pytest_openclaw.run.exchanges import hold_exchange
from tests.openclaw.agreement.cases import Case
from tests.openclaw.agreement.outcomes import Outcome, outcome
from tests.openclaw.model_server import ScriptedModel

PATIENCE_S = 15.0
MODEL = "scripted"
# So many that no request looks cut.
TOKENS = 3000


def cached(command: tuple[str, ...], folder: Path) -> tuple[str, ...]:
    """Return OpenClaw's command, so that what Node compiles is kept in a folder: each further start takes half."""
    env = shutil.which("env")
    if env is None:
        return command
    own = (f"NODE_COMPILE_CACHE={folder}", "OPENCLAW_PACKAGED_COMPILE_CACHE_RESPAWNED=1")
    return (env, *own, *command)


def play_ours(case: Case) -> Outcome:
    """Play a case by our own loop, asked over HTTP."""

    async def ask(url: str) -> Reply | Fault:
        provider = OllamaOpenAI(ProviderSetup(name="ours", environ={}, base_url=url))
        try:
            ending = await hold_exchange(_request(case, MODEL), lambda one: _attempt(provider, one))
        finally:
            await provider.aclose()
        return ending.result

    with ScriptedModel(*case.turns, pause_s=0, prompt_tokens=TOKENS) as model:
        return outcome(case.prompt, asyncio.run(ask(model.url)))


def play_real(case: Case, command: tuple[str, ...], environ: Mapping[str, str]) -> Outcome:
    """Play a case by the real agent.

    Args:
        case: what is played.
        command: OpenClaw's.
        environ: what PATH is taken from.
    """

    async def ask(url: str) -> Reply | Fault:
        own = {
            "PATH": environ["PATH"],
            "OPENCLAW_AGENT_COMMAND": shlex.join(command),
            "OPENCLAW_AGENT_BASE_URL": url,
        }
        provider = OpenClawAgent(ProviderSetup(name="openclaw_agent", environ=own))
        try:
            return await provider.ask(_request(case, f"local/{MODEL}"))
        except CallFailed as failed:
            return failed.fault
        finally:
            await provider.aclose()

    with ScriptedModel(*case.turns, prompt_tokens=TOKENS) as model:
        return outcome(case.prompt, asyncio.run(ask(model.url)))


def _request(case: Case, model: str) -> Request:
    prompt = case.prompt
    return Request(
        model=model,
        prompt=prompt.prompt,
        max_output_tokens=prompt.max_output_tokens,
        timeout_s=PATIENCE_S,
        tools=prompt.tools or (),
        world=prompt.world,
    )


async def _attempt(provider: Provider, request: Request) -> Ending:
    result, timing = await ask_once(provider, request)
    return Ending(result=result, timing=timing)
