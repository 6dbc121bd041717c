"""Exact tests over prompts, against brute force and SciPy."""

from __future__ import annotations

import itertools
from collections.abc import Sequence

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats as scipy_stats

from pytest_openclaw.stats import significance
from pytest_openclaw.stats.significance import Difference, adjusted_together, exchange, sign_flip, sign_test


def _by_brute_force(totals: Sequence[int]) -> float:
    differing = [total for total in totals if total]
    found = abs(sum(differing))
    sums = [
        sum(sign * total for sign, total in zip(signs, differing, strict=True))
        for signs in itertools.product((-1, 1), repeat=len(differing))
    ]
    return sum(abs(one) >= found for one in sums) / len(sums)


@settings(deadline=None)
@given(totals=st.lists(st.integers(-5, 5), max_size=9))
def test_every_choice_of_signs_is_counted(totals: list[int]) -> None:
    """The p of a randomisation test is the share of sign choices that lead at least as far."""
    found = sign_flip(totals)

    assert found.p == pytest.approx(_by_brute_force(totals), abs=1e-12)
    assert found.sign == (sum(totals) > 0) - (sum(totals) < 0)


@settings(deadline=None)
@given(n_better=st.integers(0, 60), n_worse=st.integers(0, 60), n_same=st.integers(0, 5))
def test_with_one_cell_a_prompt_it_is_mcnemars(n_better: int, n_worse: int, n_same: int) -> None:
    """Exact McNemar is the binomial test of the prompts that differ."""
    found = sign_flip([1] * n_better + [-1] * n_worse + [0] * n_same)

    expected = scipy_stats.binomtest(n_better, n_better + n_worse).pvalue if n_better + n_worse else 1.0
    assert found.p == pytest.approx(expected, abs=1e-12)
    assert sign_test(n_better, n_worse).p == pytest.approx(expected, abs=1e-12)


def test_of_very_many_prompts_it_is_normal(monkeypatch: pytest.MonkeyPatch) -> None:
    """If the exact count would take long, the normal distribution hardly differs."""
    totals = [1, -2, 3, -1] * 60 + [-2] * 55
    exact = sign_flip(totals)

    monkeypatch.setattr(significance, "MOST_EXACT_BITS", 0)

    assert sign_flip(totals) == (-1, pytest.approx(exact.p, rel=0.02))
    assert sign_test(1100, 1000).p == pytest.approx(scipy_stats.binomtest(1100, 2100).pvalue, rel=0.02)


@pytest.mark.parametrize(
    ("found", "expected"),
    [
        pytest.param([], [], id="none"),
        pytest.param([Difference(-1, 0.03)], [0.03], id="alone-it-stays"),
        pytest.param([Difference(-1, 0.01), Difference(-1, 0.04), Difference(-1, 0.03)], [0.03, 0.06, 0.06], id="holm"),
        pytest.param([Difference(-1, 0.01), Difference(1, 0.01)], [0.02, 0.02], id="each-direction-on-its-own"),
        pytest.param([Difference(0, 1.0), Difference(1, 0.9)], [1.0, 1.0], id="never-above-one"),
        pytest.param([None, Difference(1, 0.03), None], [1.0, 0.03, 1.0], id="nothing-to-test-is-no-test"),
    ],
)  # fmt: skip
def test_more_targets_ask_for_more(found: list[Difference | None], expected: list[float]) -> None:
    """Holm's correction: the smallest p counts for as many targets as there are, the next for one less."""
    assert [one.p_adjusted for one in adjusted_together(found)] == pytest.approx(expected)


def _exchanged(prompts: Sequence[Sequence[int]]) -> float:
    """The share of all choices of a candidate, prompt by prompt, that lead at least as far to its side, twice."""

    def lead(chosen: Sequence[int]) -> float:
        return sum(
            passed[place] - (sum(passed) - passed[place]) / (len(passed) - 1)
            for passed, place in zip(prompts, chosen, strict=True)
        )

    found = lead([0] * len(prompts))
    if abs(found) < 1e-9:
        return 1.0
    leads = [lead(chosen) for chosen in itertools.product(*(range(len(passed)) for passed in prompts))]
    return min(1.0, 2 * sum(one / found >= 1 - 1e-9 for one in leads) / len(leads))


@settings(deadline=None)
@given(prompts=st.lists(st.lists(st.integers(0, 3), min_size=2, max_size=4), max_size=5))
def test_every_choice_of_a_candidate_is_counted(prompts: list[list[int]]) -> None:
    """With several baselines any of the runs could have been the candidate, for each prompt on its own."""
    assert exchange(prompts).p == pytest.approx(_exchanged(prompts), abs=1e-9)


@settings(deadline=None)
@given(pairs=st.lists(st.tuples(st.integers(0, 5), st.integers(0, 5)), max_size=12))
def test_with_one_baseline_signs_are_flipped(pairs: list[tuple[int, int]]) -> None:
    """The two tests are one there."""
    by_signs = sign_flip([candidate - base for candidate, base in pairs])
    found = exchange(pairs)

    assert found.sign == by_signs.sign
    assert found.p == pytest.approx(by_signs.p, abs=1e-12)


def test_exchanges_of_very_many_prompts_are_normal(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where the exact count would take long, the normal distribution hardly differs."""
    prompts = [[1, 2, 1, 2]] * 130 + [[2, 1, 2, 1]] * 100 + [[3, 1, 2, 3]] * 10
    exact = exchange(prompts)

    monkeypatch.setattr(significance, "MOST_EXACT_BITS", 0)

    assert exchange(prompts) == (exact.sign, pytest.approx(exact.p, rel=0.03))
