"""The page's charts: points with their intervals, placed here, drawn by `assets/charts.js`."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from pytest_openclaw.stats.intervals import Interval


class ChartPoint(NamedTuple):
    """A target's value with its interval, in the chart's unit.

    Attributes:
        shown: the same in words.
    """

    target: str
    value: float
    low: float
    high: float
    shown: str


def point(target: str, value: float, interval: Interval | None, shown: str) -> ChartPoint:
    """Return a value with its interval, or without a line if it has none."""
    low, high = (interval.low, interval.high) if interval else (value, value)
    return ChartPoint(target, value, low, high, shown)


class Zone(NamedTuple):
    """A part of the axis that has a name, in the chart's unit."""

    name: str
    low: float
    high: float


@dataclass(frozen=True, kw_only=True)
class Chart:
    """A chart as the page takes it; all places are shares of its width.

    Attributes:
        description: what it shows, for readers who cannot see it; a table beside it has the figures.
        ticks: labels of the axis.
        marks: where dashed lines are.
        zones: names above the points.
    """

    title: str
    description: str
    points: Sequence[ChartPoint]
    ticks: Sequence[tuple[float, str]]
    marks: Sequence[float] = field(default_factory=tuple)
    zones: Sequence[tuple[float, str]] = field(default_factory=tuple)


def rates(title: str, points: Sequence[ChartPoint], zones: Sequence[Zone] = ()) -> Chart:
    """Return rates of 0 to 1.

    Args:
        title: what the rates are of.
        points: of the targets.
        zones: named parts of the axis, from left to right; where two meet is a mark.
    """
    ticks = [0.0, *(zone.low for zone in zones[1:]), 1.0] if zones else [0.0, 0.25, 0.5, 0.75, 1.0]
    return Chart(
        title=title,
        description=f"{title}: a point with its 95 % interval for each target.",
        points=points,
        ticks=[(at, f"{100 * at:.0f} %") for at in ticks],
        marks=[zone.low for zone in zones[1:]],
        zones=[((zone.low + zone.high) / 2, zone.name) for zone in zones],
    )


def differences(title: str, points: Sequence[ChartPoint]) -> Chart:
    """Return differences of rates, -1 to 1; left of 0 a target has become worse."""
    widest = max((abs(end) for point in points for end in (point.low, point.high)), default=0.0)
    reach = min(1.0, max(0.1, math.ceil(widest * 10) / 10))

    def place(value: float) -> float:
        return (value + reach) / (2 * reach)

    return Chart(
        title=title,
        description=f"{title}: a point with its 95 % interval for each target, left of 0 if it is worse.",
        points=_placed(points, place),
        ticks=[(place(at), f"{100 * at:+.0f}") for at in (-reach, 0.0, reach)],
        marks=[place(0)],
    )


def times(title: str, points: Sequence[ChartPoint]) -> Chart:
    """Return times in milliseconds on a logarithmic axis: medians, and lines to the 95th percentile."""
    low = min(max(1.0, point.low) for point in points) / 1.1
    high = max(1.0, *(point.high for point in points)) * 1.1

    def place(value: float) -> float:
        return math.log(max(1.0, value) / low) / math.log(high / low)

    return Chart(
        title=title,
        description=f"{title}: the median of each target, and a line to its 95th percentile.",
        points=_placed(points, place),
        ticks=[(place(at), _in_words(at)) for at in _round_times(low, high)],
    )


def _placed(points: Sequence[ChartPoint], place: Callable[[float], float]) -> list[ChartPoint]:
    return [
        point._replace(value=place(point.value), low=place(point.low), high=place(point.high))
        for point in points
    ]


def _in_words(ms: float) -> str:
    return f"{ms / 1000:g} s" if ms >= 1000 else f"{ms:g} ms"


def _round_times(low: float, high: float) -> list[float]:
    """1, 2 and 5 of every power of ten in between; 1 alone, where there would be too many."""
    powers = range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
    leading = (1, 2, 5) if high < 30 * low else (1,)
    return [float(one * 10**power) for power in powers for one in leading if low <= one * 10**power <= high]
