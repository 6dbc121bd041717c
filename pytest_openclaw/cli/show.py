"""Show what a run found: its summary and its cells, or one cell in full.

Without CELL: the summary as the terminal showed it, and one line per cell. With
CELL: prompt, answer, thinking, calls turn by turn, verdict, times and tokens.
A cell is named as in pytest, or by a part of that name that is enough: P1,
P1[ollama_openai/llama3.2:3b], prompts_core.toml::P1, P1-r2. If several fit,
they are listed. Of an active run, the cells so far are shown.

Example:
  pytest-openclaw show last --failed
  pytest-openclaw show last --target "*qwen*" --prompt "N*"
  pytest-openclaw show 20260213_235930 P1

"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pytest_openclaw.cli.result import (
    CommandResult,
    add_filters,
    add_run,
    find_cell,
    full_names,
    is_chosen,
    read_run,
    terminal_width,
)

if TYPE_CHECKING:
    import argparse

    from pytest_openclaw.runs.reading import Part
    from pytest_openclaw.util.json_types import JsonObject
    from pytest_openclaw.values.rows import Record


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of `show`."""
    add_run(parser)
    parser.add_argument("cell", nargs="?", metavar="CELL", help="one cell in full, such as P1")
    add_filters(parser)


def run(arguments: argparse.Namespace) -> CommandResult:
    """Show the run, or the cell."""
    part = read_run(arguments, even_active=True)
    chosen = [record for record in part.records if is_chosen(record, arguments)]
    if arguments.cell is not None:
        return _cell(part, part.rows[find_cell(chosen, arguments.cell, part.name).key].whole)
    return _run(part, chosen)


def _run(part: Part, chosen: list[Record]) -> CommandResult:
    from pytest_openclaw.reports.cells import render_cells
    from pytest_openclaw.reports.terminal import render_terminal
    from pytest_openclaw.runs.summaries import stored_summary, summary_of
    from pytest_openclaw.stats.summary import summary_to_json

    summary = summary_of(part)
    width = terminal_width()
    page = part.run.path / "summary.md"
    where = str(page if page.exists() else part.run.path)
    names = full_names(part.records)
    return CommandResult(
        lines=[
            *render_terminal(summary, where, width=width),
            "",
            *render_cells({names[one.key]: one for one in chosen}, width),
        ],
        data={
            "run": part.name,
            "summary": stored_summary(part.run.path) or summary_to_json(summary),
            "cells": [_as_json(record, names[record.key]) for record in chosen],
        },
        warnings=part.shortcomings,
    )


def _cell(part: Part, record: Record) -> CommandResult:
    from pytest_openclaw.features.showing import open_record
    from pytest_openclaw.reports.cells import render_cell
    from pytest_openclaw.values.rows import to_row

    definition = dict(part.prompts.get((record.suite, record.prompt_id), {}))
    opened = open_record(record, definition)
    name = full_names(part.records)[record.key]
    return CommandResult(
        lines=render_cell(name, record, definition, opened, terminal_width()),
        data={
            "run": part.name,
            "cell": _as_json(record, name),
            "prompt": definition or None,
            "thinking": opened.thinking,
            "answer": opened.answer,
            "calls": list(opened.calls),
            "row": to_row(record),
        },
        warnings=[] if definition else ["config.json does not define its prompt"],
    )


def _as_json(record: Record, name: str) -> JsonObject:
    from pytest_openclaw.reports.cells import verdict_of

    return {
        "cell": name,
        "suite": record.suite,
        "prompt_id": record.prompt_id,
        "target": record.target.label,
        "repeat": record.repeat,
        "verdict": verdict_of(record),
        "violation": record.violation,
        "fault_message": record.fault_message,
        "tool_outcome": record.tool_outcome,
        "e2e_ms": record.e2e_ms,
    }
