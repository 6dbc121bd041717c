"""Chooses cells of a large run to be shown in place of all, the same ones each time."""

from __future__ import annotations

import hashlib
from operator import attrgetter
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pytest_openclaw.types.records import Record

PER_KIND = 20
"""Cells of each target that ended in one way, which are shown at least if there are so many."""
_kind_of = attrgetter(
    "target", "availability_status", "failure_type", "success", "objective_pass", "tool_outcome"
)


def sample_of(records: Sequence[Record], most: int) -> list[int]:
    """Return the places of at most `most` records, in their order; of all if there are no more.

    Each way to end (unavailable, a kind of failure, a tool outcome, a verdict) is represented for each
    target by `PER_KIND` cells, or by fewer if they would not fit. Repeats of prompts fill the rest, each
    for all targets.
    """
    if len(records) <= most:
        return [*range(len(records))]
    ranks = [_rank(record) for record in records]
    kinds: dict[tuple[object, ...], list[int]] = {}
    in_order = sorted(range(len(records)), key=ranks.__getitem__)
    for place in in_order:
        kinds.setdefault(_kind_of(records[place]), []).append(place)
    per_kind = max(1, min(PER_KIND, most // 2 // len(kinds)))
    chosen = {place for places in kinds.values() for place in places[:per_kind]}
    for place in in_order:
        if len(chosen) >= most:
            break
        chosen.add(place)
    return sorted(sorted(chosen)[:most])


def _rank(record: Record) -> bytes:
    """Return a number that looks random, and does not depend on the target."""
    cell = f"{record.suite}\0{record.prompt_id}\0{record.repeat}"
    return hashlib.blake2b(cell.encode(), digest_size=8).digest()
