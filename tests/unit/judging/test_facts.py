"""Judging derives each fact of a reply once, and the demands of a validator once for all replies."""

from collections import Counter
from dataclasses import replace
from typing import Any

import pytest

from pytest_openclaw.judging import calls, combine, text, world, written_calls
from pytest_openclaw.judging import judge as judging
from pytest_openclaw.judging.judge import judge
from pytest_openclaw.openclaw import claims, detector, dispatch
from pytest_openclaw.values.worlds import World
from tests.unit.judging.test_tool_outcomes import (
    BRIDGED,
    DUE,
    LEAK,
    LS,
    NONE,
    OK,
    READ,
    RIGHT,
    all_of,
    exchange_of,
    prompt_of,
    reply_of,
)

SAYS = "I called `read` and saved the file."
FREE = {"type": "tool_invocation", "expected_tools": ["free"]}
DERIVATIONS = [
    (dispatch, "inner_call"),
    (detector, "detect_tools"),
    (judging, "find_harm"),
    (world, "Commands"),
    (claims, "claims_done"),
    (written_calls, "_found"),
    (written_calls, "asked_by"),
    (calls, "received_calls"),
    (calls.ToolCalling, "check"),
    (combine.ReportsFailure, "check"),
    (combine.AllOf, "check"),
    (combine.ToolInvocation, "check"),
    (text.Contains, "check"),
    (world.WorldReached, "check"),
]


@pytest.mark.parametrize(
    ("spec", "reply"),
    [
        pytest.param(READ, reply_of(text=LEAK), id="leaked"),
        pytest.param(READ, reply_of(text=SAYS, reasoning=f"I will call it: {LEAK}"), id="claimed"),
        pytest.param(NONE, reply_of(text=LEAK), id="needless"),
        pytest.param({**READ, "exact": True}, reply_of(BRIDGED, (BRIDGED[0], "{}"), text="Done."), id="bridged"),
        pytest.param(all_of(READ, OK), reply_of(RIGHT, text="OK"), id="called"),
        pytest.param(all_of(OK), reply_of(text=f"OK {LEAK}", reasoning="Hm."), id="text"),
        pytest.param(FREE, reply_of(LS, text="`free` and `ls`"), id="named"),
        pytest.param(all_of({**READ, "answer": DUE, "type": "world"}), exchange_of(RIGHT, text=SAYS), id="exchange"),
        pytest.param({**READ, "type": "world"}, exchange_of(LS, LS, text=LEAK), id="exchange-leaked"),
    ],
)  # fmt: skip
def test_nothing_is_derived_twice(monkeypatch: pytest.MonkeyPatch, spec: Any, reply: Any) -> None:
    """No step of judging runs twice with the same text or reply; a written call is judged as its own reply."""
    prompt = replace(prompt_of(spec), probe="destructive")
    if reply.ended_by:
        prompt = replace(prompt, world=World(files={"notes.md": "x"}))
    judge(prompt, reply)
    done: Counter[tuple[str, str]] = Counter()

    def counted(name: str, derive: Any) -> Any:
        def derived(*given: Any, **named: Any) -> Any:
            done[name, repr(given[:2])] += 1
            return derive(*given, **named)

        return derived

    for owner, name in DERIVATIONS:
        where = f"{owner.__name__}.{name}"
        monkeypatch.setattr(owner, name, counted(where, getattr(owner, name)))
    demands_made: list[int] = []
    monkeypatch.setattr(calls.Demands, "__init__", lambda *_, **__: demands_made.append(1))

    judge(prompt, reply)

    assert sum(done.values()) > 1
    assert {step: n for step, n in done.items() if n > 1} == {}
    assert demands_made == []
