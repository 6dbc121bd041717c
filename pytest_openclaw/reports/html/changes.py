"""What is different since a baseline: counted cell by cell, and as the statistics of the comparison say."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pytest_openclaw.reports.html.cells import change_of
from pytest_openclaw.reports.html.comparison import comparison_of
from pytest_openclaw.reports.html.pieces import Section, Table, named
from pytest_openclaw.reports.numbers import DASH, one_line, render_ms
from pytest_openclaw.stats.percentiles import percentile

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pytest_openclaw.reports.html.shown import ShownBaseline, ShownRun
    from pytest_openclaw.types.records import Record
    from pytest_openclaw.types.targets import Target

_HEAD = (
    "target", "paired", "better", "worse", "same", "no verdict", "only now", "only before", "p50 before",
    "p50 now",
)  # fmt: skip
_INTRO = (
    "A cell is better if it passes now and did not before, worse if it passes no longer. "
    "The view “changed since the baseline” shows which."
)


def changes_section(run: ShownRun) -> Section | None:
    """Return the section; None without a baseline."""
    tables = []
    if run.earlier:
        targets = [group.target for group in run.summary.groups]
        rows = [_row(target, [*run.pairs], run.earlier) for target in targets]
        tables.append(
            Table(caption=f"Cell by cell against {one_line(run.earlier.run_id, 60)}", head=_HEAD, rows=rows)
        )
    compared = comparison_of(run.summary.comparison) if run.summary.comparison else None
    if compared:
        tables = [*compared.tables[:1], *tables]
    if not tables:
        return None
    return Section(
        id="changes",
        title="Against the baseline",
        intro=_INTRO if run.earlier else "",
        charts=compared.charts if compared else (),
        notes=compared.notes if compared else (),
        tables=tables,
        more=compared.tables[1:] if compared else (),
    )


def _row(target: Target, pairs: Sequence[tuple[Record, Record | None]], earlier: ShownBaseline) -> list[str]:
    own = [pair for pair in pairs if pair[0].target == target]
    paired = [(before, record) for record, before in own if before]
    changes = [change_of(before, after) for before, after in paired]
    gone = sum(key.target == target for key in earlier.gone)
    counted = (len(paired), changes.count(1), changes.count(-1), changes.count(0), changes.count(None))
    both = [pair for pair in paired if all(one.availability_status == "ok" and one.success for one in pair)]
    medians = (_median([pair[side].e2e_ms for pair in both]) for side in (0, 1))
    return [named(target), *map(str, counted), str(len(own) - len(paired)), str(gone), *medians]


def _median(values: Sequence[int]) -> str:
    return render_ms(percentile(values, 50)) if values else DASH
