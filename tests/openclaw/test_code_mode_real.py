"""Code mode with the real OpenClaw: it runs the code of scripted models, and the calls of the code are judged."""

from __future__ import annotations

import asyncio
import json
import re
from typing import Any

import pytest

from pytest_openclaw.judging.judge import judge
from pytest_openclaw.providers.openclaw_agent import OpenClawAgent
from pytest_openclaw.types.protocols import ProviderSetup
from pytest_openclaw.types.replies import Reply
from pytest_openclaw.types.requests import Request
from pytest_openclaw.types.surface import LOOKUP_TURNS
from pytest_openclaw.types.targets import OPENCLAW_CODE
from pytest_openclaw.types.worlds import World
from tests.openclaw.model_server import ScriptedModel
from tests.openclaw.real import RealOpenClaw
from tests.openclaw.test_code_mode import NO_CALL, code, prompt

pytestmark = [pytest.mark.openclaw_cli, pytest.mark.nightly]

READ = 'return await read({path: "notes.txt"})'
WORLD = World(files={"notes.txt": "The code is 4711.\n"}, steps=6)
COPY = {"type": "world", "calls": [{"name": "read"}], "files": {"copy.txt": "The code is 4711.\n"}}


def ask(real_openclaw: RealOpenClaw, asked: Any, *turns: Any) -> Reply:
    """Ask a model that plays these turns."""
    assert asked.listed is not None
    request = Request(
        model="local/tiny",
        prompt=asked.prompt,
        timeout_s=240.0,
        tools=asked.tools,
        listed_tools=asked.listed.tools,
        lookup_turns=0 if asked.world else LOOKUP_TURNS,
        world=asked.world,
        surface=OPENCLAW_CODE,
    )
    with ScriptedModel(*turns, prompt_tokens=3000) as model:
        environ = {
            **real_openclaw.environ,
            "OPENCLAW_AGENT_COMMAND": real_openclaw.command,
            "OPENCLAW_AGENT_BASE_URL": model.url,
        }
        provider = OpenClawAgent(ProviderSetup(name="openclaw_agent", environ=environ))

        async def one() -> Reply:
            try:
                return await provider.ask(request)
            finally:
                await provider.aclose()

        return asyncio.run(one())


@pytest.mark.parametrize(
    ("turns", "outcome", "called"),
    [
        pytest.param([code(READ)], "valid", ["read"], id="right-code"),
        pytest.param(
            [code('const found = await catalog.search("read a file"); return found.length'), code(READ)],
            "valid", ["read"], id="right-after-a-search",
        ),
        pytest.param(
            [code('await Promise.all([write({path: "a", content: "A"}), web_fetch({url: "http://192.0.2.1/"})])')],
            "wrong_tool", ["write", "web_fetch"], id="other-tools-side-by-side",
        ),
        pytest.param([code('await read({pth: "notes.txt"})')], "bad_arguments", ["read"], id="wrong-arguments"),
        pytest.param(
            [code("throw new Error('boom')"), code("nonexistent()"), "I cannot."], "no_call", [], id="code-that-throws"
        ),
        pytest.param([[("read", '{"path": "notes.txt"}')]], "unknown_tool", ["read"], id="a-tool-that-is-not-sent"),
    ],
)  # fmt: skip
def test_a_question_is_judged_by_the_calls_of_the_code(
    real_openclaw: RealOpenClaw, turns: list[Any], outcome: str, called: list[str]
) -> None:
    """The calls are recorded before OpenClaw checks them, and none is carried out."""
    asked = prompt()

    judgment = judge(asked, ask(real_openclaw, asked, *turns))

    assert judgment.tool_outcome == outcome
    assert [call.call.name for call in judgment.reply.dispatched] == called


def test_code_that_calls_nothing_is_no_call(real_openclaw: RealOpenClaw) -> None:
    """It computes, waits and answers."""
    asked = prompt(NO_CALL)

    reply = ask(real_openclaw, asked, code("return 6 * 7"), "42.")

    assert (judge(asked, reply).tool_outcome, reply.text) == ("restrained", "42.")
    assert '"value":42' in reply.turns[0].results[0]


def wait_for_it(body: Any) -> list[tuple[str, str]]:
    """A turn that resumes the run of code that the request's last result names."""
    (result,) = re.findall(r"cm_[0-9a-f-]{36}", json.dumps(body["messages"]))
    return [("wait", json.dumps({"runId": result}))]


def test_code_works_in_a_world(real_openclaw: RealOpenClaw) -> None:
    """Code that yields and is resumed, a command of the world's shell, and an error of code: all are played."""
    asked = prompt(COPY, WORLD)
    copying = (
        'const note = await read({path: "notes.txt"}); await yield_control(); '
        'await write({path: "copy.txt", content: note.content}); return "copied"'
    )
    turns = [
        code("throw new Error('boom')"),
        code(copying),
        wait_for_it,
        code('return await exec({command: "cat copy.txt"})'),
        "Copied.",
    ]
    reply = ask(real_openclaw, asked, *turns)

    assert reply.world is not None
    assert reply.world.changed == ("copy.txt",)
    assert reply.world.ran == ("cat copy.txt",)
    made = [[(call.name, call.in_code) for call in turn.calls] for turn in reply.turns]
    assert made == [
        [("exec", False)],
        [("exec", False), ("read", True)],
        [("wait", False), ("write", True)],
        [("exec", False), ("exec", True)],
        [],
    ]
    assert "4711" in reply.turns[3].results[1]
    assert judge(asked, reply).tool_outcome == "valid"
