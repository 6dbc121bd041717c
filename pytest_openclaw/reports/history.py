"""Targets over runs, as lines of 80 columns."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from pytest_openclaw.reports.columns import WIDTH, render_columns
from pytest_openclaw.reports.numbers import (
    DASH,
    one_line,
    render_count,
    render_interval,
    render_ms,
    render_tier,
    render_time,
)
from pytest_openclaw.stats.intervals import Interval

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from pathlib import Path

    from pytest_openclaw.records import Target

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
        prompts: tells two selections of prompts apart.
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
        yield from render_columns([HEADERS, *map(_row, runs)], ON_THE_LEFT, most=RUN_WIDTH)
    if any(run.has_other_prompts for runs in entries.values() for run in runs):
        yield ""
        yield OTHER_PROMPTS


def _row(run: Entry) -> tuple[str, ...]:
    passed, use = run.group["passed"], run.group["tool_use"]
    interval = passed["interval_95"]
    words = [word for word in (run.kind, run.state) if word not in {"measured", "finished"}]
    return (
        run.path.name,
        render_time(run.ended_at_ms, "%Y-%m-%d") if run.ended_at_ms else DASH,
        f"{passed['n_success']}/{passed['n']}{'*' if run.has_other_prompts else ''}" if passed["n"] else DASH,
        render_interval(Interval(low=interval["low"], high=interval["high"]) if interval else None),
        render_ms(run.group["latency_ms"]["p50"]),
        render_count(run.group["tokens_per_s"]),
        render_tier(use["tier"], use["conclusive"]),
        f"{use['n_success']}/{use['n']}" if use["n"] else "",
        ", ".join(words),
    )
