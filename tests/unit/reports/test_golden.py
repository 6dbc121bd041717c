"""Every report of three made runs, word by word: `pytest --refresh tests/unit/reports` writes them anew."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from pytest_openclaw.reports.comparison import render_comparison
from pytest_openclaw.reports.pages import render_comment, render_markdown
from pytest_openclaw.reports.terminal import render_terminal
from pytest_openclaw.stats.comparison import Obstacle, Obstacles
from pytest_openclaw.stats.summary import Budget, Summary
from pytest_openclaw.values.requests import Target
from pytest_openclaw.values.settings import Gates
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
from tests.unit.stats.compared import cells, compare

GOLDEN = Path(__file__).parent / "golden"
NATIVE = {"suite": "native", "tools_offered": 11}
GOOD = Target(provider="lab", model="good:32b")
NEEDLESS = Target(provider="lab", model="needless:8b", thinking_level="low")
BAD = Target(provider="lab", model="bad:1b")
AWAY = Target(provider="lab", model="away")


def _many() -> Summary:
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
    gates = Gates(min_pass_rate=0.9, require_tier=1, max_p95_ms=500)
    summary = summary_of(rows, gates=gates)
    budget = Budget(budget_usd=0.2, spent_usd=0.21, n_not_asked=3)
    return replace(summary, budget=budget, unmatched_gates=["cloud/*"])


def _alone() -> Summary:
    """One target that was interrupted: repeats of prompts, tools in text only."""
    rows = [
        (record if repeat <= passed else missed)(GOOD, prompt_id=f"P{passed}", repeat=repeat, ttft_ms=None)
        for passed in (0, 3, 4)
        for repeat in range(1, 5)
    ]
    rows += [*tool_cells(16, 0, GOOD), record(GOOD, prompt_id="E", success=False, objective_pass=None, failure_type="empty_response")]  # fmt: skip
    return summary_of(rows, n_selected={GOOD: 40})


def _compared() -> Summary:
    """One target beside its baseline, from which it differs in everything."""
    base = [*cells("+" * 9, GOOD, host="a"), record(GOOD, prompt_id="Q"), fault(GOOD, prompt_id="F")]
    candidate = [
        *cells("-" * 8 + "+", GOOD, host="b", e2e_ms=150),
        fault(GOOD, prompt_id="Q"),
        record(GOOD, prompt_id="F"),
    ]
    changed = Obstacles(of_prompts={("s", "P9"): Obstacle("validator_changed", "validator")})
    compared = compare(base, candidate, [(GOOD, GOOD)], obstacles=changed, notes=["an older run"])
    return summary_of(candidate, gates=Gates(fail_on="regression"), comparison=compared)


REPORTS: dict[str, Callable[[Summary], str]] = {
    "terminal.txt": lambda summary: "\n".join(render_terminal(summary, "summary.md", resume="pytest x")),
    "summary.md": render_markdown,
    "comment.md": render_comment,
    "compare.txt": lambda summary: "\n".join(render_comparison(summary.comparison)) if summary.comparison else "",
}  # fmt: skip


@pytest.mark.parametrize("run", [_many, _alone, _compared], ids=["many", "alone", "compared"])
@pytest.mark.parametrize("report", REPORTS)
def test_a_report_is_as_kept(report: str, run: Callable[[], Summary], pytestconfig: pytest.Config) -> None:
    """Its sentences, tables and layout; a change of words changes these files, which show it in review."""
    shown = REPORTS[report](run())
    name, _, ending = report.partition(".")
    file = GOLDEN / f"{name}_{run.__name__.strip('_')}.{ending}"
    if pytestconfig.getoption("--refresh") and shown:
        file.write_text(shown.rstrip("\n") + "\n", "utf-8")

    assert shown.rstrip("\n") == (file.read_text("utf-8").rstrip("\n") if file.exists() else "")
