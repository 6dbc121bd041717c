"""The gate that fails a target whose verdicts are worse than the baseline's."""

from __future__ import annotations

from dataclasses import replace

import pytest

from pytest_openclaw.stats.gates import GateResult
from pytest_openclaw.stats.summary import summarize_run
from pytest_openclaw.values.requests import Target
from pytest_openclaw.values.settings import Gates
from tests.unit.reports.summaries import TARGET
from tests.unit.stats.compared import cells, compare

GATES = Gates(fail_on="regression")


def _gate(
    base: str, candidate: str, *, n_selected: int | None = None, with_baseline: bool = True
) -> GateResult:
    rows = cells(candidate)
    selected = {TARGET: n_selected or len(rows)}
    unfinished: frozenset[Target] = frozenset(selected if selected[TARGET] > len(rows) else ())
    comparison = compare(cells(base), rows, unfinished=unfinished) if with_baseline else None
    (result,) = summarize_run(
        rows, selected, GATES, {}, run_id="r", generated_at_ms=0, comparison=comparison
    ).gates
    return result


@pytest.mark.parametrize(
    ("base", "candidate", "ruling", "reason"),
    [
        pytest.param("+" * 9, "-" * 6 + "+" * 3, "failed", "worse: 9 -> 3 of 9 cells passed, p 0.031", id="worse"),
        pytest.param("+" * 9, "-" * 5 + "+" * 4, "passed", "no difference seen: 9 -> 4 of 9 cells passed, p 0.062", id="chance"),
        pytest.param("-" * 9, "+" * 9, "passed", "better: 0 -> 9 of 9 cells passed", id="better"),
        pytest.param("+" * 9, "-" * 8 + "?", "failed", "worse: 8 -> 0 of 8", id="worse-whatever-was-unavailable"),
        pytest.param("+" * 9, "+" * 8 + "?", "no_verdict", "8 -> 8 of 8 cells passed, p 1, but 1 of 9 cells were unavailable", id="unavailable-is-no-pass"),
        pytest.param("-" + "+" * 9, "+" + "-" * 7 + "+?", "no_verdict", "but 1 of 10 cells were unavailable", id="undecided"),
        pytest.param("+" * 9, "?" * 9, "no_verdict", "nothing could be compared with before", id="nothing-answered"),
        pytest.param("o" * 9, "o" * 9, "no_verdict", "nothing could be compared with before", id="nothing-judged"),
        pytest.param("+" * 5, "+" * 5, "no_verdict", "5 prompts are too few to see any loss", id="a-gate-that-could-never-fail"),
        pytest.param("+", "+", "no_verdict", "1 prompt is too few to see any loss", id="one-prompt"),
    ],
)  # fmt: skip
def test_a_loss_that_is_no_chance_fails(base: str, candidate: str, ruling: str, reason: str) -> None:
    """It fails if no missing reply could have prevented it, and passes only if all cells were answered."""
    result = _gate(base, candidate)

    assert (result.gate, result.target, result.wanted) == ("fail-on-regression", TARGET.label, 0.05)
    assert result.ruling == ruling
    assert reason in result.reason


def test_a_fault_is_counted_both_ways() -> None:
    """A decisive fault leaves the verdict open; another one does not."""

    def gate(candidate: str) -> GateResult:
        rows = [
            replace(one, availability_status="error") if one.failure_type else one for one in cells(candidate)
        ]
        comparison = compare(cells("+" * len(candidate)), rows)
        return summarize_run(
            rows, {TARGET: len(rows)}, GATES, {}, run_id="r", generated_at_ms=0, comparison=comparison
        ).gates[0]

    assert gate("-" * 5 + "+" * 3 + "?").ruling == "no_verdict"
    assert "1 cells without an answer might have made it worse" in gate("-" * 5 + "+" * 3 + "?").reason
    assert gate("-" * 4 + "+" * 4 + "?").ruling == "passed"


def test_a_run_that_was_not_asked_to_the_end_is_no_pass() -> None:
    """It does not fail either, if the missing cells could have prevented it."""
    assert _gate("+" * 9, "+" * 7, n_selected=9).ruling == "no_verdict"
    assert _gate("+" * 9, "-" * 6, n_selected=9).ruling == "failed"
    assert _gate("+" * 6 + "-" * 6, "-" * 6, n_selected=12).ruling == "no_verdict"


def test_without_a_baseline_nothing_passes() -> None:
    """A merged or rescored run that was started with the gate has none."""
    result = _gate("+", "+", with_baseline=False)

    assert (result.ruling, result.reason) == (
        "no_verdict",
        "nothing could be compared because there is no baseline",
    )
