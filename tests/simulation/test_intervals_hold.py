"""Intervals hold the truth as often as they say, on simulated runs through the shipped summary."""

from pathlib import Path
from statistics import fmean

import numpy as np
import pytest
from scipy import stats

from pytest_openclaw.stats.intervals import Cluster, effective_n, wilson_95
from tests.simulation.__main__ import PROMPTS, SEED
from tests.simulation.coverage import coverage_of_percentiles, coverage_of_rates, rows_of
from tests.simulation.models import REPEATS, Design, Latencies, draw_counts
from tests.unit.reports.summaries import group_of

pytestmark = [pytest.mark.newest, pytest.mark.simulation]


def sample(values):
    """Return parameters of which the first is tried before every merge and the others by `tox -e simulate`."""
    first, *others = values
    return [first, *(pytest.param(value, marks=pytest.mark.nightly) for value in others)]


LOWEST, HIGHEST = 0.94, 0.97
REPEATED = [repeats for repeats in REPEATS if repeats != "1"]
RESEMBLANCES = (0.0, 0.2, 0.5, 0.8)


def _assert_held(coverage):
    rate, share = coverage.worst
    print(f"{coverage.design}: {coverage.mean:.2%}, worst {share:.1%} at {rate:g}")
    # Three standard errors: of a thousand such assertions two would fail by chance at the very limit.
    assert LOWEST - 3 * coverage.error <= coverage.mean <= HIGHEST + 3 * coverage.error


@pytest.mark.parametrize("n_prompts", sample(PROMPTS))
@pytest.mark.parametrize(("repeats", "resemblance"), [("1", 0.0), ("5", 1.0), ("10", 1.0)])
def test_rates_of_independent_cells(n_prompts, repeats, resemblance):
    """Without repeats, and where they are equal, the coverage is computed exactly; 94 to 97 % over the rates."""
    design = Design(n_prompts=n_prompts, repeats=repeats, resemblance=resemblance)
    coverage = coverage_of_rates(np.random.default_rng(SEED), design, 0)

    assert coverage.n_runs is None
    _assert_held(coverage)
    assert coverage.worst[1] > 0.92


@pytest.mark.parametrize("repeats", sample(REPEATED))
def test_rates_of_repeats_that_resemble_each_other(repeats):
    """However much they do, and however often each prompt is asked: 94 to 97 % over the rates."""
    source = np.random.default_rng(SEED)
    found = [
        coverage_of_rates(source, Design(n_prompts=n_prompts, repeats=repeats, resemblance=some), n_runs)
        for n_prompts, n_runs in ((30, 150), (100, 50))
        for some in RESEMBLANCES
    ]

    for coverage in found:
        _assert_held(coverage)
    assert LOWEST < fmean(coverage.mean for coverage in found) < HIGHEST


def test_the_models_are_what_they_are_said_to_be():
    """Simulated rows have the rate, and repeats of a prompt the correlation, that the truth is taken from."""
    design = Design(n_prompts=2000, repeats="5", resemblance=0.5)
    (counts,) = draw_counts(np.random.default_rng(SEED), design, 0.3, 1).tolist()
    rate = group_of(rows_of(counts, design.sizes.tolist())).passed

    assert rate.rate == pytest.approx(0.3, abs=0.03)
    # 10,000 cells by a design effect of 1 + 4 * 0.5.
    clusters = [Cluster(one, int(size)) for one, size in zip(counts, design.sizes, strict=True)]
    assert effective_n(clusters) == pytest.approx(10_000 / 3, rel=0.1)


@pytest.mark.parametrize(
    "latencies",
    [
        pytest.param(Latencies(resemblance=0.0), id="unlike", marks=pytest.mark.nightly),
        pytest.param(Latencies(resemblance=0.3, heavy=True), id="heavy-tail"),
        pytest.param(Latencies(resemblance=0.6, tick_ms=200), id="ties", marks=pytest.mark.nightly),
        pytest.param(Latencies(resemblance=0.9), id="alike", marks=pytest.mark.nightly),
    ],
)
@pytest.mark.parametrize(
    ("n_prompts", "repeats"),
    [
        (80, "5"),
        pytest.param(400, "1", marks=pytest.mark.nightly),
        pytest.param(40, "10", marks=pytest.mark.nightly),
    ],
)
def test_percentiles(n_prompts, repeats, latencies):
    """Whatever the distribution, and however much repeats resemble each other: at least 95 %."""
    design = Design(n_prompts=n_prompts, repeats=repeats, resemblance=latencies.resemblance)
    n_runs = 300

    shares = coverage_of_percentiles(np.random.default_rng(SEED), design, latencies, n_runs)

    print(design, latencies, shares)
    assert [name for name, share in shares.items() if share is None] == (
        [] if n_prompts >= 368 else ["p99"] if n_prompts >= 72 else ["p95", "p99"]
    )
    error = (0.05 * 0.95 / n_runs) ** 0.5
    assert all(share >= 0.95 - 3 * error for share in shares.values() if share is not None)


@pytest.mark.parametrize("n_prompts", [30, 36, 50, 100, 200])
def test_one_end_at_the_floors_of_the_tiers_is_as_the_page_says(n_prompts):
    """The exact rows of the table in docs/maintaining/simulations.md: how often one end is on the wrong side of 0.8 and 0.5."""
    intervals = [wilson_95(passed, n_prompts) for passed in range(n_prompts + 1)]
    shares = []
    for limit in (0.8, 0.5):
        chances = stats.binom.pmf(range(n_prompts + 1), n_prompts, limit)
        shares += [
            sum(chance for chance, one in zip(chances, intervals, strict=True) if one and is_beyond(one))
            for is_beyond in (lambda one: one.low >= limit, lambda one: one.high < limit)  # noqa: B023
        ]

    row = f"| {n_prompts} | 1 | – | " + " | ".join(f"{share:.1%}" for share in shares) + " |"
    assert row in (Path(__file__).parents[2] / "docs/maintaining/simulations.md").read_text("utf-8")
