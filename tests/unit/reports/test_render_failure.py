"""A failed cell as text."""

from __future__ import annotations

from dataclasses import replace

import pytest

from pytest_openclaw.records import Cell, Prompt, Reply, Target, Timing
from pytest_openclaw.reports.failure import render_failure
from pytest_openclaw.validators.text import Noop

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
    """An answer that is none is told in words, not by a code."""
    assert _render(Reply(), failure_type=failure_type).startswith(f"P3 short_answer: {words}\n")


def test_a_refusal_is_shown() -> None:
    """The model's words of refusal stand where its reply would."""
    assert "  reply   I will not." in _render(Reply(refusal="I will not."), failure_type="refusal")


def test_thinking_is_shown_if_it_is_all_there_is() -> None:
    """A model that only thought is not shown as if it had said nothing."""
    assert "  reply   <think>Well" in _render(Reply(raw="<think>Well"), failure_type="empty_response")


def test_without_a_reply_the_prompt_is_still_shown() -> None:
    """A fault that counts as the model's has no reply, and says so by an empty line."""
    lines = _render(None, "stopped", "content_filter").splitlines()

    assert "  prompt  Say yes." in lines
    assert "  reply" in lines


def test_long_texts_lose_their_middle() -> None:
    """A reply of megabytes becomes a page that shows its beginning and its end."""
    text = _render(Reply(text="BEGIN" + "x" * 3_000_000 + "END"), "wrong")

    assert len(text) < 2500
    assert "BEGIN" in text
    assert text.endswith("END")


def test_hostile_texts_are_harmless() -> None:
    """Escape sequences in prompt names, models, replies and violations are spelled out."""
    cell = replace(
        CELL, prompt=replace(PROMPT, name="a\x1b[2J"), target=Target(provider="p", model="m\x1b]0;x\x07")
    )
    reply = Reply(text="\x1b[31mred\r", finish_reason="\x1b[0m", tool_names=("\x1b",))

    text = _render(reply, "got \x1b[31m", cell=cell)

    assert "\x1b" not in text
    assert "\r" not in text
    assert "\\x1b[31mred" in text
