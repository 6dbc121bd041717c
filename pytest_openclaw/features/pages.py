"""Make one HTML page of a run, to open from disk and to send to others.

The page needs no server and no network. It begins with the recommendation for
each target. Then come tiers with their intervals, times, how tool use ended,
and every prompt on every target: a click on a cell opens prompt, answer,
thinking, tool calls, verdict and times. What is filtered and open is in the
page's address. With --baseline, cells that changed since an older run are
marked.
Like results.jsonl it contains the models' answers: send it only to people who
may read those.

With --all and no RUN, the page is of all runs in the folder: the rates of each
target over time with their intervals, changes of its tier, and a link to each
run.

Example:
  pytest-openclaw report last
  pytest-openclaw report --all
  pytest-openclaw report 20260214_081500 --baseline 20260213_235930
"""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import quote

from pytest_openclaw.cli.result import (
    Command,
    CommandResult,
    add_across,
    add_runs_dir,
    read_run,
    run_path,
    write_over_ours,
)
from pytest_openclaw.reports.cells import is_miss, offered_tools
from pytest_openclaw.reports.html import render_page
from pytest_openclaw.reports.html.cells import Shown
from pytest_openclaw.reports.html.page import FIRST_WORDS, ShownRun
from pytest_openclaw.runs.reading import load_run
from pytest_openclaw.runs.summaries import summary_of
from pytest_openclaw.stats.run_comparison import compare_runs, parse_across
from pytest_openclaw.util.errors import OpenClawError
from pytest_openclaw.util.text import counted

if TYPE_CHECKING:
    import argparse

    from pytest_openclaw.runs.reading import StoredRow, StoredRun
    from pytest_openclaw.stats.comparison import ComparedRuns

FILE, INDEX = "report.html", "index.html"
MOST_CELLS = 20_000
"""Cells of a page; it has about a kilobyte of each, which a browser loads at once."""
TORN = "The last line of the rows was torn when the run was killed, and is left out."


def _add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("run", nargs="?", metavar="RUN", help="the run's directory, its id, or last")
    parser.add_argument("--all", action="store_true", help=f"all runs of the folder, as {INDEX}")
    add_runs_dir(parser)
    parser.add_argument("--baseline", metavar="RUN", help="an older run, to mark what has changed")
    add_across(parser)
    parser.add_argument(
        "--into", metavar="FILE", help=f"the page (RUN/{FILE}, or {INDEX} in the folder of runs)"
    )


def _run(arguments: argparse.Namespace) -> CommandResult:
    if arguments.all == (arguments.run is not None):
        raise OpenClawError("name a run (last is the newest one), or --all")
    return _all(arguments) if arguments.all else _one(arguments)


def _all(arguments: argparse.Namespace) -> CommandResult:
    from pytest_openclaw.features.history import read_history, render_index

    folder = arguments.runs_dir
    if arguments.baseline:
        raise OpenClawError("--baseline is for the page of one run")
    if not folder.is_dir():
        raise OpenClawError(f"there is no folder of runs {folder}")
    history = read_history(folder, lambda _: True)
    if not history.n_runs:
        raise OpenClawError(f"there is no run in {folder}")
    into = Path(arguments.into) if arguments.into else folder / INDEX
    paths = {entry.path for runs in history.entries.values() for entry in runs}
    page = render_index(history.entries, {path: _link(path, into) for path in paths})
    write_over_ours(into, page, FIRST_WORDS, "page")
    return CommandResult(
        lines=[
            f"{counted(history.n_runs, 'run')}, {counted(len(history.entries), 'target')}",
            f"wrote {into}",
        ],
        data={
            "runs_dir": str(folder),
            "into": str(into),
            "n_runs": history.n_runs,
            "n_targets": len(history.entries),
            "n_bytes": into.stat().st_size,
            "unreadable": [{"path": str(path), "reason": reason} for path, reason in history.unreadable],
        },
        warnings=[reason for _, reason in history.unreadable],
    )


def _link(run: Path, index: Path) -> str:
    """Return the address of a run's page, or of its summary, relative to the index."""
    file = next((run / name for name in (FILE, "summary.md") if (run / name).is_file()), run)
    return quote(Path(os.path.relpath(file.resolve(), index.resolve().parent)).as_posix())


def _one(arguments: argparse.Namespace) -> CommandResult:
    run = read_run(arguments)
    baseline = load_run(run_path(arguments.baseline, arguments.runs_dir)) if arguments.baseline else None
    into = Path(arguments.into) if arguments.into else run.path / FILE
    comparison = None
    if baseline:
        across = parse_across(arguments.across)
        comparison = compare_runs(baseline.measured, run.measured, across=across)
    shown = show_run(run, baseline, comparison)
    page = render_page(shown)
    write_over_ours(into, page, FIRST_WORDS, "page")
    n_bytes = into.stat().st_size
    cells, targets = counted(shown.n_cells, "cell"), counted(len(shown.summary.groups), "target")
    sample = f"{len(shown.cells)} on the page, " if shown.n_cells > len(shown.cells) else ""
    return CommandResult(
        lines=[f"{cells} on {targets}, {sample}{n_bytes / 1e6:.1f} MB", f"wrote {into}"],
        data={
            "run": run.name,
            "baseline": baseline.name if baseline else None,
            "into": str(into),
            "n_cells": shown.n_cells,
            "n_shown": len(shown.cells),
            "n_targets": len(shown.summary.groups),
            "n_bytes": n_bytes,
            "notes": run.shortcomings,
        },
        warnings=run.shortcomings,
    )


def show_run(run: StoredRun, baseline: StoredRun | None, comparison: ComparedRuns | None = None) -> ShownRun:
    """Return the run with its cells, and its figures computed from its rows.

    Args:
        run: the run. Of more than `MOST_CELLS` cells, some that passed are not shown.
        baseline: an older run, whose rows are shown next to those of the same cells.
        comparison: with that baseline; None shows the one in the run's summary, if any.
    """
    summary = summary_of(run)
    if comparison:
        summary = replace(summary, comparison=comparison)
    records = run.records
    misses_first = sorted(records, key=lambda record: not is_miss(record))
    shown = {record.key for record in misses_first[:MOST_CELLS]}
    prompts = {(record.suite, record.prompt_id) for record in misses_first[:MOST_CELLS]}
    before = baseline.rows if baseline else {}
    tools = {key: offered_tools(definition) for key, definition in run.prompts.items()}

    def cell(row: StoredRow) -> Shown:
        record, older = row.whole, before.get(row.record.key)
        known = tools.get((record.suite, record.prompt_id))
        return Shown(record=record, tools=known, before=older.whole if older else None)

    now = summary.generated_at_ms
    return ShownRun(
        summary=summary,
        cells=[cell(row) for key, row in run.rows.items() if key in shown],
        n_cells=len(records),
        span_ms=(
            min((record.started_at_ms for record in records), default=now),
            max((record.ended_at_ms for record in records), default=now),
        ),
        prompts=[definition for key, definition in run.prompts.items() if key in prompts],
        config=run.config,
        inventory=run.inventory,
        baseline=baseline.run_id if baseline else None,
        notes=[TORN] if run.is_torn else [],
    )


COMMANDS = (Command(name="report", help=__doc__, add_arguments=_add_arguments, run=_run),)
