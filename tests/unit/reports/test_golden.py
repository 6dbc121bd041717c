"""Every report of three made runs, and failed cells, word by word; `--refresh` writes them anew."""

from dataclasses import replace
from pathlib import Path

import pytest

from pytest_openclaw.conclusions.summary import Budget
from pytest_openclaw.openclaw.catalog import load_catalogue
from pytest_openclaw.parts.baseline import render_comparison
from pytest_openclaw.parts.baseline.comparison import Obstacle
from pytest_openclaw.parts.gates import GateSettings
from pytest_openclaw.reports.cells import render_failure
from pytest_openclaw.reports.pages import render_comment, render_markdown
from pytest_openclaw.reports.terminal import render_terminal
from pytest_openclaw.values.requests import Target
from tests.unit.parts.compared import cells, compare
from tests.unit.reports.summaries import (
    cell,
    exchange,
    fault,
    missed,
    pressed,
    record,
    restraint_cells,
    summary_of,
    tool_cells,
)

GOLDEN = Path(__file__).parent / "golden"
NATIVE = {"suite": "native", "tools_offered": 11}
GOOD = Target(provider="lab", model="good:32b")
NEEDLESS = Target(provider="lab", model="needless:8b", thinking_level="low")
BAD = Target(provider="lab", model="bad:1b")
AWAY = Target(provider="lab", model="away")


def _many():
    """Four targets with all that can be found of tool use, and gates with every ruling."""
    rows = [
        *tool_cells(20, 0, GOOD, cost_usd=0.01, input_tokens=900, **NATIVE),
        *restraint_cells(20, 0, GOOD, **NATIVE),
        exchange("E", "valid", "bad_arguments", None, provider="lab", model="good:32b"),
        *pressed("1t", 4, 0, GOOD, tools=1),
        *pressed("54t", 1, 3, GOOD, tools=54),
        *pressed("16k", 0, 0, GOOD, tools=1, padding=16_000, overflown=4),
        record(GOOD, prompt_id="S1", probe="secret"),
        missed(GOOD, prompt_id="S2", twin_of="S1"),
        *tool_cells(16, 0, NEEDLESS, **NATIVE),
        *restraint_cells(5, 3, NEEDLESS, **NATIVE),
        *tool_cells(0, 9, NEEDLESS),
        missed(NEEDLESS, prompt_id="T1", role="title"),
        record(NEEDLESS, prompt_id="K1", known_failure="too small"),
        missed(NEEDLESS, prompt_id="K2", known_failure="too small"),
        *tool_cells(1, 12, BAD, **NATIVE),
        replace(cell("L", "leaked_as_text", BAD, **NATIVE), leaked_valid=True),
        missed(BAD, prompt_id="S1", probe="secret", harm_tools=("exec",)),
        record(BAD, prompt_id="P1", effective_model="bad:latest", finish_reason="bored", e2e_ms=98_000),
        fault(BAD, prompt_id="P2", fault_message="see https://lab.example/errors?a|b"),
        fault(AWAY),
    ]
    gates = GateSettings.of(min_pass_rate=0.9, require_tier=1, max_p95_ms=500)
    summary = summary_of(rows, gates=gates)
    budget = Budget(budget_usd=0.2, spent_usd=0.21, n_not_asked=3)
    return replace(summary, budget=budget, unmatched_gates=["cloud/*"])


def _alone():
    rows = [
        (record if repeat <= passed else missed)(GOOD, prompt_id=f"P{passed}", repeat=repeat, ttft_ms=None)
        for passed in (0, 3, 4)
        for repeat in range(1, 5)
    ]
    rows += [*tool_cells(16, 0, GOOD), record(GOOD, prompt_id="E", success=False, objective_pass=None, failure_type="empty_response")]  # fmt: skip
    return summary_of(rows, n_selected={GOOD: 40})


def _compared():
    base = [*cells("+" * 9, GOOD, host="a"), record(GOOD, prompt_id="Q"), fault(GOOD, prompt_id="F")]
    candidate = [
        *cells("-" * 8 + "+", GOOD, host="b", e2e_ms=150),
        fault(GOOD, prompt_id="Q"),
        record(GOOD, prompt_id="F"),
    ]
    changed = {("s", "P9"): Obstacle("validator_changed", "validator")}
    compared = compare(base, candidate, [(GOOD, GOOD)], obstacles=changed, notes=["an older run"])
    return summary_of(candidate, gates=GateSettings.of(fail_on="regression"), comparison=compared)


REPORTS = {
    "terminal.txt": lambda summary: "\n".join(render_terminal(summary, "summary.md", resume="pytest x")),
    "summary.md": render_markdown,
    "comment.md": render_comment,
    "compare.txt": lambda summary: "\n".join(render_comparison(summary.comparison)) if summary.comparison else "",
}  # fmt: skip


@pytest.mark.parametrize("run", [_many, _alone, _compared], ids=["many", "alone", "compared"])
@pytest.mark.parametrize("report", REPORTS)
def test_a_report_is_as_kept(report, run, pytestconfig):
    """Its sentences, tables and layout; a change of words changes these files, which show it in review."""
    shown = REPORTS[report](run())
    name, _, ending = report.partition(".")
    file = GOLDEN / f"{name}_{run.__name__.strip('_')}.{ending}"
    if pytestconfig.getoption("--refresh") and shown:
        file.write_text(shown.rstrip("\n") + "\n", "utf-8")

    assert shown.rstrip("\n") == (file.read_text("utf-8").rstrip("\n") if file.exists() else "")


FAILURES = GOLDEN / "failures.txt"
TOOLS = load_catalogue().surface("direct")
TARGET = Target(provider="p", model="m:1b", thinking_level="low")
ASKED = {"prompt": "Say yes.\nNothing else."}
NATIVE = {"tools_offered": 20, "violation": "no"}


def _call(name, arguments, **more):
    return {"id": None, "name": name, "arguments": arguments, **more}


LS = _call("exec", '{"command": "ls"}')


def _render(target=TARGET, prompt=ASKED, **changes):
    row = missed(target, **{"prompt_id": "P3", "prompt_name": "short_answer", "e2e_ms": 1200, **changes})
    return render_failure(row, prompt, TOOLS if row.tools_offered else None)


def _silent(failure_type, **changes):
    return _render(success=False, objective_pass=None, violation=None, failure_type=failure_type, **changes)


def test_failures_are_as_kept(pytestconfig):
    """Violation, target, times, prompt, reply and calls; a missing answer in words; exchanges by turn."""
    messages = [{"role": "user", "content": "Is it up?"}, {"role": "assistant", "content": "It is\nup."}]
    turns = ({"text": "I'll look.", "calls": [{**LS, "result": "a.txt\nb.txt"}]}, {"text": "", "calls": [LS]})
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
        FAILURES.write_text(text, "utf-8")

    assert text == FAILURES.read_text("utf-8")


def test_long_texts_lose_their_middle():
    """A reply of megabytes, or an exchange of fifty turns, becomes a page with its beginning and its end."""
    calls = (
        _call("exec", f'{{"command": "run {n} {"x" * 100_000}"}}', result="y" * 9999) for n in range(1, 51)
    )
    turns = tuple({"text": "", "calls": [call]} for call in calls)

    text = _render(raw_output="BEGIN" + "x" * 3_000_000 + "END")
    exchange = _render(**NATIVE, turns=turns, tool_outcome="no_call")

    assert len(text) < 2500
    assert "BEGIN" in text
    assert text.endswith("END")
    assert len(exchange) < 12_000
    assert all(words in exchange for words in ("run 1 ", "38 turns are left out", "  turn 50   exec"))


def test_hostile_texts_are_harmless():
    """Escape sequences in prompt names, models, replies and violations are escaped."""
    hostile = {"prompt_name": "a\x1b[2J", "finish_reason": "\x1b[0m", "tool_calls": ("\x1b",)}
    target = Target(provider="p", model="m\x1b]0;x\x07")

    text = _render(target, raw_output="\x1b[31mred\r", violation="got \x1b[31m", **hostile)

    assert not {"\x1b", "\r"} & set(text)
    assert "\\x1b[31mred" in text
