"""Show how targets did over the runs of a folder, oldest first.

One block per target: pass rate, median latency, tokens per second and tier of
each run, each with its 95 % interval, or ? if there are too few cells for one.
* marks a run whose prompts or validators differ from those of the run before,
so that the two rates measure different things. Merged, rescored, interrupted
and active runs are marked. A run that cannot be read is a warning.

Figures are from summary.json if it includes all rows, otherwise computed from
the rows; --suite always computes them.

Example:
  pytest-openclaw history
  pytest-openclaw history ci-runs --target "ollama*" --suite "*core*"

"""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from pytest_openclaw.cli.result import (
    CommandResult,
    add_runs_dir,
    add_target,
    fits,
    suite_fits,
    terminal_width,
)
from pytest_openclaw.util.errors import OpenClawError

if TYPE_CHECKING:
    import argparse

    from pytest_openclaw.reports.history_text import Entry
    from pytest_openclaw.util.json_types import JsonObject


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of `history`."""
    parser.add_argument(
        "folder", nargs="?", type=Path, metavar="RUNS_DIR", help="the folder of runs (that of --runs-dir)"
    )
    add_target(parser)
    parser.add_argument("--suite", metavar="GLOB", help="the cells of these suites, by path or file name")
    add_runs_dir(parser)


def run(arguments: argparse.Namespace) -> CommandResult:
    """Read the runs, and show them."""
    from pytest_openclaw.features.history import read_history
    from pytest_openclaw.reports.history_text import render_history

    folder = arguments.folder or arguments.runs_dir
    if not folder.is_dir():
        raise OpenClawError(f"there is no folder of runs {folder}")
    history = read_history(
        folder,
        lambda label: fits(label, arguments.target),
        partial(suite_fits, glob=arguments.suite) if arguments.suite else None,
    )
    if not history.n_runs and not history.unreadable:
        raise OpenClawError(f"there is no run in {folder}")
    return CommandResult(
        lines=[*render_history(history.entries, terminal_width())],
        data={
            "runs_dir": str(folder),
            "n_runs": history.n_runs,
            "targets": [
                {"target": target.label, "runs": [_as_json(entry) for entry in entries]}
                for target, entries in history.entries.items()
            ],
            "unreadable": [{"path": str(path), "reason": reason} for path, reason in history.unreadable],
        },
        warnings=[reason for _, reason in history.unreadable],
    )


def _as_json(entry: Entry) -> JsonObject:
    group = entry.group
    use = group["tool_use"]
    return {
        "run_id": entry.path.name,
        "path": str(entry.path),
        "ended_at_ms": entry.ended_at_ms,
        "state": entry.state,
        "kind": entry.kind,
        "has_other_prompts": entry.has_other_prompts,
        "n_total": group["n_total"],
        "n_ok": group["n_ok"],
        "passed": {key: group["passed"][key] for key in ("n", "n_success", "rate", "interval_95")},
        "tool_use": {
            key: use[key] for key in ("n", "n_success", "rate", "interval_95", "tier", "conclusive")
        },
        "p50_ms": group["latency_ms"]["p50"],
        "p50_interval_95": group["latency_intervals_95"]["p50"],
        "tokens_per_s": group["tokens_per_s"],
        "tokens_per_s_interval_95": group["tokens_per_s_interval_95"],
    }
