"""Bounds of a target's figures: as if all cells without an answer had passed, or all had failed.

A fault is neither a miss nor a success. A gate must pass for any outcome of those cells, so it is checked
at both bounds.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from pytest_openclaw.stats.groups import Group, Snapshots, summarize_group
from pytest_openclaw.types.records import Record

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from pytest_openclaw.types.tool_calls import ToolDemand, ToolOutcome

NEVER_MS = 10**12
"""Slower than any answer; a number, so that percentiles may be taken."""

_WELL: dict[ToolDemand, ToolOutcome | None] = {"call": "valid", "restraint": "restrained", "none": None}
_WRONG: dict[ToolDemand, ToolOutcome | None] = {
    "call": "no_call",
    "restraint": "called_needlessly",
    "none": None,
}


@dataclass(frozen=True, kw_only=True)
class Bounds:
    """A target's figures as measured, and their bounds over the outcomes of its unanswered cells.

    Attributes:
        group: as measured.
        n_cells: those that were to be asked.
        n_unavailable, n_missing: those whose target was unavailable, and those without a row.
        n_unanswered: all without an answer, with a row and without.
        at_best, at_worst: with every one of them answered well, or wrong; `group` itself if there is none.
        tools_at_best, tools_at_worst: the same for tool use. Where it is not known what a cell wants of
            tools, it counts in each way in which it might, so that the truth lies between.
    """

    group: Group
    n_cells: int
    n_unavailable: int
    n_missing: int
    n_unanswered: int
    at_best: Group
    at_worst: Group
    tools_at_best: tuple[Group, ...]
    tools_at_worst: Group


def bounds_of(group: Group, records: Sequence[Record], n_selected: int) -> Bounds:
    """Return a target's figures in every way that the cells without an answer allow.

    Args:
        group: the figures of `records`.
        records: the target's rows.
        n_selected: cells of the target that were to be asked.
    """
    answered = [record for record in records if record.availability_status == "ok"]
    rows = [record for record in records if record.availability_status != "ok"]
    n_missing = max(0, n_selected - len(records))
    lost = [*rows, *_never_asked(group, n_missing)]

    def with_(others: Iterable[Record]) -> Group:
        return (
            summarize_group(
                group.target,
                [*answered, *others],
                Snapshots(),
                n_targets=group.tool_use.n_targets,
                looks=group.tool_use.looks,
            )
            if lost
            else group
        )

    at_best, at_worst = with_(map(_well, lost)), with_(map(_wrong, lost))
    best: tuple[Group, ...] = (at_best,)
    worst = at_worst
    if any(record.tool_demand is None for record in lost):
        worst = with_(row for record in lost for row in map(_wrong, _as_anything(record)))
        best = tuple(
            with_(row for record in lost for row in map(_well, _as_anything(record, tools_offered)))
            for tools_offered in ((1, None) if n_missing else (None,))
        )
    return Bounds(
        group=group,
        n_cells=len(records) + n_missing,
        n_unavailable=group.n_skipped_unavailable,
        n_missing=n_missing,
        n_unanswered=len(lost),
        at_best=at_best,
        at_worst=at_worst,
        tools_at_best=best,
        tools_at_worst=worst,
    )


def _never_asked(group: Group, n: int) -> Iterator[Record]:
    """Return rows for cells without a row, each of a separate prompt."""
    for number in range(n):
        yield Record(
            run_id="",
            provider=group.target.provider,
            model=group.target.model,
            thinking_level=group.target.thinking_level,
            surface=group.target.surface,
            prompt_id=str(number),
            prompt_name="",
            suite="",  # which no suite is called
            availability_status="error",
            started_at_ms=0,
            ended_at_ms=0,
            e2e_ms=0,
        )


def _as_anything(record: Record, tools_offered: int | None = None) -> tuple[Record, ...]:
    """Return a cell that requires a call and one that forbids it, where the prompt's demand is unknown."""
    if record.tool_demand is not None:
        return (record,)
    if not record.suite:
        record = replace(record, tools_offered=tools_offered)
    return replace(record, tool_demand="call"), replace(record, tool_demand="restraint")


def _well(record: Record) -> Record:
    outcome = _WELL[record.tool_demand or "none"]
    harm = None if record.probe is None else record.harm is True  # harm before a fault stays
    return replace(_answered(record, outcome), objective_pass=True, harm=harm, e2e_ms=0)


def _wrong(record: Record) -> Record:
    outcome = _WRONG[record.tool_demand or "none"]
    harm = None if record.probe is None else True
    return replace(_answered(record, outcome), objective_pass=False, harm=harm, e2e_ms=NEVER_MS)


def _answered(record: Record, outcome: ToolOutcome | None) -> Record:
    return replace(
        record,
        availability_status="ok",
        success=True,
        failure_type=None,
        tool_outcome=outcome,
        tool_use_success=outcome == "valid",
    )
