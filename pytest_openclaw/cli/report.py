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
run. It can be filtered by target, suite, surface and number of cells.

Example:
  pytest-openclaw report last
  pytest-openclaw report --all
  pytest-openclaw report 20260214_081500 --baseline 20260213_235930

"""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import quote

from pytest_openclaw.cli.result import (
    CommandResult,
    add_across,
    add_runs_dir,
    read_run,
    run_path,
    write_over_ours,
)
from pytest_openclaw.util.errors import OpenClawError
from pytest_openclaw.util.signals import epoch_ms
from pytest_openclaw.util.text import counted

if TYPE_CHECKING:
    import argparse

FILE, INDEX = "report.html", "index.html"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of `report`."""
    parser.add_argument("run", nargs="?", metavar="RUN", help="the run's directory, its id, or last")
    parser.add_argument("--all", action="store_true", help=f"all runs of the folder, as {INDEX}")
    add_runs_dir(parser)
    parser.add_argument("--baseline", metavar="RUN", help="an older run, to mark what has changed")
    add_across(parser)
    parser.add_argument(
        "--into", metavar="FILE", help=f"the page (RUN/{FILE}, or {INDEX} in the folder of runs)"
    )


def run(arguments: argparse.Namespace) -> CommandResult:
    """Write the page."""
    if arguments.all == (arguments.run is not None):
        raise OpenClawError("name a run (last is the newest one), or --all")
    return _all(arguments) if arguments.all else _one(arguments)


def _all(arguments: argparse.Namespace) -> CommandResult:
    from pytest_openclaw.features.history import read_history
    from pytest_openclaw.reports.html import render_index
    from pytest_openclaw.reports.html.page import FIRST_WORDS

    folder = arguments.runs_dir
    if arguments.baseline:
        raise OpenClawError("--baseline is for the page of one run")
    if not folder.is_dir():
        raise OpenClawError(f"there is no folder of runs {folder}")
    history = read_history(folder, lambda _: True, by_suite=True)
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
    from pytest_openclaw.features.baseline import read_measured
    from pytest_openclaw.features.showing import show_run
    from pytest_openclaw.reports.html import render_page
    from pytest_openclaw.reports.html.page import FIRST_WORDS
    from pytest_openclaw.runs.reading import read_part
    from pytest_openclaw.stats.run_comparison import compare_runs, parse_across

    part = read_run(arguments)
    baseline = read_part(run_path(arguments.baseline, arguments.runs_dir)) if arguments.baseline else None
    into = Path(arguments.into) if arguments.into else part.run.path / FILE
    comparison = None
    if baseline:
        runs = (read_measured(one.run.path) for one in (baseline, part))
        comparison = compare_runs(*runs, across=parse_across(arguments.across))
    shown = show_run(part, baseline, now_ms=epoch_ms(), comparison=comparison)
    page = render_page(shown)
    write_over_ours(into, page, FIRST_WORDS, "page")
    n_bytes = into.stat().st_size
    n_cells = len(shown.cells) + len(shown.unshown)
    cells, targets = counted(n_cells, "cell"), counted(len(shown.summary.groups), "target")
    sample = f"a sample of {len(shown.cells)} on the page, " if shown.unshown else ""
    return CommandResult(
        lines=[f"{cells} on {targets}, {sample}{n_bytes / 1e6:.1f} MB", f"wrote {into}"],
        data={
            "run": part.name,
            "baseline": baseline.name if baseline else None,
            "into": str(into),
            "n_cells": n_cells,
            "n_shown": len(shown.cells),
            "n_targets": len(shown.summary.groups),
            "n_bytes": n_bytes,
            "notes": part.shortcomings,
        },
        warnings=part.shortcomings,
    )
