"""How long answers took, and why some never came."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pytest_openclaw.reports.html import charts
from pytest_openclaw.reports.html.pieces import NAME_WIDTH, Section, Table, named
from pytest_openclaw.reports.numbers import one_line, render_ms
from pytest_openclaw.reports.repeats_text import REPEATS_HEAD, flips_of, repeats_rows
from pytest_openclaw.reports.target_view import unanswered, view_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pytest_openclaw.reports.html.shown import ShownRun
    from pytest_openclaw.stats.groups import Group


def times_section(run: ShownRun) -> Section | None:
    """Return the times of the answered cells; None without any."""
    good = [
        cell.record for cell in run.cells if cell.record.availability_status == "ok" and cell.record.success
    ]
    if not good:
        return None
    groups = run.summary.groups
    e2e = {
        named(group.target): [one.e2e_ms for one in good if one.target == group.target] for group in groups
    }
    ttft = {
        named(group.target): [
            one.ttft_ms for one in good if one.target == group.target and one.ttft_ms is not None
        ]
        for group in groups
    }
    drawn = [charts.ridges("Whole answer", e2e)]
    if any(ttft.values()):
        drawn.append(charts.ridges("First token", ttft))
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
        intro="Answered cells; the solid line is a target's median, the dashed one its 95th percentile. "
        "In the table a 95 % interval follows a percentile, or ? where there are too few cells.",
        charts=drawn,
        more=[Table(caption="All times", head=head, rows=rows)],
    )


def repeats_section(groups: Sequence[Group]) -> Section | None:
    """Return what repeats of a prompt come to; None without any."""
    rows = [[one_line(label, NAME_WIDTH), *figures] for label, *figures in repeats_rows(groups)]
    if not rows:
        return None
    return Section(
        id="repeats",
        title="Asked again",
        intro="Chances for a prompt of this kind, with their 95 % intervals.",
        tables=[Table(caption="Repeats", head=REPEATS_HEAD, rows=rows)],
        notes=[
            (one_line(label, NAME_WIDTH), one_line(shown_text, 400)) for label, shown_text in flips_of(groups)
        ],
    )


def unanswered_section(groups: Sequence[Group]) -> Section | None:
    """Return why cells were not answered, or not with success; None if all were."""
    rows = [
        [named(group.target), failure_type, str(n), one_line(reason, 400)]
        for group in groups
        for failure_type, n, reason in unanswered(group)
    ]
    if not rows:
        return None
    head = ("target", "failure", "cells", "why")
    return Section(
        id="unanswered",
        title="Not answered",
        tables=[Table(caption="Not answered", head=head, rows=rows, n_words=4)],
    )
