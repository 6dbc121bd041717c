"""How long answers took, and why some never came."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pytest_openclaw.reports.html import charts
from pytest_openclaw.reports.html.pieces import NAME_WIDTH, Section, Table, named
from pytest_openclaw.reports.numbers import one_line, render_ms
from pytest_openclaw.reports.repeats_text import REPEATS_HEAD, flips_of, repeats_rows
from pytest_openclaw.reports.target_view import unanswered, view_of

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from pytest_openclaw.stats.groups import Group


def times_section(groups: Sequence[Group]) -> Section:
    """Return the times of the answered cells."""
    groups = [group for group in groups if group.latency_ms["p50"] is not None]
    streamed = [group for group in groups if group.ttft_ms["p50"] is not None]
    drawn = [
        charts.times(title, points)
        for title, points in (
            ("Whole answer", [_point(group, group.latency_ms) for group in groups]),
            ("First token", [_point(group, group.ttft_ms) for group in streamed]),
        )
        if points
    ]
    head = (
        "target",
        *(f"{what} {name}" for what in ("answer", "TTFT") for name in ("p50", "p95", "p99", "mean")),
    )
    rows = [
        [
            named(group.target),
            *(view_of(group).figures[name].full for name in ("p50", "p95", "p99")),
            render_ms(group.latency_ms["mean"]),
            *(view_of(group).figures[name].full for name in ("TTFT", "TTFT p95", "TTFT p99")),
            render_ms(group.ttft_ms["mean"]),
        ]
        for group in groups
    ]
    return Section(
        id="times",
        title="How long it took",
        intro="Answered cells; the point is a target's median, the line ends at its 95th percentile. "
        "In the table a 95 % interval follows a percentile, or ? where there are too few cells.",
        charts=drawn,
        more=[Table(caption="All times", head=head, rows=rows)],
    )


def _point(group: Group, ms: Mapping[str, float | None]) -> charts.ChartPoint:
    p50, p95 = ms["p50"] or 0.0, ms["p95"] or 0.0
    shown = f"{render_ms(p50)}, p95 {render_ms(p95)}"
    return charts.ChartPoint(named(group.target), p50, p50, p95, shown)


def repeats_section(groups: Sequence[Group]) -> Section:
    """Return what repeats of a prompt come to."""
    rows = [[one_line(label, NAME_WIDTH), *figures] for label, *figures in repeats_rows(groups)]
    return Section(
        id="repeats",
        title="Asked again",
        intro="Chances for a prompt of this kind, with their 95 % intervals.",
        tables=[Table(caption="Repeats", head=REPEATS_HEAD, rows=rows)],
        notes=[
            (one_line(label, NAME_WIDTH), one_line(shown_text, 400)) for label, shown_text in flips_of(groups)
        ],
    )


def unanswered_section(groups: Sequence[Group]) -> Section:
    """Return why cells were not answered, or not with success."""
    rows = [
        [named(group.target), failure_type, str(n), one_line(reason, 400)]
        for group in groups
        for failure_type, n, reason in unanswered(group)
    ]
    head = ("target", "failure", "cells", "why")
    return Section(
        id="unanswered",
        title="Not answered",
        tables=[Table(caption="Not answered", head=head, rows=rows, n_words=4)],
    )
