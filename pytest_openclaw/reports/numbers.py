"""Figures, words and untrusted texts in reports; a dash means no data, zero is a measurement."""

from __future__ import annotations

import re
import textwrap
import tomllib
import unicodedata
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from functools import cache
from importlib import resources
from typing import TYPE_CHECKING

from pytest_openclaw.util.text import printable

if TYPE_CHECKING:
    from pytest_openclaw.stats.intervals import Interval


DASH = "–"
WIDTH = 80
MOST_PER_COLUMN = 4
LONGEST_SENTENCE = 600
LEAST_TEXT, INDENT = 32, 4
"""The least columns of a text next to other columns, and its indent below them."""
NO_BREAK = "\N{NO-BREAK SPACE}"
_FIGURE = re.compile(r"(?<=\d) (?=(?:%|m?s|min|h|USD)(?!\w))|(?<=\bp) (?=\d)")


@cache
def words(table: str) -> Mapping[str, str]:
    """Return a table of `words.toml`."""
    text = resources.files("pytest_openclaw.reports").joinpath("words.toml").read_text("utf-8")
    found: Mapping[str, str] = tomllib.loads(text)[table]
    return found


def render_ms(milliseconds: float | None) -> str:
    """Return `81 ms`, `1.2 s` or `104 s`."""
    if milliseconds is None:
        return DASH
    if milliseconds < 999.5:
        return f"{milliseconds:.0f} ms"
    seconds = milliseconds / 1000
    return f"{seconds:.1f} s" if seconds < 99.95 else f"{seconds:.0f} s"


def render_duration(seconds: float) -> str:
    """Return `12 s`, `3 min` or `2.5 h`: a time to wait."""
    if seconds < 99.5:
        return f"{seconds:.0f} s"
    minutes = seconds / 60
    return f"{minutes:.0f} min" if minutes < 99.5 else f"{minutes / 60:.1f} h"


def render_time(milliseconds: int, form: str) -> str:
    """Return a moment, in ms since the epoch, in UTC and in a form of `strftime`."""
    try:
        return datetime.fromtimestamp(milliseconds / 1000, UTC).strftime(form)
    except (ValueError, OverflowError, OSError):  # not a moment of a calendar
        return DASH


def render_rate(rate: float | None) -> str:
    """Return a rate of 0 to 1 as `97 %`; cut, not rounded, so that 100 % means all, and 0 % none."""
    return DASH if rate is None else f"{_percent(rate)} %"


def render_share(n_success: int, n: int) -> str:
    """Return `7/8`, or a dash if there are none."""
    return f"{n_success}/{n}" if n else DASH


def render_interval(interval: Interval | None) -> str:
    """Return `13-41 %`, cut like a rate, so that rounding never lifts an end to a threshold."""
    if interval is None:
        return DASH
    return f"{_percent(interval.low)}-{_percent(interval.high)} %"


def _percent(share: float) -> int:
    return max(1, int(share * 100 + 1e-9)) if share > 0 else 0


def render_count(value: float | None) -> str:
    """Return a number without decimals."""
    return DASH if value is None else f"{value:.0f}"


def render_tokens(tokens: int | None) -> str:
    """Return `16k`, or the full number if it is not a multiple of 1,000."""
    if not tokens:
        return DASH
    return f"{tokens // 1000}k" if not tokens % 1000 else f"{tokens}"


def render_tier(tier: int | None, conclusive: bool | None) -> str:
    """Return `1`, or `1?` if the evidence does not settle it."""
    return DASH if tier is None else f"{tier}{'' if conclusive else '?'}"


def shorten(text: str, width: int) -> str:
    """Cut the middle out of a text that is longer than `width` characters."""
    if len(text) <= width:
        return text
    head = width // 2
    return f"{text[:head]}…{text[len(text) - (width - 1 - head) :]}"


def columns(text: str) -> int:
    """Return the width of a printable text: a wide character takes two columns, a combining one none."""
    return len(text) if text.isascii() else sum(map(_columns_of, text))


def _columns_of(character: str) -> int:
    if unicodedata.category(character) in {"Mn", "Me"}:
        return 0
    return 2 if unicodedata.east_asian_width(character) in {"W", "F"} else 1


def one_line(text: str, width: int) -> str:
    """Return an untrusted text on one printable line; above `width` columns, its middle is left out."""
    # Characters are bounded too, because any number of combining ones takes no column.
    line = shorten(printable(" ".join(text.split())), MOST_PER_COLUMN * width)
    kept = len(line) if columns(line) <= width else width
    while columns(shorten(line, kept)) > width:
        kept -= 1
    return shorten(line, kept)


def lines_of(text: str, width: int, indent: str = "") -> list[str]:
    """Return an untrusted text as printable lines of at most `width` columns, broken between words.

    `indent` is before all lines but the first one.
    """
    room = width - len(indent)
    # Lines are not broken at hyphens, so that options can be copied, nor between a figure and its unit.
    whole = _FIGURE.sub(NO_BREAK, one_line(text, LONGEST_SENTENCE))
    first, *rest = textwrap.wrap(whole, room, break_on_hyphens=False) or [""]
    return [one_line(first, width), *(f"{indent}{one_line(line, room)}" for line in rest)]


def wrapped_rows(rows: Sequence[Sequence[str]], width: int) -> Iterator[str]:
    """Yield rows in columns; the last text is wrapped, below the others if there is little room.

    A row of one text is a heading for those below it.
    """
    *sizes, _ = (max(map(columns, column)) for column in zip(*filter(lambda row: row[1:], rows), strict=True))
    start = sum(sizes) + 2 * len(sizes)
    is_below = width - start < LEAST_TEXT
    for *cells, text in rows:
        if not cells:
            yield one_line(text, width)
            continue
        line = "".join(f"{padded(cell, size, left=True)}  " for cell, size in zip(cells, sizes, strict=True))
        first, *rest = lines_of(text, width - (INDENT if is_below else start))
        if is_below:
            yield line.rstrip()
            yield from (f"{'':{INDENT}}{one}" for one in (first, *rest) if one)
        else:
            yield f"{line}{first}".rstrip()
            yield from (f"{'':{start}}{one}" for one in rest)


def render_usd(usd: float | None) -> str:
    """Return `12.40 USD`, or three significant digits: `0.00123 USD`."""
    if usd is None:
        return DASH
    if usd == 0 or usd >= 1:
        return f"{usd:.2f} USD"
    # Never as 1e-05.
    figures = f"{usd:.12f}".rstrip("0")
    zeros = len(figures) - len(figures[2:].lstrip("0")) - 2
    return f"{usd:.{max(2, zeros + 3)}f}".rstrip("0").ljust(4, "0") + " USD"


def padded(text: str, width: int, *, left: bool) -> str:
    """Return the text with blanks behind it, or before it."""
    blanks = " " * (width - columns(text))
    return text + blanks if left else blanks + text
