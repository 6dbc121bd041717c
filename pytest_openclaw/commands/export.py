"""Export a run's rows as CSV.

One line per cell, its last row; one column per field of a row, then any others
(x_...). Null is empty; lists and objects are JSON. UTF-8, lines end with
CR LF.

A model's answer is foreign text, and a spreadsheet computes what looks like a
formula: a text that begins with = + - @ (also after blanks), a tab, a line end
or a ' is prefixed with '. Remove one leading ' to restore the text, or use
--exact if a program reads the file. Numbers are never changed.

Example:
  pytest-openclaw export last --into rows.csv
  pytest-openclaw export last --failed --target "*qwen*"
"""

from __future__ import annotations

import sys
from dataclasses import dataclass
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
    from pytest_openclaw.types.targets import Target


@dataclass(frozen=True, kw_only=True)
class _Chosen:
    """The rows to export, which are read a second time, so that they are never all in memory.

    Attributes:
        lines: the numbers of each cell's last row, from 0.
        is_torn: whether the last line of the file is.
    """

    path: Path
    lines: Sequence[int]
    columns: list[str]
    is_torn: bool

    @property
    def rows(self) -> Iterator[JsonObject]:
        """The rows as JSON, one in memory at a time."""
        from pytest_openclaw.core.files import parse_json, read_lines
        from pytest_openclaw.recording.run_directory import RESULTS

        wanted = set(self.lines)
        for number, line in enumerate(read_lines(self.path / RESULTS)):
            if number in wanted:
                yield parse_json(line)


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
    into: Path | None = arguments.into
    if into and is_there(into):
        raise OpenClawError(f"{into} exists already; name a file that does not")
    chosen = _choose(path, arguments)
    torn = f"{path}: the last line was torn when the run was killed, and is left out"
    warnings = [torn] if chosen.is_torn else []
    n_rows = len(chosen.lines)
    data: JsonObject = {"run": str(path), "into": None, "n_rows": n_rows, "columns": chosen.columns}
    if arguments.json and not into:
        return CommandResult(lines=[], data={**data, "rows": [*chosen.rows]}, warnings=warnings)
    if not into:
        text = render_csv(chosen.rows, chosen.columns, guarded=not arguments.exact)
        return CommandResult(lines=[], data=data, warnings=warnings, raw=text)
    _write(into, chosen, arguments)
    line = f"wrote {counted(n_rows, 'row')} of {path} into {into}"
    return CommandResult(lines=[line], data={**data, "into": str(into)}, warnings=warnings)


def _choose(path: Path, arguments: argparse.Namespace) -> _Chosen:
    from pytest_openclaw.recording.run_directory import RESULTS
    from pytest_openclaw.stored.reading import StoredRow, load_config, read_rows
    from pytest_openclaw.types.rows import to_row
    from pytest_openclaw.types.targets import CellKey

    load_config(path)  # an error if it is not a run
    latest: dict[CellKey, int] = {}
    targets: dict[Target, Target] = {}
    columns: dict[str, None] = {}
    extra: set[str] = set()
    is_torn = False
    for number, found in enumerate(read_rows(path / RESULTS)):
        if not isinstance(found, StoredRow):
            is_torn = True
            continue
        record = found.record
        target = targets.setdefault(record.target, record.target)
        # The names that many keys have in common are kept once.
        key = CellKey(sys.intern(record.suite), sys.intern(record.prompt_id), target, record.repeat)
        latest.pop(key, None)
        if is_chosen(record, arguments):
            latest[key] = number
            extra.update(record.extra)
        columns = columns or dict.fromkeys(key for key in to_row(record) if key not in record.extra)
    return _Chosen(
        path=path,
        lines=sorted(latest.values()),
        columns=[*columns, *sorted(extra)],
        is_torn=is_torn,
    )


def _write(into: Path, chosen: _Chosen, arguments: argparse.Namespace) -> None:
    """Write the whole file, or nothing.

    Raises:
        OSError: it cannot be written.
    """
    from pytest_openclaw.core.files import replacing
    from pytest_openclaw.reports.csv_rows import render_csv

    with replacing(into) as file:
        text = render_csv(chosen.rows, chosen.columns, guarded=not arguments.exact)
        file.writelines(part.encode() for part in text)
