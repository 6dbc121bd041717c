"""How sure a rate is, also when some cells repeat others."""

from __future__ import annotations

from dataclasses import dataclass
from math import sqrt
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Sequence

Z_95 = 1.959963984540054
"""The 97.5th percentile of the standard normal distribution."""


@dataclass(frozen=True, kw_only=True)
class Interval:
    """A range in which the true rate lies, 0 to 1."""

    low: float
    high: float


class Cluster(NamedTuple):
    """The cells of one prompt: its repeats."""

    n_success: int
    n: int


def wilson_95(successes: float, n: float) -> Interval | None:
    """Return the Wilson score interval at 95 %, without continuity correction; None for `n` 0.

    Wilson (1927), "Probable inference, the law of succession, and statistical inference", JASA 22.

    Args:
        successes: so many of `n`.
        n: whole numbers, or an effective sample with the same rate.

    Raises:
        ValueError: `successes` is not from 0 to `n`.
    """
    if not 0 <= successes <= n:
        raise ValueError(f"{successes:g} successes of {n:g} are impossible")
    if n == 0:
        return None
    rate = successes / n
    shrink = 1 + Z_95**2 / n
    centre = (rate + Z_95**2 / (2 * n)) / shrink
    half = Z_95 * sqrt(rate * (1 - rate) / n + Z_95**2 / (4 * n**2)) / shrink
    # At 0 and n the formula is exact, its floating-point value not quite.
    return Interval(
        low=0.0 if successes == 0 else centre - half, high=1.0 if successes == n else centre + half
    )


def effective_n(clusters: Sequence[Cluster]) -> float:
    """Return how many independent cells tell as much as these: the repeats of a prompt resemble each other.

    The cells divided by the design effect `1 + (size - 1) * resemblance` (Kish 1965, "Survey Sampling"),
    where size is the mean number of repeats a cell finds itself among. Never more than the cells, never
    fewer than the prompts. Without repeats these are the cells; where all went well, or all went wrong,
    these are the prompts, because nothing tells then whether repeats differ.

    Args:
        clusters: one for each prompt, none of them empty.
    """
    k, n = len(clusters), sum(cluster.n for cluster in clusters)
    if k == n:
        return float(n)
    size = sum(cluster.n**2 for cluster in clusters) / n
    effect = 1 + (size - 1) * _resemblance(clusters)
    return max(float(k), min(float(n), n / effect))


def clustered_95(clusters: Sequence[Cluster]) -> Interval | None:
    """Return the 95 % interval of the rate over all cells of all prompts; None without any.

    Wilson's on the effective sample, which Franco, Little, Louis & Slud (2019), "Comparative study of
    confidence intervals for proportions in complex sample surveys", J. Survey Stat. Methodol. 7, recommend.
    """
    if not clusters:
        return None
    n, n_success = sum(cluster.n for cluster in clusters), sum(cluster.n_success for cluster in clusters)
    n_effective = effective_n(clusters)
    return wilson_95(share(n_success, n, n_effective), n_effective)


def share(n_success: int, n: int, n_effective: float) -> float:
    """Return the successes of an effective sample with the same rate; all of it if all succeeded."""
    return n_effective if n_success == n else n_success * (n_effective / n)


def _resemblance(clusters: Sequence[Cluster]) -> float:
    """Return how much the repeats of a prompt resemble each other: 0, as others do, to 1, they are equal.

    The intraclass correlation by analysis of variance: Donner (1986), "A review of inference procedures
    for the intraclass correlation coefficient in the one-way random effects model", Int. Stat. Rev. 54;
    for successes and misses see Ridout, Demétrio & Firth (1999), Biometrics 55. A prompt that always
    succeeds and one that never does are added first, in the manner of Agresti & Coull (1998): of a handful
    of misses the variance alone says too little, and a miss would prove a higher rate than none does.
    """
    k, n = len(clusters), sum(cluster.n for cluster in clusters)
    mean_size = n / k
    total = n + 2 * mean_size
    rate = (sum(cluster.n_success for cluster in clusters) + mean_size) / total
    between = mean_size * ((1 - rate) ** 2 + rate**2)
    within, squares = 0.0, 2 * mean_size**2
    for cluster in clusters:
        own = cluster.n_success / cluster.n
        between += cluster.n * (own - rate) ** 2
        within += cluster.n * own * (1 - own)
        squares += cluster.n**2
    between /= k + 1
    within /= total - k - 2
    size = (total - squares / total) / (k + 1)
    return max(0.0, (between - within) / (between + (size - 1) * within))
