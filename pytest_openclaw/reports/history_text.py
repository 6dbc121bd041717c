"""Targets over runs, as lines of 80 columns."""

from __future__ import annotations

import textwrap
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from pytest_openclaw.reports.columns import WIDTH, render_columns
from pytest_openclaw.reports.numbers import (
    DASH,
    one_line,
    render_count,
    render_interval,
    render_tier,
    render_time,
)
from pytest_openclaw.reports.target_view import Figure, render_intervals
from pytest_openclaw.stats.intervals import Interval

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from pathlib import Path

    from pytest_openclaw.types.targets import Target

State = Literal["finished", "interrupted", "under way"]
Kind = Literal["measured", "merged", "rescored"]

RUN_WIDTH = 24
HEADERS = ("run", "ended", "pass", "", "p50", "tok/s", "tier", "", "")
ON_THE_LEFT = (True, True, False, False, False, False, True, False, True)
OTHER_PROMPTS = "* other prompts or validators than in the run before it"


@dataclass(frozen=True, kw_only=True)
class Entry:
    """A target in a run.

    Attributes:
        ended_at_ms: when the run ended, or wrote its last row.
        kind: where its rows come from.
        group: the figures, as in `summary.json`.
        prompts: distinguishes two selections of prompts.
        has_other_prompts: whether they are others than in the target's run before; None in its first.
    """

    path: Path
    ended_at_ms: int
    state: State
    kind: Kind
    target: Target
    group: Mapping[str, Any]
    prompts: str
    has_other_prompts: bool | None = None


def render_history(entries: Mapping[Target, Sequence[Entry]]) -> Iterator[str]:
    """Yield a block a target, a line a run."""
    if not entries:
        yield "no run has such a target"
    for n, (target, runs) in enumerate(entries.items()):
        if n:
            yield ""
        yield one_line(target.label, WIDTH)
        head, *lines = render_columns([HEADERS, *map(_row, runs)], ON_THE_LEFT, most=RUN_WIDTH)
        yield head
        for line, run in zip(lines, runs, strict=True):
            yield line
            yield from textwrap.wrap(_intervals(run), WIDTH, initial_indent="  ", subsequent_indent="  ")
    if any(run.has_other_prompts for runs in entries.values() for run in runs):
        yield ""
        yield OTHER_PROMPTS


def _row(run: Entry) -> tuple[str, ...]:
    group = run.group
    passed, use = group["passed"], group["tool_use"]
    words = [word for word in (run.kind, run.state) if word not in {"measured", "finished"}]
    return (
        run.path.name,
        render_time(run.ended_at_ms, "%Y-%m-%d") if run.ended_at_ms else DASH,
        f"{passed['n_success']}/{passed['n']}{'*' if run.has_other_prompts else ''}" if passed["n"] else DASH,
        render_interval(_interval(passed["interval_95"])),
        *(figure.short for figure in _figures(group).values()),
        render_tier(use["tier"], use["conclusive"]),
        f"{use['n_success']}/{use['n']}" if use["n"] else "",
        ", ".join(words),
    )


def _intervals(run: Entry) -> str:
    """Return those of the figures in the row; p95 and TTFT are not among them."""
    return render_intervals(_interval(run.group["tool_use"]["interval_95"]), _figures(run.group))


def _figures(group: Mapping[str, Any]) -> dict[str, Figure]:
    speed = Figure(group["tokens_per_s"], _interval(group["tokens_per_s_interval_95"]), render_count)
    latency = Figure(group["latency_ms"]["p50"], _interval(group["latency_intervals_95"]["p50"]))
    return {"p50": latency, "tok/s": speed}


def _interval(stored: Mapping[str, float] | None) -> Interval | None:
    return Interval(low=stored["low"], high=stored["high"]) if stored else None
