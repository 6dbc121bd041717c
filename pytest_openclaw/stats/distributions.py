"""A measurement over the rows of one target: percentiles with intervals, and the mean."""

from __future__ import annotations

from statistics import fmean
from typing import TYPE_CHECKING, NamedTuple

from pytest_openclaw.stats.percentiles import percentile, percentile_interval
from pytest_openclaw.stats.rates import cluster_of

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from pytest_openclaw.stats.intervals import Interval
    from pytest_openclaw.types.records import Record

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
