"""Rates, percentiles and their intervals, compared with published figures, SciPy and laws."""

import random
import statistics

import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from pytest_openclaw.stats.intervals import (
    Cluster,
    cluster_interval,
    effective_n,
    percentile,
    percentile_interval,
    rate_of,
    student_t,
    wilson_95,
)
from pytest_openclaw.stats.tool_use import joint_z
from tests.unit.reports.summaries import record


@pytest.mark.parametrize(
    ("values", "q", "expected"),
    [
        pytest.param([1.0], 99, 1.0, id="one-value"),
        # NIST/SEMATECH e-Handbook of Statistical Methods, 7.2.6.2, the data set; type 7 by hand.
        pytest.param([95.1772, 95.1567, 95.1937, 95.1959, 95.1442, 95.0610, 95.1591, 95.1195, 95.1065, 95.0925, 95.1990, 95.1682], 90, 95.19568, id="nist"),
        pytest.param([5, 1, 3], 0, 1, id="lowest"),
        pytest.param([5, 1, 3], 100, 5, id="highest"),
    ],
)  # fmt: skip
def test_percentile(values, q, expected):
    """Percentiles interpolate linearly between closest ranks."""
    assert percentile(values, q) == pytest.approx(expected)


@given(st.lists(st.floats(0, 1e6), min_size=2, max_size=50))
def test_percentile_agrees_with_the_standard_library(values):
    """`statistics.quantiles(method="inclusive")` is the same definition."""
    expected = statistics.quantiles(values, n=100, method="inclusive")

    for q in (1, 50, 95, 99):
        assert percentile(values, q) == pytest.approx(expected[q - 1], rel=1e-9, abs=1e-9)


@pytest.mark.parametrize(
    ("successes", "n", "low", "high"),
    # Newcombe (1998), Statistics in Medicine 17, table I: method 3 (Wilson) for these four.
    [(81, 263, 0.2553, 0.3662), (15, 148, 0.0624, 0.1605), (0, 20, 0.0, 0.1611), (1, 29, 0.0061, 0.1718)],
)
def test_wilson(successes, n, low, high):
    """The interval is the published one to four digits."""
    interval = wilson_95(successes, n)

    assert (interval.low, interval.high) == (pytest.approx(low, abs=6e-5), pytest.approx(high, abs=6e-5))


clusters = st.integers(1, 12).flatmap(lambda n: st.builds(Cluster, st.integers(0, n), st.just(n)))
samples = st.lists(clusters, min_size=1, max_size=30)


@given(st.lists(st.integers(0, 1), min_size=1, max_size=200))
def test_without_repeats_it_is_wilson(successes):
    """Prompts that were asked once are independent cells."""
    sample = [Cluster(success, 1) for success in successes]

    assert cluster_interval(sample) == wilson_95(sum(successes), len(successes))


@given(st.lists(st.booleans(), min_size=1, max_size=60), st.integers(2, 20))
def test_identical_repeats_add_nothing(passed, n):
    """Prompts whose repeats always end alike have as much information as when each is asked once."""
    sample = [Cluster(n * success, n) for success in passed]
    once = wilson_95(sum(passed), len(passed))
    repeated = cluster_interval(sample)

    assert (repeated.low, repeated.high) == pytest.approx((once.low, once.high))
    assert effective_n(sample, z=joint_z(3)) == pytest.approx(len(sample))


@given(samples)
def test_a_sample_is_worth_its_cells_at_most(sample):
    """Repeats never count more than once, and never less than if each prompt always ended alike."""
    n = sum(cluster.n for cluster in sample)
    worst = n**2 / sum(cluster.n**2 for cluster in sample)

    assert worst * (1 - 1e-12) <= effective_n(sample) <= n


@given(samples)
def test_a_miss_proves_no_higher_rate(sample):
    """No sample has a higher lower end than one of as many prompts that has no miss."""
    found = cluster_interval(sample)
    flawless = wilson_95(len(sample), len(sample))

    assert found.low <= flawless.low + 1e-12
    assert found.high >= 1 - flawless.low - 1e-12


@pytest.mark.parametrize(
    ("sample", "n"),
    [
        # By hand: rate 1/2; between (1/2 + 1/6) / 3 = 2/9, within (4/3) / 4 = 1/3, so nothing resembles.
        pytest.param([Cluster(2, 3), Cluster(1, 3)], 6, id="two-prompts"),
        # Rate 5/8; between (34/64 + 27/64 + 49/192) / 3 = 29/72, within (2/3) / 4 = 1/6, size (8 - 20/8) / 3
        # = 11/6; resemblance (29 - 12) / (29 + 5/6 * 12) = 17/39; 6 / (1 + 2 * 17/39).
        pytest.param([Cluster(3, 3), Cluster(1, 3)], 234 / 73, id="two-prompts-that-differ"),
        # The lower end is as for two prompts without a miss, low = 2 / (2 + z²): z² low (1 - low) / (0.99 - low)².
        pytest.param([Cluster(50, 50), Cluster(49, 50)], 2.0622, id="one-miss"),
    ],
)
def test_effective_samples(sample, n):
    """The figures of small samples, computed by hand."""
    assert effective_n(sample) == pytest.approx(n, rel=1e-3)


@pytest.mark.parametrize("n_targets", [2, 8])
def test_a_joint_interval_accounts_for_the_estimate_of_its_sample(n_targets):
    """By Student's t of SciPy, but no less than the prompts are worth that are asked once."""
    z, sample = joint_z(n_targets), [Cluster(2, 3), Cluster(1, 3)] * 17
    quantile = stats.t.isf(0.025 / n_targets, 33)

    assert effective_n(sample, z=z) == pytest.approx(effective_n(sample) * (z / quantile) ** 2)
    assert effective_n([Cluster(3, 3), Cluster(0, 3)] * 17, z=z) == pytest.approx(34, rel=0.05)


def test_repeats_of_a_prompt_are_one_cluster():
    """So are its harder forms, and its wordings in other files; the same id in another suite is not."""
    rows = [
        *(record(prompt_id="A", suite=suite, repeat=n) for suite in ("s", "other") for n in range(1, 4)),
        *(record(prompt_id=f"X-{tools}t", pressure_of="X") for tools in (1, 11)),
        record(suite="b/prompts_a.toml", prompt_id="P1"),
        record(suite="b/prompts_b.toml", prompt_id="P1w", variant_of="b/prompts_a.toml::P1"),
    ]

    rate = rate_of(rows, lambda row: row.success)

    assert (rate.n, rate.interval_95) == (10, wilson_95(4, 4))


QS = (50, 95, 99)
FEWEST = {50: 6, 95: 72, 99: 368, 5: 72, 60: 8}
PROMPTS = st.lists(st.lists(st.integers(0, 50), min_size=1, max_size=6), min_size=1, max_size=80)


def _once(n):
    return [[value] for value in range(1, n + 1)]


@pytest.mark.parametrize("q", [5, 50, 60, 95, 99])
@pytest.mark.parametrize("more", [0, 1, 7, 100, 3000])
def test_ranks_miss_with_a_chance_of_5_percent_at_most(q, more):
    """By SciPy's binomial distribution; and an end further in would miss too often."""
    share = q / 100
    n = FEWEST[q] + more
    interval = percentile_interval(_once(n), q)
    low, high = interval.low, interval.high

    below, above = stats.binom.cdf(low - 1, n, share), stats.binom.sf(high - 1, n, share)
    assert max(below, above) <= 0.025 + 1e-9
    assert min(stats.binom.cdf(low, n, share), stats.binom.sf(high - 2, n, share)) > 0.025


@pytest.mark.parametrize(("q", "fewest"), FEWEST.items())
def test_too_few_values_have_no_interval(q, fewest):
    """So many values are enough, one less is not."""
    assert percentile_interval(_once(fewest), q) is not None
    assert percentile_interval(_once(fewest - 1), q) is None


@pytest.mark.parametrize(
    "values", [[], [[7]], [[7] * 5] * 36, [[7] * 40, *[[7]] * 80]], ids=["none", "one", "repeats", "uneven"]
)
def test_repeats_do_not_replace_prompts(values):
    """Also if one prompt outweighs the others."""
    assert percentile_interval(values, 95) is None


@pytest.mark.parametrize("q", QS)
def test_prompts_that_always_take_the_same_time(q):
    """Their repeats add nothing to the interval."""
    assert percentile_interval([[value] * 7 for value in range(1, 401)], q) == percentile_interval(
        _once(400), q
    )


def test_repeats_that_differ_narrow_the_interval():
    """If a prompt says nothing about its latency, repeats have nearly as much information as prompts."""
    values = random.Random(20261122).sample(range(1000), 1000)
    repeated = percentile_interval([values[start : start + 5] for start in range(0, 1000, 5)], 50)
    once = percentile_interval([[value] for value in values[::5]], 50)

    assert repeated.high - repeated.low < (once.high - once.low) * 0.6


@given(PROMPTS, st.sampled_from(QS))
def test_the_percentile_lies_in_its_interval(values, q):
    """Both ends are values, and the percentile that is shown lies between them."""
    interval = percentile_interval(values, q)
    every = [value for of_prompt in values for value in of_prompt]

    if interval:
        assert {interval.low, interval.high} <= set(every)
        assert interval.low <= percentile(every, q) <= interval.high


@pytest.mark.parametrize(
    ("df", "off"), [(1, 0.112), (2, 0.0075), (3, 2e-3), (5, 2e-4), (29, 1e-6), (500, 1e-9)]
)
def test_student_t(df, off):
    """The expansion is SciPy's figure to the digits that it promises."""
    assert student_t(df) == pytest.approx(stats.t.ppf(0.975, df), rel=off)
