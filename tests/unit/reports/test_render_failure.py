"""A failed cell as text: `pytest --refresh tests/unit/reports` writes `golden/failures.txt` anew."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from pytest_openclaw.judging.judge import prepare
from pytest_openclaw.judging.text import Noop
from pytest_openclaw.openclaw.catalog import load_catalogue
from pytest_openclaw.reports.cells import render_failure
from pytest_openclaw.values.prompts import Cell, Prompt
from pytest_openclaw.values.replies import Reply, Timing, Turn
from pytest_openclaw.values.requests import Target
from pytest_openclaw.values.tool_calls import ToolCall, ToolOutcome

GOLDEN = Path(__file__).parent / "golden/failures.txt"
PROMPT = Prompt(
    suite="s.toml", id="P3", name="short_answer", prompt="Say yes.\nNothing else.", validator=Noop()
)
CELL = Cell(prompt=PROMPT, target=Target(provider="p", model="m:1b", thinking_level="low"))
NATIVE = replace(CELL, prompt=replace(PROMPT, tools=load_catalogue().surface("direct")))
TIMING = Timing(started_at_ms=0, ended_at_ms=1200, e2e_ms=1200, ttft_ms=81)
LS = ToolCall(name="exec", arguments='{"command": "ls"}')


def _render(
    reply: Reply | None,
    what: str | None = "wrong",
    failure_type: str | None = None,
    cell: Cell = CELL,
    tool_outcome: ToolOutcome | None = None,
) -> str:
    if reply and cell.prompt.tools is not None:
        reply = prepare(cell.prompt, reply)
    return render_failure(
        cell, reply, TIMING, what=what, failure_type=failure_type, tool_outcome=tool_outcome
    )


def test_failures_are_as_kept(pytestconfig: pytest.Config) -> None:
    """Violation, target, times, prompt, reply and calls; a missing answer in words; exchanges by turn."""
    talk = replace(PROMPT, messages=(Turn(user="Is it up?"), Turn(text="It is\nup.")), turns=("And\nnow?",))
    turns = (Turn(text="I'll look.", calls=(LS,), results=("a.txt\nb.txt",)), Turn(calls=(LS,)))
    spoken = (Turn(text="Yes."), Turn(user="And\nnow?", text="No."))
    refused = ToolCall(name="read", arguments='{"file": "a"}')
    shown = [
        _render(Reply(text="Yes, of course.", finish_reason="length", tool_names=("read", "exec"))),
        *(_render(Reply(), None, failure) for failure in ("empty_response", "content_filter", None)),
        _render(Reply(refusal="I will not."), None, "refusal"),
        _render(Reply(raw="<think>Well"), None, "empty_response"),
        _render(None, "HTTP 500", "http_500"),
        _render(Reply(tool_calls=(refused, replace(LS, name="Exec"))), "no", None, NATIVE, "bad_arguments"),
        _render(Reply(turns=turns, tool_calls=(LS, LS), ended_by="loop"), "no", None, NATIVE, "wrong_tool"),
        _render(Reply(text="No.", turns=spoken, ended_by="answer"), cell=replace(CELL, prompt=talk)),
    ]
    text = "\n\n".join(shown) + "\n"
    if pytestconfig.getoption("--refresh"):
        GOLDEN.write_text(text, "utf-8")

    assert text == GOLDEN.read_text("utf-8")


def test_long_texts_lose_their_middle() -> None:
    """A reply of megabytes, or an exchange of fifty turns, becomes a page with its beginning and its end."""
    calls = [replace(LS, arguments=f'{{"command": "run {n} {"x" * 100_000}"}}') for n in range(1, 51)]
    turns = tuple(Turn(calls=(call,), results=("y" * 100_000,)) for call in calls)

    text = _render(Reply(text="BEGIN" + "x" * 3_000_000 + "END"))
    exchange = _render(Reply(turns=turns, tool_calls=tuple(calls)), cell=NATIVE, tool_outcome="no_call")

    assert len(text) < 2500
    assert "BEGIN" in text
    assert text.endswith("END")
    assert len(exchange) < 12_000
    assert "run 1 " in exchange
    assert "38 turns are left out" in exchange
    assert "  turn 50 exec" in exchange


def test_hostile_texts_are_harmless() -> None:
    """Escape sequences in prompt names, models, replies and violations are escaped."""
    cell = replace(
        CELL, prompt=replace(PROMPT, name="a\x1b[2J"), target=Target(provider="p", model="m\x1b]0;x\x07")
    )
    reply = Reply(text="\x1b[31mred\r", finish_reason="\x1b[0m", tool_names=("\x1b",))

    text = _render(reply, "got \x1b[31m", cell=cell)

    assert not {"\x1b", "\r"} & set(text)
    assert "\\x1b[31mred" in text
