"""What there is to say of the other roles of OpenClaw's config, as terminal and patch word it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pytest_openclaw.core.text import counted
from pytest_openclaw.reports.tool_use_text import render_best

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pytest_openclaw.stats.candidates import Candidate
    from pytest_openclaw.stats.chains import Chain
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


def render_chain(chain: Chain) -> Iterator[str]:
    """Yield the fallbacks, and why other trusted models are none."""
    if chain.fallbacks:
        refs = ", ".join(str(one.ref) for one in chain.fallbacks)
        yield f"fallbacks of subagents: {refs}; trusted in {chain.size}, too"
    else:
        yield f"fallbacks of subagents: none; no {counted(2, 'model')} are trusted in {chain.size}"
    yield from (f"  not {one.label}: {reason}" for one, reason in chain.left_out)
