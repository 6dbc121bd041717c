"""How sure a rate is."""

from __future__ import annotations

from dataclasses import dataclass
from math import sqrt

Z_95 = 1.959963984540054
"""The 97.5th percentile of the standard normal distribution."""


@dataclass(frozen=True, kw_only=True)
class Interval:
    """A range in which the true rate lies, 0 to 1."""

    low: float
    high: float


def wilson_95(successes: int, n: int) -> Interval | None:
    """Return the Wilson score interval at 95 %, without continuity correction; None for `n` 0.

    Wilson (1927), "Probable inference, the law of succession, and statistical inference", JASA 22.

    Raises:
        ValueError: `successes` is not from 0 to `n`.
    """
    if not 0 <= successes <= n:
        raise ValueError(f"{successes} successes of {n} are impossible")
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
