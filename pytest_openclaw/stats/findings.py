"""The most useful things to know of a run, found in its rows."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from pytest_openclaw.stats.tool_use import GOOD_OUTCOMES

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from pytest_openclaw.stats.tool_use import ToolUse
    from pytest_openclaw.types.records import Record
    from pytest_openclaw.types.tool_calls import ToolOutcome


@dataclass(frozen=True, kw_only=True)
class MissedPrompt:
    """A prompt that no target passed, with the first violation."""

    suite: str
    prompt_id: str
    prompt_name: str
    violation: str | None


def missed_by_all(records: Iterable[Record]) -> tuple[MissedPrompt, ...]:
    """Return the prompts that were judged somewhere and passed nowhere, in order of their rows.

    Not those that were missed only where that was expected.
    """
    judged: dict[tuple[str, str], list[Record]] = {}
    for record in records:
        if record.objective_pass is not None:
            judged.setdefault((record.suite, record.prompt_id), []).append(record)
    return tuple(
        MissedPrompt(
            suite=first.suite,
            prompt_id=first.prompt_id,
            prompt_name=first.prompt_name,
            violation=first.violation,
        )
        for rows in judged.values()
        if not any(row.objective_pass for row in rows)
        and (first := next((row for row in rows if row.known_failure is None), None))
    )


@dataclass(frozen=True, kw_only=True)
class ExpectedMiss:
    """A prompt that a target was expected to miss, and the result.

    Attributes:
        target: its label.
        reason: why it was expected.
        n: answered cells; more than one under repeats.
        n_missed: missed cells, and cells without a usable answer.
    """

    suite: str
    prompt_id: str
    target: str
    reason: str
    n: int
    n_missed: int

    @property
    def is_as_expected(self) -> bool:
        """Whether any of its cells was missed."""
        return self.n_missed > 0


def known_failures(records: Iterable[Record]) -> tuple[ExpectedMiss, ...]:
    """Return the known failures that were answered, in order of their rows."""
    known: dict[tuple[str, str, str], list[Record]] = {}
    for record in records:
        if record.known_failure is not None and record.availability_status == "ok":
            known.setdefault((record.suite, record.prompt_id, record.target.label), []).append(record)
    return tuple(
        ExpectedMiss(
            suite=suite,
            prompt_id=prompt_id,
            target=target,
            reason=rows[0].known_failure or "",
            n=len(rows),
            n_missed=sum(not row.success or row.objective_pass is False for row in rows),
        )
        for (suite, prompt_id, target), rows in known.items()
    )


def slowest(records: Sequence[Record]) -> Record | None:
    """Return the successful row that took longest; None without any."""
    successful = [record for record in records if record.success]
    return max(successful, key=lambda record: record.e2e_ms, default=None)


def most_frequent_miss(use: ToolUse) -> ToolOutcome | None:
    """Return the outcome in which most tool cells went wrong; None if none did."""
    misses = [outcome for outcome in use.outcomes if outcome not in GOOD_OUTCOMES]
    return max(misses, key=lambda outcome: use.outcomes[outcome], default=None)
