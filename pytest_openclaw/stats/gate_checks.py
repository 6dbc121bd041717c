"""A gate held against a target's figures: whether they reach what is wanted, in words."""

from __future__ import annotations

from dataclasses import dataclass
from math import ceil, floor
from typing import TYPE_CHECKING

from pytest_openclaw.stats.bounds import NEVER_MS
from pytest_openclaw.stats.tiers import TIER_FLOORS, excludes_worse

if TYPE_CHECKING:
    from pytest_openclaw.stats.groups import Group
    from pytest_openclaw.stats.intervals import Interval
    from pytest_openclaw.stats.rates import Rate
    from pytest_openclaw.stats.tool_use import ToolUse

PASSED = "judged cells passed"
SUCCEEDED = "tool cells succeeded"
TIMED = "successful cells"

_NOT_CONCLUSIVE = "not conclusive: "


@dataclass(frozen=True, kw_only=True)
class Look:
    """What is seen where a gate is held against figures.

    Attributes:
        holds: None if there is nothing to hold it against.
        found: the figure itself.
        text: what is there and what is wanted; `short` the figure alone.
    """

    holds: bool | None
    found: float | None = None
    text: str = ""
    short: str = ""


def look_at_rate(rate: Rate, what: str, wanted: float, *, conclusive: bool) -> Look:
    """Hold a rate, or the lower end of its interval, against the one that is wanted."""
    if rate.rate is None or rate.interval_95 is None:
        return Look(holds=None)
    counted, short = f"{rate.n_success} of {rate.n} {what}", f"{rate.n_success} of {rate.n}"
    if not conclusive:
        text = f"{counted} ({_cut(rate.rate)}), {_whole(wanted)} wanted"
        return Look(holds=rate.rate >= wanted, found=rate.rate, text=text, short=short)
    holds = rate.interval_95.low >= wanted
    prefix = _NOT_CONCLUSIVE if rate.rate >= wanted and not holds else ""
    between = f"{counted} (95 % interval {_ends(rate.interval_95)})"
    return Look(
        holds=holds,
        found=rate.rate,
        text=f"{prefix}{between}, a lower end of {_whole(wanted)} wanted",
        short=f"{short} (from {_cut(rate.interval_95.low)})",
    )


def look_at_tier(use: ToolUse, wanted: int) -> Look:
    """Hold tool use against a tier; the evidence must exclude every worse one."""
    if use.tier is None or use.interval_95 is None:
        return Look(holds=None)
    short = f"{use.n_success} of {use.n} (from {_cut(use.interval_95.low)})"
    counted = f"{use.n_success} of {use.n} {SUCCEEDED} (95 % interval {_ends(use.interval_95)})"
    holds, text = use.tier <= wanted, f"tier {use.tier}: {counted}"
    if use.tier > wanted and use.capped_by:
        needless = f"{use.n_needless} of {use.restraint.n} cells that forbid tools had a call"
        text = f"tier {use.tier}: {needless}, more than a fifth"
    elif holds and not excludes_worse(wanted, use.interval_95):
        floor_of_tier = _whole(TIER_FLOORS[wanted])
        holds, text = False, f"{_NOT_CONCLUSIVE}{counted}, a lower end of {floor_of_tier} wanted"
    return Look(holds=holds, found=use.tier, text=text, short=short)


def look_at_p95(group: Group, wanted: float, *, conclusive: bool) -> Look:
    """Hold the 95th percentile of the latencies, or the upper end of its interval, against a limit."""
    p95, interval = group.latency_ms["p95"], group.latency_intervals_95["p95"]
    if p95 is None:
        return Look(holds=None)
    there, limit = f"p95 {_ms(p95)} of {group.n_success} {TIMED}", f"{wanted:.10g} ms"
    if not conclusive:
        text = f"{there}, at most {limit} wanted"
        return Look(holds=p95 <= wanted, found=p95, text=text, short=_ms(p95))
    holds = interval is not None and interval.high <= wanted
    prefix = _NOT_CONCLUSIVE if p95 <= wanted and not holds else ""
    if interval is None:
        between, high = group.interval_notes["latency_ms.p95"], "no interval"
    else:
        between, high = (
            f"95 % interval {_ms(interval.low)} to {_ms(interval.high)}",
            f"to {_ms(interval.high)}",
        )
    return Look(
        holds=holds,
        found=p95,
        text=f"{prefix}{there} ({between}), an upper end of {limit} at most wanted",
        short=f"{_ms(p95)} ({high})",
    )


def _ends(interval: Interval) -> str:
    return f"{_cut(interval.low)} to {_cut(interval.high)}"


def _cut(rate: float) -> str:
    """A rate that was found: cut, not rounded, so that it looks short of what it does not reach."""
    return f"{floor(rate * 1000 + 1e-9) / 10:.1f} %"


def _whole(rate: float) -> str:
    """A rate that is wanted, with all its digits."""
    return f"{rate * 100:.1f} %" if rate == round(rate, 3) else f"{rate * 100:.10g} %"


def _ms(milliseconds: float) -> str:
    return f"{ceil(milliseconds)} ms" if milliseconds < NEVER_MS / 1000 else "never"
