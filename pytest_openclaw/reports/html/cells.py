"""Cells → the page's columns (small, read at once), details (read when a cell is opened) and texts."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from pytest_openclaw.openclaw.dispatch import dispatch
from pytest_openclaw.openclaw.thinking import split_thinking
from pytest_openclaw.reports.cells import message_texts
from pytest_openclaw.reports.numbers import one_line
from pytest_openclaw.values.rows import call_of, to_row

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from pytest_openclaw.util.json_types import JsonObject
    from pytest_openclaw.values.requests import Target
    from pytest_openclaw.values.rows import Record
    from pytest_openclaw.values.tool_calls import Tool

REASON_WIDTH = 80
PADDING_CHARS = 1000
"""Shown of each end of a prompt that was padded."""
PASSED, MISSED, UNJUDGED, SILENT, FAULT, UNAVAILABLE = range(6)
"""How a cell ended; `assets/` draws them in this order."""
# Shown elsewhere in the panel, or the same in every row of it.
_SHOWN_ELSEWHERE = frozenset(
    {
        "record_type", "schema_version", "run_id", "provider", "model", "thinking_level", "suite",
        "prompt_id", "prompt_name", "category", "repeat", "raw_output", "turns", "tool_call_details",
        "objective_pass", "success", "violation", "fault_message", "failure_type", "tool_outcome",
    }
)  # fmt: skip


class TextPool:
    """Texts by number, each kept once; the first is the empty one."""

    def __init__(self) -> None:
        self._numbers: dict[str, int] = {"": 0}

    def add(self, text: str) -> int:
        """Return the text's number."""
        return self._numbers.setdefault(text, len(self._numbers))

    @property
    def texts(self) -> list[str]:
        """The texts in the order of their numbers."""
        return [*self._numbers]


@dataclass(frozen=True, kw_only=True)
class Shown:
    """A cell.

    Attributes:
        tools: those that its prompt offered; None if they are not known any more.
        before: the row of the same cell in the baseline; None if it has none.

    """

    record: Record
    tools: Sequence[Tool] | None = None
    before: Record | None = None


@dataclass(frozen=True, kw_only=True)
class CellData:
    """What the page gets of its cells.

    Attributes:
        columns: of all cells, value by value: `prompt`, `target`, `repeat`, `verdict`, `outcome`, `e2e`,
            `ttft`, `why` (a number of `reasons`), `texts` (numbers in the pool, for the search), `change` (1
            better, -1 worse, 0 the same, null without a baseline's row).
        reasons: why cells did not pass, on one short line each; the first is empty.
        prompts: as the columns number them, with the numbers of their texts.
        fields: names of the row's fields in each detail's `row`.
        details: of each cell.

    """

    columns: JsonObject
    reasons: list[str]
    prompts: list[JsonObject]
    fields: list[str]
    details: list[JsonObject]


def cell_data(
    cells: Sequence[Shown], prompts: Iterable[JsonObject], targets: Sequence[Target], pool: TextPool
) -> CellData:
    """Return the cells as the page takes them.

    Args:
        cells: in the order of the file.
        prompts: definitions; a prompt that is not among them is made of its rows.
        targets: in the order in which they are shown.
        pool: takes the texts.

    """
    entries = {(one["suite"], one["id"]): _prompt(one, pool) for one in prompts}
    for cell in cells:
        key = (cell.record.suite, cell.record.prompt_id)
        if key not in entries:
            entries[key] = _unknown_prompt(cell.record)
    prompt_numbers = {key: number for number, key in enumerate(entries)}
    target_numbers = {target: number for number, target in enumerate(targets)}
    rows = [to_row(cell.record) for cell in cells]
    fields = list(dict.fromkeys(name for row in rows for name in row if name not in _SHOWN_ELSEWHERE))
    columns = {name: [] for name in _COLUMNS}  # type: JsonObject
    reasons = {"": 0}
    details = []
    for cell, row in zip(cells, rows, strict=True):
        record = cell.record
        detail, texts = _detail(cell, row, fields, pool)
        values = (
            prompt_numbers[record.suite, record.prompt_id],
            target_numbers[record.target],
            record.repeat,
            verdict_of(record),
            record.tool_outcome,
            record.e2e_ms if record.attempts or record.e2e_ms else None,
            record.ttft_ms,
            reasons.setdefault(reason_of(record), len(reasons)),
            texts,
            _change(cell),
        )
        for name, value in zip(_COLUMNS, values, strict=True):
            columns[name].append(value)
        details.append(detail)
    return CellData(
        columns=columns, reasons=list(reasons), prompts=list(entries.values()), fields=fields, details=details
    )


_COLUMNS = ("prompt", "target", "repeat", "verdict", "outcome", "e2e", "ttft", "why", "texts", "change")


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
    """Return 1 if a cell passes that did not before, -1 if it passes no longer, else 0.

    None if one of them is no answer, or is not judged. Silence is a miss.
    """
    shown_text = [_counts_as(record) for record in (before, after)]
    if None in shown_text:
        return None
    return int(bool(shown_text[1])) - int(bool(shown_text[0]))


def _counts_as(record: Record) -> bool | None:
    if record.availability_status != "ok":
        return None
    return False if not record.success else record.objective_pass


def _change(cell: Shown) -> int | None:
    return change_of(cell.before, cell.record) if cell.before else None


def _prompt(definition: Mapping[str, Any], pool: TextPool) -> JsonObject:
    tools = definition.get("tools")
    if isinstance(tools, dict):  # of a captured catalogue
        tools = tools.get("tools")
    return {
        "suite": definition["suite"],
        "id": definition["id"],
        "name": definition.get("name") or "",
        "category": definition.get("category"),
        "prompt": pool.add(_asked(definition)),
        "system": pool.add(_text(definition.get("system"))),
        "messages": [[label, pool.add(text)] for label, text in message_texts(definition.get("messages"))],
        "rule": pool.add(_json(definition.get("validator"))),
        "tools": pool.add(tools if isinstance(tools, str) else _tool_names(tools)),
        "world": pool.add(_json(definition["world"]) if definition.get("world") else ""),
    }


def _asked(definition: Mapping[str, Any]) -> str:
    """Return the prompt; of one that was padded to fill the context, the beginning and the end."""
    text = _text(definition.get("prompt"))
    if isinstance(images := definition.get("images"), list):
        text += f"\n\n[with {', '.join(map(_text, images))}]"
    left_out = len(text) - 2 * PADDING_CHARS
    if not definition.get("padding_tokens") or left_out <= 0:
        return text
    note = f"[… {left_out:,} characters of padding, which config.json has …]"
    return f"{text[:PADDING_CHARS]}\n\n{note}\n\n{text[-PADDING_CHARS:]}"


def _unknown_prompt(record: Record) -> JsonObject:
    return {
        "suite": record.suite,
        "id": record.prompt_id,
        "name": record.prompt_name,
        "category": record.category,
        **dict.fromkeys(("prompt", "system", "rule", "tools", "world"), 0),
        "messages": [],
    }


def _tool_names(tools: object) -> str:
    if not isinstance(tools, list):
        return ""
    return ", ".join(_text(one.get("name") if isinstance(one, dict) else one) for one in tools)


def _detail(
    cell: Shown, row: Mapping[str, Any], fields: Sequence[str], pool: TextPool
) -> tuple[JsonObject, list[int]]:
    record = cell.record
    searched: list[int] = []

    def keep(text: str | None) -> int | None:
        if text is None:
            return None
        number = pool.add(text)
        if number:
            searched.append(number)
        return number

    detail: JsonObject = {
        "why": keep(record.violation or record.fault_message),
        "failure": record.failure_type,
        "turns": [_turn(turn, cell.tools, keep) for turn in _turns_of(record)],
        "row": [row.get(name) for name in fields],
    }
    if cell.before:
        detail["before"] = {
            "verdict": verdict_of(cell.before),
            "why": pool.add(cell.before.violation or cell.before.fault_message or ""),
            "e2e": cell.before.e2e_ms,
            "text": pool.add(_turns_of(cell.before)[-1]["text"]),
        }
    return detail, sorted(set(searched))


def _turns_of(record: Record) -> Sequence[Mapping[str, Any]]:
    """Return the turns of a row; a single question is one turn."""
    if record.turns:
        return record.turns
    thinking, answer = split_thinking(record.raw_output)
    return [{"text": answer, "reasoning": thinking, "calls": record.tool_call_details}]


def _turn(turn: Mapping[str, Any], tools: Sequence[Tool] | None, keep: Any) -> JsonObject:
    return {
        "user": keep(turn.get("user")),
        "text": keep(turn["text"]),
        "thinking": keep(turn.get("reasoning") or ""),
        "calls": [_call(call, tools, keep) for call in turn["calls"]],
        "e2e": turn.get("e2e_ms"),
        "ttft": turn.get("ttft_ms"),
        "in": turn.get("input_tokens"),
        "out": turn.get("output_tokens"),
        "finish": turn.get("finish_reason"),
    }


def _call(call: Mapping[str, Any], tools: Sequence[Tool] | None, keep: Any) -> JsonObject:
    """Return a call as it was on the wire, and what OpenClaw makes of it if its tools are known."""
    made = None if tools is None else dispatch(call_of(call), tools)
    given = _json(made.arguments) if made and made.arguments is not None else None
    return {
        "name": keep(call["name"]),
        "arguments": keep(call["arguments"]),
        "result": keep(call.get("result")),
        "problem": made.problem if made else call.get("problem"),
        "known": made is not None,
        "tool": made.tool if made else None,
        "given": keep(given) if given is not None and not _says_the_same(call["arguments"], given) else None,
        "message": keep(made.message) if made else None,
        "notes": list(made.notes) if made else [],
    }


def _says_the_same(sent: str, given: str) -> bool:
    try:
        return _json(json.loads(sent)) == given
    except (ValueError, RecursionError):
        return False


def _json(value: object) -> str:
    """Return a value as a person reads it; one that is nested too deep is named only."""
    try:
        return json.dumps(value, ensure_ascii=False, indent=2, sort_keys=True) if value is not None else ""
    except RecursionError:
        return "(nested too deep to show)"


def _text(value: object) -> str:
    return value if isinstance(value, str) else ""
