"""Tables for a terminal: 80 columns of it, whatever script a name is written in."""

from __future__ import annotations

from itertools import chain, repeat
from typing import TYPE_CHECKING

from pytest_openclaw.reports.numbers import columns, one_line

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Sequence

WIDTH = 80
LEAST_NAME = 24
"""Columns that a name keeps, if it has as many, before the next column is left out."""


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


def render_targets(
    rows: Sequence[Sequence[str]],
    on_the_left: Collection[str],
    leave_out_first: Sequence[str],
    width: int,
    *,
    longest: int = 0,
) -> Iterator[str]:
    """Yield a table of names and figures; columns that do not fit beside the names are left out.

    Args:
        rows: the first one has the headers, the first column the names.
        on_the_left: headers of columns whose texts begin where they do; the names do so too.
        leave_out_first: headers, in the order in which they are left out.
        width: of the terminal.
        longest: the width of the longest name, if it is in no row.
    """
    longest = max(longest, *(columns(row[0]) for row in rows))
    kept = _kept_columns(rows, leave_out_first, width, min(longest, LEAST_NAME))
    return render_columns(
        [[row[n] for n in kept] for row in rows],
        [n == 0 or rows[0][n] in on_the_left for n in kept],
        most=longest,
        width=width,
    )


def _kept_columns(
    rows: Sequence[Sequence[str]], leave_out_first: Sequence[str], width: int, name_width: int
) -> list[int]:
    """Return which columns fit beside the names; a column without a text is left out."""
    heads = rows[0]
    kept = [n for n in range(len(heads)) if any(row[n] for row in rows[1:])]
    for head in leave_out_first:
        others = sum(1 + max(columns(row[n]) for row in rows) for n in kept if n)
        if name_width + others <= width:
            break
        kept = [n for n in kept if heads[n] != head]
    return kept


def labeled(label: str, lines: Iterable[str]) -> Iterator[tuple[str, str]]:
    """Yield each line with what is beside it: the first with the label, the others with none."""
    return zip(chain([label], repeat("")), lines, strict=False)


def padded(text: str, width: int, *, left: bool) -> str:
    """Return the text with blanks behind it, or before it."""
    blanks = " " * (width - columns(text))
    return text + blanks if left else blanks + text


def _widths(rows: Sequence[Sequence[str]]) -> list[int]:
    return [max(map(columns, column)) for column in zip(*rows, strict=True)]
