"""Join runs into one: shards of CI jobs, several machines, parts of a matrix.

Rows are copied byte for byte; summary, tiers and gates are computed as in a
single run. The order of the runs does not matter. Runs that did not measure the
same thing are refused: another prompt or validator under one id, or another
setting that shapes a request. Warnings list unfinished runs, models that were
not served alike, and different addresses.

Reports of your own (pytest_openclaw_reports in conftest.py or an installed
plugin) are written too, if the project can be loaded.

Shards of --openclaw-shard must be complete, unless --allow-missing is given.

Example:
  pytest benchmarks/ --openclaw-shard=1/2 --openclaw-run-id=shard-1
  pytest benchmarks/ --openclaw-shard=2/2 --openclaw-run-id=shard-2
  pytest-openclaw merge "shard-*" --into whole

"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pytest_openclaw.cli.result import (
    CommandResult,
    add_rootdir,
    add_runs_dir,
    new_run_path,
    run_paths,
    terminal_width,
)
from pytest_openclaw.util.signals import epoch_ms
from pytest_openclaw.util.text import counted

if TYPE_CHECKING:
    import argparse

    from pytest_openclaw.util.json_types import JsonObject


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of `merge`."""
    parser.add_argument("runs", nargs="+", metavar="RUN", help="a run's directory, its id, last, or a glob")
    parser.add_argument("--into", required=True, metavar="RUN", help="the new run: its directory or its id")
    parser.add_argument(
        "--prefer",
        choices=("newest", "oldest"),
        help="which row to keep if a cell has different ones; without it they are refused",
    )
    parser.add_argument(
        "--allow-missing", action="store_true", help="merge shards even if some of 1/N to N/N are missing"
    )
    add_rootdir(parser, "the project's root folder, whose conftest.py may add reports (as pytest finds it)")
    add_runs_dir(parser)


def run(arguments: argparse.Namespace) -> CommandResult:
    """Merge, and show the whole."""
    from pytest_openclaw.cli.project import plugins_of
    from pytest_openclaw.features.merging import merge_parts
    from pytest_openclaw.reports.terminal import render_terminal
    from pytest_openclaw.runs.reading import RowIndex, read_part
    from pytest_openclaw.runs.summaries import write_run
    from pytest_openclaw.stats.summary import summary_to_json

    into = new_run_path(arguments.into, arguments.runs_dir)
    paths = [path for name in arguments.runs for path in run_paths(name, arguments.runs_dir)]
    index = RowIndex()
    parts = [read_part(path, index=index) for path in paths]
    merged = merge_parts(parts, arguments.prefer, allow_missing=arguments.allow_missing)
    runs: list[JsonObject] = [
        {"path": part.name, "run_id": part.run.run_id, "n_cells": part.n_cells, "n_rows": part.n_rows}
        for part in parts
    ]
    del parts  # the keys of all their cells, which take a quarter of the memory
    now_ms = epoch_ms()
    plugins, warnings = plugins_of(arguments.rootdir)
    written = write_run(merged.new, into.parent, into.name, exactly=True, now_ms=now_ms, plugins=plugins)
    summary = written.summary
    n_runs, n_targets = counted(len(runs), "run"), counted(len(summary.groups), "target")
    head = f"merged {n_runs}: {summary.n_rows} of {counted(summary.n_cells, 'cell')}, {n_targets}"
    return CommandResult(
        lines=[
            head,
            *(f"note: {note}" for note in merged.notes),
            "",
            *render_terminal(summary, str(written.path / "summary.md"), width=terminal_width()),
        ],
        data={
            "into": str(written.path),
            "runs": runs,
            "notes": list(merged.notes),
            "summary": summary_to_json(summary),
        },
        warnings=[*warnings, *plugins.complaints],
    )
