"""Plays a case, in our own loop and in the real agent, with the same scripted model."""

import json
import re
import tempfile
from dataclasses import replace
from pathlib import Path

from pytest_openclaw.openclaw.recovery import MESSAGE
from pytest_openclaw.providers.chat_completions import OllamaOpenAI
from pytest_openclaw.values.protocols import ProviderSetup
from pytest_openclaw.values.replies import Reply, Turn
from pytest_openclaw.values.requests import DEFAULT_CONTEXT_TOKENS
from pytest_openclaw.values.tool_calls import ToolCall
from pytest_openclaw.values.worlds import WorldState
from tests.openclaw.agreement.outcomes import outcome
from tests.openclaw.agreement.results import SITE
from tests.openclaw.asking import agent, ask
from tests.openclaw.model_server import ScriptedModel
from tests.openclaw.real import run_agent, run_over_gateway
from tests.openclaw.site import Site
from tests.openclaw.telegram import TOKEN, Telegram
from tests.providers.servers.apis import play

PATIENCE_S = 180.0
MODEL = "scripted"
# So many that no request looks truncated.
TOKENS = 30_000
_KEPT_PAGE = re.compile(r"/tmp/openclaw-web-fetch-[0-9a-f]{16}\.log")


def play_ours(case):
    with ScriptedModel(*case.turns, pause_s=0, prompt_tokens=TOKENS) as model:
        provider = OllamaOpenAI(ProviderSetup(name="ours", environ={}, base_url=model.url))
        return outcome(case.prompt, play(provider, **_request(case), model=MODEL))


def play_real(case, openclaw):
    if MESSAGE in {tool.name for tool in case.prompt.tools or ()}:
        return _play_over_gateway(case, openclaw)
    if case.prompt.world and case.prompt.world.pages:
        return _play_with_pages(case, openclaw)

    with ScriptedModel(*case.turns, prompt_tokens=TOKENS) as model:
        provider = agent(openclaw.command, model.url, **openclaw.environ)
        return outcome(case.prompt, ask(provider, **_request(case), model=f"local/{MODEL}"))


def _play_over_gateway(case, openclaw):
    """Play a case by a turn that the gateway runs: only it has channels, one of them on loopback."""
    with Telegram() as telegram, ScriptedModel(*case.turns, prompt_tokens=TOKENS) as model:
        channel = {"botToken": TOKEN, "apiRoot": telegram.origin, "dmPolicy": "disabled"}
        run_over_gateway(
            openclaw,
            model.url,
            case.prompt.prompt,
            tools={"allow": [MESSAGE], "toolSearch": False},
            channels={"telegram": channel},
        )
        sent = ({"tool": MESSAGE, "target": chat, "message": text} for chat, text in telegram.messages)
        return outcome(case.prompt, _reply_of(case, model, WorldState(sent=tuple(sent))))


def _play_with_pages(case, openclaw):
    pages = {url.removeprefix(SITE): text for url, text in case.prompt.world.pages.items()}
    tools = {
        "allow": [tool.name for tool in case.prompt.tools or ()],
        "toolSearch": False,
        "web": {"fetch": {"ssrfPolicy": {"dangerouslyAllowPrivateNetwork": True}}},
    }
    with (
        Site(pages) as site,
        ScriptedModel(*_turns(case, site.origin), prompt_tokens=TOKENS) as model,
        tempfile.TemporaryDirectory() as folder,
    ):
        place = Path(folder).resolve()
        run_agent(openclaw, place, model.url, context_tokens=DEFAULT_CONTEXT_TOKENS, tools=tools)
        for path in {*_KEPT_PAGE.findall(json.dumps(model.asked))}:
            Path(path).unlink(missing_ok=True)
        return outcome(case.prompt, _reply_of(case, model, WorldState(files={})))


def _turns(case, site):
    return [
        replace(said, calls=tuple((name, text.replace(SITE, site)) for name, text in said.calls))
        for said in case.turns
    ]


def _reply_of(case, model, world):
    """Return the messages to the model as an exchange that has ended with this world."""
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
        world=world,
    )


def _request(case):
    fields = ("prompt", "max_output_tokens", "messages", "turns", "world")
    asked = {name: getattr(case.prompt, name) for name in fields}
    return {**asked, "timeout_s": PATIENCE_S, "tools": case.prompt.tools or ()}
