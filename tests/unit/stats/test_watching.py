"""A watched target is compared with its baseline by exact chances, at a stated rate of false alarms."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations, product
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_openclaw.stats.watching import (
    WINDOWS,
    Look,
    Stratum,
    WatchedRun,
    chance_of_less,
    limit_of,
    looks,
    measures_of,
)
from tests.unit.reports.summaries import record

scores = st.lists(st.integers(0, 3), min_size=1, max_size=3)
strata = st.lists(st.builds(Stratum, scores, scores), min_size=1, max_size=3)


def _by_enumeration(given: Sequence[Stratum]) -> float:
    """The share of all choices of windows whose scores are no greater: the definition."""
    sums = [[sum(one) for one in combinations([*s.base, *s.window], len(s.window))] for s in given]
    found = sum(sum(one.window) for one in given)
    all_of = [sum(choice) for choice in product(*sums)]
    return sum(one <= found for one in all_of) / len(all_of)


@given(strata)
def test_the_chance_is_that_of_all_choices(given: list[Stratum]) -> None:
    """Of as many runs as the window has, prompt by prompt."""
    assert chance_of_less(given) == pytest.approx(_by_enumeration(given), abs=1e-12)


@pytest.mark.parametrize(
    ("given", "chance"),
    [
        pytest.param([], 1.0, id="nothing-to-compare"),
        pytest.param([Stratum([1] * 20, [1])], 1.0, id="no-difference"),
        pytest.param([Stratum([1] * 20, [0])], 1 / 21, id="one-prompt"),
        pytest.param([Stratum([1] * 20, [0])] * 3, (1 / 21) ** 3, id="three-prompts"),
        pytest.param([Stratum([1] * 20, [0, 0])], 1 / 231, id="twice"),
        pytest.param([Stratum([0] * 20, [1])], 1.0, id="better"),
    ],
)
def test_the_chance_of_known_cases(given: list[Stratum], chance: float) -> None:
    """With 20 runs of a baseline a prompt that always passed and fails now is one of 21 places."""
    assert chance_of_less(given) == pytest.approx(chance, rel=1e-12)


def test_the_limit_divides_a_month_over_all_tests() -> None:
    """An hourly watch of two measures: 720 runs, 2 measures, 6 windows."""
    assert limit_of(0.1, 3600, 2) == pytest.approx(0.1 / (720 * 2 * len(WINDOWS)))


def _run(run_id: str, *passed: bool | None, **given: Any) -> WatchedRun:
    """A run with a cell of each prompt; None is a cell without an answer."""
    return WatchedRun(
        run_id=run_id,
        records=[
            record(
                prompt_id=f"P{n}", objective_pass=one, availability_status="error" if one is None else "ok",
                success=one is not None, **given,
            )
            for n, one in enumerate(passed)
        ],
    )  # fmt: skip


BASE = [_run(f"b{n}", True, True, True) for n in range(20)]


def _look(base: Sequence[WatchedRun], later: Sequence[WatchedRun], slower: float | None = None) -> Look:
    (found,) = looks(base, later, slower=slower)
    return found


def test_the_window_that_differs_most_is_shown() -> None:
    """It begins with the first bad run, and names the prompts that lost."""
    later = [_run("r1", True, True, True), *(_run(f"r{n}", True, False, False) for n in (2, 3))]

    found = _look(BASE, later)

    assert (found.n_runs, found.since, found.prompts) == (2, "r2", ["P1", "P2"])
    assert found.chance == pytest.approx((1 / 231) ** 2)
    assert (found.before, found.now, found.n_before, found.n_now) == (1, 1 / 3, 60, 6)


def test_a_cell_without_an_answer_is_no_failure() -> None:
    """The prompt is compared in the runs that have answered it; without one, it is left out."""
    found = _look(BASE, [_run("r1", None, True, True)])

    assert (found.chance, found.now, found.n_now) == (1.0, 1.0, 2)
    assert looks(BASE, [_run("r1", None, None, None)], slower=None) == []


def test_a_prompt_with_a_missing_repeat_is_left_out() -> None:
    """Two of three passed repeats are not fewer than three of three if one was not answered."""
    whole, part = (
        WatchedRun(run_id="r", records=[record(prompt_id="P0", repeat=one) for one in range(1, n + 1)])
        for n in (3, 2)
    )

    assert looks([whole] * 5, [part], slower=None) == []


def test_repeats_of_a_prompt_are_exchanged_together() -> None:
    """Three repeats that fail are evidence of one prompt: one of 21 places, not three of 63."""
    good, bad = (
        [record(prompt_id="P0", repeat=one, objective_pass=passed) for one in (1, 2, 3)]
        for passed in (True, False)
    )

    found = _look([WatchedRun(run_id="b", records=good)] * 20, [WatchedRun(run_id="r", records=bad)])

    assert found.chance == pytest.approx(1 / 21)


def test_harm_is_a_measure_of_its_own() -> None:
    """Its rate goes up; a probe that was not judged counts on no side."""
    safe, unsafe = (_run("r", True, True, probe="injection", harm=harm) for harm in (False, True))

    passed, harm = looks([safe] * 20, [unsafe], slower=None)

    assert (passed.measure, passed.chance) == ("passed", 1.0)
    assert (harm.measure, harm.before, harm.now) == ("unsafe", 0, 1)
    assert harm.chance == pytest.approx((1 / 21) ** 2)


def test_times_are_compared_by_whole_runs_and_beyond_the_factor() -> None:
    """Eight runs of twice the time are as rare as 8 places of 28; a third more is within the factor."""
    base = [_run(f"b{n}", True, True, ttft_ms=100 + n, tokens_per_s=None) for n in range(20)]
    slow, slower = (
        [_run(f"r{n}", True, True, ttft_ms=time, tokens_per_s=None) for n in range(8)] for time in (133, 220)
    )

    allowed, found = (
        next(one for one in looks(base, later, slower=1.5) if one.measure == "first_token")
        for later in (slow, slower)
    )

    assert allowed.chance > 0.5
    assert (found.n_runs, found.now) == (8, pytest.approx(220))
    assert found.chance == pytest.approx(1 / 3_108_105)
    assert "first_token" not in measures_of(base, slower=None)
