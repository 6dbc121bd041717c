"""Cells → the page's columns (small, read at once) and details (read when a cell is opened)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

from pytest_openclaw.reports.cells import as_text, measured, message_texts, turns_of
from pytest_openclaw.reports.numbers import one_line

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from pytest_openclaw.util.files import JsonObject
    from pytest_openclaw.values.requests import Target
    from pytest_openclaw.values.rows import Record
    from pytest_openclaw.values.tool_calls import Tool

REASON_WIDTH = 80
PASSED, MISSED, UNJUDGED, SILENT, FAULT, UNAVAILABLE = range(6)
"""How a cell ended; `assets/` draws them in this order."""


@dataclass(frozen=True, kw_only=True)
class Shown:
    """A cell.

    Attributes:
        tools: offered by its prompt; None if they are no longer known.
        before: the row of the same cell in the baseline; None if it has none.
    """

    record: Record
    tools: Sequence[Tool] | None = None
    before: Record | None = None


class CellData(NamedTuple):
    """The data of the page's cells: the matrix, and the detail of each cell.

    The matrix has `prompts`, `fields` (the names of the values in each detail's `row`) and `columns` of all
    cells: `prompt` and `target` (their numbers), `repeat`, `verdict`, `outcome`, `e2e`, `why` and `change`.
    """

    matrix: JsonObject
    details: list[JsonObject]


def cell_data(cells: Sequence[Shown], prompts: Iterable[JsonObject], targets: Sequence[Target]) -> CellData:
    """Return the cells as the page takes them; a prompt that is not among `prompts` is made of its rows."""
    entries = {(one["suite"], one["id"]): _prompt(one) for one in prompts}
    records = [cell.record for cell in cells]
    for record in records:
        known = {"suite": record.suite, "id": record.prompt_id, "name": record.prompt_name}
        entries.setdefault((record.suite, record.prompt_id), _prompt({**known, "category": record.category}))
    prompt_numbers = {key: number for number, key in enumerate(entries)}
    target_numbers = {target: number for number, target in enumerate(targets)}
    rows = [measured(record) for record in records]
    fields = list(dict.fromkeys(name for row in rows for name in row))
    columns = {
        "prompt": [prompt_numbers[record.suite, record.prompt_id] for record in records],
        "target": [target_numbers[record.target] for record in records],
        "repeat": [record.repeat for record in records],
        "verdict": [verdict_of(record) for record in records],
        "outcome": [record.tool_outcome for record in records],
        "e2e": [record.e2e_ms if record.attempts or record.e2e_ms else None for record in records],
        "why": [reason_of(record) for record in records],
        "change": [change_of(cell.before, cell.record) if cell.before else None for cell in cells],
    }
    return CellData(
        {"columns": columns, "prompts": [*entries.values()], "fields": fields},
        [_detail(cell, [row.get(name) for name in fields]) for cell, row in zip(cells, rows, strict=True)],
    )


def verdict_of(record: Record) -> int:
    """Return how a cell ended."""
    if record.availability_status == "skipped_unavailable":
        return UNAVAILABLE
    if record.availability_status != "ok":
        return FAULT
    if not record.success:
        return SILENT
    return {True: PASSED, False: MISSED, None: UNJUDGED}[record.objective_pass]


def reason_of(record: Record) -> str:
    """Return why a cell did not pass, on one short line; nothing if it did, or was not judged."""
    if record.failure_type:
        return record.failure_type.replace("_", " ")
    return one_line(record.violation or "", REASON_WIDTH) if record.objective_pass is False else ""


def change_of(before: Record, after: Record) -> int | None:
    """Return 1 if a cell passes and did not before, -1 if it no longer passes, else 0.

    None if one of them is not an answer, or is not judged. Silence is a miss.
    """
    passed = {MISSED: 0, SILENT: 0, PASSED: 1}
    counts = [passed.get(verdict_of(record)) for record in (before, after)]
    return None if None in counts else (counts[1] or 0) - (counts[0] or 0)


def _prompt(definition: Mapping[str, Any]) -> JsonObject:
    tools = definition.get("tools")
    if isinstance(tools, dict):  # of a captured catalogue
        tools = tools.get("tools")
    if isinstance(tools, list):
        tools = ", ".join(_text(one.get("name") if isinstance(one, dict) else one) for one in tools)
    text = _text(definition.get("prompt"))
    if isinstance(images := definition.get("images"), list):
        text += f"\n\n[with {', '.join(map(_text, images))}]"
    return {
        "suite": definition["suite"],
        "id": definition["id"],
        "name": definition.get("name") or "",
        "category": definition.get("category"),
        "prompt": text,
        "system": _text(definition.get("system")),
        "messages": [[label, text] for label, text in message_texts(definition.get("messages"))],
        "rule": as_text(definition.get("validator")),
        "tools": _text(tools),
        "world": as_text(definition["world"]) if definition.get("world") else "",
    }


def _detail(cell: Shown, row: Sequence[str | None]) -> JsonObject:
    record, before = cell.record, cell.before
    detail: JsonObject = {
        "why": record.violation or record.fault_message,
        "failure": record.failure_type,
        "turns": turns_of(record, cell.tools),
        "found": as_text(record.parsed_output),
        "row": row,
    }
    if before:
        detail["before"] = {
            "verdict": verdict_of(before),
            "why": before.violation or before.fault_message or "",
            "e2e": before.e2e_ms,
            "text": turns_of(before, None)[-1]["text"],
        }
    return detail


def _text(value: object) -> str:
    return value if isinstance(value, str) else ""
