"""`--openclaw-dry-run`: shows the cells of a run, and estimates tokens, time and cost; no request is sent.

The estimate rests on earlier runs of the same cells, endpoint limits and prices. Nothing is written.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field, replace
from statistics import median
from typing import TYPE_CHECKING

import pytest

from pytest_openclaw.asking.sending import endpoint_limits
from pytest_openclaw.providers.prices import Prices, has_list, install_list
from pytest_openclaw.reports.numbers import (
    WIDTH,
    columns,
    labeled,
    lines_of,
    one_line,
    padded,
    render_duration,
    render_usd,
)
from pytest_openclaw.reports.spending import how_to_price
from pytest_openclaw.runs.directory import RESULTS
from pytest_openclaw.runs.reading import read_rows, runs_by_age
from pytest_openclaw.session.cells import run_of
from pytest_openclaw.session.execution import Collected
from pytest_openclaw.suites import is_wildcard
from pytest_openclaw.util.errors import OpenClawError
from pytest_openclaw.util.text import printable
from pytest_openclaw.values.replies import Usage
from pytest_openclaw.values.worlds import most_turns

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence
    from pathlib import Path

    from pytest_openclaw.session.owner import Owner
    from pytest_openclaw.values.prompts import Cell
    from pytest_openclaw.values.protocols import Provider
    from pytest_openclaw.values.requests import CellKey, Target
    from pytest_openclaw.values.rows import Record
    from pytest_openclaw.values.settings import Settings

TITLE = "openclaw: what would be asked (no request was sent)"
HEADERS = ("target", "cells", "calls", "tokens in", "out", "time", "cost")
LABEL_WIDTH = 18
LEAST_WIDTH = 12
MOST_RUNS = 10
"""So many of the newest runs are read."""


def join_session(owner: Owner, config: pytest.Config) -> None:
    """Show what this session would do, and run no test."""
    config.pluginmanager.register(DryRun(owner.settings, owner.providers), "openclaw-dry-run")


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
        if unknown := Collected.of(session).unknown_ids:
            raise pytest.UsageError(unknown)
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


# --- earlier runs -------------------------------------------------------------------------------


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


class PastAnswers:
    """The answered rows of earlier runs.

    A cell takes what its prompt took on its target, in the median. If it was not asked there, time and output
    are the target's, and the input is the prompt's on others; a target that was never asked has no time.
    """

    def __init__(self, runs: Iterable[tuple[str, Sequence[Record]]]) -> None:
        # By cell without its repeat, by target, and by prompt: the newest run that has rows, and those.
        self._known: dict[object, tuple[str, list[Record]]] = {}
        for run_id, records in runs:
            for record in records:
                for key in _keys(record.key) if record.availability_status == "ok" else ():
                    newest, rows = self._known.setdefault(key, (run_id, []))
                    if newest == run_id:
                        rows.append(record)

    def typical(self, key: CellKey) -> Typical:
        """Return what a cell may be expected to take."""
        cell, target, prompt = keys = _keys(key)
        return Typical(
            e2e_ms=self._median("e2e_ms", cell, target),
            input_tokens=_whole(self._median("input_tokens", cell, prompt, target)),
            cached_tokens=_whole(self._median("cached_tokens", cell)),
            output_tokens=_whole(self._median("output_tokens", cell, target, prompt)),
            run_id=next((self._known[one][0] for one in keys if one in self._known), None),
        )

    def _median(self, name: str, *keys: object) -> float | None:
        """Return the median of the first key that has any value."""
        for key in keys:
            _, rows = self._known.get(key, ("", []))
            if values := [value for row in rows if (value := getattr(row, name)) is not None]:
                return float(median(values))
        return None


def _keys(key: CellKey) -> tuple[object, object, object]:
    prompt = (key.suite, key.prompt_id)
    return (*prompt, key.target), key.target, prompt


def _whole(value: float | None) -> int | None:
    return None if value is None else round(value)


def newest_runs(runs_dir: Path, notes: list[str]) -> Iterator[tuple[str, list[Record]]]:
    """Yield the newest runs, newest first, each with its rows without the models' replies."""
    for path in runs_by_age(runs_dir)[:MOST_RUNS]:
        try:
            rows = [record for _, record in read_rows(path / RESULTS)]
        except OpenClawError as error:
            notes.append(f"left out: {error}")
            continue
        yield path.name, [replace(row, raw_output="", tool_call_details=(), turns=None) for row in rows]


# --- the forecast -------------------------------------------------------------------------------


@dataclass(frozen=True, kw_only=True)
class Sum:
    """A sum over cells of which only some may be known."""

    value: float = 0.0
    n_known: int = 0
    n: int = 0

    @classmethod
    def of(cls, values: Iterable[float | None]) -> Sum:
        """Add up what is known."""
        given = [*values]
        known = [value for value in given if value is not None]
        return cls(value=sum(known), n_known=len(known), n=len(given))

    @classmethod
    def joined(cls, sums: Iterable[Sum]) -> Sum:
        """Add up sums."""
        parts = [*sums]
        return cls(
            value=sum(part.value for part in parts),
            n_known=sum(part.n_known for part in parts),
            n=sum(part.n for part in parts),
        )

    @property
    def is_whole(self) -> bool:
        """Whether every cell's part is known."""
        return self.n_known == self.n

    def shown(self, text: str) -> str:
        """Return the text, `>text` for a partial sum, and `?` for an unknown one."""
        if not self.n_known or not (self.is_whole or self.value):
            return "?"
        return text if self.is_whole else f">{text}"


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

    @property
    def cells(self) -> list[str]:
        """The cells of the table."""
        return [
            self.label,
            f"{self.n_cells}",
            f"{self.n_calls}",
            self.input_tokens.shown(f"{self.input_tokens.value:.0f}"),
            self.output_tokens.shown(f"{self.output_tokens.value:.0f}"),
            self.seconds.shown(render_duration(self.seconds.value)),
            self.usd.shown(render_usd(self.usd.value)),
        ]


def total(lines: Sequence[Line]) -> Line:
    """Return the sum of all targets; endpoints work in parallel."""
    by_endpoint: Counter[str] = Counter()
    for line in lines:
        by_endpoint[line.endpoint] += line.seconds.value  # type: ignore[assignment]  # seconds, not a count
    seconds = Sum.joined(line.seconds for line in lines)
    return Line(
        label="all",
        n_cells=sum(line.n_cells for line in lines),
        n_calls=sum(line.n_calls for line in lines),
        input_tokens=Sum.joined(line.input_tokens for line in lines),
        output_tokens=Sum.joined(line.output_tokens for line in lines),
        seconds=replace(seconds, value=max(by_endpoint.values(), default=0.0)),
        usd=Sum.joined(line.usd for line in lines),
    )


@dataclass(frozen=True, kw_only=True)
class Forecast:
    """The forecast for a run.

    Attributes:
        lines: one a target, in their order.
        based_on: cells by the run that has rows of them; the others are in none.
        budget_usd: at which it would stop.
        notes: what else is to be known of it.
        next_command: what to run so that more is known; empty if nothing helps.
    """

    lines: Sequence[Line]
    based_on: Mapping[str, int] = field(default_factory=dict)
    budget_usd: float | None = None
    notes: Sequence[str] = ()
    next_command: str = ""


def forecast(cells: Sequence[Cell], providers: Mapping[str, Provider], settings: Settings) -> Forecast:
    """Return the calls, tokens, time and cost that these cells would take.

    Args:
        cells: those that would be run, in order.
        providers: of their targets; no call is made.
        settings: the run's.
    """
    notes: list[str] = []
    history = PastAnswers(newest_runs(settings.runs_dir, notes))
    by_target: dict[Target, list[Cell]] = {}
    for cell in cells:
        by_target.setdefault(cell.target, []).append(cell)
    limits, prices = endpoint_limits(providers, settings), Prices(providers, settings)
    lines = []
    based_on: Counter[str] = Counter()
    for target, its in by_target.items():
        typicals = [history.typical(cell.key) for cell in its]
        based_on.update(one.run_id for one in typicals if one.run_id is not None)
        endpoint = providers[target.provider].endpoint
        ms = Sum.of(one.e2e_ms for one in typicals)
        longest_ms = max((one.e2e_ms or 0.0 for one in typicals), default=0.0)
        lines.append(
            Line(
                label=target.label,
                endpoint=endpoint,
                n_cells=len(its),
                n_calls=sum(most_turns(cell.prompt.world, 1 + len(cell.prompt.turns)) for cell in its),
                input_tokens=Sum.of(one.input_tokens for one in typicals),
                output_tokens=Sum.of(one.output_tokens for one in typicals),
                seconds=replace(ms, value=max(ms.value / limits[endpoint], longest_ms) / 1000),
                usd=Sum.of(_usd(prices, target, one) for one in typicals),
            )
        )
        if is_wildcard(target):
            notes.append(f"{target.label} means every model served there; each of them takes as much")
    if settings.until_conclusive:
        notes.append("tool prompts are asked at most so often: repeats end once a tier is settled")
    unpriced = [target for target in by_target if not prices.is_known(target)]
    by_list = [target.label for target in unpriced if prices.needs_list(target)]
    needs_extra = bool(by_list) and not has_list()
    if needs_extra:
        notes.append(how_to_price(by_list))
    elif unpriced:
        label = unpriced[0].label
        hint = f"in the ini file: openclaw_prices = {label} = INPUT OUTPUT"
        notes.append(f"the cost of {label} is not known; {hint}")
    return Forecast(
        lines=lines,
        based_on=based_on,
        budget_usd=settings.budget_usd,
        notes=notes,
        next_command=install_list() if needs_extra else "",
    )


def _usd(prices: Prices, target: Target, one: Typical) -> float | None:
    if is_wildcard(target) and not prices.is_free(target):
        return None
    usage = Usage(
        input_tokens=one.input_tokens, output_tokens=one.output_tokens, cached_tokens=one.cached_tokens
    )
    return prices.estimate_usd(target, usage)


# --- its lines ----------------------------------------------------------------------------------


def render_forecast(forecast: Forecast, width: int = WIDTH) -> list[str]:
    """Return the lines under the title."""
    lines = [*forecast.lines]
    if len(lines) > 1:
        lines.append(total(lines))
    rows = [[*HEADERS], *(line.cells for line in lines)]
    widths = [max(map(columns, column)) for column in zip(*rows, strict=True)]
    # A long name loses its middle, so that the table fits.
    widths[0] = min(widths[0], max(LEAST_WIDTH, width - sum(2 + figure for figure in widths[1:])))
    table = [
        "  ".join(
            padded(one_line(text, width), width, left=n == 0)
            for n, (text, width) in enumerate(zip(row, widths, strict=True))
        ).rstrip()
        for row in rows
    ]
    return [*table, "", *_remarks(forecast, width - LABEL_WIDTH)]


def _remarks(forecast: Forecast, width: int) -> Iterator[str]:
    n_cells = sum(line.n_cells for line in forecast.lines)
    runs = [f"{run_id} ({n} of {n_cells} cells)" for run_id, n in forecast.based_on.items()]
    basis = f"medians of {', '.join(runs)}" if runs else "nothing: no earlier run asked this"
    remarks = [("based on", basis), *(("note", note) for note in forecast.notes)]
    if forecast.budget_usd is not None:
        remarks.append(("budget", _budget(total(forecast.lines).usd, forecast.budget_usd)))
    for remark, text in remarks:
        for label, line in labeled(remark, lines_of(text, width)):
            yield f"{label:<{LABEL_WIDTH}}{line}"
    if forecast.next_command:
        yield f"{'next':<{LABEL_WIDTH}}{printable(forecast.next_command)}"


def _budget(usd: Sum, budget_usd: float) -> str:
    if usd.value > budget_usd:
        return f"{render_usd(budget_usd)} is less than the estimate; the rest would not be asked"
    if not usd.is_whole:
        return f"{render_usd(budget_usd)}; the cost of some cells is not known"
    return f"{render_usd(budget_usd)} is enough, by the estimate"
