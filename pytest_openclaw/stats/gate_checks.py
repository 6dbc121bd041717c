"""Compares a target's figures with a gate's limit, and states the result as a sentence.

A whole interval on the right side passes, on the wrong side it fails, and one that holds the limit leaves the
gate open: it takes more prompts to decide.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import ceil
from typing import TYPE_CHECKING, Literal

from pytest_openclaw.stats.bounds import NEVER_MS
from pytest_openclaw.stats.intervals import Z_95, cells_behind, cut_percent, percent_range
from pytest_openclaw.stats.tiers import MOST_CELLS, MOST_NEEDLESS, TIER_FLOORS, cells_until

if TYPE_CHECKING:
    from pytest_openclaw.stats.groups import Group
    from pytest_openclaw.stats.intervals import Interval
    from pytest_openclaw.stats.rates import Rate
    from pytest_openclaw.stats.tool_use import ToolUse

PASSED = "judged cells passed"
SUCCEEDED = "tool cells succeeded"
TIMED = "successful cells"
PROBED = "safety probes"

_NOT_CONCLUSIVE = "not conclusive: "

State = Literal["passes", "fails", "open"]


@dataclass(frozen=True, kw_only=True)
class GateCheck:
    """The result of comparing figures with a gate.

    Attributes:
        state: None if there are no figures.
        found: the figure itself.
        text: the figure and the limit, or without figures the cells that there are none of; `short` is the
            figure alone.
    """

    state: State | None
    found: float | None = None
    text: str = ""
    short: str = ""


def check_rate(rate: Rate, what: str, wanted: float, *, conclusive: bool) -> GateCheck:
    """Compare a rate, or its whole interval, with the one that is wanted."""
    if rate.rate is None or rate.interval_95 is None:
        return GateCheck(state=None, text=what)
    counted, short = f"{rate.n_success} of {rate.n} {what}", f"{rate.n_success} of {rate.n}"
    if not conclusive:
        return GateCheck(
            state="passes" if rate.rate >= wanted else "fails",
            found=rate.rate,
            text=f"{counted} ({cut_percent(rate.rate)}), {_whole(wanted)} wanted",
            short=short,
        )
    state = _side(rate.interval_95, wanted)
    return GateCheck(
        state=state,
        found=rate.rate,
        text=_from_low(
            state,
            f"{counted} (95 % interval {percent_range(rate.interval_95)})",
            rate,
            rate.interval_95,
            wanted,
        ),
        short=f"{short} (from {cut_percent(rate.interval_95.low)})",
    )


def check_tier(use: ToolUse, wanted: int) -> GateCheck:
    """Compare tool use with a tier; the evidence must exclude every worse tier, or every better one."""
    interval = use.tier_interval
    if use.tier is None or interval is None:
        return GateCheck(state=None, text=SUCCEEDED)
    short = f"{use.n_success} of {use.n} (from {cut_percent(interval.low)})"
    joint = f", for {use.joint_over} together" if use.joint_over else ""
    counted = f"{use.n_success} of {use.n} {SUCCEEDED} (95 % interval {percent_range(interval)}{joint})"
    state = _side(interval, TIER_FLOORS[wanted])
    if use.tier > wanted and use.capped_by:
        needless = f"{use.n_needless} of {use.restraint.n} cells that forbid tools had a call"
        assert use.needless.rate is not None, "a cap comes from cells"
        assert use.needless_interval is not None, "a cap comes from cells"
        is_settled = use.needless_interval.low > MOST_NEEDLESS
        state = "fails" if is_settled or state == "fails" else "open"
        text = f"tier {use.tier}: {needless}, more than a fifth"
        if state == "open":
            n = cells_behind(use.needless.rate, use.needless_interval, use.z)
            n_right = n * (1 - use.needless.rate)
            missing = cells_until(
                lambda found: found.low >= 1 - MOST_NEEDLESS, n_right, n, flawless=True, z=use.z
            )
            text = f"{_NOT_CONCLUSIVE}{text}; {_more(missing, 'prompts that forbid tools', 'a call')}"
    elif state == "open":
        text = _from_low(state, counted, use, interval, TIER_FLOORS[wanted], z=use.z)
    else:
        text = f"tier {use.tier}: {counted}"
    return GateCheck(state=state, found=use.tier, text=text, short=short)


def check_safe(group: Group) -> GateCheck:
    """Say whether any safety probe did harm, in the words of the recommendation."""
    found = {reason.code: reason.text for reason in group.recommendation.reasons}
    n_unsafe = sum(result.n_unsafe for result in group.safety)
    if not group.safety:
        return GateCheck(state=None, text=PROBED)
    short = f"harm in {n_unsafe} of {sum(result.n for result in group.safety)}"
    if n_unsafe:
        return GateCheck(state="fails", found=n_unsafe, text=found["harm"], short=short)
    if group.n_open_probes:
        text = f"{found['safety']}, {group.n_open_probes} more without a verdict"
        return GateCheck(state="open", found=0, text=text, short=short)
    return GateCheck(state="passes", found=0, text=found["safety"], short=short)


def check_p95(group: Group, wanted: float, *, conclusive: bool) -> GateCheck:
    """Compare the 95th percentile of the latencies, or its whole interval, with a limit."""
    p95, interval = group.latency_ms["p95"], group.latency_intervals_95["p95"]
    if p95 is None:
        return GateCheck(state=None, text=TIMED)
    measured, limit = f"p95 {_ms(p95)} of {group.n_success} {TIMED}", f"{wanted:.10g} ms"
    if not conclusive:
        text = f"{measured}, at most {limit} wanted"
        return GateCheck(state="passes" if p95 <= wanted else "fails", found=p95, text=text, short=_ms(p95))
    state: State = "open"
    if interval is None:
        between, high = group.interval_notes["latency_ms.p95"], "no interval"
    else:
        between = f"95 % interval {_ms(interval.low)} to {_ms(interval.high)}"
        high = f"to {_ms(interval.high)}"
        if interval.high <= wanted:
            state = "passes"
        elif interval.low > wanted:
            state = "fails"
    prefix = _NOT_CONCLUSIVE if state == "open" else ""
    return GateCheck(
        state=state,
        found=p95,
        text=f"{prefix}{measured} ({between}), an upper end of {limit} at most wanted",
        short=f"{_ms(p95)} ({high})",
    )


def _side(interval: Interval, wanted: float) -> State:
    if interval.low >= wanted:
        return "passes"
    return "fails" if interval.high < wanted else "open"


def _from_low(
    state: State, counted: str, rate: Rate, interval: Interval, wanted: float, *, z: float = Z_95
) -> str:
    text = f"{counted}, a lower end of {_whole(wanted)} wanted"
    if state != "open":
        return text
    assert rate.rate is not None, "an interval has a rate"
    n = cells_behind(rate.rate, interval, z)
    missing = cells_until(lambda found: found.low >= wanted, n * rate.rate, n, flawless=True, z=z)
    return f"{_NOT_CONCLUSIVE}{text}; {_more(missing, 'prompts', 'a miss')}"


def _more(missing: int | None, prompts: str, without: str) -> str:
    if missing is None:
        return f"{MOST_CELLS:,} more {prompts} without {without} would not pass it"
    missing = max(missing, 1)  # the effective sample of repeats is that of a single target
    if missing == 1:
        prompts = prompts.replace("prompts", "prompt")
    return f"{missing:,} more {prompts} without {without} would pass it"


def _whole(rate: float) -> str:
    """A rate that is wanted, with all its digits."""
    return f"{rate * 100:.1f} %" if rate == round(rate, 3) else f"{rate * 100:.10g} %"


def _ms(milliseconds: float) -> str:
    return f"{ceil(milliseconds)} ms" if milliseconds < NEVER_MS / 1000 else "never"
