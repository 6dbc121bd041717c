"""A failed cell as text."""

from __future__ import annotations

from dataclasses import replace

import pytest

from pytest_openclaw.judging.judge import prepare
from pytest_openclaw.judging.text import Noop
from pytest_openclaw.openclaw.catalog import load_catalogue
from pytest_openclaw.reports.cells import render_failure
from pytest_openclaw.values.prompts import Cell, Prompt
from pytest_openclaw.values.replies import Reply, Timing, Turn
from pytest_openclaw.values.requests import Target
from pytest_openclaw.values.tool_calls import ToolCall, ToolOutcome

PROMPT = Prompt(
    suite="s.toml", id="P3", name="short_answer", prompt="Say yes.\nNothing else.", validator=Noop()
)
CELL = Cell(prompt=PROMPT, target=Target(provider="p", model="m:1b", thinking_level="low"))
TIMING = Timing(started_at_ms=0, ended_at_ms=1200, e2e_ms=1200, ttft_ms=81)


def _render(
    reply: Reply | None, what: str | None = None, failure_type: str | None = None, cell: Cell = CELL
) -> str:
    return render_failure(cell, reply, TIMING, what=what, failure_type=failure_type)


def test_it_reads_like_an_assertion() -> None:
    """Violation first, then target, times, prompt, reply and tools."""
    reply = Reply(text="Yes, of course.", finish_reason="length", tool_names=("read", "exec"))

    assert _render(reply, "3 words, at most 1 allowed").splitlines() == [
        "P3 short_answer: 3 words, at most 1 allowed",
        "  target  p/m:1b@low",
        "  times   e2e 1.2 s, TTFT 81 ms, ended by length",
        "  prompt  Say yes.",
        "          Nothing else.",
        "  reply   Yes, of course.",
        "  tools   read, exec",
    ]


@pytest.mark.parametrize(
    ("failure_type", "words"),
    [
        ("empty_response", "the model answered with nothing"),
        ("refusal", "the model refused"),
        ("content_filter", "a content filter cut the answer off"),
        (None, "failed"),
    ],
)
def test_no_answer_is_said_in_words(failure_type: str | None, words: str) -> None:
    """A missing answer is described in words, not by a code."""
    assert _render(Reply(), failure_type=failure_type).startswith(f"P3 short_answer: {words}\n")


def test_a_refusal_is_shown() -> None:
    """The model's words of refusal are in the place of its reply."""
    assert "  reply   I will not." in _render(Reply(refusal="I will not."), failure_type="refusal")


def test_thinking_is_shown_if_it_is_all_there_is() -> None:
    """A model that only thought is not shown as if it had sent nothing."""
    assert "  reply   <think>Well" in _render(Reply(raw="<think>Well"), failure_type="empty_response")


def test_long_texts_lose_their_middle() -> None:
    """A reply of megabytes becomes a page with its beginning and its end."""
    text = _render(Reply(text="BEGIN" + "x" * 3_000_000 + "END"), "wrong")

    assert len(text) < 2500
    assert "BEGIN" in text
    assert text.endswith("END")


def test_hostile_texts_are_harmless() -> None:
    """Escape sequences in prompt names, models, replies and violations are escaped."""
    cell = replace(
        CELL, prompt=replace(PROMPT, name="a\x1b[2J"), target=Target(provider="p", model="m\x1b]0;x\x07")
    )
    reply = Reply(text="\x1b[31mred\r", finish_reason="\x1b[0m", tool_names=("\x1b",))

    text = _render(reply, "got \x1b[31m", cell=cell)

    assert "\x1b" not in text
    assert "\r" not in text
    assert "\\x1b[31mred" in text


def _native(reply: Reply, tool_outcome: ToolOutcome) -> list[str]:
    cell = replace(CELL, prompt=replace(PROMPT, tools=load_catalogue().surface("direct")))
    prepared = prepare(cell.prompt, reply)
    text = render_failure(cell, prepared, TIMING, what="no", failure_type=None, tool_outcome=tool_outcome)
    return text.splitlines()


def test_native_calls_are_shown_with_openclaws_answers() -> None:
    """Each call has its arguments and its error, and the outcome is described in words."""
    refused = ToolCall(name="read", arguments='{"file": "a"}')

    lines = _native(
        Reply(tool_calls=(refused, ToolCall(name="Exec", arguments='{"command": "ls"}'))), "bad_arguments"
    )

    assert lines[5:] == [
        "  reply",
        '  call    read {"file": "a"}',
        '          -> Validation failed for tool "read":',
        "            - path: must have required properties path",
        "",
        "          Received arguments:",
        "          {",
        '            "file": "a"',
        "          }",
        '  call    Exec {"command": "ls"}',
        "          -> 'Exec' was taken for exec",
        "  outcome bad_arguments: a tool was called with arguments that it does not take, or not those that were due",
    ]


def test_an_exchange_is_shown_turn_by_turn() -> None:
    """Every call is followed by its result, and the end by its reason."""
    ls = ToolCall(name="exec", arguments='{"command": "ls"}')
    turns = (Turn(text="I'll look.", calls=(ls,), results=("a.txt\nb.txt",)), Turn(calls=(ls,)))

    lines = _native(Reply(turns=turns, tool_calls=(ls, ls), ended_by="loop"), "wrong_tool")

    assert lines[5:] == [
        "  turn 1  I'll look.",
        '  turn 1  exec {"command": "ls"}',
        "          -> a.txt",
        "          b.txt",
        '  turn 2  exec {"command": "ls"}',
        "  ended   in a loop: the same call with the same result, again and again",
        "  reply",
        "  outcome wrong_tool: OpenClaw would execute these calls, but they are of other tools than those that were due",
    ]


def test_a_long_exchange_loses_its_middle() -> None:
    """Fifty turns of megabytes become one page, with the first and the last."""
    calls = [
        ToolCall(name="exec", arguments=f'{{"command": "run {n} {"x" * 100_000}"}}') for n in range(1, 51)
    ]
    turns = tuple(Turn(calls=(call,), results=("y" * 100_000,)) for call in calls)

    text = "\n".join(_native(Reply(turns=turns, tool_calls=tuple(calls), ended_by="step_limit"), "no_call"))

    assert len(text) < 12_000
    assert "run 1 " in text
    assert "38 turns are left out" in text
    assert "  turn 50 exec" in text


def test_a_conversation_is_shown() -> None:
    """The last message before the prompt, and what the user and the model said between the turns."""
    before = (Turn(user="Is it up?"), Turn(text="It is\nup."))
    cell = replace(CELL, prompt=replace(PROMPT, messages=before, turns=("And\nnow?",)))
    reply = Reply(
        text="No.", turns=(Turn(text="Yes."), Turn(user="And\nnow?", text="No.")), ended_by="answer"
    )

    lines = _render(reply, "wrong", cell=cell).splitlines()

    first = lines.index("  before  2 earlier, the last (assistant): It is up.")
    assert lines[first + 1 : first + 6] == [
        "  prompt  Say yes.",
        "          Nothing else.",
        "  turn 1  Yes.",
        "  user    And",
        "          now?",
    ]
    assert lines[-1] == "  reply   No."
