"""What the real OpenClaw sends a model that waited for a child, and what our loop sends."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest

from pytest_openclaw.asking.exchanges import hold_exchange
from pytest_openclaw.openclaw.catalog import load_catalogue
from pytest_openclaw.values.replies import CallResult, Reply, Timing
from pytest_openclaw.values.requests import Request
from pytest_openclaw.values.tool_calls import ToolCall
from pytest_openclaw.values.worlds import Answer, World
from tests.openclaw.model_server import ScriptedModel
from tests.openclaw.real import RealOpenClaw, run_over_gateway

pytestmark = [pytest.mark.openclaw_cli, pytest.mark.nightly]

TASK, NOTE = "Count the crates.", "Write the number into crates.txt."
SPAWN = ("sessions_spawn", json.dumps({"task": TASK}))
YIELD = ("sessions_yield", json.dumps({"message": NOTE}))


class Parent:
    """Plays a parent that waits for its child; the child is the one whose task it is."""

    def __init__(self) -> None:
        self.received: list[Sequence[dict[str, Any]]] = []

    def __call__(self, body: dict[str, Any]) -> Any:
        """Return the turn for a request."""
        if "Go on." not in json.dumps(body["messages"]):
            return "There are 42."
        self.received.append(body["messages"])
        return ([SPAWN], [YIELD], "Done.")[min(len(self.received), 3) - 1]


def _ours() -> list[str]:
    """The user's messages of our loop's last request."""
    asked: list[Request] = []
    steps = [Reply(tool_calls=(ToolCall(name=name, arguments=given),)) for name, given in (SPAWN, YIELD)]

    async def ask(request: Request) -> CallResult:
        asked.append(request)
        timing = Timing(started_at_ms=0, ended_at_ms=1, e2e_ms=1.0)
        return CallResult(result=[*steps, Reply(text="Done.")][len(asked) - 1], timing=timing)

    known = load_catalogue().tools
    accepted = Answer(tool="sessions_spawn", result='{"status": "accepted"}')
    request = Request(model="m", prompt="Go on.", tools=(known["sessions_spawn"], known["sessions_yield"]))
    request = replace(request, world=World(answers=(accepted,)), turns=("There are 42.",))
    asyncio.run(hold_exchange(request, ask))
    return [turn.user for turn in asked[-1].history if turn.user]


def test_the_note_of_a_yield_comes_before_the_childs_result(real_openclaw: RealOpenClaw) -> None:
    """The model's own words, a blank line, and in brackets why its turn had ended; then what it waited for."""
    parent = Parent()
    with ScriptedModel(parent, prompt_tokens=3000) as model:
        run_over_gateway(
            real_openclaw,
            model.url,
            "Go on.",
            until=lambda: len(parent.received) == 3,
            tools={"profile": "coding", "toolSearch": False},
        )

    last = parent.received[-1]
    place = next(
        n for n, message in enumerate(last) if NOTE in json.dumps(message) and message["role"] == "user"
    )
    yielded, result, noted, child = last[place - 2 : place + 2]
    assert yielded["tool_calls"][0]["function"]["name"] == "sessions_yield"
    assert json.loads(result["content"]) == {"status": "yielded"}
    assert "There are 42." in json.dumps(child)
    theirs, (ours, message) = _text(noted), _ours()
    assert message == "There are 42."
    for text in (theirs, ours):
        own, why = text.split("\n\n")
        assert own == NOTE
        assert why.startswith("[Context: ")
        assert "sessions_yield" in why
        assert why.endswith("]")
    assert theirs != ours


def _text(message: dict[str, Any]) -> str:
    content = message["content"]
    return content if isinstance(content, str) else "".join(part["text"] for part in content)
