"""Rows of two runs from short marks, and their comparison."""

from collections.abc import Sequence
from typing import Any

from pytest_openclaw.parts.baseline.comparison import ComparedRuns, Comparison, Obstacles, compare_records
from pytest_openclaw.values.requests import Target
from pytest_openclaw.values.rows import Record
from tests.unit.reports.summaries import TARGET, fault, missed, record

OTHERWISE: dict[str, dict[str, Any]] = {
    "o": {"objective_pass": None},
    "s": {"objective_pass": None, "success": False, "failure_type": "empty_response"},
}


def cells(marks: str, target: Target = TARGET, *, repeat: int = 1, **changes: Any) -> list[Record]:
    """A row for each mark, of a separate prompt: + passed, - failed, ? not answered, o no validator, s silent."""
    make = {"-": missed, "?": fault}
    return [
        make.get(mark, record)(
            target, prompt_id=f"P{number}", repeat=repeat, **{**OTHERWISE.get(mark, {}), **changes}
        )
        for number, mark in enumerate(marks, 1)
    ]


def compare(
    base: Sequence[Record],
    candidate: Sequence[Record],
    targets: Sequence[tuple[Target, Target]] = ((TARGET, TARGET),),
    **more: Any,
) -> ComparedRuns:
    """Compare two runs of these rows."""
    obstacles = more.pop("obstacles", Obstacles())
    return compare_records(base, candidate, targets, obstacles, baseline="before", **more)


def only(base: Sequence[Record], candidate: Sequence[Record], **more: Any) -> Comparison:
    """Compare the only target that both have."""
    (one,) = compare(base, candidate, **more).targets
    return one
