"""The most useful things to know of a run, found in its rows."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from pytest_openclaw.stats.tool_use import GOOD_OUTCOMES

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from pytest_openclaw.records import Record
    from pytest_openclaw.stats.tool_use import ToolUse
    from pytest_openclaw.toolcalls import ToolOutcome


@dataclass(frozen=True, kw_only=True)
class Missed:
    """A prompt that no target passed, with the first violation."""

    suite: str
    prompt_id: str
    prompt_name: str
    violation: str | None


def missed_by_all(records: Iterable[Record]) -> tuple[Missed, ...]:
    """Return the prompts that were judged somewhere and passed nowhere, in order of their rows."""
    judged: dict[tuple[str, str], list[Record]] = {}
    for record in records:
        if record.objective_pass is not None:
            judged.setdefault((record.suite, record.prompt_id), []).append(record)
    return tuple(
        Missed(
            suite=rows[0].suite,
            prompt_id=rows[0].prompt_id,
            prompt_name=rows[0].prompt_name,
            violation=rows[0].violation,
        )
        for rows in judged.values()
        if not any(row.objective_pass for row in rows)
    )


def slowest(records: Sequence[Record]) -> Record | None:
    """Return the successful row that took longest; None without any."""
    successful = [record for record in records if record.success]
    return max(successful, key=lambda record: record.e2e_ms, default=None)


def most_frequent_miss(use: ToolUse) -> ToolOutcome | None:
    """Return the outcome in which most tool cells went wrong; None if none did."""
    misses = [outcome for outcome in use.outcomes if outcome not in GOOD_OUTCOMES]
    return max(misses, key=lambda outcome: use.outcomes[outcome], default=None)
