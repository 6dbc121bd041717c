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
from difflib import get_close_matches
from pathlib import PurePosixPath
from typing import TYPE_CHECKING

from pytest_openclaw.cli.result import (
    Command,
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
from pytest_openclaw.runs.summaries import summary_of
from pytest_openclaw.util.errors import OpenClawError
from pytest_openclaw.values.rows import to_row

if TYPE_CHECKING:
    import argparse
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from pytest_openclaw.runs.reading import StoredRun
    from pytest_openclaw.util.files import JsonObject
    from pytest_openclaw.values.requests import CellKey
    from pytest_openclaw.values.rows import Record


def _add_arguments(parser: argparse.ArgumentParser) -> None:
    add_run(parser)
    parser.add_argument("cell", nargs="?", metavar="CELL", help="one cell in full, such as P1")
    add_filters(parser)


def _run(arguments: argparse.Namespace) -> CommandResult:
    run = read_run(arguments, even_active=True)
    chosen = [record for record in run.records if is_chosen(record, arguments)]
    if arguments.cell is not None:
        chosen = find_cells(chosen, arguments.cell, run.name)
        if len(chosen) == 1:
            return _show_cell(run, run.rows[chosen[0].key].whole)
        return _show_cells(run, chosen, arguments.run)
    return _show_run(run, chosen)


def _show_run(run: StoredRun, chosen: list[Record]) -> CommandResult:
    summary = summary_of(run)
    width = terminal_width()
    page = run.path / "summary.md"
    where = str(page if page.exists() else run.path)
    cells = _named(run, chosen)
    return CommandResult(
        lines=[*render_terminal(summary, where, width=width), "", *render_cells(cells, run.prompts, width)],
        data={"run": run.name, "summary": to_json(summary), "cells": _listed(cells)},
        warnings=run.shortcomings,
    )


def _show_cells(run: StoredRun, chosen: Sequence[Record], run_name: str) -> CommandResult:
    """List the cells that a name fits, and say how to name one of them."""
    cells = _named(run, chosen)
    first_miss = next((name for name, record in cells.items() if is_miss(record)), next(iter(cells)))
    return CommandResult(
        lines=[
            *render_cells(cells, run.prompts, terminal_width()),
            f"in full: pytest-openclaw show {run_name} {shlex.quote(first_miss)}",
        ],
        data={"run": run.name, "cells": _listed(cells)},
    )


def _named(run: StoredRun, chosen: Iterable[Record]) -> dict[str, Record]:
    """Return whole rows by their names as in pytest."""
    names = full_names(run.records)
    return {names[record.key]: run.rows[record.key].whole for record in chosen}


def _listed(cells: Mapping[str, Record]) -> list[JsonObject]:
    return [_as_json(record, name) for name, record in cells.items()]


def _show_cell(run: StoredRun, record: Record) -> CommandResult:
    definition = dict(run.prompts.get((record.suite, record.prompt_id), {}))
    turns = turns_of(record, offered_tools(definition))
    name = full_names(run.records)[record.key]
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


COMMANDS = (Command(name="show", help=__doc__, add_arguments=_add_arguments, run=_run),)
