"""What OpenClaw's own request costs each model, in words: its cells there and on `listed`, paired."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pytest_openclaw.types.targets import OPENCLAW, OPENCLAW_ITSELF

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator

    from pytest_openclaw.core.json_types import JsonObject
    from pytest_openclaw.stats.compared_runs import Comparison
    from pytest_openclaw.stats.summary import Summary

HEADERS = ("target", "cells", "on listed", "on openclaw", "points", "95 %", "outcomes")


def surface_note(summary: Summary) -> str:
    """Return which request the tiers on `openclaw` rest on; empty if no target was asked there."""
    if summary.surface is None:
        return ""
    targets = (group.target for group in summary.groups)
    providers = {target.provider for target in targets if target.surface == OPENCLAW}
    return _source(summary.surface, providers) if providers else ""


def _source(surface: JsonObject, providers: Collection[str]) -> str:
    if providers == {OPENCLAW_ITSELF}:
        return "openclaw is the request that the installed OpenClaw sends itself"
    captured = surface["source"] == "captured"
    source = "captured from the installed OpenClaw" if captured else "a substitute in our own words"
    itself = f"; {OPENCLAW_ITSELF} sends the installed OpenClaw's own" if OPENCLAW_ITSELF in providers else ""
    return f"openclaw is the request of {surface['release']}, {source}{itself}"


def cost_rows(summary: Summary) -> Iterator[tuple[str, ...]]:
    """Yield a row of `HEADERS` for each model on `openclaw` that was asked on `listed`, too."""
    for one in summary.surface_cost.targets if summary.surface_cost else ():
        found = one.verdicts
        if not found.n_cells:  # none has an answer on both
            continue
        between = found.range_95
        yield (
            one.base_target,
            f"{found.n_cells}",
            f"{found.n_base}",
            f"{found.n_candidate}",
            _points(found.difference),
            f"{_points(between.low)} to {_points(between.high)}" if between else "",
            _outcomes(one),
        )


def cost_in_short(summary: Summary) -> Iterator[tuple[str, str]]:
    """Yield each of these models with what its surface costs, as a sentence."""
    for target, n, n_listed, n_openclaw, points, between, outcomes in cost_rows(summary):
        text = f"{n_listed} of {n} cells on listed, {n_openclaw} on openclaw: {points} points"
        interval = f" (95 %: {between})" if between else ""
        yield target, f"{text}{interval}{'; ' if outcomes else ''}{outcomes}"


def _points(share: float | None) -> str:
    return "–" if share is None else f"{round(share * 100):+d}"


def _outcomes(one: Comparison) -> str:
    """Return the outcomes whose number differs between the surfaces."""
    changed = (found for found in one.outcomes if found.n_base != found.n_candidate)
    return ", ".join(f"{found.outcome} {found.n_base} to {found.n_candidate}" for found in changed)
