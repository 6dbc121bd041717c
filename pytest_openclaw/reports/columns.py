"""Tables for a terminal: 80 columns of it, whatever script a name is written in."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pytest_openclaw.reports.numbers import columns, one_line

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

WIDTH = 80


def render_columns(
    rows: Sequence[Sequence[str]],
    on_the_left: Sequence[bool],
    *,
    most: int,
    shrinks: int = 0,
    width: int = WIDTH,
) -> Iterator[str]:
    """Yield the rows as aligned lines, no wider than the terminal if shortening one column is enough.

    Args:
        rows: printable texts; those of the column that shrinks may be anything.
        on_the_left: of each column, whether its texts begin where it does; else they end where it does.
        most: the width of the column that shrinks is never more.
        shrinks: which one does, by leaving the middle out.
        width: of the terminal.
    """
    others = sum(width + 1 for n, width in enumerate(_widths(rows)) if n != shrinks)
    room = max(1, min(most, width - others))
    fitted = [[one_line(text, room) if n == shrinks else text for n, text in enumerate(row)] for row in rows]
    # Not by tabulate, which counts a wide character as one column.
    widths = _widths(fitted)
    gap = "  " if sum(widths) + 2 * (len(widths) - 1) <= width else " "
    for row in fitted:
        cells = zip(row, widths, on_the_left, strict=True)
        yield gap.join(padded(text, width, left=left) for text, width, left in cells).rstrip()


def kept_columns(
    rows: Sequence[Sequence[str]], leave_out_first: Sequence[str], width: int, name_width: int
) -> list[int]:
    """Return which columns fit beside those of the names, the first; a column without a text is left out.

    Args:
        rows: the first one has the headers.
        leave_out_first: headers, in the order in which they are left out.
        width: of the terminal.
        name_width: columns that the names need.
    """
    heads = rows[0]
    kept = [n for n in range(len(heads)) if any(row[n] for row in rows[1:])]
    for head in leave_out_first:
        others = sum(1 + max(columns(row[n]) for row in rows) for n in kept if n)
        if name_width + others <= width:
            break
        kept = [n for n in kept if heads[n] != head]
    return kept


def padded(text: str, width: int, *, left: bool) -> str:
    """Return the text with blanks behind it, or before it."""
    blanks = " " * (width - columns(text))
    return text + blanks if left else blanks + text


def _widths(rows: Sequence[Sequence[str]]) -> list[int]:
    return [max(map(columns, column)) for column in zip(*rows, strict=True)]
