"""Repeats of a prompt are correlated: the worth of a rate then, by laws and by simulation."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from pytest_openclaw.stats.intervals import (
    Cluster,
    cluster_interval,
    cluster_of,
    effective_n,
    rate_of,
    wilson_95,
)
from pytest_openclaw.stats.tiers import joint_z
from tests.unit.reports.summaries import record

clusters = st.integers(1, 12).flatmap(lambda n: st.builds(Cluster, st.integers(0, n), st.just(n)))
samples = st.lists(clusters, min_size=1, max_size=30)


@given(st.lists(st.integers(0, 1), min_size=1, max_size=200))
def test_without_repeats_it_is_wilson(successes: list[int]) -> None:
    """Prompts that were asked once are independent cells."""
    sample = [Cluster(success, 1) for success in successes]

    assert cluster_interval(sample) == wilson_95(sum(successes), len(successes))


@given(st.lists(st.booleans(), min_size=1, max_size=60), st.integers(2, 20))
def test_identical_repeats_add_nothing(passed: list[bool], n: int) -> None:
    """Prompts whose repeats always end alike have as much information as when each is asked once."""
    sample = [Cluster(n * success, n) for success in passed]
    once = wilson_95(sum(passed), len(passed))
    repeated = cluster_interval(sample)

    assert once is not None
    assert repeated is not None
    assert (repeated.low, repeated.high) == pytest.approx((once.low, once.high))
    assert effective_n(sample, z=joint_z(3)) == pytest.approx(len(sample))


@given(samples)
def test_a_sample_is_worth_its_cells_at_most(sample: list[Cluster]) -> None:
    """Repeats never count more than once, and never less than if each prompt always ended alike."""
    n = sum(cluster.n for cluster in sample)
    worst = n**2 / sum(cluster.n**2 for cluster in sample)

    assert worst * (1 - 1e-12) <= effective_n(sample) <= n


@given(samples)
def test_a_miss_proves_no_higher_rate(sample: list[Cluster]) -> None:
    """No sample has a higher lower end than one of as many prompts that has no miss."""
    found = cluster_interval(sample)
    flawless = wilson_95(len(sample), len(sample))

    assert found is not None
    assert flawless is not None
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
        pytest.param([Cluster(3, 3), Cluster(0, 3)], 2, id="two-that-end-alike"),
        pytest.param([Cluster(1, 1), Cluster(0, 1), Cluster(1, 1)], 3, id="no-repeats"),
    ],
)
def test_effective_samples(sample: list[Cluster], n: float) -> None:
    """The figures of small samples, computed by hand."""
    assert effective_n(sample) == pytest.approx(n, rel=1e-3)


@pytest.mark.parametrize("n_targets", [2, 8])
def test_a_joint_interval_accounts_for_the_estimate_of_its_sample(n_targets: int) -> None:
    """By Student's t of SciPy, but no less than the prompts are worth that are asked once."""
    z, sample = joint_z(n_targets), [Cluster(2, 3), Cluster(1, 3)] * 17
    quantile = stats.t.isf(0.025 / n_targets, 33)

    assert effective_n(sample, z=z) == pytest.approx(effective_n(sample) * (z / quantile) ** 2)
    assert effective_n([Cluster(3, 3), Cluster(0, 3)] * 17, z=z) == pytest.approx(34, rel=0.05)


def test_repeats_of_a_prompt_are_one_cluster() -> None:
    """Rows are clustered by suite and prompt; forms of one entry made harder are one too."""
    rows = [
        *(record(prompt_id="A", repeat=n) for n in range(1, 4)),
        *(record(prompt_id="A", suite="other", repeat=n) for n in range(1, 4)),
        record(prompt_id="X-1t", pressure_of="X"),
        record(prompt_id="X-11t", pressure_of="X"),
    ]

    rate = rate_of(rows, lambda row: row.success)

    assert (rate.n, rate.interval_95) == (8, wilson_95(3, 3))


def test_wordings_of_a_prompt_are_one_cluster() -> None:
    """Also where they are in different files, as are a second wording of each and the first."""
    first = record(suite="b/prompts_a.toml", prompt_id="P1")
    second = record(suite="b/prompts_b.toml", prompt_id="P1w", variant_of="b/prompts_a.toml::P1")

    assert cluster_of(first) == cluster_of(second) == ("b/prompts_a.toml", "P1")
    rate = rate_of([first, second], lambda row: row.objective_pass is True)
    assert (rate.n, rate.interval_95) == (2, wilson_95(1, 1))
