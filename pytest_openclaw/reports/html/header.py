"""The top of the page: which run this is."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING

from pytest_openclaw.reports.numbers import one_line

if TYPE_CHECKING:
    from pytest_openclaw.core.json_types import JsonObject
    from pytest_openclaw.reports.html.shown import ShownRun


_RULINGS = {
    "passed": "all gates passed",
    "failed": "a gate failed",
    "no_verdict": "gates without a verdict",
    "not_gated": "no gates",
}


def header_of(run: ShownRun) -> JsonObject:
    """Return the top of the page.

    `ruling` is of all gates together, in a word; `facts` are the lines under the title, name and value.
    """
    summary = run.summary
    notes = [one_line(note, 300) for note in run.notes]
    if summary.state == "interrupted":
        notes.insert(0, f"Interrupted: {summary.n_rows} of {summary.n_cells} cells have a row.")
    if run.unshown:
        n_cells = len(run.cells) + len(run.unshown)
        notes.append(
            f"A sample: {len(run.cells):,} of {n_cells:,} cells can be opened below, for each target some of "
            "every way to end. All figures, tables and charts are of all cells."
        )
    began = min((record.started_at_ms for record, _ in run.pairs), default=summary.generated_at_ms)
    ended = max((record.ended_at_ms for record, _ in run.pairs), default=began)
    facts = [
        ("asked", f"{_time(began)} UTC, for {_duration(ended - began)}"),
        (
            "cells",
            f"{summary.n_rows:,} on {len(summary.groups)} target{'' if len(summary.groups) == 1 else 's'}",
        ),
    ]
    return {
        "run_id": one_line(summary.run_id, 80),
        "ruling": summary.verdict,
        "said": _RULINGS[summary.verdict],
        "facts": facts,
        "notes": notes,
    }


def _time(ms: int) -> str:
    return datetime.fromtimestamp(ms / 1000, UTC).strftime("%Y-%m-%d %H:%M")


def _duration(ms: int) -> str:
    minutes, seconds = divmod(max(0, ms) // 1000, 60)
    hours, minutes = divmod(minutes, 60)
    if hours:
        return f"{hours} h {minutes} min"
    return f"{minutes} min {seconds} s" if minutes else f"{seconds} s"
