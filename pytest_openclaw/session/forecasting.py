"""The forecast of a run, from its cells, earlier runs of them, endpoint limits and prices.

`--openclaw-dry-run`: shows the cells of a run and their cost; no call is made, nothing is written.

A forecast as lines for a terminal.

Times and tokens of earlier cells → a forecast for the same cells.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field, replace
from statistics import median
from typing import TYPE_CHECKING

import pytest

from pytest_openclaw.asking.sending import endpoint_limits
from pytest_openclaw.providers.prices import Prices, has_list, install_list
from pytest_openclaw.reports.numbers import WIDTH, columns, labeled, lines_of, one_line, padded, render_usd
from pytest_openclaw.runs.directory import RESULTS
from pytest_openclaw.runs.reading import StoredRow, read_rows, runs_by_age
from pytest_openclaw.session.cell_runs import run_of
from pytest_openclaw.session.spending import how_to_price
from pytest_openclaw.suites import is_wildcard
from pytest_openclaw.util.errors import OpenClawError
from pytest_openclaw.util.text import printable
from pytest_openclaw.values.replies import Usage
from pytest_openclaw.values.worlds import most_turns

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence
    from pathlib import Path

    from pytest_openclaw.values.prompts import Cell
    from pytest_openclaw.values.protocols import Provider
    from pytest_openclaw.values.requests import CellKey, Target
    from pytest_openclaw.values.rows import Record
    from pytest_openclaw.values.settings import Settings


class DryRun:
    """Registered in a session that only shows what a run would do."""

    def __init__(self, settings: Settings, providers: Mapping[str, Provider]) -> None:
        self._settings = settings
        self._providers = providers
        self._lines: list[str] = []

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        """Run no test; forecast the run."""
        if session.testsfailed:  # a suite that cannot be read; pytest reports it
            return True
        selected = (run_of(item) for item in session.items if item.get_closest_marker("skip") is None)
        cells = [run.cell for run in selected if run is not None]
        self._lines = ["nothing: no cell is selected, or each has its answer"]
        if cells:
            width = session.config.get_terminal_writer().fullwidth
            self._lines = render_forecast(forecast(cells, self._providers, self._settings), width)
        return True

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        """Show the table."""
        if self._lines:
            terminalreporter.write_sep("=", TITLE)
        for line in self._lines:
            terminalreporter.write_line(line)


def lead_no_workers(config: pytest.Config) -> None:
    """Undo the options for xdist's workers, which would be started for nothing."""
    option = config.option
    if hasattr(option, "numprocesses"):
        option.numprocesses, option.distload, option.dist, option.tx = 0, False, "no", []


@dataclass(frozen=True, kw_only=True)
class Typical:
    """What a cell may be expected to take; None where nothing is known.

    Attributes:
        e2e_ms: of all its turns.
        input_tokens, cached_tokens, output_tokens: as in rows.
        run_id: of the newest run that has rows of it; None if none has.

    """

    e2e_ms: float | None = None
    input_tokens: int | None = None
    cached_tokens: int | None = None
    output_tokens: int | None = None
    run_id: str | None = None


@dataclass
class _Before:
    """The rows of something, all of the newest run that has any."""

    run_id: str
    records: list[Record] = field(default_factory=list)

    def middle(self, name: str) -> float | None:
        values = [value for record in self.records if (value := getattr(record, name)) is not None]
        return median(values) if values else None


class PastAnswers:
    """The answered rows of earlier runs.

    A cell takes what its prompt took on its target, in the median. If it was not asked there, time and output
    are the target's, and the input is the prompt's on others; a target that was never asked has no time.

    Args:
        runs: each run's id and rows, newest first.

    """

    def __init__(self, runs: Iterable[tuple[str, Sequence[Record]]]) -> None:
        # By cell without its repeat, by target, and by prompt.
        self._known: dict[object, _Before] = {}
        for run_id, records in runs:
            for record in records:
                if record.availability_status == "ok":
                    for key in _keys(record.key):
                        before = self._known.setdefault(key, _Before(run_id))
                        if before.run_id == run_id:
                            before.records.append(record)

    def typical(self, key: CellKey) -> Typical:
        """Return what a cell may be expected to take."""
        cell, target, prompt = map(self._known.get, _keys(key))
        known = [before for before in (cell, target, prompt) if before is not None]
        return Typical(
            e2e_ms=_first("e2e_ms", cell, target),
            input_tokens=_whole(_first("input_tokens", cell, prompt, target)),
            cached_tokens=_whole(_first("cached_tokens", cell)),
            output_tokens=_whole(_first("output_tokens", cell, target, prompt)),
            run_id=known[0].run_id if known else None,
        )


def _keys(key: CellKey) -> tuple[object, ...]:
    prompt = (key.suite, key.prompt_id)
    return (*prompt, key.target), key.target, prompt


def _first(name: str, *befores: _Before | None) -> float | None:
    """Return the middle of the first that knows any."""
    for before in befores:
        if before is not None and (middle := before.middle(name)) is not None:
            return middle
    return None


def _whole(value: float | None) -> int | None:
    return None if value is None else round(value)


# --- the forecast -------------------------------------------------------------------------------


@dataclass(frozen=True, kw_only=True)
class Sum:
    """A sum over cells of which only some may be known.

    Attributes:
        n_known: of `n` cells.

    """

    value: float = 0.0
    n_known: int = 0
    n: int = 0

    @classmethod
    def of(cls, values: Iterable[float | None]) -> Sum:
        """Add up what is known."""
        given = [*values]
        known = [value for value in given if value is not None]
        return cls(value=sum(known), n_known=len(known), n=len(given))

    @property
    def is_whole(self) -> bool:
        """Whether every cell's part is known."""
        return self.n_known == self.n


@dataclass(frozen=True, kw_only=True)
class Line:
    """The forecast for one target, or for all.

    Attributes:
        label: the target's.
        n_cells: that would be asked.
        n_calls: at most; a scripted exchange may end before its last turn.
        seconds: with the requests in flight that the endpoint allows.
        endpoint: of the target; where several share one, their times add up.

    """

    label: str
    n_cells: int
    n_calls: int
    input_tokens: Sum
    output_tokens: Sum
    seconds: Sum
    usd: Sum
    endpoint: str = ""


def total(lines: Sequence[Line]) -> Line:
    """Return the sum of all targets; endpoints go on side by side."""
    by_endpoint: dict[str, list[Line]] = {}
    for line in lines:
        by_endpoint.setdefault(line.endpoint, []).append(line)
    seconds = _joined(line.seconds for line in lines)
    longest = max(
        (sum(line.seconds.value for line in endpoint) for endpoint in by_endpoint.values()), default=0.0
    )
    return Line(
        label="all",
        n_cells=sum(line.n_cells for line in lines),
        n_calls=sum(line.n_calls for line in lines),
        input_tokens=_joined(line.input_tokens for line in lines),
        output_tokens=_joined(line.output_tokens for line in lines),
        seconds=Sum(value=longest, n_known=seconds.n_known, n=seconds.n),
        usd=_joined(line.usd for line in lines),
    )


def _joined(sums: Iterable[Sum]) -> Sum:
    parts = [*sums]
    return Sum(
        value=sum(part.value for part in parts),
        n_known=sum(part.n_known for part in parts),
        n=sum(part.n for part in parts),
    )


@dataclass(frozen=True, kw_only=True)
class Forecast:
    """The forecast for a run.

    Attributes:
        lines: one a target, in their order.
        based_on: cells by the run that has rows of them, runs in their order; the others are in none.
        budget_usd: at which it would stop.
        notes: what else is to be known of it.
        next_command: what to run so that more is known; empty if nothing helps.

    """

    lines: Sequence[Line]
    based_on: Mapping[str, int] = field(default_factory=dict)
    budget_usd: float | None = None
    notes: Sequence[str] = ()
    next_command: str = ""


MOST_RUNS = 10
_BY_SERVED = "{label} means every model served there; each of them takes as much"
_NO_PRICE = "what {label} costs is not known; in the ini file: openclaw_prices = {label} = INPUT OUTPUT"
_AT_MOST = "tool prompts are asked at most so often: repeats end once a tier is settled"


def forecast(cells: Sequence[Cell], providers: Mapping[str, Provider], settings: Settings) -> Forecast:
    """Return the calls, tokens, time and cost that these cells would take.

    Args:
        cells: those that would be run, in order.
        providers: of their targets; no call is made.
        settings: the run's.

    """
    notes: list[str] = []
    history = PastAnswers(newest_runs(settings.runs_dir, notes))
    typical = {cell.key: history.typical(cell.key) for cell in cells}
    by_target: dict[Target, list[Cell]] = {}
    for cell in cells:
        by_target.setdefault(cell.target, []).append(cell)
    limits, prices = endpoint_limits(providers, settings), Prices(providers, settings)
    lines = []
    for target, its in by_target.items():
        typicals = [typical[cell.key] for cell in its]
        endpoint = providers[target.provider].endpoint
        lines.append(
            Line(
                label=target.label,
                endpoint=endpoint,
                n_cells=len(its),
                n_calls=sum(most_turns(cell.prompt.world, 1 + len(cell.prompt.turns)) for cell in its),
                input_tokens=Sum.of(one.input_tokens for one in typicals),
                output_tokens=Sum.of(one.output_tokens for one in typicals),
                seconds=_seconds(typicals, limits[endpoint]),
                usd=Sum.of(_usd(prices, target, one) for one in typicals),
            )
        )
    based_on = Counter(one.run_id for one in typical.values() if one.run_id is not None)
    notes += _notes(by_target, settings)
    unpriced = [target for target in by_target if not prices.is_known(target)]
    by_list = [target.label for target in unpriced if prices.needs_list(target)]
    needs_extra = bool(by_list) and not has_list()
    if needs_extra:
        notes.append(how_to_price(by_list))
    elif unpriced:
        notes.append(_NO_PRICE.format(label=unpriced[0].label))
    return Forecast(
        lines=lines,
        based_on=based_on,
        budget_usd=settings.budget_usd,
        notes=notes,
        next_command=install_list() if needs_extra else "",
    )


def newest_runs(runs_dir: Path, notes: list[str]) -> Iterator[tuple[str, list[Record]]]:
    """Yield the newest runs, newest first, each with its rows without the models' replies.

    Args:
        runs_dir: where they are.
        notes: receives a sentence about each run that cannot be read.

    """
    for path in runs_by_age(runs_dir)[:MOST_RUNS]:
        try:
            yield path.name, [*_bare_rows(path / RESULTS)]
        except OpenClawError as error:
            notes.append(f"left out: {error}")


def _bare_rows(results: Path) -> Iterator[Record]:
    for row in read_rows(results):
        if isinstance(row, StoredRow):
            yield replace(row.record, raw_output="", parsed_output=None, tool_call_details=(), turns=None)


def _seconds(typicals: Sequence[Typical], limit: int) -> Sum:
    """Return the time of these cells with `limit` at a time; at least that of the longest."""
    alone = Sum.of(one.e2e_ms for one in typicals)
    longest_ms = max((one.e2e_ms or 0.0 for one in typicals), default=0.0)
    return replace(alone, value=max(alone.value / limit, longest_ms) / 1000)


def _usd(prices: Prices, target: Target, one: Typical) -> float | None:
    if is_wildcard(target) and not prices.is_free(target):
        return None
    usage = Usage(
        input_tokens=one.input_tokens, output_tokens=one.output_tokens, cached_tokens=one.cached_tokens
    )
    return prices.estimate_usd(target, usage)


def _notes(by_target: Mapping[Target, Sequence[Cell]], settings: Settings) -> Iterator[str]:
    for target in by_target:
        if is_wildcard(target):
            yield _BY_SERVED.format(label=target.label)
    if settings.until_conclusive:
        yield _AT_MOST


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
