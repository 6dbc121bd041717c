"""Judge a run again: the current validators on its replies, without a call.

The prompts are read from the suite files again, so you can fix a validator and
see what changes. The result is a new run; the old one is unchanged. A row keeps
its verdict if its reply is incomplete (cut at 64 KiB, a secret removed) or if a
Python test has judged it; faults stay faults. If a suite or a prompt was
removed, or asks something else now, the definition in config.json is used; the
same applies to suites outside the project and among the runs.

Your own validators come from conftest.py and installed plugins, as in a pytest
session: its ini file and the conftest.py of the root folder and of the suites'
folders are loaded; no test is collected or run. Their reports are written too,
and pytest_openclaw_record is called with rows that change.

Example:
  pytest-openclaw rescore 20260213_235930
  pytest-openclaw rescore last --rootdir ~/assistant --into fixed

"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pytest_openclaw.cli.result import (
    CommandResult,
    add_rootdir,
    add_run,
    new_run_path,
    read_run,
    terminal_width,
)
from pytest_openclaw.util.signals import epoch_ms
from pytest_openclaw.util.text import counted

if TYPE_CHECKING:
    import argparse
    from collections.abc import Iterator

    from pytest_openclaw.features.rescoring import Change, Rescored
    from pytest_openclaw.util.json_types import JsonObject


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of `rescore`."""
    add_run(parser)
    parser.add_argument(
        "--into", metavar="RUN", help="the new run: its directory or its id (RUN-rescored, beside it)"
    )
    add_rootdir(
        parser, "the project's root folder, to which the rows' suites are relative (as pytest finds it)"
    )


def run(arguments: argparse.Namespace) -> CommandResult:
    """Rescore, and show what has changed."""
    from pytest_openclaw import __version__
    from pytest_openclaw.cli.project import load_project
    from pytest_openclaw.features.rescoring import rescore_part, suite_files, todays_rules
    from pytest_openclaw.reports.terminal import render_terminal
    from pytest_openclaw.runs.summaries import write_run
    from pytest_openclaw.stats.summary import summary_to_json

    into = new_run_path(arguments.into, arguments.runs_dir) if arguments.into else None
    part = read_run(arguments)
    root = arguments.rootdir.resolve(strict=True)
    project = load_project(root, suite_files(part, root))
    rules, plugins = todays_rules(part, root, project.validators), project.plugins
    rescored = rescore_part(part, rules, version=__version__, plugins=plugins)
    beside = into or part.run.path.with_name(f"{part.run.run_id}-rescored")
    now_ms = epoch_ms()
    written = write_run(
        rescored.new, beside.parent, beside.name, exactly=into is not None, now_ms=now_ms, plugins=plugins
    )
    return CommandResult(
        lines=[
            *_change_lines(part.name, rescored),
            "",
            *render_terminal(written.summary, str(written.path / "summary.md"), width=terminal_width()),
        ],
        data={
            "into": str(written.path),
            "run": part.name,
            "n_rows": len(rescored.new.rows),
            "changed": [_as_json(change) for change in rescored.changes],
            "kept": dict(rescored.kept),
            "n_faults": rescored.n_faults,
            "notes": list(rescored.notes),
            "summary": summary_to_json(written.summary),
        },
        warnings=plugins.complaints,
    )


def _change_lines(name: str, rescored: Rescored) -> Iterator[str]:
    from pytest_openclaw.features.rescoring import KEPT

    flips = [change for change in rescored.changes if change.flipped]
    others = len(rescored.changes) - len(flips)
    n_rows, n_flips = counted(len(rescored.new.rows), "row"), counted(len(flips), "verdict")
    more = f", {counted(others, 'other row')} changed besides" if others else ""
    yield f"rescored {n_rows} of {name}: {n_flips} changed{more}"
    for reason, n in sorted(rescored.kept.items()):
        yield f"note: {_rows_keep(n, 'verdict')}: {KEPT[reason]}"
    if rescored.n_faults:
        yield f"note: {_rows_keep(rescored.n_faults, 'fault')}: there is no reply to judge"
    yield from (f"note: {note}" for note in rescored.notes)
    for change in flips:
        before, after = change.verdicts
        record = change.after
        why = record.violation or record.fault_message
        words = [f"{before} -> {after}", record.target.label, f"{record.suite}::{record.prompt_id}"]
        yield f"  {'  '.join(words)}{f'  {why}' if why else ''}"


def _rows_keep(n: int, what: str) -> str:
    return f"1 row keeps its {what}" if n == 1 else f"{n} rows keep their {what}"


def _as_json(change: Change) -> JsonObject:
    before, after = change.verdicts
    record = change.after
    return {
        "suite": record.suite,
        "prompt_id": record.prompt_id,
        "provider": record.provider,
        "model": record.model,
        "thinking_level": record.thinking_level,
        "repeat": record.repeat,
        "before": before,
        "after": after,
        "violation": record.violation,
        "fault_message": record.fault_message,
    }
