"""The gate that passes only what is shown to have lost less than so much."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from pytest_openclaw.options import parse_fail_on
from pytest_openclaw.stats.gates import GateResult
from pytest_openclaw.stats.summary import summarize_run
from pytest_openclaw.util.errors import OpenClawError
from pytest_openclaw.values.settings import Gates, gates_of
from tests.unit.reports.summaries import TARGET
from tests.unit.stats.compared import cells, compare, only


def _gate(base: str, candidate: str, **more: bool) -> GateResult:
    rows = cells(candidate)
    comparison = compare(cells(base), rows) if more.get("with_baseline", True) else None
    (result,) = summarize_run(
        rows,
        {TARGET: len(rows)},
        Gates(fail_on="loss>0.1"),
        {},
        run_id="r",
        generated_at_ms=0,
        comparison=comparison,
    ).gates
    return result


@pytest.mark.parametrize(
    ("base", "candidate", "ruling", "reason"),
    [
        pytest.param("+" * 100, "+" * 100, "passed", "100 -> 100 of 100 cells passed: +0 points, 95 % -3 to +3; a loss of 10 points is ruled out", id="nothing-changed"),
        pytest.param("+" * 60, "-" * 30 + "+" * 30, "failed", "; a loss of 10 points is exceeded", id="half-is-lost"),
        pytest.param("+" * 20, "+" * 20, "no_verdict", "not conclusive: 20 -> 20 of 20 cells passed: +0 points, 95 % -13 to +13; a loss of 10 points is not ruled out; about", id="too-few"),
        pytest.param("+" * 100, "-" * 15 + "+" * 85, "no_verdict", "a loss of 10 points is not ruled out", id="on-the-wrong-side-perhaps"),
        pytest.param("-" * 60, "+" * 60, "passed", "+100 points", id="better"),
        pytest.param("+" * 100, "+" * 99 + "?", "no_verdict", "but 1 of 100 cells were unavailable", id="unavailable-is-no-pass"),
        pytest.param("+" * 9, "?" * 9, "no_verdict", "nothing could be compared with before", id="nothing-answered"),
    ],
)  # fmt: skip
def test_a_loss_must_be_ruled_out(base: str, candidate: str, ruling: str, reason: str) -> None:
    """By the lower end of the difference; it is shown by the upper one, and otherwise open."""
    result = _gate(base, candidate)

    assert (result.gate, result.wanted, result.asked) == ("fail-on-loss", 0.1, "fail-on-loss 0.1")
    assert result.ruling == ruling
    assert reason in result.reason


def test_without_a_baseline_nothing_is_ruled_out() -> None:
    """Nor is anything lost."""
    result = _gate("+" * 9, "+" * 9, with_baseline=False)

    assert (result.ruling, result.found) == ("no_verdict", None)
    assert "because there is no baseline" in result.reason


def test_the_range_is_the_published_formula() -> None:
    """Bonett & Price with Student's t over whole prompts, k + 1 degrees of freedom, by NumPy and SciPy."""
    base = [*cells("+" * 20 + "-" * 10), *cells("+" * 25 + "-" * 5, repeat=2)]
    candidate = [*cells("+" * 12 + "-" * 18), *cells("-" * 4 + "+" * 26, repeat=2)]
    passed = [np.array([one.objective_pass for one in rows]).reshape(2, 30) for rows in (base, candidate)]
    differences = (passed[1].astype(int) - passed[0].astype(int)).sum(axis=0)
    totals, sizes = np.append(differences, (2, -2)), np.full(32, 2)

    middle = totals.sum() / sizes.sum()
    half = stats.t.ppf(0.975, 31) * np.sqrt(((totals - middle * sizes) ** 2).sum()) / sizes.sum()
    found = only(base, candidate).verdicts.range_95

    assert found is not None
    assert (found.low, found.high) == (
        pytest.approx(middle - half, abs=1e-5),
        pytest.approx(middle + half, abs=1e-5),
    )


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("regression", "regression"),
        ("loss>0.1", "loss>0.1"),
        ("loss>.050", "loss>0.05"),
        ("loss>1e-2", "loss>0.01"),
    ],
)
def test_what_the_gate_takes(text: str, value: str) -> None:
    """A word, or a loss between 0 and 1."""
    assert parse_fail_on(text) == value
    assert Gates(fail_on=value).most_loss == (None if value == "regression" else float(value[5:]))


@pytest.mark.parametrize(
    "text", ["loss", "loss>", "loss>0", "loss>1", "loss>ten", "loss>nan", "loss<0.1", "0.1"]
)
def test_what_it_does_not_take(text: str) -> None:
    """Neither on the command line nor in the files of a run."""
    with pytest.raises(
        ValueError, match=r"give regression, or a loss between 0 and 1, for example loss>0\.1"
    ):
        parse_fail_on(text)
    with pytest.raises(OpenClawError, match="fail_on is"):
        gates_of({"fail_on": text})
    with pytest.raises(OpenClawError, match="fail_on is"):
        gates_of({"by_target": [{"target": "*", "changes": {"fail_on": text}}]})
