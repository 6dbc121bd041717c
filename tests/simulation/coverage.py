"""How often the shipped code's intervals hold the truth that the rows were made from."""

from dataclasses import dataclass
from functools import cache

import numpy as np
from scipy import stats

from pytest_openclaw.stats.intervals import PERCENTILES, Cluster, cluster_interval, percentile_interval
from tests.simulation.models import Design, draw_counts
from tests.unit.reports.summaries import cell, group_of

RATES = tuple(round(0.05 * step, 2) for step in range(1, 20))
FINE_RATES = tuple(round(0.05 + 0.005 * step, 3) for step in range(181))
CHECKED = 50
"""Every so many-th run is summarized from its rows; of the others the function that a summary calls is enough."""


@dataclass(frozen=True, kw_only=True)
class Coverage:
    """True rates with the shares of runs whose interval held them; `n_runs` is None if the shares are exact."""

    design: Design
    by_rate: dict[float, float]
    n_runs: int | None

    @property
    def mean(self):
        return float(np.mean([*self.by_rate.values()]))

    @property
    def worst(self):
        rate = min(self.by_rate, key=lambda rate: self.by_rate[rate])
        return rate, self.by_rate[rate]

    @property
    def error(self):
        if self.n_runs is None:
            return 0.0
        return float((0.05 * 0.95 / (self.n_runs * len(self.by_rate))) ** 0.5)


def rows_of(counts, sizes, *, forms=False):
    """Return tool cells with this many passes per prompt; as repeats, or as harder forms of one entry."""
    return [
        _row(prompt, repeat, repeat <= passed, forms)
        for prompt, (passed, n) in enumerate(zip(counts, sizes, strict=True))
        for repeat in range(1, n + 1)
    ]


@cache
def _row(prompt, repeat, passed, forms):
    given = {"objective_pass": passed, "ttft_ms": None, "tokens_per_s": None}
    outcome = "valid" if passed else "no_call"
    if forms:
        return cell(f"P{prompt}-{repeat}t", outcome, pressure_of=f"P{prompt}", **given)
    return cell(f"P{prompt}", outcome, repeat=repeat, **given)


def coverage_of_rates(source, design, n_runs, rates=RATES):
    """Return how often the intervals of `passed` and `tool_use` hold the true rate."""
    if design.is_exact:
        return _exact(design)
    shares = {}
    for rate in rates:
        counts = draw_counts(source, design, rate, n_runs).tolist()
        held = [_holds(_interval(run, design, whole=n % CHECKED == 0), rate) for n, run in enumerate(counts)]
        shares[rate] = float(np.mean(held))
    return Coverage(design=design, by_rate=shares, n_runs=n_runs)


def _exact(design):
    """Where prompts end alike, their number is binomial: no more than one summary for each is needed."""
    k, sizes = design.n_prompts, design.sizes.tolist()
    passed = range(k + 1)
    intervals = [
        _interval([n if prompt < some else 0 for prompt, n in enumerate(sizes)], design, whole=some % 10 == 0)
        for some in passed
    ]
    shares = {
        rate: float(sum(stats.binom.pmf(some, k, rate) for some in passed if _holds(intervals[some], rate)))
        for rate in FINE_RATES
    }
    return Coverage(design=design, by_rate=shares, n_runs=None)


def _interval(counts, design, *, whole):
    sizes = design.sizes.tolist()
    interval = cluster_interval([*map(Cluster, counts, sizes)])
    if whole:
        group, as_forms = (group_of(rows_of(counts, sizes, forms=forms)) for forms in (False, True))
        assert group.passed.interval_95 == group.tool_use.interval_95 == interval
        assert as_forms.passed.interval_95 == interval
    return interval


def _holds(interval, truth):
    return interval.low <= truth <= interval.high


def coverage_of_percentiles(source, design, latencies, n_runs):
    """Return how often the intervals of p50, p95 and p99 hold the truth; None where no interval is given."""
    truths = {"p50": latencies.truth(0.5), "p95": latencies.truth(0.95), "p99": latencies.truth(0.99)}
    held = {name: [] for name in truths}
    for run in range(n_runs):
        times = latencies.draw(source, design)
        given = {f"p{q}": percentile_interval(times, q) for q in PERCENTILES}
        assert run % CHECKED or group_of(timed_rows(times)).latency_intervals_95 == given
        for name, truth in truths.items():
            if interval := given[name]:
                held[name].append(_holds(interval, truth))
    # Whether one is given depends only on the design, so the drawn values do not choose it.
    assert {len(runs) for runs in held.values()} <= {0, n_runs}
    return {name: float(np.mean(runs)) if runs else None for name, runs in held.items()}


def timed_rows(times):
    return [
        _timed(prompt, repeat, took)
        for prompt, of_prompt in enumerate(times)
        for repeat, took in enumerate(of_prompt, start=1)
    ]


def _timed(prompt, repeat, took):
    return cell(f"P{prompt}", "valid", repeat=repeat, e2e_ms=took, ttft_ms=None, tokens_per_s=None)
