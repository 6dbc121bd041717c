"""Show a run: its summary and its cells, or one cell in full.

Without CELL, show the summary as at the end of the run, and one line per cell.
With CELL, show its prompt, answer, thinking, calls of each turn, verdict, times
and tokens. CELL is a name as in pytest, or an unambiguous part of one: P1,
P1[ollama_openai/llama3.2:3b], prompts_core.toml::P1, P1-r2. If several cells
match, they are listed. An active run is shown with the cells so far.

Example:
  pytest-openclaw show last --failed
  pytest-openclaw show last --target "*qwen*" --prompt "N*"
  pytest-openclaw show 20260213_235930 P1
"""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Sequence
from difflib import get_close_matches
from pathlib import PurePosixPath
from typing import TYPE_CHECKING

from pytest_openclaw.cli.result import (
    CliCommand,
    CommandResult,
    add_filters,
    add_run,
    is_chosen,
    read_run,
    terminal_width,
)
from pytest_openclaw.conclusions.summary import to_json
from pytest_openclaw.reports.cells import (
    is_miss,
    offered_tools,
    render_cell,
    render_cells,
    turns_of,
    verdict_of,
)
from pytest_openclaw.reports.terminal import render_terminal
from pytest_openclaw.runs.reading import StoredRun
from pytest_openclaw.runs.summaries import summary_of
from pytest_openclaw.util.errors import OpenClawError
from pytest_openclaw.util.files import JsonObject
from pytest_openclaw.util.text import as_argument
from pytest_openclaw.values.requests import CellKey
from pytest_openclaw.values.rows import Record, to_row

if TYPE_CHECKING:
    import argparse


def _add_arguments(parser: argparse.ArgumentParser) -> None:
    add_run(parser)
    parser.add_argument("cell", nargs="?", metavar="CELL", help="one cell in full, such as P1")
    add_filters(parser)


def _run(arguments: argparse.Namespace) -> CommandResult:
    run, width = read_run(arguments, even_active=True), terminal_width()
    chosen = [record for record in run.records if is_chosen(record, arguments)]
    if arguments.cell is not None:
        chosen = find_cells(chosen, arguments.cell, run.name)
    names = full_names(run.records)
    if arguments.cell is not None and len(chosen) == 1:
        return _show_cell(run, run.rows[chosen[0].key].whole, names[chosen[0].key])
    data: JsonObject = {"run": run.name, "cells": [_as_json(one, names[one.key]) for one in chosen]}
    # The texts of a large run do not fit into memory.
    cells = ((names[one.key], run.rows[one.key].whole if is_miss(one) else one) for one in chosen)
    lines = [*render_cells(cells, run.prompts, width)]
    if arguments.cell is not None:
        first_miss = shlex.quote(names[next(filter(is_miss, chosen), chosen[0]).key])
        lines.append(f"in full: pytest-openclaw show {as_argument(arguments.run)} {first_miss}")
        return CommandResult(lines=lines, data=data)
    summary, page = summary_of(run), run.path / "summary.md"
    where = str(page if page.exists() else run.path)
    return CommandResult(
        lines=[*render_terminal(summary, where, width=width), "", *lines],
        data={"run": run.name, "summary": to_json(summary), **data},
        warnings=run.shortcomings,
    )


def _show_cell(run: StoredRun, record: Record, name: str) -> CommandResult:
    definition = dict(run.prompts.get((record.suite, record.prompt_id), {}))
    turns = turns_of(record, offered_tools(definition))
    return CommandResult(
        lines=render_cell(name, record, definition, turns, run.records, width=terminal_width()),
        data={
            "run": run.name,
            "cell": _as_json(record, name),
            "prompt": definition or None,
            "turns": turns,
            "row": to_row(record),
        },
        warnings=[] if definition else ["config.json does not define the prompt of this cell"],
    )


def _as_json(record: Record, name: str) -> JsonObject:
    fields = ("suite", "prompt_id", "repeat", "violation", "fault_message", "tool_outcome", "e2e_ms")
    facts = {field: getattr(record, field) for field in fields}
    return {"cell": name, "target": record.target.label, "verdict": verdict_of(record), **facts}


# --- the cell that a user names -------------------------------------------------------------------


def find_cells(records: Sequence[Record], name: str, run: str) -> list[Record]:
    """Return the cells with this name, which is as in pytest or a part of such a name.

    Names are such as `P1`, `P1[lab/m]`, `P1[lab/m-r2]`, with or without `suite::` before them.

    Raises:
        OpenClawError: no cell matches; the message lists candidates.
    """
    found = [record for record in records if name in _names(record)]
    if not found:
        known = dict.fromkeys(short for record in records for short in (record.prompt_id, record.key.name))
        near = get_close_matches(name, known, n=3)
        hint = f"did you mean {' or '.join(near)}?" if near else f"`show {run}` lists them"
        raise OpenClawError(f"{run} has no row for a cell {name}; {hint}")
    return found


def full_names(records: Sequence[Record]) -> dict[CellKey, str]:
    """Return each cell's name as in pytest, with its suite if several suites have the prompt's id."""
    suites: dict[str, set[str]] = {}
    for record in records:
        suites.setdefault(record.prompt_id, set()).add(record.suite)
    repeated = {(record.suite, record.prompt_id) for record in records if record.repeat > 1}
    names = {}
    for record in records:
        suite = f"{record.suite}::" if len(suites[record.prompt_id]) > 1 else ""
        repeat = f"-r{record.repeat}" if (record.suite, record.prompt_id) in repeated else ""
        names[record.key] = f"{suite}{record.prompt_id}[{record.target.label}{repeat}]"
    return names


def _names(record: Record) -> Iterator[str]:
    label, repeat = record.target.label, f"-r{record.repeat}"
    for prefix in ("", f"{record.suite}::", f"{PurePosixPath(record.suite).name}::"):
        for prompt in dict.fromkeys((record.prompt_id, record.prompt_name)):
            for suffix in ("", repeat, f"[{label}]", f"[{label}{repeat}]"):
                yield f"{prefix}{prompt}{suffix}"


COMMANDS = (CliCommand(name="show", help=__doc__, add_arguments=_add_arguments, run=_run),)
