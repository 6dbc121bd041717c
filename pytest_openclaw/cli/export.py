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

import csv
import io
import json
import re
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pytest_openclaw.cli.result import CommandResult, add_filters, add_run, is_chosen, run_path
from pytest_openclaw.util.errors import OpenClawError
from pytest_openclaw.util.text import UNSEEN, counted, valid_text

if TYPE_CHECKING:
    import argparse
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from pytest_openclaw.util.json_types import JsonObject
    from pytest_openclaw.values.requests import Target


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
        from pytest_openclaw.runs.directory import RESULTS
        from pytest_openclaw.util.files import parse_json, read_lines

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
    from pytest_openclaw.util.files import is_there

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
    from pytest_openclaw.runs.directory import RESULTS
    from pytest_openclaw.runs.reading import StoredRow, load_config, read_rows
    from pytest_openclaw.values.requests import CellKey
    from pytest_openclaw.values.rows import to_row

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
    from pytest_openclaw.util.files import replacing

    with replacing(into) as file:
        text = render_csv(chosen.rows, chosen.columns, guarded=not arguments.exact)
        file.writelines(part.encode() for part in text)


# What a spreadsheet takes for the beginning of a formula, in their full-width forms too, also behind blanks
# and characters that it does not show; and our own guard, so that it can be taken off again.
_FORMULA = re.compile(rf"[\s{UNSEEN}]*[=+\-@\uff1d\uff0b\uff0d\uff20]|[\t\r\n']")
GUARD = "'"
# `json.dumps` makes a new encoder for each value.
_encode = json.JSONEncoder(ensure_ascii=False).encode


def render_csv(
    rows: Iterable[Mapping[str, Any]], columns: Sequence[str], *, guarded: bool = True
) -> Iterator[str]:
    """Yield a heading and the rows, each with its line end (CR LF, as RFC 4180 wants it).

    Args:
        rows: as in `results.jsonl`; what one lacks is empty, as null is.
        columns: their keys, in this order.
        guarded: put a `'` before a text that a spreadsheet would take for a formula, or that begins with one;
            without a leading `'` every text is what it was.

    """
    buffer = io.StringIO()
    writer = csv.writer(buffer, lineterminator="\r\n")
    for values in _lines(rows, columns, guarded=guarded):
        writer.writerow(values)
        yield buffer.getvalue()
        buffer.seek(0)
        buffer.truncate()


def _lines(
    rows: Iterable[Mapping[str, Any]], columns: Sequence[str], *, guarded: bool
) -> Iterator[list[str]]:
    yield [guard(name) if guarded else name for name in columns]
    for row in rows:
        # Two of three fields of a row are null: a call for each of them would take as long as the others.
        yield ["" if (value := row.get(name)) is None else flat(value, guarded=guarded) for name in columns]


def flat(value: Any, *, guarded: bool = True) -> str:
    """Return a JSON value as the text of one cell: null is empty, lists and objects are JSON."""
    if value is None:
        return ""
    if isinstance(value, str):
        text = valid_text(value)
        return guard(text) if guarded else text
    # As JSON writes them, at a tenth of an encoder's time.
    if type(value) is bool:
        return "true" if value else "false"
    if type(value) is int:
        return str(value)
    return _encode(value)


def guard(text: str) -> str:
    """Return the text so that no spreadsheet computes it."""
    return GUARD + text if _FORMULA.match(text) else text
