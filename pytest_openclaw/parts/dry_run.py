"""`--openclaw-dry-run`: shows the cells of a run, and estimates tokens and cost; no request is sent.

The estimate is based on earlier runs of the same prompts, and on prices. No file is written.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from statistics import median
from typing import Any, NamedTuple

import pytest

from pytest_openclaw.providers.prices import Prices, has_list
from pytest_openclaw.reports.blocks import SummaryFinding, Table
from pytest_openclaw.reports.numbers import render_duration, render_usd
from pytest_openclaw.reports.terminal import finding_lines, how_to_price, table_lines
from pytest_openclaw.runs.directory import RESULTS
from pytest_openclaw.runs.reading import read_rows, runs_by_age
from pytest_openclaw.session.cells import cell_of
from pytest_openclaw.session.owner import Owner, PlainSession
from pytest_openclaw.suites.cells import is_wildcard
from pytest_openclaw.util.errors import OpenClawError
from pytest_openclaw.util.files import install_command
from pytest_openclaw.util.text import counted
from pytest_openclaw.values.parts import Part, PartKey
from pytest_openclaw.values.prompts import Cell
from pytest_openclaw.values.protocols import Provider
from pytest_openclaw.values.replies import Usage
from pytest_openclaw.values.requests import CellKey, Target
from pytest_openclaw.values.settings import Settings

TITLE = "openclaw: what would be asked (no request was sent)"
HEADERS = ("target", "cells", "tokens in", "out", "one by one", "cost")
MOST_RUNS = 10
"""The number of newest runs that are read."""


class DryRun:
    """Registered in a session that only shows the cells of a run."""

    def __init__(self, owner: PlainSession) -> None:
        self._owner = owner
        self._lines: list[str] = []

    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        """Run no test; forecast the run."""
        if session.testsfailed:  # a suite that cannot be read; pytest reports it
            return True
        owner = self._owner
        if unknown := owner.collected(session).unknown_ids:
            raise pytest.UsageError(unknown)
        selected = (cell_of(item) for item in session.items if item.get_closest_marker("skip") is None)
        cells = [cell for cell in selected if cell and cell.key not in owner.start.kept]
        self._lines = ["nothing: no cell is selected, or each has its answer"]
        if cells:
            width = session.config.get_terminal_writer().fullwidth
            self._lines = [*forecast(cells, owner.providers, owner.settings, width)]
        return True

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        """Show the table."""
        if self._lines:
            terminalreporter.write_sep("=", TITLE)
        for line in self._lines:
            terminalreporter.write_line(line)


class PastAnswers:
    """Tokens and times of answered cells in earlier runs: by prompt and target, by target, and by prompt."""

    def __init__(self, runs_dir: Path) -> None:
        self.n_runs = 0
        self.notes: list[str] = []
        self._known: defaultdict[object, list[float]] = defaultdict(list)
        for path in runs_by_age(runs_dir)[:MOST_RUNS]:
            try:
                for _, record in read_rows(path / RESULTS):
                    for key in _keys(record.key) if record.availability_status == "ok" else ():
                        for name in ("input_tokens", "output_tokens", "e2e_ms"):
                            if (n := getattr(record, name)) is not None:
                                self._known[name, key].append(n)
                self.n_runs += 1
            except OpenClawError as error:
                self.notes.append(f"left out: {error}")

    def median(self, name: str, *keys: object) -> int | None:
        """Return the median of a field of rows for the first key that is known."""
        known = (self._known[name, key] for key in keys if (name, key) in self._known)
        return next((round(median(values)) for values in known), None)


def _keys(key: CellKey) -> tuple[object, Target, object]:
    prompt = (key.suite, key.prompt_id)
    return (*prompt, key.target), key.target, prompt


class Estimate(NamedTuple):
    """The likely tokens, time and cost of a cell; None if unknown."""

    input_tokens: int | None
    output_tokens: int | None
    ms: int | None
    usd: float | None


def forecast(
    cells: Sequence[Cell], providers: Mapping[str, Provider], settings: Settings, width: int
) -> Iterator[str]:
    """Yield the lines under the title: the tokens and the cost of these cells; no call is made."""
    past, prices = PastAnswers(settings.runs_dir), Prices(providers, settings)
    by_target: dict[Target, list[Estimate]] = {}
    for cell in cells:
        whole, target, prompt = _keys(cell.key)
        n_in = past.median("input_tokens", whole, prompt, target)
        n_out = past.median("output_tokens", whole, target, prompt)
        ms = past.median("e2e_ms", whole, target)  # of its own target only
        is_open = is_wildcard(target) and not prices.is_free(target)
        usage = Usage(input_tokens=n_in, output_tokens=n_out)
        usd = None if is_open else prices.estimate_usd(target, usage)
        by_target.setdefault(target, []).append(Estimate(n_in, n_out, ms, usd))
    everything = [one for its in by_target.values() for one in its]
    rows = [_row(target.label, its) for target, its in by_target.items()]
    if len(rows) > 1:
        rows.append(_row("all", everything))
    yield from table_lines(Table(head=HEADERS, rows=rows), width)
    yield ""
    is_known = any(one.input_tokens is not None or one.ms is not None for one in everything)
    runs = f"medians of {counted(past.n_runs, 'earlier run')}"
    if others := [one.label for one in by_target if past.median("output_tokens", one) is None]:
        runs += f"; for {', '.join(others)}, tokens of other targets"
    based_on = runs if is_known else "nothing: no earlier run asked this"
    remarks = [SummaryFinding(label="based on", text=based_on)]
    notes = (*past.notes, *_notes([*by_target], prices, settings))
    remarks += [SummaryFinding(label="note", text=note) for note in notes]
    if settings.budget_usd is not None:
        remarks.append(SummaryFinding(label="budget", text=_budget(everything, settings.budget_usd)))
    if any(prices.needs_list(target) for target in by_target) and not has_list():
        remarks.append(SummaryFinding(label="next", text=install_command("cost")))
    yield from finding_lines(remarks, width)


def _row(label: str, cells: Sequence[Estimate]) -> list[str]:
    tokens_in, tokens_out, ms, usd = zip(*cells, strict=True)
    time = _sum(ms, lambda total: render_duration(total / 1000))
    return [label, str(len(cells)), _sum(tokens_in, str), _sum(tokens_out, str), time, _sum(usd, render_usd)]


def _sum(values: Sequence[float | None], render: Callable[[float], str]) -> str:
    """Return a sum as text: `>text` for a partial one, and `?` for an unknown one."""
    known = [value for value in values if value is not None]
    total = sum(known)
    if not known or (len(known) < len(values) and not total):
        return "?"
    return f"{'>' if len(known) < len(values) else ''}{render(total)}"


def _notes(targets: Sequence[Target], prices: Prices, settings: Settings) -> Iterator[str]:
    for target in filter(is_wildcard, targets):
        yield f"{target.label} means every model served there; each of them takes as much"
    if getattr(settings, "until_conclusive", False):
        yield "tool prompts are asked at most so often: repeats end once a tier is settled"
    unpriced = [target for target in targets if not prices.is_known(target)]
    by_list = [target.label for target in unpriced if prices.needs_list(target)]
    if by_list and not has_list():
        yield how_to_price(by_list)
    elif unpriced:
        label = unpriced[0].label
        yield f"the cost of {label} is not known; in the ini file: openclaw_prices = {label} = INPUT OUTPUT"


def _budget(cells: Sequence[Estimate], budget_usd: float) -> str:
    known = [cell.usd for cell in cells if cell.usd is not None]
    if sum(known) > budget_usd:
        return f"{render_usd(budget_usd)} is less than the estimate; the rest would not be asked"
    if len(known) < len(cells):
        return f"{render_usd(budget_usd)}; the cost of some cells is not known"
    return f"{render_usd(budget_usd)} is enough, by the estimate"


# --- the part in a session --------------------------------------------------------------------------


def _join(owner: Owner, config: pytest.Config) -> None:
    settings: Any = owner.settings
    if settings.dry_run:
        assert isinstance(owner, PlainSession), "a dry run has no workers"
        config.pluginmanager.register(DryRun(owner), "openclaw-dry-run")


PART = Part(
    keys={Settings: {"dry_run": PartKey(bool, default=False)}},
    hinders=lambda settings: settings.dry_run,
    join=_join,
)
