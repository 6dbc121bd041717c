"""A failed cell as text: `pytest --refresh tests/unit/reports` writes `golden/failures.txt` anew."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from pytest_openclaw.openclaw.catalog import load_catalogue
from pytest_openclaw.reports.cells import render_failure
from pytest_openclaw.values.requests import Target
from tests.unit.reports.summaries import missed

GOLDEN = Path(__file__).parent / "golden/failures.txt"
TOOLS = load_catalogue().surface("direct")
TARGET = Target(provider="p", model="m:1b", thinking_level="low")
ASKED = {"prompt": "Say yes.\nNothing else."}
NATIVE = {"tools_offered": 20, "violation": "no"}


def _call(name: str, arguments: str, **more: Any) -> dict[str, Any]:
    return {"id": None, "name": name, "arguments": arguments, **more}


LS = _call("exec", '{"command": "ls"}')


def _render(target: Target = TARGET, prompt: dict[str, Any] = ASKED, **changes: Any) -> str:
    row = missed(target, **{"prompt_id": "P3", "prompt_name": "short_answer", "e2e_ms": 1200, **changes})
    return render_failure(row, prompt, TOOLS if row.tools_offered else None)


def _silent(failure_type: str | None, **changes: Any) -> str:
    return _render(success=False, objective_pass=None, violation=None, failure_type=failure_type, **changes)


def test_failures_are_as_kept(pytestconfig: pytest.Config) -> None:
    """Violation, target, times, prompt, reply and calls; a missing answer in words; exchanges by turn."""
    messages = [{"role": "user", "content": "Is it up?"}, {"role": "assistant", "content": "It is\nup."}]
    turns = (
        {"text": "I'll look.", "calls": [{**LS, "result": "a.txt\nb.txt"}]},
        {"text": "", "calls": [LS]},
    )
    spoken = ({"text": "Yes.", "calls": []}, {"user": "And\nnow?", "text": "No.", "calls": []})
    calls = (_call("read", '{"file": "a"}'), {**LS, "name": "Exec"})
    shown = [
        _render(raw_output="Yes, of course.", finish_reason="length", tool_calls=("read", "exec")),
        *(_silent(failure) for failure in ("empty_response", "content_filter", None)),
        _silent("refusal", raw_output="I will not."),
        _silent("empty_response", raw_output="<think>Well"),
        _silent("http_500", fault_message="HTTP 500"),
        _render(**NATIVE, tool_call_details=calls, tool_outcome="bad_arguments"),
        _render(**NATIVE, turns=turns, ended_by="loop", tool_outcome="wrong_tool"),
        _render(prompt={**ASKED, "messages": messages}, turns=spoken, ended_by="answer"),
    ]
    text = "\n\n".join(shown) + "\n"
    if pytestconfig.getoption("--refresh"):
        GOLDEN.write_text(text, "utf-8")

    assert text == GOLDEN.read_text("utf-8")


def test_long_texts_lose_their_middle() -> None:
    """A reply of megabytes, or an exchange of fifty turns, becomes a page with its beginning and its end."""
    calls = [
        _call("exec", f'{{"command": "run {n} {"x" * 100_000}"}}', result="y" * 9999) for n in range(1, 51)
    ]
    turns = tuple({"text": "", "calls": [call]} for call in calls)

    text = _render(raw_output="BEGIN" + "x" * 3_000_000 + "END")
    exchange = _render(**NATIVE, turns=turns, tool_outcome="no_call")

    assert len(text) < 2500
    assert "BEGIN" in text
    assert text.endswith("END")
    assert len(exchange) < 12_000
    assert "run 1 " in exchange
    assert "38 turns are left out" in exchange
    assert "  turn 50   exec" in exchange


def test_hostile_texts_are_harmless() -> None:
    """Escape sequences in prompt names, models, replies and violations are escaped."""
    hostile = {"prompt_name": "a\x1b[2J", "finish_reason": "\x1b[0m", "tool_calls": ("\x1b",)}
    target = Target(provider="p", model="m\x1b]0;x\x07")

    text = _render(target, raw_output="\x1b[31mred\r", violation="got \x1b[31m", **hostile)

    assert not {"\x1b", "\r"} & set(text)
    assert "\\x1b[31mred" in text
