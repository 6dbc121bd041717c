"""Where latencies lie."""

from __future__ import annotations

from math import floor
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence


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
