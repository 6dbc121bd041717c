"""Confidence intervals of rates and percentiles, with or without repeats of prompts; tests of differences."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from math import ceil, exp, floor, gcd, inf, lgamma, log, sqrt
from statistics import NormalDist, fmean
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from pytest_openclaw.values.requests import PromptKey
    from pytest_openclaw.values.rows import Record


Z_95 = 1.959963984540054
"""The 97.5th percentile of the standard normal distribution."""


@dataclass(frozen=True, kw_only=True)
class Interval:
    """A confidence interval of a rate (0 to 1), or of a percentile in the unit of its values."""

    low: float
    high: float


class Cluster(NamedTuple):
    """The cells of one prompt: its repeats and its harder forms."""

    n_success: int
    n: int


def total_of(clusters: Sequence[Cluster]) -> Cluster:
    """Return the successes and the cells of all prompts."""
    return Cluster(sum(one.n_success for one in clusters), sum(one.n for one in clusters))


def wilson_95(successes: float, n: float, *, z: float = Z_95) -> Interval | None:
    """Return the score interval of Wilson (1927, JASA 22); None for `n` 0.

    `n` may be the size of an effective sample; for joint intervals, `tool_use.joint_z` returns `z`.
    """
    if n == 0:
        return None
    rate = successes / n
    shrink = 1 + z**2 / n
    centre = (rate + z**2 / (2 * n)) / shrink
    half = z * sqrt(rate * (1 - rate) / n + z**2 / (4 * n**2)) / shrink
    # At 0 and n the formula is exact, but its floating-point value is not.
    return Interval(
        low=0.0 if successes == 0 else centre - half, high=1.0 if successes == n else centre + half
    )


def effective_n(clusters: Sequence[Cluster], *, z: float = Z_95) -> float:
    """Return the equivalent number of independent cells; the repeats of a prompt resemble each other.

    The number of cells divided by the design effect `1 + (size - 1) * resemblance` (Kish 1965, "Survey
    Sampling"), where `size` is the cluster size of an average cell. If all cells or no cells succeeded,
    it is unknown whether repeats differ, so the number of prompts is returned. No mixed rate may prove more
    than the same number of flawless prompts, which limits the result.
    """
    k, (n_success, n) = len(clusters), total_of(clusters)
    if k == n:
        return float(n)
    if n_success in (0, n):
        return float(k)
    size = sum(cluster.n**2 for cluster in clusters) / n
    effect = 1 + (size - 1) * resemblance_of(clusters)
    rate = n_success / n
    return min(_sure_cells(n / effect, k, z), _most_cells(rate, k, z), _most_cells(1 - rate, k, z))


def _sure_cells(n: float, k: int, z: float) -> float:
    """Reduce the size of an effective sample, estimated from `k` clusters, for use in a joint interval.

    By Student's t instead of the normal distribution: Korn & Graubard (1998, Surv. Methodol. 24). The result
    is not less than the number of prompts; 95 % intervals of a single look hold without the reduction.
    """
    if z <= Z_95:
        return n
    least = min(n, float(k))
    return max(least, n * (z / student_t(k - 1, z)) ** 2) if k > 1 else least


def _most_cells(rate: float, k: int, z: float) -> float:
    """Return the most cells of this rate whose interval begins no higher than for `k` flawless cells."""
    floor = k / (k + z**2)
    # The lower end solves (rate - low)² = z² low (1 - low) / n; for rate 1 and n = k, it is `floor`.
    return inf if rate <= floor else z**2 * floor * (1 - floor) / (rate - floor) ** 2


def cluster_interval(clusters: Sequence[Cluster], z: float = Z_95, *, fewer: float = 0.0) -> Interval | None:
    """Return the interval of the rate over all cells with `fewer` successes subtracted; None without cells.

    Wilson's on the effective sample: Franco, Little, Louis & Slud (2019, J. Survey Stat. Methodol. 7).
    """
    if not clusters:
        return None
    (n_success, n), n_effective = total_of(clusters), effective_n(clusters, z=z)
    successes = n_effective if n_success == n else n_success * (n_effective / n)
    return wilson_95(max(0.0, successes - fewer), n_effective, z=z)


def mean_difference_95(units: Sequence[tuple[float, float]]) -> Interval | None:
    """Return the interval of a mean difference, as if two more prompts had been asked: one better, one worse.

    Bonett & Price (2012, J. Educ. Behav. Stat. 37), here for whole prompts and with Student's t. A unit is
    the sum of a prompt's differences, -1 to 1 each, and their number.
    """
    if not units:
        return None
    n = sum(weight for _, weight in units)
    size = n / len(units)
    adjusted = [*units, (size, size), (-size, size)]
    total = n + 2 * size
    center = sum(shift for shift, _ in adjusted) / total
    half = student_t(len(adjusted) - 1) * sqrt(sum((t - center * m) ** 2 for t, m in adjusted)) / total
    return Interval(low=max(-1.0, center - half), high=min(1.0, center + half))


def student_t(df: int, z: float = Z_95) -> float:
    """Return the value of Student's t that is exceeded as often as `z` by the normal distribution.

    Cornish & Fisher's expansion in 1/df, as in Abramowitz & Stegun (1964), 26.7.5. At the 97.5th percentile
    it is 11 % too small for 1 degree of freedom, 0.7 % for 2, 0.1 % for 3, 0.01 % for 5, less for more.
    """
    terms: tuple[float, ...] = (
        (z**3 + z) / 4,
        (5 * z**5 + 16 * z**3 + 3 * z) / 96,
        (3 * z**7 + 19 * z**5 + 17 * z**3 - 15 * z) / 384,
        (79 * z**9 + 776 * z**7 + 1482 * z**5 - 1920 * z**3 - 945 * z) / 92160,
    )
    value = z
    for power, term in enumerate(terms, start=1):
        value += term / float(df) ** power
    return value


def percent_range(interval: Interval) -> str:
    """Return an interval of a rate as `77.0 % to 96.9 %`."""
    return f"{cut_percent(interval.low)} to {cut_percent(interval.high)}"


def cut_percent(rate: float) -> str:
    """Return a rate as `79.9 %`, rounded down so that it never seems to reach a limit that it misses."""
    return f"{floor(rate * 1000 + 1e-9) / 10:.1f} %"


def whole_percent(rate: float) -> str:
    """Return a wanted rate with all its digits."""
    return f"{rate * 100:.1f} %" if rate == round(rate, 3) else f"{rate * 100:.10g} %"


def resemblance_of(clusters: Sequence[Cluster]) -> float:
    """Return how similar a prompt's repeats are, from 0 (like any two cells) to 1 (equal).

    The intraclass correlation by analysis of variance (Donner 1986, Int. Stat. Rev. 54). First, a prompt with
    one success and a prompt with one miss are added, as Agresti & Coull (1998, Am. Stat. 52) add cells,
    because the variance of few misses is unreliable.
    """
    k, (n_success, n) = len(clusters), total_of(clusters)
    total = n + 2
    rate = (n_success + 1) / total
    between, within, squares = (1 - rate) ** 2 + rate**2, 0.0, 2
    for cluster in clusters:
        own = cluster.n_success / cluster.n
        between += cluster.n * (own - rate) ** 2
        within += cluster.n * own * (1 - own)
        squares += cluster.n**2
    between /= k + 1
    within /= n - k
    size = (total - squares / total) / (k + 1)
    return max(0.0, (between - within) / (between + (size - 1) * within))


@dataclass(frozen=True, kw_only=True)
class Rate:
    """A share of `n` cells, with its 95 % interval; both are None if `n` is 0."""

    n: int
    n_success: int
    rate: float | None
    interval_95: Interval | None


def cluster_of(record: Record) -> PromptKey:
    """Return the prompt of a row, which is one cluster with all its repeats, wordings and harder forms."""
    if record.variant_of is not None:
        suite, _, prompt_id = record.variant_of.rpartition("::")
        return suite, prompt_id
    return record.suite, record.pressure_of or record.prompt_id


def is_judged(record: Record) -> bool:
    """Whether an answered cell counts in the pass rate; an empty or refused answer counts as not passed."""
    return record.availability_status == "ok" and (record.objective_pass is not None or not record.success)


def has_passed(record: Record) -> bool:
    """Whether a cell has a verdict and passed."""
    return record.objective_pass is True


def rate_of(records: Iterable[Record], succeeded: Callable[[Record], bool]) -> Rate:
    """Count the successes; repeats of a prompt, and its harder forms, are one cluster."""
    clusters = clusters_of(records, succeeded)
    n_success, n = total_of(clusters)
    rate = n_success / n if n else None
    return Rate(n=n, n_success=n_success, rate=rate, interval_95=cluster_interval(clusters))


def by_prompt(records: Iterable[Record]) -> dict[PromptKey, list[Record]]:
    """Return the rows of each prompt, in the order of first rows."""
    rows: dict[PromptKey, list[Record]] = {}
    for record in records:
        rows.setdefault(cluster_of(record), []).append(record)
    return rows


def clusters_of(records: Iterable[Record], succeeded: Callable[[Record], bool]) -> list[Cluster]:
    """Return the successes and cells of each prompt, in the order of first rows."""
    return [Cluster(sum(map(succeeded, rows)), len(rows)) for rows in by_prompt(records).values()]


# --- percentiles ------------------------------------------------------------------------------------

BEYOND = 0.025
"""The largest chance that one end of an interval misses the truth."""


def percentile(values: Sequence[float], q: float) -> float:
    """Return the `q`-th percentile, interpolating linearly between closest ranks.

    Hyndman & Fan (1996), type 7; `statistics.quantiles(method="inclusive")` agrees.
    """
    ordered = sorted(values)
    rank = (len(ordered) - 1) * q / 100
    below = floor(rank)
    above = min(below + 1, len(ordered) - 1)
    return ordered[below] + (ordered[above] - ordered[below]) * (rank - below)


def percentile_interval(values_by_prompt: Iterable[Sequence[float]], q: float) -> Interval | None:
    """Return the 95 % interval of the `q`-th percentile, between two values; None if there are too few.

    Without repeats the number of values below the percentile is binomial, whatever their distribution, so
    the ranks are exact (Hahn & Meeker 1991, "Statistical Intervals", 5.2). Repeats of a prompt resemble each
    other: the ranks then belong to the effective sample, mapped outwards onto the values (Woodruff 1952,
    JASA 47). The sample is made smaller by the square of Student's t over z, because its size is an estimate
    (Korn & Graubard 1998). Repeats never replace missing prompts.
    """
    prompts = [values for values in values_by_prompt if values]
    ordered = sorted(value for values in prompts for value in values)
    n, share = len(ordered), q / 100
    if not n:
        return None
    worst = floor(n**2 / sum(len(values) ** 2 for values in prompts) + 1e-9)
    if _ranks(worst, share) is None:
        return None
    n_effective = max(worst, _effective_n(prompts, ordered, share))
    ranks = _ranks(n_effective, share)
    assert ranks
    low = max(1, ranks[0] * n // n_effective)
    high = min(n, -(-ranks[1] * n // n_effective))
    return Interval(low=ordered[low - 1], high=ordered[high - 1])


def _effective_n(prompts: Sequence[Sequence[float]], ordered: Sequence[float], share: float) -> int:
    """Return the number of independent values with as much evidence about the percentile."""
    if len(prompts) == len(ordered):
        return len(ordered)
    at = ordered[ceil(len(ordered) * share) - 1]
    clusters = [Cluster(sum(value <= at for value in values), len(values)) for values in prompts]
    return floor(effective_n(clusters) * (Z_95 / student_t(len(prompts) - 1)) ** 2)


@lru_cache(maxsize=1024)
def _ranks(n: int, share: float) -> tuple[int, int] | None:
    """Return the ranks, from 1, between which the percentile of `n` values lies; None if there are too few.

    Each end misses the percentile with a chance of at most 2.5 %.
    """
    low, high = _rank(n, share), n + 1 - _rank(n, 1 - share)
    return (low, high) if low >= 1 and high <= n else None


def _rank(n: int, share: float) -> int:
    """Return the largest rank whose value exceeds the percentile with a chance of at most 2.5 %, or 0."""
    # Ranks further out than ten standard deviations add nothing.
    k = max(0, floor(n * share - 10 * sqrt(n * share * (1 - share))))
    so_far = 0.0
    while k <= n:
        ways = lgamma(n + 1) - lgamma(k + 1) - lgamma(n - k + 1)
        so_far += exp(ways + k * log(share) + (n - k) * log(1 - share))
        if so_far > BEYOND * (1 + 1e-12):
            break
        k += 1
    return k


PERCENTILES = (50, 95, 99)


class Distribution(NamedTuple):
    """The percentiles and the mean of a measurement.

    Attributes:
        values: p50, p95, p99 and mean; None if no row has the measurement.
        intervals: the 95 % interval of each percentile.
    """

    values: Mapping[str, float | None]
    intervals: Mapping[str, Interval | None]


def distribution_of(records: Sequence[Record], measured: Callable[[Record], float | None]) -> Distribution:
    """Return the percentiles and the mean of a measurement, over the rows that have it."""
    measurements = [
        [value for row in rows if (value := measured(row)) is not None]
        for rows in by_prompt(records).values()
    ]
    values = [value for of_prompt in measurements for value in of_prompt]
    return Distribution(
        values={
            **{f"p{q}": percentile(values, q) if values else None for q in PERCENTILES},
            "mean": fmean(values) if values else None,
        },
        intervals={f"p{q}": percentile_interval(measurements, q) for q in PERCENTILES},
    )


# --- differences ------------------------------------------------------------------------------------

LEVEL = 0.05
"""A two-sided p below this, after Holm's correction, is a difference."""
MOST_EXACT = 1000
"""If more prompts than this differ, the normal distribution is as good as the exact one."""


class Difference(NamedTuple):
    """The result of a test: the sign of the difference, 0 for none, and its two-sided p."""

    sign: int
    p: float

    @property
    def significant(self) -> int:
        """The sign of a significant difference, otherwise 0."""
        return self.sign if self.p < LEVEL else 0


def sign_flip(totals: Sequence[int]) -> Difference:
    """Test whether the differences of prompts are centered at zero.

    The exact randomization test: if nothing has changed, each prompt's difference could as well have had the
    other sign (Fisher 1935, "The Design of Experiments", section 21). With one cell per prompt this is the
    exact McNemar test (1947, Psychometrika 12). With several, it allows for the similarity of a prompt's
    cells, because they change sign together.

    Args:
        totals: for each prompt, the passed cells in the candidate less the passed cells in the baseline.
    """
    found, sizes = sum(totals), [abs(total) for total in totals if total]
    if not found:
        return Difference(0, 1.0)
    sign = 1 if found > 0 else -1
    if len(sizes) > MOST_EXACT:
        excess = (abs(found) - gcd(*sizes)) / sqrt(sum(size**2 for size in sizes))
        return Difference(sign, min(1.0, 2 * (1 - NormalDist().cdf(excess))))
    # One whole number holds, for each sum, the number of sign choices with this sum. Each count is a digit of
    # `bits` bits, wide enough for all choices, so that a shift moves all counts to other sums.
    bits = len(sizes) + 1
    choices = 1
    for size in sizes:
        choices += choices << (size * bits)
    at_least = (sum(sizes) + abs(found)) // 2
    # The remainder by a digit of ones is the sum of the digits, like the remainder by nine in decimal.
    n_extreme = (choices >> (at_least * bits)) % ((1 << bits) - 1)
    return Difference(sign, min(1.0, 2 * (n_extreme / 2 ** len(sizes))))
