"""The summary of a stored run: its `summary.json` if that is newer than its rows, else from them."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from pytest_openclaw.core.errors import OpenClawError
from pytest_openclaw.core.files import is_there, load_object
from pytest_openclaw.core.schema_check import shown
from pytest_openclaw.recording.run_directory import RESULTS
from pytest_openclaw.stats.compared_runs import comparison_from_json
from pytest_openclaw.stats.gates import GateResult
from pytest_openclaw.stats.groups import Snapshots, group_records, group_to_json, summarize_group
from pytest_openclaw.stats.summarizing import summarize_run
from pytest_openclaw.stats.summary import SUMMARY_VERSION, Budget, Summary
from pytest_openclaw.types.documents import check_object
from pytest_openclaw.types.run_config import looks_of
from pytest_openclaw.types.settings import Gates

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from pathlib import Path

    from pytest_openclaw.core.json_types import JsonObject
    from pytest_openclaw.stored.parts import Part
    from pytest_openclaw.types.records import Record

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
        comparison=written["comparison"] and comparison_from_json(written["comparison"]),
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
