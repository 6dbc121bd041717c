"""A forecast as lines for a terminal."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pytest_openclaw.core.text import printable
from pytest_openclaw.reports.columns import WIDTH, labeled, padded
from pytest_openclaw.reports.money import render_usd
from pytest_openclaw.reports.numbers import columns, lines_of, one_line
from pytest_openclaw.stats.forecast import total

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pytest_openclaw.stats.forecast import Forecast, Line, Sum

TITLE = "openclaw: what would be asked (no request was sent)"
LABEL_WIDTH = 18
LEAST_WIDTH = 12
HEADERS = ("target", "cells", "calls", "tokens in", "out", "time", "cost")
UNKNOWN = "?"
_MINUTE_S, _HOUR_S, _DAY_S = 60, 3600, 86400


def render_forecast(forecast: Forecast, width: int = WIDTH) -> list[str]:
    """Return the lines under the title.

    Args:
        forecast: of a run.
        width: columns of the terminal.
    """
    lines = [*forecast.lines]
    if len(lines) > 1:
        lines.append(total(lines))
    rows = _fitted([list(HEADERS), *([*_row(line)] for line in lines)], width)
    widths = [max(columns(row[n]) for row in rows) for n in range(len(HEADERS))]
    table = (
        "  ".join(padded(text, widths[n], left=n == 0) for n, text in enumerate(row)).rstrip() for row in rows
    )
    return [*table, "", *_remarks(forecast, width - LABEL_WIDTH)]


def render_duration(seconds: float) -> str:
    """Return `8 s`, `12 min`, `3.5 h` or `2.1 days`."""
    if seconds < 2 * _MINUTE_S:
        return f"{seconds:.0f} s" if seconds >= 1 else f"{seconds:.1f} s"
    if seconds < 2 * _HOUR_S:
        return f"{seconds / _MINUTE_S:.0f} min"
    if seconds < 2 * _DAY_S:
        return f"{seconds / _HOUR_S:.1f} h"
    return f"{seconds / _DAY_S:.1f} days"


def _fitted(rows: list[list[str]], width: int) -> list[list[str]]:
    """Shorten the targets, so that the table fits the width."""
    figures = sum(2 + max(map(columns, column)) for column in [*zip(*rows, strict=True)][1:])
    return [[one_line(target, max(LEAST_WIDTH, width - figures)), *others] for target, *others in rows]


def _row(line: Line) -> Iterator[str]:
    yield line.label
    yield f"{line.n_cells}"
    yield f"{line.n_calls}"
    for tokens in (line.input_tokens, line.output_tokens):
        yield _known(tokens, f"{tokens.value:.0f}")
    yield _known(line.seconds, render_duration(line.seconds.value))
    yield _known(line.usd, render_usd(line.usd.value))


def _known(value: Sum, text: str) -> str:
    """A sum of which parts are not known is more than what is known."""
    if not value.n_known or not (value.is_whole or value.value):
        return UNKNOWN
    return text if value.is_whole else f">{text}"


def _remarks(forecast: Forecast, width: int) -> Iterator[str]:
    remarks = [("based on", _basis(forecast))]
    remarks += [("note", note) for note in forecast.notes]
    if forecast.budget_usd is not None:
        remarks.append(("budget", _budget(forecast, forecast.budget_usd)))
    for remark, text in remarks:
        for label, line in labeled(remark, lines_of(text, width)):
            yield f"{label:<{LABEL_WIDTH}}{line}"
    if forecast.next_command:
        yield f"{'next':<{LABEL_WIDTH}}{printable(forecast.next_command)}"


def _basis(forecast: Forecast) -> str:
    n_cells = sum(line.n_cells for line in forecast.lines)
    runs = [f"{run_id} ({n} of {n_cells} cells)" for run_id, n in forecast.based_on.items()]
    return "medians of " + ", ".join(runs) if runs else "nothing: no earlier run asked this"


def _budget(forecast: Forecast, budget_usd: float) -> str:
    usd = total(forecast.lines).usd
    if usd.value > budget_usd:
        return f"{render_usd(budget_usd)} is less than the estimate; the rest would not be asked"
    if not usd.is_whole:
        return f"{render_usd(budget_usd)}; the cost of some cells is not known"
    return f"{render_usd(budget_usd)} is enough, by the estimate"
