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
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pytest_openclaw.cli.result import Command, CommandResult, add_filters, add_run, is_chosen, read_run
from pytest_openclaw.util.errors import OpenClawError
from pytest_openclaw.util.files import is_there, parse_json, replacing
from pytest_openclaw.util.text import UNSEEN, counted, valid_text
from pytest_openclaw.values.rows import to_row

if TYPE_CHECKING:
    import argparse
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from pytest_openclaw.util.files import JsonObject


def _add_arguments(parser: argparse.ArgumentParser) -> None:
    add_run(parser)
    parser.add_argument(
        "--into", type=Path, metavar="FILE", help="a new file; without it, stdout gets the rows"
    )
    parser.add_argument("--exact", action="store_true", help="leave texts as they are: no ' before formulas")
    add_filters(parser)


def _run(arguments: argparse.Namespace) -> CommandResult:
    into: Path | None = arguments.into
    if into and is_there(into):
        raise OpenClawError(f"{into} exists already; name a file that does not")
    run = read_run(arguments, even_active=True)
    torn = f"{run.name}: the last line was torn when the run was killed, and is left out"
    warnings = [torn] if run.is_torn else []
    chosen = [row for row in run.rows.values() if is_chosen(row.record, arguments)]
    columns: dict[str, None] = {}
    extra: set[str] = set()
    for row in chosen:
        record = row.whole
        columns = columns or dict.fromkeys(key for key in to_row(record) if key not in record.extra)
        extra.update(record.extra)
    names = [*columns, *sorted(extra)]
    # Read line by line: the texts of a large run do not fit into memory.
    rows: Iterator[JsonObject] = (parse_json(row.line) for row in chosen)
    text = render_csv(rows, names, guarded=not arguments.exact)
    data: JsonObject = {"run": run.name, "into": None, "n_rows": len(chosen), "columns": names}
    if into:
        with replacing(into) as file:
            file.writelines(line.encode() for line in text)
        line = f"wrote {counted(len(chosen), 'row')} of {run.name} into {into}"
        return CommandResult(lines=[line], data={**data, "into": str(into)}, warnings=warnings)
    if arguments.json:
        return CommandResult(lines=[], data={**data, "rows": [*rows]}, warnings=warnings)
    return CommandResult(lines=[], data=data, warnings=warnings, raw=text)


# What a spreadsheet takes for the beginning of a formula, in their full-width forms too, also behind blanks
# and characters that it does not show; and our own guard, so that it can be taken off again.
_FORMULA = re.compile(rf"[\s{UNSEEN}]*[=+\-@\uff1d\uff0b\uff0d\uff20]|[\t\r\n']")
GUARD = "'"


def render_csv(
    rows: Iterable[Mapping[str, Any]], columns: Sequence[str], *, guarded: bool = True
) -> Iterator[str]:
    """Yield a heading and the rows, each with its line end (CR LF, as RFC 4180 wants it).

    Args:
        rows: as in `results.jsonl`; a missing value is empty, as null is.
        columns: their keys, in this order.
        guarded: put a `'` before a text that a spreadsheet would take for a formula, or that begins with one;
            without a leading `'` every text is what it was.
    """
    buffer = io.StringIO()
    writer = csv.writer(buffer, lineterminator="\r\n")
    writer.writerow(_flat(name, guarded=guarded) for name in columns)
    yield buffer.getvalue()
    for row in rows:
        buffer.seek(0)
        buffer.truncate()
        writer.writerow(_flat(row.get(name), guarded=guarded) for name in columns)
        yield buffer.getvalue()


def _flat(value: Any, *, guarded: bool) -> str:
    """Return a JSON value as the text of one cell."""
    if value is None:
        return ""
    if not isinstance(value, str):
        return json.dumps(value, ensure_ascii=False)
    text = valid_text(value)
    return GUARD + text if guarded and _FORMULA.match(text) else text


COMMANDS = (Command(name="export", help=__doc__, add_arguments=_add_arguments, run=_run),)
