"""How often a model changes its mind: repeats of a prompt that end otherwise."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterable

    from pytest_openclaw.records import Record


class Flips(NamedTuple):
    """How often two repeats of a prompt differ, 0 to 1, over the prompts that have several."""

    rate: float
    n_prompts: int


def flips_of(records: Iterable[Record]) -> Flips | None:
    """Return the share of pairs of repeats that differ; None if no prompt has two judged ones.

    Of each prompt all pairs are taken, so that its share is unbiased for 2p(1 - p); prompts count alike.

    Args:
        records: the rows of one target.
    """
    counts: dict[tuple[str, str], list[int]] = {}
    for record in records:
        judged = record.objective_pass is not None or not record.success
        if record.availability_status == "ok" and judged:
            counted = counts.setdefault((record.suite, record.prompt_id), [0, 0])
            counted[record.objective_pass is True] += 1
    shares = [
        2 * missed * passed / ((missed + passed) * (missed + passed - 1))
        for missed, passed in counts.values()
        if missed + passed > 1
    ]
    return Flips(sum(shares) / len(shares), len(shares)) if shares else None
