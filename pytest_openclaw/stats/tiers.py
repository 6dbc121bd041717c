"""The tier that a target's tool use earns, and whether the evidence settles it.

Where several targets are rated or repeats end early, a tier's limits hold for all of them together. The rate
after `r` repeats of `k` prompts has the variance `between / k + within / (k r)`, and its covariance
with a later rate is the variance of the later one. This is the canonical form of group-sequential tests
(Jennison & Turnbull 2000, "Group Sequential Methods", chapter 3), so their limits hold. The more repeats
resemble each other, the more two looks see the same, and the less often any of them is wrong: the limits
hold for repeats that do not resemble each other at all.
"""

from __future__ import annotations

from functools import lru_cache
from itertools import pairwise
from math import exp, pi, sqrt
from statistics import NormalDist
from typing import TYPE_CHECKING

from pytest_openclaw.stats.intervals import Z_95, Interval
from pytest_openclaw.values.settings import SUITE_LOOKS

if TYPE_CHECKING:
    from collections.abc import Sequence


TIER_NAMES = {1: "Tool-Capable", 2: "Tool-Capable but Inconsistent", 3: "Tool-Incapable"}
TIER_FLOORS = {1: 0.80, 2: 0.50, 3: 0.0}
"""The lowest rate of each tier; the seed's thresholds, never rounded first."""
MOST_NEEDLESS = 0.20
"""The largest share of needless calls of a Tier 1 target, over the cells that forbid tools."""


def classify_tier(n_success: float, n: float) -> int | None:
    """Return 1, 2 or 3 for a tool-use success rate of at least 80 %, at least 50 %, or less; None for `n` 0.

    Whole numbers are compared, so that 4 of 5 is exactly 80 %.
    """
    if n == 0:
        return None
    if 100 * n_success >= 80 * n:
        return 1
    return 2 if 100 * n_success >= 50 * n else 3


def calls_needlessly(n_needless: int, n: int) -> bool:
    """Whether needless calls are more than a fifth of the cells that forbid tools."""
    return 100 * n_needless > 20 * n


def is_conclusive(tier: int, interval: Interval) -> bool:
    """Whether the whole interval lies inside the tier."""
    ceiling = TIER_FLOORS.get(tier - 1, float("inf"))
    return interval.low >= TIER_FLOORS[tier] and interval.high < ceiling


def excludes_worse(tier: int, interval: Interval | None) -> bool:
    """Whether there is evidence, and it leaves no room for a tier worse than this one."""
    return interval is not None and interval.low >= TIER_FLOORS[tier]


STEPS = 64
"""Of Simpson's rule; they make a limit at most 0.0003 too high."""
BISECTIONS = 14
_NORMAL = NormalDist()
_LOWEST = -8.0


_LARGE_SUITE = 200
"""Prompts that count, in the suite for which the limit of the looks against a model is computed."""


def joint_z(n_targets: int, looks: Sequence[int] = ()) -> float:
    """Return the z of joint 95 % intervals over all targets and all looks at the end of repeats.

    Over the targets by Bonferroni's inequality, over the looks by one limit for all of them (Pocock 1977,
    Biometrika 64). A conclusive tier rests on one end of an interval, so the chance that any target of a run
    gets a conclusive tier above its true one stays at 2.5 %, and below it as well.
    """
    return _joint_z(n_targets, tuple(looks))


def joint_z_against(n_targets: int, looks: Sequence[int] = ()) -> float:
    """Return the z of the ends that speak against a model, at which it is looked within the first repeat too.

    Claims for a model and claims against it may each be wrong in 2.5 % of runs, so each has its own limit.
    The limit of a large suite also holds for a smaller one, whose looks are fewer or more alike.
    """
    information = (*SUITE_LOOKS, *(_LARGE_SUITE * look for look in looks))
    return joint_z(n_targets, information if looks else ())


@lru_cache(maxsize=256)
def _joint_z(n_targets: int, looks: tuple[int, ...]) -> float:
    level = 0.025 / max(1, n_targets)
    single = Z_95 if n_targets <= 1 else _NORMAL.inv_cdf(1 - level)
    if len(looks) <= 1:
        return single
    low, high = single, _NORMAL.inv_cdf(1 - level / len(looks))
    for _ in range(BISECTIONS):
        middle = (low + high) / 2
        low, high = (middle, high) if _ever_above(middle, looks) > level else (low, middle)
    return high


def _ever_above(z: float, looks: Sequence[int]) -> float:
    """Return the probability that the standardized rate exceeds `z` at any look, with the rate at the limit.

    Integrated look by look: Armitage, McPherson & Rowe (1969, J. Royal Stat. Soc. A 132).
    """
    width = (z - _LOWEST) / STEPS
    points = [_LOWEST + step * width for step in range(STEPS + 1)]
    weights = [width / 3 * (1 if step in (0, STEPS) else 2 + 2 * (step % 2)) for step in range(STEPS + 1)]
    densities = [_NORMAL.pdf(point) for point in points]
    below = _NORMAL.cdf(z)
    for look, following in pairwise(looks):
        kept, new = sqrt(look / following), sqrt(1 - look / following)
        masses = [density * weight for density, weight in zip(densities, weights, strict=True)]
        below = sum(
            mass * _NORMAL.cdf((z - kept * point) / new) for mass, point in zip(masses, points, strict=True)
        )
        densities = [
            sum(
                mass * exp(-(((at - kept * point) / new) ** 2) / 2)
                for mass, point in zip(masses, points, strict=True)
            )
            / (new * sqrt(2 * pi))
            for at in points
        ]
    return 1 - below
