"""`--openclaw-dry-run`: shows the cells of a run, and estimates tokens, time and cost; no request is sent.

The estimate rests on earlier runs of the same cells, endpoint limits and prices. Nothing is written.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from statistics import median
from typing import TYPE_CHECKING, Any, NamedTuple

import pytest

from pytest_openclaw.asking.sending import endpoint_limits
from pytest_openclaw.providers.prices import Prices, has_list, install_list
from pytest_openclaw.reports.numbers import (
    columns,
    labeled,
    lines_of,
    one_line,
    padded,
    render_duration,
    render_usd,
)
from pytest_openclaw.reports.terminal import how_to_price
from pytest_openclaw.runs.directory import RESULTS
from pytest_openclaw.runs.reading import read_rows, runs_by_age
from pytest_openclaw.session.cells import run_of
from pytest_openclaw.session.execution import Collected
from pytest_openclaw.suites.targets import is_wildcard
from pytest_openclaw.util.errors import OpenClawError
from pytest_openclaw.util.text import printable
from pytest_openclaw.values.replies import Usage
from pytest_openclaw.values.worlds import most_turns

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
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
            self._lines = [*forecast(cells, self._providers, self._settings, width)]
        return True

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        """Show the table."""
        if self._lines:
            terminalreporter.write_sep("=", TITLE)
        for line in self._lines:
            terminalreporter.write_line(line)


# --- earlier runs -------------------------------------------------------------------------------


class PastAnswers:
    """The answered rows of earlier runs, newest run first.

    A cell is estimated by the median of its prompt on its target. If there is none, time and output are the
    target's, and the input is the prompt's on other targets.
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

    def run_of(self, key: CellKey) -> str | None:
        """Return the newest run with rows for a cell; None if no run has any."""
        return next((self._known[one][0] for one in _keys(key) if one in self._known), None)

    def estimate(self, key: CellKey, prices: Prices) -> Estimate:
        """Return what a cell may take."""
        cell, target, prompt = _keys(key)
        ms = self._median("e2e_ms", cell, target)
        usage = Usage(
            input_tokens=_whole(self._median("input_tokens", cell, prompt, target)),
            cached_tokens=_whole(self._median("cached_tokens", cell)),
            output_tokens=_whole(self._median("output_tokens", cell, target, prompt)),
        )
        is_open = is_wildcard(key.target) and not prices.is_free(key.target)
        usd = None if is_open else prices.estimate_usd(key.target, usage)
        return Estimate(None if ms is None else ms / 1000, usage.input_tokens, usage.output_tokens, usd)

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


def _newest_runs(runs_dir: Path, notes: list[str]) -> Iterator[tuple[str, list[Record]]]:
    """Yield the newest runs, each with its rows; note those that cannot be read."""
    for path in runs_by_age(runs_dir)[:MOST_RUNS]:
        try:
            rows = [record for _, record in read_rows(path / RESULTS)]
        except OpenClawError as error:
            notes.append(f"left out: {error}")
            continue
        yield path.name, [replace(row, raw_output="", tool_call_details=(), turns=None) for row in rows]


# --- the forecast -------------------------------------------------------------------------------


class Estimate(NamedTuple):
    """What a cell may take; None where nothing is known."""

    seconds: float | None
    input_tokens: int | None
    output_tokens: int | None
    usd: float | None


class Line(NamedTuple):
    """The forecast for one target, or for all.

    Attributes:
        n_calls: at most; a scripted exchange may end before its last turn.
        seconds: with the requests in flight that the endpoint allows.
    """

    label: str
    cells: Sequence[Estimate]
    n_calls: int
    seconds: float

    @property
    def row(self) -> list[str]:
        """The cells of the table."""
        seconds, tokens_in, tokens_out, usd = zip(*self.cells, strict=True)
        return [
            self.label,
            f"{len(self.cells)}",
            f"{self.n_calls}",
            _sum(tokens_in, str),
            _sum(tokens_out, str),
            _sum(seconds, lambda _: render_duration(self.seconds)),
            _sum(usd, render_usd),
        ]


def _sum(values: Sequence[float | None], render: Callable[[Any], str]) -> str:
    """Return a sum as text: `>text` for a partial one, and `?` for an unknown one."""
    known = [value for value in values if value is not None]
    total = sum(known)
    if not known or (len(known) < len(values) and not total):
        return "?"
    return f"{'>' if len(known) < len(values) else ''}{render(total)}"


def forecast(
    cells: Sequence[Cell], providers: Mapping[str, Provider], settings: Settings, width: int
) -> Iterator[str]:
    """Yield the lines under the title: the calls, tokens, time and cost of these cells; no call is made."""
    notes: list[str] = []
    past = PastAnswers(_newest_runs(settings.runs_dir, notes))
    limits, prices = endpoint_limits(providers, settings), Prices(providers, settings)
    by_target: dict[Target, list[Cell]] = {}
    for cell in cells:
        by_target.setdefault(cell.target, []).append(cell)
    lines = []
    by_endpoint: dict[str, float] = {}
    for target, its in by_target.items():
        estimates = [past.estimate(cell.key, prices) for cell in its]
        known_s = [one.seconds for one in estimates if one.seconds is not None]
        endpoint = providers[target.provider].endpoint
        seconds = max(sum(known_s) / limits[endpoint], max(known_s, default=0.0))
        by_endpoint[endpoint] = by_endpoint.get(endpoint, 0.0) + seconds
        n_calls = sum(most_turns(cell.prompt.world, 1 + len(cell.prompt.turns)) for cell in its)
        lines.append(Line(target.label, estimates, n_calls, seconds))
    everything = [cell for line in lines for cell in line.cells]
    # Endpoints work in parallel.
    whole = Line("all", everything, sum(line.n_calls for line in lines), max(by_endpoint.values()))
    yield from _table([*lines, whole] if len(lines) > 1 else lines, width)
    yield ""
    based_on = Counter(run_id for cell in cells if (run_id := past.run_of(cell.key)) is not None)
    runs = ", ".join(f"{run_id} ({n} of {len(cells)} cells)" for run_id, n in based_on.items())
    remarks = [("based on", f"medians of {runs}" if runs else "nothing: no earlier run asked this")]
    remarks += [("note", note) for note in (*notes, *_notes([*by_target], prices, settings))]
    if settings.budget_usd is not None:
        remarks.append(("budget", _budget(whole, settings.budget_usd)))
    for remark, text in remarks:
        for label, line in labeled(remark, lines_of(text, width - LABEL_WIDTH)):
            yield f"{label:<{LABEL_WIDTH}}{line}"
    if any(prices.needs_list(target) for target in by_target) and not has_list():
        yield f"{'next':<{LABEL_WIDTH}}{printable(install_list())}"


def _notes(targets: Sequence[Target], prices: Prices, settings: Settings) -> Iterator[str]:
    for target in filter(is_wildcard, targets):
        yield f"{target.label} means every model served there; each of them takes as much"
    if settings.until_conclusive:
        yield "tool prompts are asked at most so often: repeats end once a tier is settled"
    unpriced = [target for target in targets if not prices.is_known(target)]
    by_list = [target.label for target in unpriced if prices.needs_list(target)]
    if by_list and not has_list():
        yield how_to_price(by_list)
    elif unpriced:
        label = unpriced[0].label
        hint = f"in the ini file: openclaw_prices = {label} = INPUT OUTPUT"
        yield f"the cost of {label} is not known; {hint}"


def _table(lines: Sequence[Line], width: int) -> Iterator[str]:
    rows = [[*HEADERS], *(line.row for line in lines)]
    widths = [max(map(columns, column)) for column in zip(*rows, strict=True)]
    # A long name loses its middle, so that the table fits.
    widths[0] = min(widths[0], max(LEAST_WIDTH, width - sum(2 + figure for figure in widths[1:])))
    for row in rows:
        cells = (one_line(text, wide) for text, wide in zip(row, widths, strict=True))
        shown = (padded(text, widths[n], left=n == 0) for n, text in enumerate(cells))
        yield "  ".join(shown).rstrip()


def _budget(whole: Line, budget_usd: float) -> str:
    known = [cell.usd for cell in whole.cells if cell.usd is not None]
    if sum(known) > budget_usd:
        return f"{render_usd(budget_usd)} is less than the estimate; the rest would not be asked"
    if len(known) < len(whole.cells):
        return f"{render_usd(budget_usd)}; the cost of some cells is not known"
    return f"{render_usd(budget_usd)} is enough, by the estimate"
