"""How tool use holds up under more tools and more text before the question, and where it breaks."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import takewhile
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
    """The cells with so many tools in front, behind so much text.

    Attributes:
        padding_tokens: 0 or None without any text before the question.
        n_overflow: cells that did not fit the context; they are not in `n`.
    """

    tools_offered: int | None
    padding_tokens: int | None
    n_overflow: int


@dataclass(frozen=True, kw_only=True)
class Load:
    """A level on each of the two axes: more tools, more text; None where there is none."""

    tools_offered: int | None = None
    padding_tokens: int | None = None


class Strain(NamedTuple):
    """The pressure that a target withstands.

    Attributes:
        holds_to: the last level at which its calls are right, as at all lighter ones.
        breaks_at: the first level at which they are not.
    """

    holds_to: Load
    breaks_at: Load


class _Step(NamedTuple):
    at: int
    n: int
    n_success: int

    @property
    def rate(self) -> float:
        return self.n_success / self.n if self.n else 0.0


def pressure_levels(records: Iterable[Record]) -> list[PressureLevel]:
    """Return the levels of one target, those without text first, each in order of its size."""
    levels: dict[tuple[int, int], list[Record]] = {}
    for record in records:
        if record.pressure_of is not None:
            key = (record.padding_tokens or 0, -1 if record.tools_offered is None else record.tools_offered)
            levels.setdefault(key, []).append(record)
    return [_level(levels[key]) for key in sorted(levels)]


def strain_of(levels: Sequence[PressureLevel], floor: float = TIER_FLOORS[2]) -> Strain | None:
    """Return the pressure that a target withstands; None without a harder form.

    A level breaks if everything overflows, if its rate is less than half of the lightest level's rate, or if
    its rate is below a floor (of Tier 2, or `floor`) that the lightest level reaches.
    """
    if not levels:
        return None
    plain = [level for level in levels if not level.padding_tokens]
    tools = _steps((level.tools_offered or 0, level) for level in plain)
    padding = _steps((level.padding_tokens, level) for level in levels if level.padding_tokens)
    # Text is compared with the same tools without it.
    padded_tools = {level.tools_offered for level in levels if level.padding_tokens}
    bases = _steps((0, level) for level in plain if level.tools_offered in padded_tools)
    by_tools = _withstood(tools, tools[:1], floor)
    by_padding = _withstood(padding, bases or padding[:1], floor)
    return Strain(
        holds_to=Load(tools_offered=by_tools[0], padding_tokens=by_padding[0]),
        breaks_at=Load(tools_offered=by_tools[1], padding_tokens=by_padding[1]),
    )


def _level(records: Sequence[Record]) -> PressureLevel:
    rate = rate_of((record for record in records if record.availability_status == "ok"), _is_right)
    return PressureLevel(
        **vars(rate),
        tools_offered=records[0].tools_offered,
        padding_tokens=records[0].padding_tokens,
        n_overflow=sum(record.failure_type == OVERFLOW for record in records),
    )


def _is_right(record: Record) -> bool:
    return did_right(record) if record.tool_outcome else record.objective_pass is True


def _steps(levels: Iterable[tuple[int, PressureLevel]]) -> list[_Step]:
    """Join the levels of each size; unanswered cells do not count."""
    by_size: dict[int, list[PressureLevel]] = {}
    for at, level in levels:
        if level.n or level.n_overflow:
            by_size.setdefault(at, []).append(level)
    return [
        _Step(at, sum(one.n for one in by_size[at]), sum(one.n_success for one in by_size[at]))
        for at in sorted(by_size)
    ]


def _withstood(steps: Sequence[_Step], bases: Sequence[_Step], floor: float) -> tuple[int | None, int | None]:
    """Return the last level of an axis that holds, and the first that breaks."""
    if not steps:
        return None, None
    base = bases[0]
    unbroken = [*takewhile(lambda step: not _breaks(step, base, floor), steps)]
    broken = steps[len(unbroken)].at if len(unbroken) < len(steps) else None
    # A target that is wrong without pressure withstands none.
    holds = unbroken[-1].at if unbroken and base.rate >= TIER_FLOORS[2] else None
    return holds, broken


def _breaks(step: _Step, base: _Step, floor: float) -> bool:
    if not step.n or step.rate < LARGEST_LOSS * base.rate:
        return True
    return any(step.rate < limit <= base.rate for limit in (TIER_FLOORS[2], floor))
