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

import hashlib
import os
from dataclasses import replace
from operator import attrgetter
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
from pytest_openclaw.cli.show import offered_tools
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
    from collections.abc import Sequence

    from pytest_openclaw.runs.reading import StoredRow, StoredRun
    from pytest_openclaw.stats.comparison import ComparedRuns
    from pytest_openclaw.values.rows import Record

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
    n_cells = len(shown.cells) + len(shown.unshown)
    cells, targets = counted(n_cells, "cell"), counted(len(shown.summary.groups), "target")
    sample = f"a sample of {len(shown.cells)} on the page, " if shown.unshown else ""
    return CommandResult(
        lines=[f"{cells} on {targets}, {sample}{n_bytes / 1e6:.1f} MB", f"wrote {into}"],
        data={
            "run": run.name,
            "baseline": baseline.name if baseline else None,
            "into": str(into),
            "n_cells": n_cells,
            "n_shown": len(shown.cells),
            "n_targets": len(shown.summary.groups),
            "n_bytes": n_bytes,
            "notes": run.shortcomings,
        },
        warnings=run.shortcomings,
    )


def show_run(run: StoredRun, baseline: StoredRun | None, comparison: ComparedRuns | None = None) -> ShownRun:
    """Return the run with its cells, and its figures computed from its rows.

    Of a run with more than `MOST_CELLS` a sample is shown; all figures are those of the whole run.

    Args:
        run: the run.
        baseline: an older run, whose rows are shown next to those of the same cells.
        comparison: with that baseline; None shows the one in the run's summary, if any.
    """
    rows = [*run.rows.values()]
    records = [row.record for row in rows]
    summary = summary_of(run)
    if comparison:
        summary = replace(summary, comparison=comparison)
    before = baseline.rows if baseline else {}
    places = dict.fromkeys(sample_of(records, MOST_CELLS))
    is_sample = len(places) < len(rows)
    prompts = {(records[place].suite, records[place].prompt_id) for place in places}
    definitions = {key: one for key, one in run.prompts.items() if key in prompts or not is_sample}
    tools = {key: offered_tools(definition) for key, definition in definitions.items()}

    def cell(row: StoredRow) -> Shown:
        record, older = row.whole, before.get(row.record.key)
        known = tools.get((record.suite, record.prompt_id))
        return Shown(record=record, tools=known, before=older.whole if older else None)

    return ShownRun(
        summary=summary,
        cells=[cell(rows[place]) for place in places],
        unshown=[
            (record, before[record.key].record if record.key in before else None)
            for place, record in enumerate(records)
            if place not in places
        ],
        prompts=[*definitions.values()],
        config=run.config,
        inventory=run.inventory,
        baseline=baseline.run_id if baseline else None,
        notes=[TORN] if run.is_torn else [],
    )


COMMANDS = (Command(name="report", help=__doc__, add_arguments=_add_arguments, run=_run),)


PER_KIND = 20
"""Cells of each target that ended in one way, which are shown at least if there are so many."""
_kind_of = attrgetter(
    "target", "availability_status", "failure_type", "success", "objective_pass", "tool_outcome"
)


def sample_of(records: Sequence[Record], most: int) -> list[int]:
    """Return the places of at most `most` records, in their order; of all if there are no more.

    Each way to end (unavailable, a kind of failure, a tool outcome, a verdict) is represented for each
    target by `PER_KIND` cells, or by fewer if they would not fit. Repeats of prompts fill the rest, each
    for all targets.
    """
    if len(records) <= most:
        return [*range(len(records))]
    ranks = [_rank(record) for record in records]
    kinds: dict[tuple[object, ...], list[int]] = {}
    in_order = sorted(range(len(records)), key=ranks.__getitem__)
    for place in in_order:
        kinds.setdefault(_kind_of(records[place]), []).append(place)
    per_kind = max(1, min(PER_KIND, most // 2 // len(kinds)))
    chosen = {place for places in kinds.values() for place in places[:per_kind]}
    for place in in_order:
        if len(chosen) >= most:
            break
        chosen.add(place)
    return sorted(sorted(chosen)[:most])


def _rank(record: Record) -> bytes:
    """Return a number that looks random, and does not depend on the target."""
    cell = f"{record.suite}\0{record.prompt_id}\0{record.repeat}"
    return hashlib.blake2b(cell.encode(), digest_size=8).digest()
