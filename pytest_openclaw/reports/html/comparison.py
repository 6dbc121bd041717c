"""The comparison with a baseline → a chart, tables and sentences.

What is different since a baseline: counted cell by cell, and as the statistics of the comparison say.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from pytest_openclaw.reports.html import pieces as charts
from pytest_openclaw.reports.html.cells import change_of
from pytest_openclaw.reports.html.pieces import NAME_WIDTH, Section, Table, named
from pytest_openclaw.reports.numbers import DASH, one_line, render_ms
from pytest_openclaw.stats.percentiles import percentile
from pytest_openclaw.util.text import first_few

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from pytest_openclaw.reports.html.pieces import Chart, ShownBaseline, ShownRun
    from pytest_openclaw.stats.comparison import ComparedRuns, Comparison, SetAside
    from pytest_openclaw.stats.intervals import Interval
    from pytest_openclaw.values.requests import Target
    from pytest_openclaw.values.rows import Record


_MEASURES = {"latency": "answer", "ttft": "TTFT", "output_tokens": "output tokens", "cost": "cost"}
_VERDICTS = ("target", "found", "before", "now", "points", "95 %", "prompts better", "worse", "p")
_RATIOS = ("target", "measured", "found", "now / before", "95 %", "prompts", "p")
_APART = ("target", "why", "what", "cells", "prompts")
_MOST_PROMPTS = 12


@dataclass(frozen=True, kw_only=True)
class Compared:
    """What a section shows of a comparison."""

    charts: Sequence[Chart]
    tables: Sequence[Table]
    notes: Sequence[tuple[str, str]]


def comparison_of(comparison: ComparedRuns) -> Compared:
    """Return the comparison; a dash is what could not be computed."""
    targets, baseline = comparison.targets, _word(comparison.baseline)
    drawn = [_drawn(one) for one in targets if one.verdicts.difference is not None]
    tables = [
        Table(
            caption=f"Verdicts against {baseline}", head=_VERDICTS, rows=[*map(_verdicts, targets)], n_words=2
        ),
        Table(
            caption=f"Times, tokens and cost against {baseline}",
            head=_RATIOS,
            rows=[*_ratios(targets)],
            n_words=3,
        ),
        Table(caption="Set aside", head=_APART, rows=[*map(_apart, comparison.set_aside)], n_words=5),
    ]
    notes = [("note", _word(note)) for note in comparison.notes]
    notes += [(_name(one), _word(note)) for one in targets for note in one.notes]
    return Compared(
        charts=[charts.differences("Passed now, less before", drawn)] if drawn else [],
        tables=[table for table in tables if table.rows],
        notes=notes,
    )


def _verdicts(one: Comparison) -> list[str]:
    found = one.verdicts
    return [
        _name(one),
        found.word,
        f"{found.n_base}/{found.n_cells}",
        f"{found.n_candidate}/{found.n_cells}",
        _points(found.difference),
        _interval(found.interval_95, _points),
        str(found.n_better),
        str(found.n_worse),
        _p(found.p_adjusted),
    ]


def _ratios(targets: Iterable[Comparison]) -> Iterator[list[str]]:
    for one in targets:
        for name, ratio in one.ratios.items():
            yield [
                _name(one),
                _MEASURES[name],
                ratio.word,
                _times(ratio.ratio),
                _interval(ratio.interval_95, _times),
                str(ratio.n_prompts),
                _p(ratio.p_adjusted),
            ]


def _apart(one: SetAside) -> list[str]:
    return [
        one_line(one.target, NAME_WIDTH),
        one.reason.replace("_", " "),
        _word(one.detail),
        str(one.n_cells),
        first_few([_word(name) for name in one.prompts], _MOST_PROMPTS),
    ]


def _drawn(one: Comparison) -> charts.ChartPoint:
    found, value = one.verdicts, one.verdicts.difference or 0.0
    return charts.point(_name(one), value, found.interval_95, f"{_points(value)} points, {found.word}")


def _name(one: Comparison) -> str:
    target, base = (one_line(label, NAME_WIDTH) for label in (one.target, one.base_target))
    return target if base == target else f"{base} → {target}"


def _interval(interval: Interval | None, shown: Callable[[float], str]) -> str:
    return f"{shown(interval.low)} to {shown(interval.high)}" if interval else DASH


def _points(value: float | None) -> str:
    return DASH if value is None else f"{100 * value:+.0f}"


def _times(value: float) -> str:
    return f"{value:.2f}"


def _p(value: float) -> str:
    return "< 0.0001" if value < 0.0001 else f"{value:.2g}"


def _word(text: str) -> str:
    return one_line(text, 200) or DASH


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
