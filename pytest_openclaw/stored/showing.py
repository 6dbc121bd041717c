"""Prepares cells of a stored run for display: on a page beside those of a baseline, or one cell as text."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from pytest_openclaw.reports.cell_text import Opened
from pytest_openclaw.reports.html.shown import Shown, ShownBaseline, ShownRun
from pytest_openclaw.stats.sampling import sample_of
from pytest_openclaw.stored.summaries import stored_summary, summary_of
from pytest_openclaw.suites.definitions import tools_sha256
from pytest_openclaw.suites.offered import read_tools
from pytest_openclaw.tools.dispatch import dispatch
from pytest_openclaw.tools.thinking import strip_thinking
from pytest_openclaw.types.rows import call_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from pytest_openclaw.core.json_types import JsonObject
    from pytest_openclaw.stats.compared_runs import ComparedRuns
    from pytest_openclaw.stored.parts import Part, PromptKey
    from pytest_openclaw.stored.reading import IndexedRow
    from pytest_openclaw.types.records import Record
    from pytest_openclaw.types.targets import CellKey
    from pytest_openclaw.types.tool_calls import Tool

MOST_CELLS = 20_000
"""Cells of a page; it has about a kilobyte of each, which a browser loads at once."""
_ONE_BLOCK = re.compile(r"\s*<(\w+)>\n?(.*?)\n?</\1>\s*", re.DOTALL)
TORN = "The last line of the rows was torn when the run was killed, and is left out."


def show_run(
    part: Part, baseline: Part | None, *, now_ms: int, comparison: ComparedRuns | None = None
) -> ShownRun:
    """Return the run with its cells, and its figures computed from its rows.

    Of a run with more than `MOST_CELLS` a sample is shown; all figures are those of the whole run.

    Args:
        part: the run.
        baseline: an older run, whose rows are shown beside those of the same cells.
        comparison: with that baseline; None shows the one in the run's summary, if any.
        now_ms: for a run that was killed before it wrote its summary.
    """
    rows = part.rows_in_order
    records = [row.record for row in rows]
    written = stored_summary(part.run.path) or {}
    summary = replace(summary_of(part, records), generated_at_ms=written.get("generated_at_ms", now_ms))
    if comparison:
        summary = replace(summary, comparison=comparison)
    before = baseline.rows if baseline else {}
    places = sample_of(records, MOST_CELLS)
    shown = [rows[place] for place in places]
    definitions = _definitions_of(shown, part) if len(shown) < len(rows) else part.prompts
    tools = {key: offered_tools(definition) for key, definition in definitions.items()}

    def cell(row: IndexedRow) -> Shown:
        record, older = row.whole, before.get(row.record.key)
        known = tools.get((record.suite, record.prompt_id))
        return Shown(record=record, tools=known, before=older.whole if older else None)

    return ShownRun(
        summary=summary,
        cells=[*map(cell, shown)],
        unshown=_others(records, places, before),
        prompts=list(definitions.values()),
        config=part.run.config,
        inventory=part.run.inventory,
        earlier=_earlier(part, baseline),
        notes=[TORN] if part.run.torn else [],
    )


def _definitions_of(rows: Iterable[IndexedRow], part: Part) -> dict[PromptKey, JsonObject]:
    shown = {(row.record.suite, row.record.prompt_id) for row in rows}
    return {key: definition for key, definition in part.prompts.items() if key in shown}


def _others(
    records: Sequence[Record], places: Sequence[int], before: Mapping[CellKey, IndexedRow]
) -> list[tuple[Record, Record | None]]:
    """Return the rows of the cells that are not shown, each with that of the baseline."""
    if len(places) == len(records):
        return []
    shown = set(places)
    return [
        (record, before[record.key].record if record.key in before else None)
        for place, record in enumerate(records)
        if place not in shown
    ]


def offered_tools(definition: Mapping[str, Any]) -> tuple[Tool, ...] | None:
    """Return the tools that a prompt offered; None if it offered none, or they have changed."""
    if definition.get("tools") is None:
        return None
    try:
        tools = read_tools(definition["tools"])
    except ValueError:  # a name that is no longer in the catalog
        return None
    return tools if tools_sha256(tools) == definition.get("tools_sha256") else None


def _earlier(part: Part, baseline: Part | None) -> ShownBaseline | None:
    if baseline is None:
        return None
    return ShownBaseline(
        run_id=baseline.run.run_id, gone=[key for key in baseline.rows if key not in part.rows]
    )


def open_record(record: Record, definition: JsonObject) -> Opened:
    """Return the parts of a row's texts.

    Args:
        record: the row.
        definition: of its prompt in `config.json`; empty if there is none.
    """
    answer = strip_thinking(record.raw_output)
    thinking = record.raw_output[: len(record.raw_output) - len(answer)]
    alone = _ONE_BLOCK.fullmatch(thinking)
    tools = offered_tools(definition)
    return Opened(
        thinking=alone[2] if alone else thinking,
        answer=answer,
        calls=[_opened(call, tools) for call in record.tool_call_details],
    )


def _opened(call: Mapping[str, Any], tools: tuple[Tool, ...] | None) -> JsonObject:
    opened = {"name": call["name"], "arguments": call["arguments"], "problem": None, "told": None}
    if tools is None:
        return opened
    made = dispatch(call_of(call), tools)
    text = "\n".join([*([made.message] if made.message else []), *made.notes])
    return {**opened, "problem": made.problem, "told": text or None}
