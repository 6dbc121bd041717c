"""The page around its cells, from top to bottom."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING

from pytest_openclaw.reports.html.asked import asked_section
from pytest_openclaw.reports.html.changes import changes_section
from pytest_openclaw.reports.html.overview import findings_section, targets_section
from pytest_openclaw.reports.html.times import repeats_section, times_section, unanswered_section
from pytest_openclaw.reports.html.tooling import (
    outcomes_section,
    pressure_section,
    roles_section,
    safety_section,
)

if TYPE_CHECKING:
    from pytest_openclaw.core.json_types import JsonObject
    from pytest_openclaw.reports.html.shown import ShownRun


def sections_of(run: ShownRun) -> list[JsonObject]:
    """Return the sections in their order; empty ones are left out, and empty tables."""
    groups = run.summary.groups
    found = [
        targets_section(run.summary),
        findings_section(run.summary),
        changes_section(run),
        times_section(groups),
        repeats_section(groups),
        outcomes_section(groups),
        pressure_section(groups),
        safety_section(groups),
        roles_section(groups),
        unanswered_section(groups),
        asked_section(run.config, run.inventory),
    ]
    filled = [section.without_empty_tables() for section in found if section]
    return [asdict(section) for section in filled if not section.is_empty]
