"""Pressure: how tool use holds behind more tools, and behind more text before the question."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from pytest_openclaw.conclusions.groups import Group
from pytest_openclaw.conclusions.recommendation import Point, Recommendation, Testimony
from pytest_openclaw.reports.numbers import DASH, render_interval, render_share, render_tokens
from pytest_openclaw.reports.sections import Listing
from pytest_openclaw.stats.intervals import total_of
from pytest_openclaw.stats.tool_use import (
    TIER_FLOORS,
    Load,
    PressureLevel,
    classify_tier,
    pressure_levels,
    strain_of,
)
from pytest_openclaw.util.text import counted
from pytest_openclaw.values.parts import Part, PartKey

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pytest_openclaw.conclusions.recommendation import Evidence


def _testify(evidence: Evidence) -> Testimony:
    floor = TIER_FLOORS[classify_tier(*total_of(evidence.calls)) or 3]
    strain = strain_of(pressure_levels(evidence.records), floor)
    if strain is None:
        return Testimony()
    holds, breaks = strain
    caveats = []
    for code, last, first, what in (
        ("context_limit", holds.padding_tokens, breaks.padding_tokens, "tokens of context"),
        ("tools_limit", holds.tools_offered, breaks.tools_offered, "tools at a time"),
    ):
        if first is not None:
            limit = f"under {first:,}" if last is None else f"up to {last:,}"
            caveats.append((30, Point(code, f"{limit} {what}")))
    return Testimony(keys={"holds_to": holds, "breaks_at": breaks}, caveats=caveats)


def _notes(group: Any) -> Iterator[tuple[int, str, str]]:
    yield 80, "context", _strain(group)


def _strain(group: Any) -> str:
    is_answered = any(level.n or level.n_overflow for level in group.pressure)
    found = group.recommendation
    if found.holds_to is None or found.breaks_at is None or not is_answered:
        return ""
    holds, breaks = _load(found.holds_to), _load(found.breaks_at)
    if not holds and not breaks:
        lightest = group.pressure[0]
        return f"calls right in {lightest.n_success} of {counted(lightest.n, 'cell')} without any pressure"
    held = f"calls right up to {holds}" if holds else ""
    broken = f"breaks at {breaks}" if breaks else ""
    return "; ".join(part for part in (held, broken) if part)


def _load(load: Load) -> str:
    tools = [] if load.tools_offered is None else [counted(load.tools_offered, "tool")]
    text = [] if load.padding_tokens is None else [f"{render_tokens(load.padding_tokens)} tokens"]
    return " and ".join([*tools, *text])


PART = Part(
    keys={
        Group: {
            "pressure": PartKey(
                Sequence[PressureLevel],
                "the levels at which harder forms of prompts were asked.",
                "tool_proofs",
                lambda evidence: pressure_levels(evidence.records),
            )
        },
        Recommendation: {
            "holds_to": PartKey(
                Load | None,
                "the last load under which tool use stays in its tier; None without harder forms of prompts.",
                "would_be",
                default=None,
            ),
            "breaks_at": PartKey(
                Load | None, "the first load under which it does not.", "would_be", default=None
            ),
        },
    },
    testify=_testify,
    notes=_notes,
    listings={
        70: Listing(
            "pressure",
            "Context pressure",
            "Calls that were right behind more tools and more text.",
            lambda group: group.pressure,
            {
                "tools": lambda level: DASH if level.tools_offered is None else str(level.tools_offered),
                "tokens before": lambda level: (
                    render_tokens(level.padding_tokens) if level.padding_tokens else DASH
                ),
                "right": lambda level: render_share(level.n_success, level.n),
                "95 %": lambda level: render_interval(level.interval_95),
                "overflowed": lambda level: str(level.n_overflow),
            },
        )
    },
)
