"""The summary of a stored run, and new run directories that are made from stored rows."""

from __future__ import annotations

import shutil
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING

from pytest_openclaw.runs.directory import CONFIG, INVENTORY, RESULTS, SUMMARY, SURFACE, RunDirectory
from pytest_openclaw.runs.environment import file_names, write_snapshot
from pytest_openclaw.runs.reading import in_planned_order
from pytest_openclaw.runs.report_files import Plugins
from pytest_openclaw.stats.run_comparison import compare_runs
from pytest_openclaw.stats.summary import (
    Summary,
    summarize_run,
    to_json,
)
from pytest_openclaw.util.files import is_there
from pytest_openclaw.values.run_files import load_document
from pytest_openclaw.values.settings import CONFIG_VERSION, Gates

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence
    from pathlib import Path

    from pytest_openclaw.runs.reading import StoredRow, StoredRun
    from pytest_openclaw.stats.run_comparison import Measured
    from pytest_openclaw.util.files import JsonObject
    from pytest_openclaw.values.requests import Target
    from pytest_openclaw.values.rows import Record
    from pytest_openclaw.values.tool_calls import Surface


# --- the summary of a stored run ------------------------------------------------------------------


def stored_summary(path: Path) -> Summary | None:
    """Return a run's `summary.json` if it includes all rows.

    None if it is older than the rows (a resumed run may have been killed), or is missing.

    Raises:
        OpenClawError: it cannot be read, is malformed or has another format.
    """
    file = path / SUMMARY
    if not is_there(file) or file.lstat().st_mtime_ns < (path / RESULTS).lstat().st_mtime_ns:
        return None
    summary: Summary = load_document(file, Summary)
    return summary


def summary_of(run: StoredRun) -> Summary:
    """Return a run's own summary, or the summary of the rows so far."""
    return stored_summary(run.path) or gated_summary(run, run.gates or Gates())


def gated_summary(
    run: StoredRun, gates: Gates, baseline: Measured | None = None, across: Collection[str] = ()
) -> Summary:
    """Return a run's figures from its rows, with the results of gates and comparison."""
    records = run.records
    written = stored_summary(run.path)
    summary = summarize_run(
        records,
        run.n_selected,
        gates,
        run.config,
        run.inventory,
        run_id=run.run_id,
        generated_at_ms=max((record.ended_at_ms for record in records), default=0),
        comparison=compare_runs(baseline, run.measured, across=across) if baseline else None,
    )
    if written is None:
        return summary
    # Only the old summary has the sessions' spending, and the parts of plugins.
    return replace(summary, budget=written.budget, added=written.added)


def write_summary(
    directory: RunDirectory, summary: Summary, records: Sequence[Record], plugins: Plugins
) -> Summary:
    """Write a summary and the reports on it, with what plugins add; return it."""
    summary = replace(summary, added=plugins.summary_parts(records))
    directory.write_json(SUMMARY, to_json(summary))
    plugins.write_reports(directory, summary)
    return summary


# --- a new run ------------------------------------------------------------------------------------


@dataclass(frozen=True, kw_only=True)
class NewRow:
    """A row that differs from the stored one."""

    line: bytes
    record: Record


@dataclass(frozen=True, kw_only=True)
class NewRun:
    """The content of a run directory.

    Attributes:
        n_selected: cells by target, in the order of `targets` in the config.
        rows: one of each cell, in their order in the file.
        config: of `config.json`, without version and run id.
        inventory: of `inventory.json`, without the run id.
        gates: to apply.
        surface: on which targets on `openclaw` were asked.
    """

    n_selected: Mapping[Target, int]
    rows: Sequence[StoredRow | NewRow]
    config: JsonObject
    inventory: JsonObject
    gates: Gates
    surface: Surface | None = None


def write_run(
    new: NewRun, path: Path, *, exactly: bool, now_ms: int, plugins: Plugins | None = None
) -> tuple[Path, Summary]:
    """Write a run directory and return its path and its summary; remove it if it cannot be completed.

    Args:
        new: its content.
        path: the preferred one; the folder of runs is created if necessary.
        exactly: raise an error if the name is taken; otherwise a number is added.
        now_ms: for the summary's `generated_at_ms`.
        plugins: whose reports are written; without any, the built-in ones are.

    Raises:
        OpenClawError: the name is taken.
        OSError: it cannot be written.
    """
    directory = RunDirectory.new(path.parent, path.name, exactly=exactly)
    try:
        with directory:
            return directory.path, _fill(directory, new, now_ms, plugins or Plugins())
    except BaseException:
        shutil.rmtree(directory.path, ignore_errors=True)
        raise


def _fill(directory: RunDirectory, new: NewRun, now_ms: int, plugins: Plugins) -> Summary:
    directory.replace_rows(row.line for row in new.rows)
    if new.surface is not None:
        directory.write_json(SURFACE, asdict(new.surface))
    directory.write_json(INVENTORY, {"run_id": directory.run_id, **new.inventory})
    for target, name in file_names(new.n_selected).items():
        for fact, value in new.inventory["targets"].get(target.label, {}).items():
            write_snapshot(directory, name, target.label, fact, value)
    prompts = [(prompt["suite"], prompt["id"]) for prompt in new.config["prompts"]]
    records = [*in_planned_order((row.record for row in new.rows), new.n_selected, prompts)]
    summary = summarize_run(
        records,
        new.n_selected,
        new.gates,
        new.config,
        new.inventory,
        run_id=directory.run_id,
        generated_at_ms=now_ms,
    )
    summary = write_summary(directory, summary, records, plugins)
    # Last, because without it a directory is not a run: a killed process leaves no incomplete run.
    directory.write_json(CONFIG, {"schema_version": CONFIG_VERSION, "run_id": directory.run_id, **new.config})
    return summary
