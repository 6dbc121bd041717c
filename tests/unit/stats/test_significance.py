"""Exact tests over prompts, against brute force and SciPy."""

from __future__ import annotations

import itertools
from collections.abc import Sequence

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats as scipy_stats

from pytest_openclaw.stats import comparison
from pytest_openclaw.stats.comparison import adjusted_together, sign_flip


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


def test_of_very_many_prompts_it_is_normal(monkeypatch: pytest.MonkeyPatch) -> None:
    """If the exact count would take long, the normal distribution hardly differs."""
    totals = [1, -2, 3, -1] * 60 + [-2] * 55
    exact = sign_flip(totals)

    monkeypatch.setattr(comparison, "MOST_EXACT", 0)

    assert sign_flip(totals) == (-1, pytest.approx(exact.p, rel=0.02))
    assert sign_flip([1] * 1100 + [-1] * 1000).p == pytest.approx(
        scipy_stats.binomtest(1100, 2100).pvalue, rel=0.02
    )


WORSE, BETTER = [-1] * 7, [1] * 6


@pytest.mark.parametrize(
    ("totals", "expected"),
    [
        pytest.param([], [], id="none"),
        pytest.param([WORSE], [2 / 2**7], id="alone-it-stays"),
        pytest.param([[-1] * 8, WORSE, [-1] * 6], [6 / 2**8, 4 / 2**7, 2 / 2**6], id="holm"),
        pytest.param([WORSE, BETTER], [4 / 2**7, 4 / 2**6], id="each-direction-on-its-own"),
        pytest.param([[0], [-1, 1, 1]], [1.0, 1.0], id="never-above-one"),
        pytest.param([[], BETTER, []], [1.0, 2 / 2**6, 1.0], id="nothing-to-test-is-no-test"),
    ],
)
def test_more_targets_ask_for_more(totals: list[list[int]], expected: list[float]) -> None:
    """Holm's correction: the smallest p counts for as many targets as there are, the next for one less."""
    assert [one.p for one in adjusted_together(totals)] == pytest.approx(expected)
