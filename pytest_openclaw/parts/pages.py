"""Make one HTML page of a run, to open from disk and to send to others.

The page needs no server and no network. It begins with the recommendation for
each target. Then come tiers with their intervals, times, how tool use ended,
and every prompt on every target: a click on a cell opens what was due and what
the model did, prompt, answer, tool calls and times. The page's address contains
its filters and open cells. With --baseline, cells that changed since an older
run are marked. A run with --openclaw-report writes the page itself.
Like results.jsonl it contains the models' answers: send it only to people who
may read those, or make it with --share, which leaves out all prompts and
replies.

Example:
  pytest-openclaw report last --open
  pytest-openclaw report 20260214_081500 --baseline 20260213_235930
"""

from __future__ import annotations

import re
import webbrowser
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pytest_openclaw.cli.result import (
    CliCommand,
    CommandResult,
    add_run,
    held_by,
    read_run,
    run_path,
    write_over_ours,
)
from pytest_openclaw.conclusions.summary import Summary
from pytest_openclaw.reports.blocks import SummaryFinding
from pytest_openclaw.reports.cells import offered_tools
from pytest_openclaw.reports.html import FIRST_WORDS, Shown, ShownRun, render_page
from pytest_openclaw.runs.reading import StoredRow, StoredRun, load_run
from pytest_openclaw.runs.rows import MAX_ROW_BYTES
from pytest_openclaw.runs.summaries import summary_of
from pytest_openclaw.session.owner import Owner, Watcher
from pytest_openclaw.util.errors import OpenClawError
from pytest_openclaw.util.files import JsonObject, open_file, parse_json
from pytest_openclaw.util.text import counted, map_texts
from pytest_openclaw.values.parts import Part, PartKey, called
from pytest_openclaw.values.rows import Record
from pytest_openclaw.values.settings import Settings

if TYPE_CHECKING:
    import argparse

FILE = "report.html"
SHARED_FILE = "report-shared.html"
MOST_CELLS = 20_000
"""A browser loads the whole page at once, which has about a kilobyte per cell."""
MOST_PAGE_BYTES = 50 * 1000 * 1000
"""A larger page is made again, with the beginnings of long texts."""
SHORTEST_TEXT = 64
SHOWN_TEXTS = ("raw_output", "parsed_output", "tool_call_details", "turns", "violation", "fault_message")


def _add_arguments(parser: argparse.ArgumentParser) -> None:
    add_run(parser)
    for add in called("arguments"):
        add(parser)
    parser.add_argument("--into", metavar="FILE", help=f"the page (RUN/{FILE})")
    parser.add_argument("--open", action="store_true", help="show the page in the browser")
    parser.add_argument(
        "--share", action="store_true", help=f"leave out prompts and replies (RUN/{SHARED_FILE})"
    )


def _run(arguments: argparse.Namespace) -> CommandResult:
    run = read_run(arguments)
    measured, named = held_by(arguments, run), getattr(arguments, "baseline", None)
    baseline = load_run(run_path(named, arguments.runs_dir)) if named else None
    summary = summary_of(measured, anew=bool(measured.held))
    into = Path(arguments.into or run.path / (SHARED_FILE if arguments.share else FILE))
    shown, notes = write_page(run, into, summary, baseline, has_texts=not arguments.share)
    if arguments.open and not webbrowser.open(into.resolve().as_uri()):
        notes = [*notes, f"no browser was found; open {into}"]
    n_bytes = into.stat().st_size
    cells, targets = counted(len(shown.cells), "cell"), counted(len(shown.summary.groups), "target")
    return CommandResult(
        lines=[f"{cells} on {targets}, {n_bytes / 1e6:.1f} MB", f"wrote {into}"],
        data={
            "run": run.name,
            "baseline": baseline.name if baseline else None,
            "into": str(into),
            "n_cells": len(shown.cells),
            "n_targets": len(shown.summary.groups),
            "n_bytes": n_bytes,
            "notes": notes,
        },
        warnings=notes,
    )


def write_page(
    run: StoredRun,
    into: Path,
    summary: Summary,
    baseline: StoredRun | None = None,
    *,
    has_texts: bool = True,
) -> tuple[ShownRun, list[str]]:
    """Write the page of a run, with the notes of an older page in its place; return notes on what it lacks.

    Raises:
        OpenClawError: the run has too many cells, or another file is there.
        OSError: the file cannot be written.
    """
    most, lacks = MAX_ROW_BYTES, run.shortcomings
    rows = [row for one in (run, baseline) if one for row in one.rows.values()]
    if sum(row.n_bytes for row in rows) > MOST_PAGE_BYTES:
        most = max(SHORTEST_TEXT, MOST_PAGE_BYTES // len(rows) // 4)
    while True:
        shown = show_run(run, summary, baseline, most)
        shown = replace(shown, notes=_earlier_notes(into)) if has_texts else _without_texts(shown)
        page = render_page(shown)
        if len(page.encode()) <= MOST_PAGE_BYTES or most <= SHORTEST_TEXT:
            break
        most //= 4
    if most < MAX_ROW_BYTES:
        lacks = [*lacks, f"the page would be too large, so it cuts texts after {most:,} characters"]
    write_over_ours(into, page, FIRST_WORDS, "page")
    return shown, lacks


def _earlier_notes(page: Path) -> list[tuple[str, str]]:
    try:
        with open_file(page) as file:
            found = re.search(b'class="notes">([^<]*)<', file.read(2 * MOST_PAGE_BYTES))
        notes = [(str(cell), str(text)) for cell, text in parse_json(found[1])] if found else []
    except (OpenClawError, OSError, ValueError, TypeError):
        return []
    return notes


def _without_texts(shown: ShownRun) -> ShownRun:
    """Return a run without the texts of suites, models and servers, but with names of prompts and tools."""
    summary = shown.summary
    return replace(
        shown,
        summary=replace(
            summary,
            groups=[replace(group, reasons={}) for group in summary.groups],
            missed_by_all=[replace(one, violation=None) for one in summary.missed_by_all],
            added=(),
        ),
        cells=[
            replace(
                cell,
                record=_bare(cell.record),
                before=_bare(cell.before) if cell.before else None,
            )
            for cell in shown.cells
        ],
        prompts=[
            {name: one.get(name) for name in ("suite", "id", "name", "category")} for one in shown.prompts
        ],
        has_texts=False,
    )


def _bare(record: Record) -> Record:
    gone = ("violation", "parsed_output", "fault_message", "finish_reason", "turns", "written_calls")
    calls: list[Any] = [
        {"id": None, "name": one["name"], "arguments": ""} for one in record.tool_call_details
    ]
    bare: JsonObject = dict.fromkeys((*gone, "known_failure")) | {"raw_output": "", "extra": {}}
    return replace(record, **bare, tool_call_details=tuple(calls))


def _with_short_texts(record: Record, most: int) -> Record:
    def shorten(text: str) -> str:
        return text if len(text) <= most else f"{text[:most]}… [{len(text) - most:,} more characters]"

    return replace(record, **{name: map_texts(getattr(record, name), shorten) for name in SHOWN_TEXTS})


def show_run(
    run: StoredRun,
    summary: Summary,
    baseline: StoredRun | None = None,
    most_chars: int = MAX_ROW_BYTES,
) -> ShownRun:
    """Return the run with its cells, next to the same cells of an older run, and its figures.

    Texts of a row that are longer than `most_chars` are cut, and say so.

    Raises:
        OpenClawError: the run has too many cells.
    """
    if len(run.rows) > MOST_CELLS:
        raise OpenClawError(
            f"{run.name} has {len(run.rows):,} cells, a page at most {MOST_CELLS:,}; use export"
        )
    prompts = {(record.suite, record.prompt_id) for record in run.records}
    before = baseline.rows if baseline else {}
    tools = {key: offered_tools(definition) for key, definition in run.prompts.items()}

    def cell(row: StoredRow) -> Shown:
        record, older = _with_short_texts(row.whole, most_chars), before.get(row.record.key)
        known = tools.get((record.suite, record.prompt_id))
        earlier = _with_short_texts(older.whole, most_chars) if older else None
        return Shown(record=record, tools=known, before=earlier)

    return ShownRun(
        summary=summary,
        cells=[cell(row) for row in run.rows.values()],
        prompts=[definition for key, definition in run.prompts.items() if key in prompts],
        baseline=baseline.run_id if baseline else None,
    )


COMMANDS = (CliCommand(name="report", help=__doc__, add_arguments=_add_arguments, run=_run),)


# --- the part in a session --------------------------------------------------------------------------


class PageOfSession(Watcher):
    """Writes the page at the end of a session.

    Args:
        start: the folder to which the page's path is relative, if the page is in it.
    """

    def __init__(self, start: Path) -> None:
        self._start = start

    def written(self, run: Path) -> Iterator[SummaryFinding]:
        """Write the page, and say where it is."""
        page = run / FILE
        try:
            stored = load_run(run, even_active=True)
            write_page(stored, page, summary_of(stored))
        except (OpenClawError, OSError) as error:
            yield SummaryFinding(label="no page", text=str(error))
        else:
            is_near = page.is_relative_to(self._start)
            yield SummaryFinding(label="page", text=str(page.relative_to(self._start) if is_near else page))


def _join(owner: Owner, config: Any) -> None:
    settings: Any = owner.settings
    if settings.report:
        owner.watchers.append(PageOfSession(config.invocation_params.dir))


PART = Part(
    keys={Settings: {"report": PartKey(bool, default=False)}},
    join=_join,
)
