"""Pressure: how tool use holds behind more tools, and behind more text before the question."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from pytest_openclaw.conclusions.recommendation import Evidence, Point, Recommendation, Testimony
from pytest_openclaw.conclusions.summary import Group
from pytest_openclaw.reports.facts import Listing
from pytest_openclaw.reports.numbers import DASH, render_interval, render_share, render_tokens
from pytest_openclaw.stats.intervals import Rate, rate_of, total_of
from pytest_openclaw.stats.tool_use import TIER_FLOORS, classify_tier, did_right
from pytest_openclaw.util.text import counted
from pytest_openclaw.values.parts import Part, PartKey
from pytest_openclaw.values.rows import Record

OVERFLOW = "context_overflow"
LARGEST_LOSS = 0.5
"""A level breaks if it keeps less than this share of the rate without pressure."""


@dataclass(frozen=True, kw_only=True)
class PressureLevel(Rate):
    """The cells with this many tools and this much text before the question.

    Attributes:
        padding_tokens: 0 or None without text before the question.
        n_overflow: cells that did not fit the context, which `n` does not count.
    """

    tools_offered: int | None
    padding_tokens: int | None
    n_overflow: int


@dataclass(frozen=True)
class Load:
    """A level on each of the two axes, more tools and more text; None on an axis without harder forms."""

    tools_offered: int | None = None
    padding_tokens: int | None = None


def pressure_levels(records: Iterable[Record]) -> list[PressureLevel]:
    """Return the levels of one target in order of size, those without text first."""

    def is_right(record: Record) -> bool:
        return did_right(record) if record.tool_outcome else record.objective_pass is True

    levels: dict[tuple[int, int], list[Record]] = {}
    for record in records:
        if record.pressure_of is not None:
            key = (record.padding_tokens or 0, -1 if record.tools_offered is None else record.tools_offered)
            levels.setdefault(key, []).append(record)
    return [
        PressureLevel(
            **vars(rate_of((row for row in rows if row.availability_status == "ok"), is_right)),
            tools_offered=rows[0].tools_offered,
            padding_tokens=rows[0].padding_tokens,
            n_overflow=sum(row.failure_type == OVERFLOW for row in rows),
        )
        for _, rows in sorted(levels.items())
    ]


def strain_of(levels: Sequence[PressureLevel], floor: float = TIER_FLOORS[2]) -> tuple[Load, Load] | None:
    """Return the last load that a target withstands and the first that it does not; None without any.

    A level breaks if all its cells overflow, if its rate is less than half of the lightest level's rate, or
    if its rate is below a limit (the floor of Tier 2, or `floor`) that the lightest level reaches.
    """
    if not levels:
        return None
    known = [level for level in levels if level.n or level.n_overflow]
    tools = [(level.tools_offered or 0, level) for level in known if not level.padding_tokens]
    padding = [(level.padding_tokens, level) for level in known if level.padding_tokens]
    # A level with text is compared with the level of the same tools without text.
    bases = [level for n, level in tools if padding and n == (padding[0][1].tools_offered or 0)]
    tools_held, tools_broken = _withstood(tools, [level for _, level in tools], floor)
    padding_held, padding_broken = _withstood(padding, bases or [level for _, level in padding], floor)
    return Load(tools_held, padding_held), Load(tools_broken, padding_broken)


def _withstood(
    levels: Sequence[tuple[int, PressureLevel]], bases: Sequence[PressureLevel], floor: float
) -> tuple[int | None, int | None]:
    """Return the last size on one axis that holds, and the first that breaks."""
    held = None
    for size, level in levels:
        rate, base = level.rate or 0.0, bases[0].rate or 0.0
        fell = any(rate < limit <= base for limit in (TIER_FLOORS[2], floor))
        if not level.n or rate < LARGEST_LOSS * base or fell:
            return held, size
        # A target that is wrong without pressure withstands no pressure.
        held = size if base >= TIER_FLOORS[2] else None
    return held, None


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
                "tokens before": lambda level: render_tokens(level.padding_tokens),
                "right": lambda level: render_share(level.n_success, level.n),
                "95 %": lambda level: render_interval(level.interval_95),
                "overflowed": lambda level: str(level.n_overflow),
            },
        )
    },
)
