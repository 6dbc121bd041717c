"""A share of some rows, with its interval."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from pytest_openclaw.stats.intervals import Cluster, Interval, clustered_95, effective_n

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from pytest_openclaw.types.records import Record


@dataclass(frozen=True, kw_only=True)
class Rate:
    """A share of `n` cells, with its 95 % interval; None where `n` is 0.

    Attributes:
        n_effective: how many independent cells are worth as much; fewer than `n` under repeats.
    """

    n: int
    n_success: int
    rate: float | None
    interval_95: Interval | None
    n_effective: float | None

    @property
    def is_repeated(self) -> bool:
        """Whether repeats make the effective sample smaller than n."""
        return self.n_effective is not None and self.n_effective < self.n


def cluster_of(record: Record) -> tuple[str, str]:
    """Return the prompt that a row belongs to; its repeats, wordings and harder forms resemble each other."""
    if record.variant_of is not None:
        suite, _, prompt_id = record.variant_of.rpartition("::")
        return suite, prompt_id
    return record.suite, record.pressure_of or record.prompt_id


def is_judged(record: Record) -> bool:
    """Whether a cell was answered and has a verdict to reach; an empty or refused answer has missed it."""
    return record.availability_status == "ok" and (record.objective_pass is not None or not record.success)


def has_passed(record: Record) -> bool:
    """Whether a cell has a verdict, and it is that the reply passed."""
    return record.objective_pass is True


def rate_of(records: Iterable[Record], succeeded: Callable[[Record], bool]) -> Rate:
    """Count the successes; repeats of a prompt, and its harder forms, are one cluster."""
    clusters = clusters_of(records, succeeded)
    n, n_success = sum(cluster.n for cluster in clusters), sum(cluster.n_success for cluster in clusters)
    return Rate(
        n=n,
        n_success=n_success,
        rate=n_success / n if n else None,
        interval_95=clustered_95(clusters),
        n_effective=effective_n(clusters) if n else None,
    )


def clusters_of(records: Iterable[Record], succeeded: Callable[[Record], bool]) -> list[Cluster]:
    """Return successes and cells of each prompt, in the order of its first row."""
    counted: dict[tuple[str, str], list[int]] = {}
    for record in records:
        cluster = counted.setdefault(cluster_of(record), [0, 0])
        cluster[0] += succeeded(record)
        cluster[1] += 1
    return [Cluster(*cluster) for cluster in counted.values()]
