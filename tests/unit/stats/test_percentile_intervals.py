"""The interval of a percentile, compared with SciPy's distributions, by laws and by hand."""

from __future__ import annotations

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from pytest_openclaw.stats.intervals import percentile, percentile_interval, student_t

QS = (50, 95, 99)
FEWEST = {50: 6, 95: 72, 99: 368, 5: 72, 60: 8}
prompts = st.lists(st.lists(st.integers(0, 50), min_size=1, max_size=6), min_size=1, max_size=80)


def _once(n: int) -> list[list[float]]:
    """The values 1 to n, each of a separate prompt, so that a value equals its rank."""
    return [[value] for value in range(1, n + 1)]


def _ranks(n: int, q: float) -> tuple[int, int]:
    interval = percentile_interval(_once(n), q)
    assert interval is not None
    return int(interval.low), int(interval.high)


@pytest.mark.parametrize("q", [5, 50, 60, 95, 99])
@pytest.mark.parametrize("more", [0, 1, 7, 100, 3000])
def test_ranks_miss_with_a_chance_of_5_percent_at_most(q: int, more: int) -> None:
    """By SciPy's binomial distribution; and an end further in would miss too often."""
    share = q / 100
    n = FEWEST[q] + more
    low, high = _ranks(n, q)

    below, above = stats.binom.cdf(low - 1, n, share), stats.binom.sf(high - 1, n, share)
    assert max(below, above) <= 0.025 + 1e-9
    assert min(stats.binom.cdf(low, n, share), stats.binom.sf(high - 2, n, share)) > 0.025


@pytest.mark.parametrize(("q", "fewest"), FEWEST.items())
def test_too_few_values_have_no_interval(q: float, fewest: int) -> None:
    """So many values are enough, one less is not."""
    assert percentile_interval(_once(fewest), q) is not None
    assert percentile_interval(_once(fewest - 1), q) is None


@pytest.mark.parametrize(
    "values", [[], [[7]], [[7] * 5] * 36, [[7] * 40, *[[7]] * 80]], ids=["none", "one", "repeats", "uneven"]
)
def test_repeats_do_not_replace_prompts(values: list[list[float]]) -> None:
    """Also if one prompt outweighs the others."""
    assert percentile_interval(values, 95) is None


def test_identical_repeats_add_nothing() -> None:
    """Prompts that always take the same time have the interval of a single asking."""
    for q in QS:
        repeated = percentile_interval([[value] * 7 for value in range(400)], q)

        assert repeated == percentile_interval([[value] for value in range(400)], q)


def test_repeats_that_differ_narrow_the_interval() -> None:
    """If a prompt says nothing about its latency, repeats have nearly as much information as prompts."""
    values = random.Random(20261122).sample(range(1000), 1000)
    repeated = percentile_interval([values[start : start + 5] for start in range(0, 1000, 5)], 50)
    once = percentile_interval([[value] for value in values[::5]], 50)

    assert repeated is not None
    assert once is not None
    assert repeated.high - repeated.low < (once.high - once.low) * 0.6


@given(prompts, st.sampled_from(QS))
def test_the_percentile_lies_in_its_interval(values: list[list[float]], q: float) -> None:
    """Both ends are values, and the percentile that is shown lies between them."""
    interval = percentile_interval(values, q)
    every = [value for of_prompt in values for value in of_prompt]

    if interval:
        assert {interval.low, interval.high} <= set(every)
        assert interval.low <= percentile(every, q) <= interval.high


@pytest.mark.parametrize(
    ("df", "off"), [(1, 0.112), (2, 0.0075), (3, 2e-3), (5, 2e-4), (29, 1e-6), (500, 1e-9)]
)
def test_student_t(df: int, off: float) -> None:
    """The expansion is SciPy's figure to the digits that it promises."""
    assert student_t(df) == pytest.approx(stats.t.ppf(0.975, df), rel=off)
