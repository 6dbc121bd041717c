"""Export a run's rows as CSV.

Each cell is a line with its last row. The columns are the fields of a row, then
added keys (x_...). Null is empty; lists and objects are JSON. The text is
UTF-8, and lines end with CR LF.

A model's answer is untrusted, and a spreadsheet computes text that looks like a
formula. So a text that begins with = + - @ (also after blanks), a tab, a
line end or a ' is prefixed with '. Numbers are never changed.

Example:
  pytest-openclaw export last --into rows.csv
  pytest-openclaw export last --failed --target "*qwen*"
"""

from __future__ import annotations

import csv
import io
import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pytest_openclaw.cli.result import CliCommand, CommandResult, add_filters, add_run, is_chosen, read_run
from pytest_openclaw.util.errors import OpenClawError
from pytest_openclaw.util.files import is_there, parse_json, replacing
from pytest_openclaw.util.text import UNSEEN, counted, valid_text
from pytest_openclaw.values.prompts import part_keys
from pytest_openclaw.values.rows import ROW_KEYS

if TYPE_CHECKING:
    import argparse

# The beginning of a formula in a spreadsheet, also in full-width forms, and after blanks and invisible
# characters; and our own prefix ', so that removing one restores the text.
_FORMULA = re.compile(rf"[\s{UNSEEN}]*[=+\-@\uff1d\uff0b\uff0d\uff20]|[\t\r\n']")


def _add_arguments(parser: argparse.ArgumentParser) -> None:
    add_run(parser)
    parser.add_argument("--into", type=Path, metavar="FILE", help="a new file (stdout)")
    add_filters(parser)


def _run(arguments: argparse.Namespace) -> CommandResult:
    into: Path | None = arguments.into
    if into and is_there(into):
        raise OpenClawError(f"{into} exists already; name a file that does not")
    run = read_run(arguments, even_active=True)
    chosen = [row for row in run.rows.values() if is_chosen(row.record, arguments)]
    names = [*ROW_KEYS, *part_keys(), *sorted({key for row in chosen for key in row.whole.extra})]
    # Read line by line: the texts of a large run do not fit into memory.
    text = render_csv((parse_json(row.line) for row in chosen), names)
    data = {"run": run.name, "into": str(into) if into else None, "n_rows": len(chosen), "columns": names}
    if into is None:
        return CommandResult(lines=[], data=data, warnings=run.shortcomings, raw=text)
    with replacing(into) as file:
        file.writelines(line.encode() for line in text)
    line = f"wrote {counted(len(chosen), 'row')} of {run.name} into {into}"
    return CommandResult(lines=[line], data=data, warnings=run.shortcomings)


def render_csv(rows: Iterable[Mapping[str, Any]], columns: Sequence[str]) -> Iterator[str]:
    """Yield a heading and the rows, each with its line end (CR LF, as in RFC 4180)."""
    buffer = io.StringIO()
    writer = csv.writer(buffer, lineterminator="\r\n")
    writer.writerow(columns)
    for row in rows:
        yield buffer.getvalue()
        buffer.seek(0)
        buffer.truncate()
        writer.writerow(_flat(row.get(name)) for name in columns)
    yield buffer.getvalue()


def _flat(value: Any) -> str:
    if value is None:
        return ""
    if not isinstance(value, str):
        return json.dumps(value, ensure_ascii=False)
    text = valid_text(value)
    return f"'{text}" if _FORMULA.match(text) else text


COMMANDS = (CliCommand(name="export", help=__doc__, add_arguments=_add_arguments, run=_run),)
