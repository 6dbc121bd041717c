"""Export a run's rows as CSV: to a file, or to stdout.

One line per cell, its last row; one column per field of a row, then any others
(x_...). Null is empty; lists and objects are JSON. UTF-8, lines end with CR LF.

A model's answer is foreign text, and a spreadsheet computes what looks like a
formula: a text that begins with = + - @ (also after blanks), a tab, a line end
or a ' is prefixed with '. Remove one leading ' to restore the text, or use
--exact if a program reads the file. Numbers are never changed.

Example:
  pytest-openclaw export last --into rows.csv
  pytest-openclaw export last --failed --target "*qwen*"
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from pytest_openclaw.commands.choosing import add_filters, is_chosen
from pytest_openclaw.commands.result import CommandResult, add_run, run_path
from pytest_openclaw.core.errors import OpenClawError
from pytest_openclaw.core.text import counted

if TYPE_CHECKING:
    import argparse
    from collections.abc import Iterator, Sequence

    from pytest_openclaw.core.json_types import JsonObject
    from pytest_openclaw.types.targets import CellKey


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of `export`."""
    add_run(parser)
    parser.add_argument(
        "--into", type=Path, metavar="FILE", help="a new file; without it, stdout gets the rows"
    )
    parser.add_argument("--exact", action="store_true", help="leave texts as they are: no ' before formulas")
    add_filters(parser)


def run(arguments: argparse.Namespace) -> CommandResult:
    """Write the rows."""
    from pytest_openclaw.core.files import is_there
    from pytest_openclaw.reports.csv_rows import render_csv

    path = run_path(arguments.run, arguments.runs_dir)
    if arguments.into and is_there(arguments.into):
        raise OpenClawError(f"{arguments.into} exists already; name a file that does not")
    lines, columns, torn = _chosen(path, arguments)
    warnings = [f"{path}: the last line was torn when the run was killed, and is left out"] if torn else []
    data: JsonObject = {"run": str(path), "into": None, "n_rows": len(lines), "columns": columns}
    if arguments.json and not arguments.into:
        return CommandResult(lines=[], data={**data, "rows": [*_rows(path, lines)]}, warnings=warnings)
    text = render_csv(_rows(path, lines), columns, guarded=not arguments.exact)
    if not arguments.into:
        return CommandResult(lines=[], data=data, warnings=warnings, raw=text)
    _write(arguments.into, text)
    line = f"wrote {counted(len(lines), 'row')} of {path} into {arguments.into}"
    return CommandResult(lines=[line], data={**data, "into": str(arguments.into)}, warnings=warnings)


def _chosen(path: Path, arguments: argparse.Namespace) -> tuple[list[int], list[str], bool]:
    """Return the line numbers of each cell's last row (from 0), the columns, whether the last line is torn.

    The rows are read twice, so that they are never all in memory.
    """
    from pytest_openclaw.recording.run_directory import RESULTS
    from pytest_openclaw.stored.reading import StoredRow, load_config, read_rows
    from pytest_openclaw.types.rows import to_row

    load_config(path)  # an error if it is not a run
    latest: dict[CellKey, int] = {}
    columns: dict[str, None] = {}
    extra: set[str] = set()
    torn = False
    for number, found in enumerate(read_rows(path / RESULTS)):
        if not isinstance(found, StoredRow):
            torn = True
            continue
        record = found.record
        latest.pop(record.key, None)
        if is_chosen(record, arguments):
            latest[record.key] = number
            extra.update(record.extra)
        columns = columns or dict.fromkeys(key for key in to_row(record) if key not in record.extra)
    return sorted(latest.values()), [*columns, *sorted(extra)], torn


def _rows(path: Path, lines: Sequence[int]) -> Iterator[JsonObject]:
    from pytest_openclaw.recording.run_directory import RESULTS
    from pytest_openclaw.stored.reading import StoredRow, read_rows
    from pytest_openclaw.types.rows import to_row

    wanted = set(lines)
    for number, found in enumerate(read_rows(path / RESULTS)):
        if number in wanted and isinstance(found, StoredRow):
            yield to_row(found.record)


def _write(into: Path, text: Iterator[str]) -> None:
    """Write the whole file, or nothing.

    Raises:
        OSError: it cannot be written.
    """
    from pytest_openclaw.core.files import replacing

    with replacing(into) as file:
        file.writelines(part.encode() for part in text)
