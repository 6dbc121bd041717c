"""The summary of a stored run: its `summary.json` if that is newer than its rows, else from them.

Writes a merged or rescored run to a new run directory, with a new summary.
"""

from __future__ import annotations

import shutil
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import msgspec

from pytest_openclaw.asking.resources import render_snapshot
from pytest_openclaw.runs.directory import RESULTS, SURFACE, RunDirectory
from pytest_openclaw.runs.environment import file_names
from pytest_openclaw.runs.reading import in_planned_order
from pytest_openclaw.runs.report_files import Plugins
from pytest_openclaw.stats.comparison import ComparedRuns
from pytest_openclaw.stats.gates import GateResult
from pytest_openclaw.stats.groups import Snapshots, group_records, group_to_json, summarize_group
from pytest_openclaw.stats.summary import SUMMARY_VERSION, Budget, Summary, summarize_run, summary_to_json
from pytest_openclaw.util.errors import OpenClawError
from pytest_openclaw.util.files import is_there, load_object
from pytest_openclaw.util.typed import shown
from pytest_openclaw.values.run_files import check_object
from pytest_openclaw.values.settings import CONFIG_VERSION, Gates, looks_of
from pytest_openclaw.values.tool_calls import surface_to_json

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from pathlib import Path

    from pytest_openclaw.runs.reading import IndexedRow, Part, Snapshot, StoredRow
    from pytest_openclaw.util.json_types import JsonObject
    from pytest_openclaw.values.requests import Target
    from pytest_openclaw.values.rows import Record
    from pytest_openclaw.values.tool_calls import Surface


SUMMARY = "summary.json"


def stored_summary(path: Path) -> JsonObject | None:
    """Return a run's `summary.json` if it includes all rows.

    None if it is older than the rows (a resumed run may have been killed), or is missing.

    Raises:
        OpenClawError: it cannot be read, is malformed or has another format.

    """
    file = path / SUMMARY
    if not is_there(file):
        return None
    summary = load_object(file)
    if file.lstat().st_mtime_ns < (path / RESULTS).lstat().st_mtime_ns:
        return None
    if (version := summary.get("schema_version")) != SUMMARY_VERSION:
        raise OpenClawError(
            f"{file}: its schema_version is {shown(version)}; this version reads {SUMMARY_VERSION}"
        )
    check_object(file, "summary", summary)
    return summary


def summary_of(part: Part, records: Sequence[Record] | None = None) -> Summary:
    """Return a run's figures from its rows, without the machine's snapshots.

    Args:
        part: the run.
        records: in the order of the findings; None is planned order.

    """
    records = part.records if records is None else records
    summary = summarize_run(
        records,
        part.n_selected,
        part.gates or Gates(),
        {target: Snapshots().with_server(part.run.inventory, target.label) for target in part.n_selected},
        run_id=part.run.run_id,
        generated_at_ms=max((record.ended_at_ms for record in records), default=0),
        looks=looks_of(part.run.config),
        surface=part.run.config.get("surface"),
    )
    return _as_written(summary, part.run.path)


def _as_written(summary: Summary, path: Path) -> Summary:
    """Add the values that rows do not contain, if the run's own summary includes all its rows.

    These are its gates and its comparison, which need the baseline, and its budget.

    Raises:
        OpenClawError: `summary.json` is malformed.

    """
    written = stored_summary(path)
    if written is None:
        return summary
    return replace(
        summary,
        gates=tuple(GateResult(**gate) for gate in written["gates"]),
        verdict=written["verdict"],
        comparison=msgspec.convert(written["comparison"], ComparedRuns | None),
        budget=written["budget"] and Budget(**written["budget"]),
    )


def groups_of(records: Iterable[Record], looks: Sequence[int]) -> list[JsonObject]:
    """Return the figures by target, as in `summary.json`.

    Args:
        records: of one run.
        looks: the run's, see `run_config.looks_of`.

    """
    by_target = group_records(records)
    return [
        group_to_json(summarize_group(target, rows, Snapshots(), n_targets=len(by_target), looks=looks))
        for target, rows in by_target.items()
    ]


@dataclass(frozen=True, kw_only=True)
class NewRun:
    """The content of a new run directory.

    Attributes:
        config, inventory: without `schema_version` and `run_id`, which come from the directory.
        snapshots: any number for each target and moment.
        surface: of the targets on `openclaw`.

    """

    n_selected: Mapping[Target, int]
    rows: Sequence[StoredRow | IndexedRow]
    config: JsonObject
    inventory: JsonObject
    snapshots: Sequence[Snapshot]
    gates: Gates
    surface: Surface | None = None


@dataclass(frozen=True, kw_only=True)
class Written:
    """A new run directory and its summary."""

    path: Path
    summary: Summary


def write_run(
    new: NewRun, runs_dir: Path, run_id: str, *, exactly: bool, now_ms: int, plugins: Plugins | None = None
) -> Written:
    """Write a run directory; remove it if it cannot be completed.

    Args:
        new: its content.
        runs_dir: the folder of runs; created if necessary.
        run_id: the preferred name.
        exactly: raise an error if the name is taken; otherwise a number is added.
        now_ms: for the summary's `generated_at_ms`.
        plugins: whose reports are written; without any, the built-in ones are.

    Raises:
        OpenClawError: the name is taken.
        OSError: it cannot be written.

    """
    directory = RunDirectory.new(runs_dir, run_id, exactly=exactly)
    is_ours = False
    try:
        with directory:
            is_ours = True
            return Written(path=directory.path, summary=_fill(directory, new, now_ms, plugins or Plugins()))
    except BaseException:
        if is_ours:  # not of another process that started at the same time
            shutil.rmtree(directory.path, ignore_errors=True)
        raise


def _fill(directory: RunDirectory, new: NewRun, now_ms: int, plugins: Plugins) -> Summary:
    directory.append_lines(row.line for row in new.rows)
    if new.surface is not None:
        directory.write_json(SURFACE, surface_to_json(new.surface))
    directory.write_json("inventory.json", {"run_id": directory.run_id, **new.inventory})
    names = file_names(new.n_selected)
    snapshots: dict[Target, Snapshots] = {}
    for target, name in names.items():
        before, after = (_by_weight(new.snapshots, target, moment) for moment in ("before", "after"))
        for number, snapshot in [*enumerate(before, 1), *enumerate(after, 1)]:
            file = f"resources_{name}_{snapshot.moment}{'' if number == 1 else f'_{number}'}.txt"
            directory.write_text(file, render_snapshot(target.label, snapshot.moment, snapshot.values))
        snapshots[target] = snapshots_of(new.snapshots, target).with_server(new.inventory, target.label)
    prompts = [(prompt["suite"], prompt["id"]) for prompt in new.config["prompts"]]
    summary = summarize_run(
        in_planned_order((row.record for row in new.rows), new.n_selected, prompts),
        new.n_selected,
        new.gates,
        snapshots,
        run_id=directory.run_id,
        generated_at_ms=now_ms,
        looks=looks_of(new.config),
        surface=new.config.get("surface"),
    )
    directory.write_json("summary.json", summary_to_json(summary))
    plugins.write_reports(directory, summary)
    # Last, because without it a directory is not a run: a killed process leaves no incomplete run.
    directory.write_config({"schema_version": CONFIG_VERSION, "run_id": directory.run_id, **new.config})
    return summary


def snapshots_of(snapshots: Sequence[Snapshot], target: Target) -> Snapshots:
    """Return the snapshots before and after a target, as in a single run."""
    before, after = (_by_weight(snapshots, target, moment) for moment in ("before", "after"))
    return Snapshots(before=before[0].values if before else None, after=after[0].values if after else None)


def _by_weight(snapshots: Sequence[Snapshot], target: Target, moment: str) -> list[Snapshot]:
    """Return the different snapshots of a target, first the one that a single run would have.

    That is the earliest "before" or the latest "after".
    """
    fitting = {
        render_snapshot(shot.target, shot.moment, shot.values): shot
        for shot in snapshots
        if (shot.target, shot.moment) == (target.label, moment)
    }
    ordered = sorted(fitting.items(), key=lambda item: (item[1].values.get("taken_at_ms") or 0, item[0]))
    return [shot for _, shot in (ordered if moment == "before" else reversed(ordered))]
