"""The tier that a target's tool use earns, and whether the evidence settles it."""

from __future__ import annotations

from pytest_openclaw.stats.intervals import Interval, wilson_95

TIER_NAMES = {1: "Tool-Capable", 2: "Tool-Capable but Inconsistent", 3: "Tool-Incapable"}
TIER_FLOORS = {1: 0.80, 2: 0.50, 3: 0.0}
"""The lowest rate of each tier; the seed's thresholds, never rounded first."""


def classify_tier(n_success: int, n: int) -> int | None:
    """Return 1, 2 or 3 for a tool-use success rate of at least 80 %, at least 50 %, or less; None for `n` 0.

    Whole numbers are compared, so that 4 of 5 is exactly 80 %.
    """
    if n == 0:
        return None
    if 100 * n_success >= 80 * n:
        return 1
    return 2 if 100 * n_success >= 50 * n else 3


def is_conclusive(tier: int, interval: Interval) -> bool:
    """Whether the whole interval lies inside the tier."""
    ceiling = TIER_FLOORS.get(tier - 1, float("inf"))
    return interval.low >= TIER_FLOORS[tier] and interval.high < ceiling


def excludes_worse(tier: int, interval: Interval) -> bool:
    """Whether the evidence leaves no room for a tier worse than this one."""
    return interval.low >= TIER_FLOORS[tier]


def cells_to_settle(n_success: int, n: int, *, limit: int = 10_000) -> int | None:
    """Return how many more tool cells without a miss would make Tier 1 conclusive; None if over `limit`."""
    for more in range(limit + 1):
        interval = wilson_95(n_success + more, n + more)
        if interval is not None and excludes_worse(1, interval):
            return more
    return None
