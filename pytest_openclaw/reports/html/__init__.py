"""The HTML page of a run: one file, whose own script and style are the only ones that its policy lets run."""

from __future__ import annotations

import base64
import hashlib
import html
import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from importlib import resources
from pathlib import Path
from typing import Any

from pytest_openclaw.conclusions.summary import Summary
from pytest_openclaw.reports.blocks import Details, Section, section_data
from pytest_openclaw.reports.cells import (
    as_text,
    brief_call,
    did_of,
    due_of,
    joined,
    measured,
    message_texts,
    turns_of,
    usual_of,
)
from pytest_openclaw.reports.facts import answers, findings, ruling_of, sections_of, targets_table
from pytest_openclaw.reports.numbers import one_line, render_duration, render_time
from pytest_openclaw.util.files import JsonObject
from pytest_openclaw.util.text import counted, first_few, valid_text
from pytest_openclaw.values.requests import Target
from pytest_openclaw.values.rows import Record
from pytest_openclaw.values.tool_calls import Tool

FIRST_WORDS = '<!doctype html>\n<html lang="en" data-made-by="pytest-openclaw">'


@dataclass(frozen=True, kw_only=True)
class ShownRun:
    """All that the page shows.

    Attributes:
        baseline: the id of the run that this one is compared with.
        prompts: definitions as `config.json` has them.
        notes: the readers' notes on cells, each with the name of its cell.
        has_texts: whether the page has texts of prompts and replies.
    """

    summary: Summary
    cells: Sequence[Shown]
    prompts: Sequence[JsonObject]
    baseline: str | None = None
    notes: Sequence[tuple[str, str]] = ()
    has_texts: bool = True


def render_page(run: ShownRun) -> str:
    """Return the page of a run."""
    # A foreign summary may lack the targets of some rows.
    named = (*(group.target for group in run.summary.groups), *(cell.record.target for cell in run.cells))
    targets = list(dict.fromkeys(named))
    shown = [
        {"label": one.label, "provider": one.provider, "model": one.model, "level": one.thinking_level}
        for one in targets
    ]
    matrix, details = cell_data(run.cells, run.prompts, targets)
    page = {
        "header": _header(run),
        "sections": [section_data(section) for section in _sections(run) if section.filled],
        "cells": {"targets": shown, "baseline": run.baseline, "texts": run.has_texts, **matrix},
    }
    return document(
        "page.html",
        f"{_title(run)} · OpenClaw benchmark",
        styles=("page.css",),
        scripts=("base.js", "cells.js", "panel.js", "main.js"),
        islands="\n".join([element("page", page), element("details", details), element("notes", run.notes)]),
    )


MOST_IN_TITLE = 3


def _title(run: ShownRun) -> str:
    suites = (Path(str(prompt["suite"])).stem.removeprefix("prompts_") for prompt in run.prompts)
    labels = [group.target.label for group in run.summary.groups]
    named = (first_few(list(dict.fromkeys(names)), MOST_IN_TITLE) for names in (suites, labels))
    return one_line(" on ".join(filter(None, named)) or run.summary.run_id, 160)


def _header(run: ShownRun) -> JsonObject:
    summary, records = run.summary, [cell.record for cell in run.cells]
    began = min((row.started_at_ms for row in records), default=summary.generated_at_ms)
    ended = max((row.ended_at_ms for row in records), default=summary.generated_at_ms)
    is_partial = summary.state == "interrupted"
    partial = f"Interrupted: {summary.n_rows} of {summary.n_cells} cells have a row."
    seconds = max(0, ended - began) / 1000
    n_targets = counted(len(summary.groups), "target")
    ruling, words = ruling_of(summary) or ("", "")
    shared = "Prompts and replies are left out, so that this page can be shared."
    return {
        "title": _title(run),
        "ruling": ruling,
        "said": words,
        "facts": [
            ("run", one_line(summary.run_id, 80)),
            ("asked", f"{render_time(began, '%Y-%m-%d %H:%M UTC')}, for {render_duration(seconds)}"),
            ("cells", f"{summary.n_rows:,} on {n_targets}"),
        ],
        "notes": [*([partial] if is_partial else []), *([] if run.has_texts else [shared])],
    }


def _sections(run: ShownRun) -> list[Section]:
    summary = run.summary
    why, *others = sections_of(summary)
    return [
        Section(
            id="targets",
            title="Which model may hold the tools?",
            blocks=[
                answers(summary),
                Details(title="Why", block=why.blocks[0]),
                targets_table(summary.groups),
            ],
        ),
        Section(id="findings", title="Findings", blocks=[findings(summary)]),
        *others,
    ]


# --- cells: columns, read at once, and details, read when a cell is opened ---------------------------

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


def cell_data(
    cells: Sequence[Shown], prompts: Iterable[JsonObject], targets: Sequence[Target]
) -> tuple[JsonObject, list[JsonObject]]:
    """Return the matrix of the page's cells, and the detail of each cell.

    The matrix has `prompts`, `fields` (the names of the values in each detail's `row`) and `columns` of all
    cells. A prompt that is not among `prompts` is made of its rows.
    """
    entries = {(one["suite"], one["id"]): _prompt(one) for one in prompts}
    records = [cell.record for cell in cells]
    for record in records:
        known = {"suite": record.suite, "id": record.prompt_id, "name": record.prompt_name}
        entries.setdefault((record.suite, record.prompt_id), _prompt({**known, "category": record.category}))
    prompt_numbers = {key: number for number, key in enumerate(entries)}
    target_numbers = {target: number for number, target in enumerate(targets)}
    usual = usual_of(records)
    rows = [measured(record, usual) for record in records]
    turns = [turns_of(cell.record, cell.tools) for cell in cells]
    shown = [*zip(cells, turns, strict=True)]
    fields = list(dict.fromkeys(name for row in rows for name in row))
    columns = {
        "prompt": [prompt_numbers[record.suite, record.prompt_id] for record in records],
        "target": [target_numbers[record.target] for record in records],
        "repeat": [record.repeat for record in records],
        "verdict": [verdict_of(record) for record in records],
        "harm": [int(record.harm or False) for record in records],
        "outcome": [record.tool_outcome for record in records],
        "call": [brief_call(cell.record, its) for cell, its in shown],
        "e2e": [record.e2e_ms if record.attempts or record.e2e_ms else None for record in records],
        "why": [reason_of(record) for record in records],
        "change": [change_of(cell.before, cell.record) if cell.before else None for cell in cells],
    }
    return (
        {"columns": columns, "prompts": [*entries.values()], "fields": fields},
        [
            _detail(cell, its, [row.get(name) for name in fields])
            for (cell, its), row in zip(shown, rows, strict=True)
        ],
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
        tools = ", ".join(str(one.get("name") if isinstance(one, dict) else one) for one in tools)
    images = definition.get("images")
    return {
        "suite": definition["suite"],
        "id": definition["id"],
        "name": definition.get("name") or "",
        "category": definition.get("category"),
        "prompt": (definition.get("prompt") or "") + (f"\n\n[with {', '.join(images)}]" if images else ""),
        "system": definition.get("system") or "",
        "messages": [[label, text] for label, text in message_texts(definition.get("messages"))],
        "due": due_of(definition),
        "rule": as_text(definition.get("validator")),
        "tools": tools if isinstance(tools, str) else "",
        "world": as_text(definition["world"]) if definition.get("world") else "",
    }


def _detail(cell: Shown, turns: Sequence[JsonObject], row: Sequence[str | None]) -> JsonObject:
    record, before = cell.record, cell.before
    detail: JsonObject = {
        "did": did_of(record, turns),
        "why": record.violation or record.fault_message,
        "failure": record.failure_type,
        "turns": joined(turns),
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


# --- the file ---------------------------------------------------------------------------------------

# Only `<` opens tags, comments and `</script>`; the others hide or reverse text in the file.
_UNSAFE = re.compile(
    "[<>&\x7f-\x9f\xad\u061c\u180e\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\uffff]"
)
_JSON = json.JSONEncoder(ensure_ascii=False, allow_nan=False, separators=(",", ":"))


def element(name: str, value: Any) -> str:
    """Return the `<script>` of a class that holds a value as JSON; nothing in it ends the element."""
    text = _UNSAFE.sub(lambda found: f"\\u{ord(found[0]):04x}", valid_text(_JSON.encode(value)))
    return f'<script type="application/json" class="{name}">{text}</script>'


def fill(values: Mapping[str, str], template: str) -> str:
    """Fill `{{name}}` in a template, once: names inside a value are not filled."""
    return re.sub(r"\{\{(\w+)\}\}", lambda found: values[found[1]], template)


def document(template: str, title: str, styles: Iterable[str], scripts: Iterable[str], **values: str) -> str:
    """Return a page made of files of `assets/`; `values` fill the other names in the template."""
    script = "(() => {\n'use strict';\n" + "\n".join(map(_asset, scripts)) + "})();"
    style = "".join(map(_asset, styles))
    # Nothing is loaded, sent or framed; only script and style of the page are used.
    policy = (
        f"default-src 'none'; script-src {_hash(script)}; style-src {_hash(style)}; base-uri 'none'; "
        "form-action 'none'"
    )
    head = {"first_words": FIRST_WORDS, "policy": policy, "title": html.escape(title)}
    return fill({**head, "style": style, "script": script, **values}, _asset(template))


def _hash(text: str) -> str:
    digest = hashlib.sha256(text.encode()).digest()
    return f"'sha256-{base64.b64encode(digest).decode()}'"


def _asset(name: str) -> str:
    text = resources.files("pytest_openclaw.reports.html").joinpath("assets", name).read_text("utf-8")
    return text.replace("\r\n", "\n")
