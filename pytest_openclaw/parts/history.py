"""Show the results of targets in the runs of a folder, oldest first.

Each target has a table of its runs with passed cells, median latency, tier (?
if it is not conclusive) and correct tool calls. A run that cannot be read
causes a warning.

Example:
  pytest-openclaw history
  pytest-openclaw history ci-runs --target "ollama*"
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from pytest_openclaw.cli.result import Command, CommandResult, add_runs_dir, add_target, fits, terminal_width
from pytest_openclaw.conclusions.summary import to_json
from pytest_openclaw.reports.blocks import Table
from pytest_openclaw.reports.numbers import one_line, render_ms, render_share, render_tier, render_time
from pytest_openclaw.reports.terminal import table_lines
from pytest_openclaw.runs.reading import is_run, load_config, load_run
from pytest_openclaw.runs.summaries import stored_summary, summary_of
from pytest_openclaw.util.errors import OpenClawError
from pytest_openclaw.values.requests import target_of

if TYPE_CHECKING:
    import argparse
    from collections.abc import Iterator, Mapping, Sequence

    from pytest_openclaw.util.files import JsonObject

HEADERS = ("run", "ended", "passed", "p50", "tier", "tools", "state")


def _add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "folder", nargs="?", type=Path, metavar="RUNS_DIR", help="the folder of runs (default: --runs-dir)"
    )
    add_target(parser)
    add_runs_dir(parser)


def _run(arguments: argparse.Namespace) -> CommandResult:
    folder = arguments.folder or arguments.runs_dir
    if not folder.is_dir():
        raise OpenClawError(f"there is no folder of runs {folder}")
    entries: list[JsonObject] = []
    unreadable: list[JsonObject] = []
    for path in sorted(folder.iterdir()):
        try:
            if is_run(path):
                entries += _entries(path)
        except (OpenClawError, OSError) as error:
            unreadable.append({"path": str(path), "reason": str(error)})
    if not entries and not unreadable:
        raise OpenClawError(f"there is no run in {folder}")
    by_target: dict[str, list[JsonObject]] = {}
    for entry in sorted(entries, key=lambda one: (one["ended_at_ms"], one["run_id"])):
        label = entry.pop("target")
        if fits(label, arguments.target):
            by_target.setdefault(label, []).append(entry)
    return CommandResult(
        lines=[*_lines(by_target, terminal_width())] or ["no run has such a target"],
        data={
            "runs_dir": str(folder),
            "targets": [{"target": label, "runs": runs} for label, runs in by_target.items()],
            "unreadable": unreadable,
        },
        warnings=[one["reason"] for one in unreadable],
    )


def _entries(path: Path) -> Iterator[JsonObject]:
    """Yield each target of a run with its figures, from `summary.json` if that covers all rows."""
    load_config(path)  # raises if it is a run of another version
    summary = to_json(stored_summary(path) or summary_of(load_run(path, even_active=True)))
    ended, rate = summary["generated_at_ms"], ("n", "n_success", "rate", "interval_95")
    run = {"run_id": path.name, "path": str(path), "ended_at_ms": ended, "state": summary["state"]}
    for group in summary["groups"]:
        if group["n_total"]:
            yield {
                **run,
                "target": target_of(group).label,
                "n_total": group["n_total"],
                "n_ok": group["n_ok"],
                "passed": {key: group["passed"][key] for key in rate},
                "tool_use": {key: group["tool_use"][key] for key in (*rate, "tier", "conclusive")},
                "p50_ms": group["latency_ms"].get("p50"),
            }


def _lines(by_target: Mapping[str, Sequence[JsonObject]], width: int) -> Iterator[str]:
    for n, (label, runs) in enumerate(by_target.items()):
        if n:
            yield ""
        yield one_line(label, width)
        table = Table(head=HEADERS, rows=[*map(_row, runs)], words=("ended", "tier", "state"))
        yield from table_lines(table, width)


def _row(run: Mapping[str, Any]) -> list[str]:
    passed, use = run["passed"], run["tool_use"]
    return [
        run["run_id"],
        render_time(run["ended_at_ms"], "%Y-%m-%d"),
        render_share(passed["n_success"], passed["n"]),
        render_ms(run["p50_ms"]),
        render_tier(use["tier"], use["conclusive"]),
        render_share(use["n_success"], use["n"]),
        "" if run["state"] == "finished" else run["state"],
    ]


COMMANDS = (Command(name="history", help=__doc__, add_arguments=_add_arguments, run=_run),)
