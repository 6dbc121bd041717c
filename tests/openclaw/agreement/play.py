"""Plays a case, in our own loop and in the real agent, with the same scripted model."""

from __future__ import annotations

import asyncio

from pytest_openclaw.asking.attempt import ask_once
from pytest_openclaw.asking.exchanges import hold_exchange
from pytest_openclaw.providers.ollama_openai import OllamaOpenAI
from pytest_openclaw.providers.openclaw_agent import OpenClawAgent
from pytest_openclaw.tools.catalogue import CALL
from pytest_openclaw.tools.world.outbox import MESSAGE
from pytest_openclaw.types.faults import CallFailed
from pytest_openclaw.types.protocols import Provider, ProviderSetup
from pytest_openclaw.types.replies import CallResult, Fault, Reply, Turn
from pytest_openclaw.types.requests import Request
from pytest_openclaw.types.tool_calls import ToolCall
from pytest_openclaw.types.worlds import WorldState
from tests.openclaw.agreement.cases import Case
from tests.openclaw.agreement.outcomes import Outcome, outcome
from tests.openclaw.model_server import ScriptedModel
from tests.openclaw.real import RealOpenClaw, run_over_gateway
from tests.openclaw.telegram import TOKEN, Telegram

PATIENCE_S = 180.0
MODEL = "scripted"
# So many that no request looks truncated.
TOKENS = 3000


def play_ours(case: Case) -> Outcome:
    """Play a case in our own loop, over HTTP."""

    async def ask(url: str) -> Reply | Fault:
        provider = OllamaOpenAI(ProviderSetup(name="ours", environ={}, base_url=url))
        try:
            ending = await hold_exchange(_request(case, MODEL), lambda one: _attempt(provider, one))
        finally:
            await provider.aclose()
        return ending.result

    with ScriptedModel(*case.turns, pause_s=0, prompt_tokens=TOKENS) as model:
        return outcome(case.prompt, asyncio.run(ask(model.url)))


def play_real(case: Case, openclaw: RealOpenClaw) -> Outcome:
    """Play a case in the real agent."""
    if MESSAGE in {tool.name for tool in case.prompt.tools or ()}:
        return _play_over_gateway(case, openclaw)

    async def ask(url: str) -> Reply | Fault:
        own = {"OPENCLAW_AGENT_COMMAND": openclaw.command, "OPENCLAW_AGENT_BASE_URL": url}
        provider = OpenClawAgent(ProviderSetup(name="openclaw_agent", environ=openclaw.environ | own))
        try:
            return await provider.ask(_request(case, f"local/{MODEL}"))
        except CallFailed as failed:
            return failed.fault
        finally:
            await provider.aclose()

    with ScriptedModel(*case.turns, prompt_tokens=TOKENS) as model:
        return outcome(case.prompt, asyncio.run(ask(model.url)))


def _play_over_gateway(case: Case, openclaw: RealOpenClaw) -> Outcome:
    """Play a case by a turn that the gateway runs: it alone has channels, of which one is on loopback."""
    is_bridged = any(tool.name == CALL for tool in case.prompt.tools or ())
    bridged = {"profile": "full", "toolSearch": {"mode": "tools"}}
    with Telegram() as telegram, ScriptedModel(*case.turns, prompt_tokens=TOKENS) as model:
        channel = {"botToken": TOKEN, "apiRoot": telegram.url, "dmPolicy": "disabled"}
        run_over_gateway(
            openclaw,
            model.url,
            case.prompt.prompt,
            tools=bridged if is_bridged else {"allow": [MESSAGE], "toolSearch": False},
            channels={"telegram": channel},
        )
        return outcome(case.prompt, _reply_of(case, model, telegram))


def _reply_of(case: Case, model: ScriptedModel, telegram: Telegram) -> Reply:
    """Return what the model was sent as an exchange, with what came out at the other end as its world."""
    asked = [[one["content"] for one in body["messages"] if one["role"] == "tool"] for body in model.asked]
    turns = [
        Turn(
            text=said.text,
            calls=tuple(ToolCall(name=name, arguments=arguments) for name, arguments in said.calls),
            results=tuple(after[len(before) :]),
        )
        for said, before, after in zip(case.turns, asked, [*asked[1:], []], strict=False)
    ]
    return Reply(
        text=turns[-1].text,
        tool_calls=tuple(one for turn in turns for one in turn.calls),
        turns=tuple(turns),
        ended_by="answer",
        world=WorldState(
            sent=tuple({"tool": MESSAGE, "target": chat, "message": text} for chat, text in telegram.messages)
        ),
    )


def _request(case: Case, model: str) -> Request:
    prompt = case.prompt
    return Request(
        model=model,
        prompt=prompt.prompt,
        max_output_tokens=prompt.max_output_tokens,
        timeout_s=PATIENCE_S,
        messages=prompt.messages,
        turns=prompt.turns,
        tools=prompt.tools or (),
        world=prompt.world,
    )


async def _attempt(provider: Provider, request: Request) -> CallResult:
    result, timing = await ask_once(provider, request)
    return CallResult(result=result, timing=timing)
