"""Percentiles, intervals and tiers compared with known figures and laws."""

from __future__ import annotations

import statistics

import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats as scipy_stats

from pytest_openclaw.stats.intervals import Interval, percentile, wilson_95
from pytest_openclaw.stats.tiers import classify_tier, is_conclusive, joint_z

counts = st.integers(1, 400).flatmap(lambda n: st.tuples(st.integers(0, n), st.just(n)))


@pytest.mark.parametrize(
    ("values", "q", "expected"),
    [
        pytest.param([1.0], 99, 1.0, id="one-value"),
        pytest.param([1, 2, 3, 4], 50, 2.5, id="between-ranks"),
        # NIST/SEMATECH e-Handbook of Statistical Methods, 7.2.6.2, the data set; type 7 by hand.
        pytest.param([95.1772, 95.1567, 95.1937, 95.1959, 95.1442, 95.0610, 95.1591, 95.1195, 95.1065, 95.0925, 95.1990, 95.1682], 90, 95.19568, id="nist"),
        pytest.param([5, 1, 3], 0, 1, id="lowest"),
        pytest.param([5, 1, 3], 100, 5, id="highest"),
    ],
)  # fmt: skip
def test_percentile(values: list[float], q: float, expected: float) -> None:
    """Percentiles interpolate linearly between closest ranks."""
    assert percentile(values, q) == pytest.approx(expected)


@given(st.lists(st.floats(0, 1e6), min_size=2, max_size=50))
def test_percentile_agrees_with_the_standard_library(values: list[float]) -> None:
    """`statistics.quantiles(method="inclusive")` is the same definition."""
    expected = statistics.quantiles(values, n=100, method="inclusive")

    for q in (1, 50, 95, 99):
        assert percentile(values, q) == pytest.approx(expected[q - 1], rel=1e-9, abs=1e-9)


@pytest.mark.parametrize(
    ("successes", "n", "low", "high"),
    [
        # Newcombe (1998), Statistics in Medicine 17, table I: method 3 (Wilson) for these four.
        pytest.param(81, 263, 0.2553, 0.3662, id="newcombe-81-of-263"),
        pytest.param(15, 148, 0.0624, 0.1605, id="newcombe-15-of-148"),
        pytest.param(0, 20, 0.0, 0.1611, id="newcombe-0-of-20"),
        pytest.param(1, 29, 0.0061, 0.1718, id="newcombe-1-of-29"),
        pytest.param(6, 6, 0.6097, 1.0, id="6-of-6"),
        pytest.param(5, 6, 0.4365, 0.9699, id="5-of-6"),
    ],
)
def test_wilson(successes: int, n: int, low: float, high: float) -> None:
    """The interval is the published one to four digits."""
    interval = wilson_95(successes, n)

    assert interval is not None
    assert (interval.low, interval.high) == (pytest.approx(low, abs=6e-5), pytest.approx(high, abs=6e-5))


@pytest.mark.parametrize(
    ("successes", "n", "tier"),
    [
        pytest.param(4, 5, 1, id="80-exactly"),
        pytest.param(799, 1000, 2, id="79.9-is-not-rounded-up"),
        pytest.param(1, 2, 2, id="50-exactly"),
        pytest.param(499, 1000, 3, id="49.9"),
        pytest.param(0, 3, 3, id="none"),
        pytest.param(0, 0, None, id="no-tool-cells"),
    ],
)
def test_classify_tier(successes: int, n: int, tier: int | None) -> None:
    """The seed's thresholds, compared without rounding."""
    assert classify_tier(successes, n) == tier


@pytest.mark.parametrize(
    ("successes", "n", "conclusive"),
    [
        pytest.param(6, 6, False, id="6-of-6"),
        pytest.param(15, 15, False, id="15-of-15"),
        pytest.param(16, 16, True, id="16-of-16"),
        pytest.param(24, 25, True, id="24-of-25"),
        pytest.param(65, 100, True, id="tier-2"),
        pytest.param(1, 6, False, id="1-of-6"),
        pytest.param(0, 6, True, id="0-of-6"),
    ],
)
def test_conclusive(successes: int, n: int, conclusive: bool) -> None:
    """A tier is conclusive if the whole interval lies inside it; 16 of 16 is the smallest for tier 1."""
    tier, interval = classify_tier(successes, n), wilson_95(successes, n)

    assert tier is not None
    assert interval is not None
    assert is_conclusive(tier, interval) is conclusive


@pytest.mark.parametrize(("n_targets", "smallest"), [(1, 16), (2, 21), (3, 23), (8, 30)])
def test_tiers_of_several_targets_hold_jointly(n_targets: int, smallest: int) -> None:
    """Bonferroni: each target gets its share of the 2.5 %, so that Tier 1 needs more prompts without a miss."""
    z = joint_z(n_targets)

    assert z == pytest.approx(scipy_stats.norm.isf(0.025 / n_targets))
    flawless = [n for n in range(1, 60) if is_conclusive(1, _interval(n, n, z))]
    assert flawless[0] == smallest


def _interval(successes: int, n: int, z: float) -> Interval:
    interval = wilson_95(successes, n, z=z)
    assert interval is not None
    return interval
