"""What a stored run came to: from its `summary.json` where that is today's format, else from its rows."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import TYPE_CHECKING, cast

from pytest_openclaw.errors import OpenClawError
from pytest_openclaw.run.directory import RESULTS
from pytest_openclaw.run.reading import StoredRow, read_rows
from pytest_openclaw.schema import check_types
from pytest_openclaw.settings import Gates
from pytest_openclaw.stats.budget import Budget
from pytest_openclaw.stats.compare import comparison_from_json
from pytest_openclaw.stats.gates import GateResult
from pytest_openclaw.stats.summarising import summarise_run
from pytest_openclaw.stats.summary import (
    SUMMARY_VERSION,
    Snapshots,
    Summary,
    group_records,
    group_to_json,
    summarise_group,
)
from pytest_openclaw.stats.tool_use import bare_turns

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

    from pytest_openclaw.records import CellKey, JsonObject, Record
    from pytest_openclaw.run.stored.parts import Part

SUMMARY = "summary.json"


def stored_summary(path: Path) -> JsonObject | None:
    """Return a run's `summary.json` if its figures are computed as today's are, and of all its rows.

    None if it is of another format, older than the rows (a resumed run may have been killed), or not there.

    Raises:
        OpenClawError: it is no JSON object.
        OSError: it cannot be read.
    """
    file = path / SUMMARY
    if not file.exists():
        return None
    try:
        summary = json.loads(file.read_bytes())
    except ValueError as error:
        raise OpenClawError(f"{file} is no JSON: {error}") from None
    if not isinstance(summary, dict):
        raise OpenClawError(f"{file} holds no JSON object")
    is_older = file.stat().st_mtime_ns < (path / RESULTS).stat().st_mtime_ns
    is_todays = summary.get("schema_version") == SUMMARY_VERSION
    return None if is_older or not is_todays else cast("JsonObject", summary)


def summary_of(part: Part) -> Summary:
    """Return a run's figures from its rows; the machine's snapshots are left out."""
    records = part.records
    summary = summarise_run(
        records,
        part.n_selected,
        part.gates or Gates(),
        {},
        run_id=part.run.run_id,
        generated_at_ms=max((record.ended_at_ms for record in records), default=0),
    )
    return as_written(summary, part.run.path)


def as_written(summary: Summary, path: Path) -> Summary:
    """Return a summary with what rows alone do not tell, if the run has told it of all its rows.

    That is what its gates said and its comparison, which take the baseline, and what it was to spend.

    Raises:
        OpenClawError: `summary.json` is not as a run writes it.
    """
    written = stored_summary(path)
    if written is None:
        return summary
    try:
        return replace(
            summary,
            gates=tuple(GateResult(**gate) for gate in written["gates"]),
            verdict=written["verdict"],
            comparison=written["comparison"] and comparison_from_json(written["comparison"]),
            budget=written["budget"] and Budget(**written["budget"]),
        )
    except (KeyError, TypeError) as error:
        what = f"{type(error).__name__}: {error}"
        raise OpenClawError(f"{path / SUMMARY} is not as a run writes it: {what}") from None


def light_rows(path: Path) -> list[Record]:
    """Return a run's rows that count, without their texts, so that a large run does no harm.

    Raises:
        OpenClawError: a line is no row.
    """
    latest: dict[CellKey, Record] = {}
    for number, found in enumerate(read_rows(path / RESULTS), 1):
        if not isinstance(found, StoredRow):
            continue
        record = found.record
        try:
            check_types(record)
        except ValueError as error:
            raise OpenClawError(f"{path / RESULTS}: line {number} is no row of a run: {error}") from None
        latest[record.key] = replace(
            record, raw_output="", parsed_output=None, tool_call_details=(), turns=bare_turns(record.turns)
        )
    return list(latest.values())


def groups_of(records: Iterable[Record]) -> list[JsonObject]:
    """Return the figures of rows by target, as `summary.json` has them."""
    return [
        group_to_json(summarise_group(target, rows, Snapshots()))
        for target, rows in group_records(records).items()
    ]
