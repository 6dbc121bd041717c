"""What there is to say of the other roles of OpenClaw's config, as terminal and patch word it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pytest_openclaw.reports.tool_use_text import render_best

if TYPE_CHECKING:
    from pytest_openclaw.stats.candidates import Candidate
    from pytest_openclaw.stats.places import PlaceChoice


def render_choice(choice: PlaceChoice) -> str:
    """Say which model a place gets, or why none."""
    roles = " and ".join(choice.place.roles)
    if choice.best:
        found = render_best(choice.best, f"targets that fit {roles}")
    elif choice.fit:
        found = f"{choice.fit[0].label} alone fits {roles}"
    else:
        return f"no entry: {choice.why_none}"
    return f"{found}; no entry: {choice.why_none}" if choice.why_none else found


def render_fit(one: Candidate, choice: PlaceChoice) -> str:
    """Say what a target has shown in each role of a place."""
    shown = (f"{role} {one.roles[role].sentence}" for role in choice.place.roles)
    return f"{one.label}: {'; '.join(shown)}"
