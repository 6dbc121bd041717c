"""Make one HTML page of a run, to open from disk and to send to others.

The page needs no server and no network. It begins with the recommendation for
each target. Then come tiers with their intervals, times, how tool use ended,
and every prompt on every target: a click on a cell opens prompt, answer,
thinking, tool calls, verdict and times. What is filtered and open is in the
page's address. With --baseline, cells that changed since an older run are
marked.
Like results.jsonl it contains the models' answers: send it only to people who
may read those.

Example:
  pytest-openclaw report last
  pytest-openclaw report 20260214_081500 --baseline 20260213_235930
"""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING

from pytest_openclaw.commands.result import (
    CommandResult,
    add_across,
    add_run,
    counted,
    read_run,
    run_path,
    write_over_ours,
)

if TYPE_CHECKING:
    import argparse

FILE = "report.html"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of `report`."""
    add_run(parser)
    parser.add_argument("--baseline", metavar="RUN", help="an older run, to mark what has changed")
    add_across(parser)
    parser.add_argument("--into", metavar="FILE", help=f"the page (RUN/{FILE})")


def run(arguments: argparse.Namespace) -> CommandResult:
    """Write the page."""
    from pytest_openclaw.reports.html import render_page
    from pytest_openclaw.reports.html.page import FIRST_WORDS
    from pytest_openclaw.stats.run_comparison import compare_runs, parse_across
    from pytest_openclaw.stored.baseline import read_measured
    from pytest_openclaw.stored.parts import read_part
    from pytest_openclaw.stored.showing import show_run

    part = read_run(arguments)
    baseline = read_part(run_path(arguments.baseline, arguments.runs_dir)) if arguments.baseline else None
    into = Path(arguments.into) if arguments.into else part.run.path / FILE
    comparison = None
    if baseline:
        runs = (read_measured(one.run.path) for one in (baseline, part))
        comparison = compare_runs(*runs, across=parse_across(arguments.across))
    shown = show_run(part, baseline, now_ms=time.time_ns() // 1_000_000, comparison=comparison)
    page = render_page(shown)
    write_over_ours(into, page, FIRST_WORDS, "page")
    n_bytes = into.stat().st_size
    cells, targets = counted(len(shown.cells), "cell"), counted(len(shown.summary.groups), "target")
    return CommandResult(
        lines=[f"{cells} on {targets}, {n_bytes / 1e6:.1f} MB", f"wrote {into}"],
        data={
            "run": part.name,
            "baseline": baseline.name if baseline else None,
            "into": str(into),
            "n_cells": len(shown.cells),
            "n_targets": len(shown.summary.groups),
            "n_bytes": n_bytes,
            "notes": part.shortcomings,
        },
        warnings=part.shortcomings,
    )
