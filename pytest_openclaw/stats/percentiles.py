"""Where latencies lie, and how sure that is.

A measurement over the rows of one target: percentiles with intervals, and the mean.
"""

from __future__ import annotations

from functools import lru_cache
from math import ceil, floor, log, sqrt
from statistics import fmean
from typing import TYPE_CHECKING, NamedTuple

from pytest_openclaw.stats.intervals import (
    Z_95,
    Cluster,
    Interval,
    binomial,
    cluster_of,
    effective_n,
    student_t,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from pytest_openclaw.values.rows import Record


CONFIDENCE = 0.95


class PercentileInterval(NamedTuple):
    """The 95 % interval of a percentile, in the unit of its values, or the reason why there is none."""

    interval: Interval | None
    reason: str | None = None


class _Ranks(NamedTuple):
    """From the `low`-th to the `high`-th smallest value, counted from 1."""

    low: int
    high: int


def percentile(values: Sequence[float], q: float) -> float:
    """Return the `q`-th percentile, interpolating linearly between closest ranks.

    Hyndman & Fan (1996), "Sample quantiles in statistical packages", type 7;
    `statistics.quantiles(method="inclusive")` agrees.

    Args:
        values: measurements in any order and any unit; the result keeps the unit.
        q: 0 to 100.

    Raises:
        ValueError: `values` is empty, or `q` is outside 0 to 100.

    """
    if not values:
        raise ValueError("no values, no percentile")
    if not 0 <= q <= 100:
        raise ValueError(f"{q} is not from 0 to 100")
    ordered = sorted(values)
    rank = (len(ordered) - 1) * q / 100
    below = floor(rank)
    above = min(below + 1, len(ordered) - 1)
    return ordered[below] + (ordered[above] - ordered[below]) * (rank - below)


def percentile_interval(values_by_prompt: Iterable[Sequence[float]], q: float) -> PercentileInterval:
    """Return the 95 % interval of the `q`-th percentile: two of the values.

    Without repeats the number of values below the percentile is binomial, whatever their distribution, so
    the ranks are exact: Hahn & Meeker (1991), "Statistical Intervals", 5.2. Repeats of a prompt resemble
    each other, also in whether they lie below it: the ranks are those of the effective sample then, mapped
    outwards onto the values, after Woodruff (1952), "Confidence intervals for medians and other position
    measures", JASA 47. That sample is made smaller by the square of Student's t over z, because its size is
    an estimate: Korn & Graubard (1998), "Confidence intervals for proportions with small expected number of
    positive counts estimated from survey data", Surv. Methodol. 24.

    Repeats never make up for prompts: a kind of prompt that is slow, and none of these, would show in none.

    Args:
        values_by_prompt: the measurements of each prompt, in any order and any unit; empty ones count not.
        q: above 0 and below 100.

    Raises:
        ValueError: `q` is not between 0 and 100.

    """
    if not 0 < q < 100:
        raise ValueError(f"{q} is not between 0 and 100")
    prompts = [values for values in values_by_prompt if values]
    ordered = sorted(value for values in prompts for value in values)
    n, share = len(ordered), q / 100
    if not n:
        return PercentileInterval(None, "no values")
    worst = floor(n**2 / sum(len(values) ** 2 for values in prompts) + 1e-9)
    if _ranks(worst, share) is None:
        return PercentileInterval(None, _too_few(n, len(prompts), worst, share))
    n_effective = max(worst, _effective_n(prompts, ordered, share))
    ranks = _ranks(n_effective, share)
    assert ranks
    low = max(1, ranks.low * n // n_effective)
    high = min(n, -(-ranks.high * n // n_effective))
    return PercentileInterval(Interval(low=ordered[low - 1], high=ordered[high - 1]))


def fewest_values(share: float) -> int:
    """Return how many prompts an interval takes; 6 for the median, 59 for p95, 299 for p99."""
    n = max(1, ceil(log(1 - CONFIDENCE) / log(max(share, 1 - share))))
    while share**n + (1 - share) ** n > 1 - CONFIDENCE:
        n += 1
    return n


def _effective_n(prompts: Sequence[Sequence[float]], ordered: Sequence[float], share: float) -> int:
    """How many independent values say as much about where that share of them ends."""
    if len(prompts) == len(ordered):
        return len(ordered)
    at = ordered[ceil(len(ordered) * share) - 1]
    clusters = [Cluster(sum(value <= at for value in values), len(values)) for values in prompts]
    return floor(effective_n(clusters) * (Z_95 / student_t(len(prompts) - 1)) ** 2)


def _too_few(n: int, n_prompts: int, worth: int, share: float) -> str:
    wanted = f"p{100 * share:g} takes {fewest_values(share)}"
    if n == n_prompts:
        return f"{wanted} values, there {'is 1' if n == 1 else f'are {n}'}"
    prompts = f"there {'is 1' if n_prompts == 1 else f'are {n_prompts}'} with {n} values"
    uneven = f", worth {worth} that are repeated alike" if worth < n_prompts else ""
    return f"{wanted} prompts, {prompts}{uneven}"


@lru_cache(maxsize=1024)
def _ranks(n: int, share: float) -> _Ranks | None:
    """The ranks between which the percentile of `n` independent values lies; None if they do not suffice.

    Either end misses it with half of the chance that both may have. Where the extreme value misses it more
    often than that, it is the end all the same, and the other end has the rest of the chance.
    """
    both = 1 - CONFIDENCE
    if share**n + (1 - share) ** n > both:
        return None
    beyond_low, beyond_high = max(both / 2, (1 - share) ** n), max(both / 2, share**n)
    low = _rank(n, share, both - beyond_high if beyond_high > both / 2 else beyond_low)
    high = _rank(n, 1 - share, both - beyond_low if beyond_low > both / 2 else beyond_high)
    return _Ranks(max(1, low), n + 1 - max(1, high))


def _rank(n: int, share: float, chance: float) -> int:
    """The largest rank that more than that share of the distribution lies below with at most that chance."""
    # What lies further out than ten standard deviations adds nothing.
    k = max(0, floor(n * share - 10 * sqrt(n * share * (1 - share))))
    so_far = 0.0
    while k <= n:
        so_far += binomial(n, k, share)
        if so_far > chance * (1 + 1e-12):
            break
        k += 1
    return k


PERCENTILES = (50, 95, 99)


class Distribution(NamedTuple):
    """Where a measurement lies.

    Attributes:
        values: p50, p95, p99 and mean; None without a row that has it.
        intervals: of the percentiles, 95 % each.
        notes: why a percentile has no interval: `p95` → reason.

    """

    values: Mapping[str, float | None]
    intervals: Mapping[str, Interval | None]
    notes: Mapping[str, str]


def distribution_of(records: Sequence[Record], measured: Callable[[Record], float | None]) -> Distribution:
    """Return where a measurement lies over the rows that have it."""
    by_prompt: dict[tuple[str, str], list[float]] = {}
    for record in records:
        if (value := measured(record)) is not None:
            by_prompt.setdefault(cluster_of(record), []).append(value)
    values = [value for of_prompt in by_prompt.values() for value in of_prompt]
    found = {f"p{q}": percentile_interval(by_prompt.values(), q) for q in PERCENTILES}
    return Distribution(
        values={
            **{f"p{q}": percentile(values, q) if values else None for q in PERCENTILES},
            "mean": fmean(values) if values else None,
        },
        intervals={name: one.interval for name, one in found.items()},
        notes={name: one.reason for name, one in found.items() if one.reason},
    )
