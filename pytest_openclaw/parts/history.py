"""Show the trend of each target on each suite in the runs of a folder.

Each run is drawn as its share of passed cells with the 95 % interval, next to
median latency, tier (? if it is not conclusive) and correct tool calls. A line
above a run says what changed: OpenClaw's release, the server, the model that
answered, its digest or the prompts. A run that cannot be read is a warning.

Example:
  pytest-openclaw history
  pytest-openclaw history ci-runs --last 10 --target "ollama*" --page trend.html
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING

from pytest_openclaw.cli.result import (
    CliCommand,
    CommandResult,
    add_runs_dir,
    add_target,
    fits,
    terminal_width,
    write_over_ours,
)
from pytest_openclaw.conclusions.summary import summarize_group, to_json
from pytest_openclaw.reports.blocks import Table
from pytest_openclaw.reports.html import document, element
from pytest_openclaw.reports.numbers import (
    lines_of,
    one_line,
    render_ms,
    render_share,
    render_tier,
    render_time,
    shorten,
)
from pytest_openclaw.reports.terminal import table_lines
from pytest_openclaw.runs.reading import StoredRun, is_run, load_run
from pytest_openclaw.runs.summaries import summary_of
from pytest_openclaw.util.errors import OpenClawError
from pytest_openclaw.util.files import JsonObject
from pytest_openclaw.util.text import counted
from pytest_openclaw.values.requests import LISTED, Target
from pytest_openclaw.values.run_files import served_in

if TYPE_CHECKING:
    import argparse


def _add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "folder", nargs="?", type=Path, metavar="RUNS_DIR", help="the folder of runs (default: --runs-dir)"
    )
    add_target(parser)
    add_runs_dir(parser)
    parser.add_argument("--last", type=int, metavar="N", help="the newest N runs of each target and suite")
    parser.add_argument("--page", metavar="FILE", help="write the charts to this HTML page")


def _run(arguments: argparse.Namespace) -> CommandResult:
    folder = arguments.folder or arguments.runs_dir
    if not folder.is_dir():
        raise OpenClawError(f"there is no folder of runs {folder}")
    entries: list[JsonObject] = []
    unreadable: list[JsonObject] = []
    for path in sorted(folder.iterdir()):
        try:
            if is_run(path):
                entries += list(_entries(path))
        except (OpenClawError, OSError) as error:
            unreadable.append({"path": str(path), "reason": str(error)})
    if not entries and not unreadable:
        raise OpenClawError(f"there is no run in {folder}")
    found: dict[tuple[str, str], list[JsonObject]] = {}
    for entry in sorted(entries, key=lambda one: (one["ended_at_ms"], one["run_id"])):
        key = entry.pop("target"), entry.pop("suite")
        if fits(key[0], arguments.target):
            found.setdefault(key, []).append(entry)
    targets = [{"target": key[0], "suite": key[1], "runs": found[key]} for key in sorted(found)]
    for runs in found.values():
        _add_changes(runs)
        del runs[: -max(1, arguments.last or len(runs))]
    lines = [*_lines(targets, terminal_width())] or ["no run has such a target"]
    if page := arguments.page:
        text = document(
            "history.html",
            one_line(f"History of {folder}", 160),
            styles=("page.css", "history.css"),
            scripts=("base.js", "history.js"),
            first_words=FIRST_WORDS,
            islands=element(
                "page", {"targets": targets, "unreadable": [one["reason"] for one in unreadable]}
            ),
        )
        write_over_ours(Path(page), text, FIRST_WORDS, "history")
        lines = [counted(len(targets), "chart"), f"wrote {page}"]
    return CommandResult(
        lines=lines,
        data={"runs_dir": str(folder), "targets": targets, "unreadable": unreadable, "into": page},
        warnings=[one["reason"] for one in unreadable],
    )


# --- the figures ----------------------------------------------------------------------------------

SHAPING = ("id", "system", "messages", "prompt", "turns", "tools", "validator")
"""The keys of prompts that decide what is asked and what is right."""
LONGEST_VALUE = 30


def _entries(path: Path) -> Iterator[JsonObject]:
    run = load_run(path, even_active=True)
    summary, records, rate = summary_of(run), run.records, ("n", "n_success", "rate", "interval_95")
    for suite in sorted({record.suite for record in records}):
        of_suite = tuple(record for record in records if record.suite == suite)
        measured = replace(run, records=of_suite)
        for target in dict.fromkeys(record.target for record in of_suite):
            figures = to_json(summarize_group(measured, target))
            yield {
                "target": target.label,
                "suite": suite,
                "run_id": path.name,
                "path": str(path),
                "ended_at_ms": summary.generated_at_ms,
                "state": summary.state,
                "n_total": figures["n_total"],
                "n_ok": figures["n_ok"],
                "passed": {key: figures["passed"][key] for key in rate},
                "tool_use": {key: figures["tool_use"][key] for key in (*rate, "tier", "conclusive")},
                "p50_ms": figures["latency_ms"].get("p50"),
                "conditions": _conditions(run, target, suite, figures["effective_models"]),
            }


def _conditions(run: StoredRun, target: Target, suite: str, models: Iterable[str]) -> dict[str, str]:
    serving = [*served_in(run.inventory, target.label)]
    servers = [one[key] for one in serving for key in ("server", "server_when_resumed") if one.get(key)]
    asked = [json.dumps([*map(one.get, SHAPING)]) for (of, _), one in run.prompts.items() if of == suite]
    surface = run.config.get("surface") or {"release": None}
    release = run.inventory.get("openclaw_release") if target.surface == LISTED else surface["release"]
    found: dict[str, Iterable[str | None]] = {
        "release": [release],
        "server": [" ".join(filter(None, map(one.get, ("server", "server_version")))) for one in servers],
        "model": models,
        "digest": [one.get("digest") for one in servers],
        "prompts": [f"{len(asked)} ({sha256(''.join(sorted(asked)).encode()).hexdigest()[:12]})"],
    }
    texts = {name: ", ".join(sorted({text for text in texts if text})) for name, texts in found.items()}
    return {name: text for name, text in texts.items() if text}


def _add_changes(runs: Iterable[JsonObject]) -> None:
    known: dict[str, str] = {}
    for run in runs:
        now = run["conditions"]
        run["changes"] = [
            f"{name} {shorten(known[name], LONGEST_VALUE)} → {shorten(text, LONGEST_VALUE)}"
            for name, text in now.items()
            if known.get(name, text) != text
        ]
        known |= now


# --- charts ---------------------------------------------------------------------------------------

FIRST_WORDS = '<!doctype html>\n<html lang="en" data-made-by="pytest-openclaw history">'


def _lines(targets: Sequence[JsonObject], width: int) -> Iterator[str]:
    columns = min(60, max(20, width - 80))
    scale = f"0 %{'100 %':>{columns - 3}}"
    head, words = ("run", "ended", "passed", scale, "p50", "tier", "tools", "state"), ("ended", scale, "tier")
    for n, one in enumerate(targets):
        rows = [_row(run, columns) for run in one["runs"]]
        table = Table(head=head, rows=rows, words=(*words, "state"), drop=("ended", "p50", "tools"))
        first, *lines = table_lines(table, width)
        yield from [*([""] if n else []), *lines_of(f"{one['target']} · {one['suite']}", width), first]
        for run, line in zip(one["runs"], lines, strict=True):
            if run["changes"]:
                yield from lines_of(f"── {'; '.join(run['changes'])}", width - 4, "   ")
            yield line


def _row(run: JsonObject, columns: int) -> list[str]:
    passed, use = run["passed"], run["tool_use"]
    return [
        run["run_id"],
        render_time(run["ended_at_ms"], "%Y-%m-%d"),
        render_share(passed["n_success"], passed["n"]),
        _bar(passed["rate"], passed["interval_95"], columns) if passed["interval_95"] else "",
        render_ms(run["p50_ms"]),
        render_tier(use["tier"], use["conclusive"]),
        render_share(use["n_success"], use["n"]),
        "" if run["state"] == "finished" else run["state"],
    ]


def _bar(rate: float, interval: Mapping[str, float], columns: int) -> str:
    low, at, high = (round(share * (columns - 1)) for share in (interval["low"], rate, interval["high"]))
    line = [*" " * low, "├", *"─" * (high - low - 1), "┤"]
    line[at] = "●"
    return "".join(line)


COMMANDS = (CliCommand(name="history", help=__doc__, add_arguments=_add_arguments, run=_run),)
