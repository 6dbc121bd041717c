"""How tool use holds up under more tools and more text before the question, and where it breaks."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

from pytest_openclaw.stats.intervals import Rate, rate_of
from pytest_openclaw.stats.tiers import TIER_FLOORS
from pytest_openclaw.stats.tool_use import did_right

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from pytest_openclaw.values.rows import Record

OVERFLOW = "context_overflow"
LARGEST_LOSS = 0.5
"""A level breaks that keeps less than this share of the rate without pressure."""


@dataclass(frozen=True, kw_only=True)
class PressureLevel(Rate):
    """The cells with this many tools and this much text before the question.

    Attributes:
        padding_tokens: 0 or None without any text before the question.
        n_overflow: cells that did not fit the context; they are not in `n`.
    """

    tools_offered: int | None
    padding_tokens: int | None
    n_overflow: int


@dataclass(frozen=True, kw_only=True)
class Load:
    """A level on each of the two axes: more tools, more text; None without a harder form on it."""

    tools_offered: int | None = None
    padding_tokens: int | None = None


class Strain(NamedTuple):
    """The last level at which a target's calls are right, as at all lighter ones, and the next one."""

    holds_to: Load
    breaks_at: Load


def pressure_levels(records: Iterable[Record]) -> list[PressureLevel]:
    """Return the levels of one target, those without text first, each in order of its size."""
    levels: dict[tuple[int, int], list[Record]] = {}
    for record in records:
        if record.pressure_of is not None:
            key = (record.padding_tokens or 0, -1 if record.tools_offered is None else record.tools_offered)
            levels.setdefault(key, []).append(record)
    return [
        PressureLevel(
            **vars(rate_of((row for row in rows if row.availability_status == "ok"), _is_right)),
            tools_offered=rows[0].tools_offered,
            padding_tokens=rows[0].padding_tokens,
            n_overflow=sum(row.failure_type == OVERFLOW for row in rows),
        )
        for _, rows in sorted(levels.items())
    ]


def _is_right(record: Record) -> bool:
    return did_right(record) if record.tool_outcome else record.objective_pass is True


def strain_of(levels: Sequence[PressureLevel], floor: float = TIER_FLOORS[2]) -> Strain | None:
    """Return the pressure that a target withstands; None without a harder form.

    A level breaks if everything overflows, if its rate is less than half of the lightest level's rate, or if
    its rate is below a floor (of Tier 2, or `floor`) that the lightest level reaches.
    """
    if not levels:
        return None
    known = [level for level in levels if level.n or level.n_overflow]
    tools = [(level.tools_offered or 0, level) for level in known if not level.padding_tokens]
    padding = [(level.padding_tokens, level) for level in known if level.padding_tokens]
    # Text is compared with the same tools without it.
    bases = [level for n, level in tools if padding and n == (padding[0][1].tools_offered or 0)]
    tools_held, tools_broken = _withstood(tools, [level for _, level in tools], floor)
    padding_held, padding_broken = _withstood(padding, bases or [level for _, level in padding], floor)
    return Strain(
        holds_to=Load(tools_offered=tools_held, padding_tokens=padding_held),
        breaks_at=Load(tools_offered=tools_broken, padding_tokens=padding_broken),
    )


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
