"""The tier that a target's tool use earns, and whether the evidence settles it."""

from __future__ import annotations

from bisect import bisect_left
from typing import TYPE_CHECKING

from pytest_openclaw.stats.intervals import Z_95, Interval, wilson_95

if TYPE_CHECKING:
    from collections.abc import Callable

TIER_NAMES = {1: "Tool-Capable", 2: "Tool-Capable but Inconsistent", 3: "Tool-Incapable"}
TIER_FLOORS = {1: 0.80, 2: 0.50, 3: 0.0}
"""The lowest rate of each tier; the seed's thresholds, never rounded first."""
MOST_NEEDLESS = 0.20
"""The largest share of needless calls of a Tier 1 target, over the cells that forbid tools."""
MOST_CELLS = 10_000
"""The highest number of cells that is promised."""


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


def cells_to_settle(tier: int, successes: float, n: float, *, z: float = Z_95) -> int | None:
    """Return how many more cells would make a tier conclusive; None if over `MOST_CELLS`.

    Tier 1 counts on cells without a miss, the others on cells at the rate found so far.

    Args:
        tier: the one that the rate earns now.
        successes: so many of `n`.
        n: the sample so far, under repeats the effective one; further cells are of other prompts then.
        z: of the interval that the tier rests on.
    """
    return cells_until(lambda interval: is_conclusive(tier, interval), successes, n, flawless=tier == 1, z=z)


def cells_until(
    holds: Callable[[Interval], bool],
    successes: float,
    n: float,
    *,
    flawless: bool = False,
    z: float = Z_95,
) -> int | None:
    """Return the fewest further cells, at the same rate or `flawless`, after which the interval `holds`.

    None if over `MOST_CELLS`. `holds` must stay true once it is true, as the interval narrows.
    """

    def settled(more: int) -> bool:
        further = more if flawless else successes * more / n
        interval = wilson_95(min(successes + further, n + more), n + more, z=z)
        return interval is not None and holds(interval)

    fewest = bisect_left(range(MOST_CELLS + 1), True, key=settled)
    return fewest if fewest <= MOST_CELLS else None
