"""Targets over runs, as lines of a terminal."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from pytest_openclaw.reports.blocks import Table, table_lines
from pytest_openclaw.reports.facts import Figure, render_intervals
from pytest_openclaw.reports.numbers import (
    DASH,
    WIDTH,
    one_line,
    render_count,
    render_interval,
    render_tier,
    render_time,
)
from pytest_openclaw.stats.intervals import stored_interval

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from pathlib import Path

    from pytest_openclaw.values.requests import Target

State = Literal["finished", "interrupted", "under way"]
Kind = Literal["measured", "merged", "rescored"]

MOST_BARS = 30
HEADERS = ("run", "ended", "passed", "95% CI", "p50", "tok/s", "tier", "tools", "note")
LEFT_OUT_FIRST = ("tok/s", "p50", "95% CI", "ended")
OTHER_PROMPTS = "* other prompts or validators than in the run before it"
BARS = "▁▂▃▄▅▆▇█"


@dataclass(frozen=True, kw_only=True)
class Entry:
    """A target in a run.

    Attributes:
        ended_at_ms: when the run ended, or wrote its last row.
        kind: the origin of its rows.
        group: the figures, as in `summary.json`.
        n_cells: cells of the target that were selected; None if the run does not say.
        prompts: distinguishes two selections of prompts.
        has_other_prompts: whether they are others than in the target's run before; None in its first.

    """

    path: Path
    ended_at_ms: int
    state: State
    kind: Kind
    target: Target
    group: Mapping[str, Any]
    n_cells: int | None
    prompts: str
    has_other_prompts: bool | None = None

    @property
    def notes(self) -> list[str]:
        """What is not ordinary about the run, in words: `rescored`, `partial: 12 of 36 cells`."""
        found: list[str] = [] if self.kind == "measured" else [self.kind]
        if not self.group["n_ok"]:
            found.append("no cell answered")
        if self.state != "finished":
            n_rows = self.group["n_total"]
            count = f": {n_rows} of {self.n_cells} cells" if self.n_cells else ""
            found.append(f"{'partial' if self.state == 'interrupted' else self.state}{count}")
        return found


def sparkline(rates: Sequence[float | None]) -> str:
    """Return a bar for each rate of 0 to 1, the full height for 1; a blank without a rate."""
    top = len(BARS) - 1
    return "".join(" " if rate is None else BARS[round(rate * top)] for rate in rates)


def render_history(entries: Mapping[Target, Sequence[Entry]], width: int = WIDTH) -> Iterator[str]:
    """Yield a block a target, a line a run."""
    if not entries:
        yield "no run has such a target"
    for n, (target, runs) in enumerate(entries.items()):
        if n:
            yield ""
        bars = sparkline([run.group["passed"]["rate"] for run in runs[-MOST_BARS:]])
        trend = f"  passed {bars}" if len(runs) > 1 else ""
        yield f"{one_line(target.label, width - len(trend))}{trend}"
        yield from table_lines(history_table(runs), width)
    if any(run.has_other_prompts for runs in entries.values() for run in runs):
        yield ""
        yield OTHER_PROMPTS


def history_table(runs: Sequence[Entry]) -> Table:
    """Return the figures of a target in some runs."""
    return Table(
        head=HEADERS,
        rows=[_row(run) for run in runs],
        words=("ended", "tier", "note"),
        drop=LEFT_OUT_FIRST,
        caption="Runs",
        below=[_intervals(run) for run in runs],
    )


def _row(run: Entry) -> tuple[str, ...]:
    group = run.group
    passed, use = group["passed"], group["tool_use"]
    return (
        run.path.name,
        render_time(run.ended_at_ms, "%Y-%m-%d") if run.ended_at_ms else DASH,
        f"{passed['n_success']}/{passed['n']}{'*' if run.has_other_prompts else ''}" if passed["n"] else DASH,
        render_interval(stored_interval(passed["interval_95"])),
        *(figure.short for figure in _figures(group).values()),
        render_tier(use["tier"], use["conclusive"]),
        f"{use['n_success']}/{use['n']}" if use["n"] else "",
        ", ".join(run.notes),
    )


def _intervals(run: Entry) -> str:
    return render_intervals(stored_interval(run.group["tool_use"]["interval_95"]), _figures(run.group))


def _figures(group: Mapping[str, Any]) -> dict[str, Figure]:
    speed = Figure(group["tokens_per_s"], stored_interval(group["tokens_per_s_interval_95"]), render_count)
    latency = Figure(group["latency_ms"]["p50"], stored_interval(group["latency_intervals_95"]["p50"]))
    return {"p50": latency, "tok/s": speed}
