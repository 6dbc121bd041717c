"""Rows as CSV for spreadsheets: flat columns, nested values as JSON, and no text that becomes a formula."""

from __future__ import annotations

import csv
import io
import json
import re
from typing import TYPE_CHECKING, Any

from pytest_openclaw.core.text import UNSEEN, valid_text

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

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
