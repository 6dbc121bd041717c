"""How much of a long result or file a model receives: OpenClaw 2026.9.6 with 64,000 tokens of context.

The release's limits grow with the model's context: below 100,000 tokens a result has 16,000 characters.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

MOST_RESULT_CHARS = 16_000
#: A result is cut twice: the characters it may have, and those of its end if the end is kept.
CUTS = ((32_000, 2000), (MOST_RESULT_CHARS, 4000))
MOST_PAGE_BYTES = 32_768
MOST_PAGE_LINES = 2000
MOST_PAGES = 4
_LEFT_OUT = "\n\n⚠️ [... middle content omitted — showing head and tail ...]\n\n"
_SHOWS_OUTCOME = re.compile(
    r"\b(?:error|exception|failed|fatal|traceback|panic|stack trace|errno|exit code"
    r"|total|summary|result|complete|finished|done)\b|\}\s*\Z",
    re.ASCII,
)


def cut_mark(chars: int) -> str:
    """Return what follows a result of which so many characters were cut off."""
    return f"[... {chars} more characters truncated; rerun with narrower args if needed]"


def cut_result(text: str) -> str:
    """Return a result as a model receives it: whole, its beginning, or its beginning and end."""
    for most, n_end in CUTS:
        if len(text) > most:
            text = _cut(text, most, n_end)
    return text


def _cut(text: str, most: int, n_end: int) -> str:
    room = most - len(cut_mark(len(text) - most))
    if _SHOWS_OUTCOME.search(text[-2000:].lower()):
        kept = _head(text[: room - n_end - len(_LEFT_OUT)]) + _LEFT_OUT + _tail(text[-n_end:])
    else:
        kept = _head(text[:room])
    # A larger number in the mark can need one more character.
    while len(kept) + len(mark := cut_mark(len(text) - len(kept))) > most:
        kept = kept[: most - len(mark)]
    return kept + mark


def _head(text: str) -> str:
    """Without its last, broken line, unless that is long."""
    end = text.rfind("\n")
    return text[:end] if end > len(text) * 0.8 else text


def _tail(text: str) -> str:
    """Without its first, broken line, unless that is long."""
    end = text.find("\n")
    return text[end + 1 :] if 0 <= end < len(text) * 0.2 else text


@dataclass(frozen=True)
class ReadFrom:
    """A place in a file: a line from 1, a character of it from 0, and how many lines are wanted from it."""

    line: int
    cursor: int = 0
    limit: int | None = None

    @property
    def mark(self) -> str:
        """What follows the part of a file that ends here."""
        cursor = f", cursor={self.cursor}" if self.cursor else ""
        limit = "" if self.limit is None else f", limit={self.limit}"
        at = f"offset={self.line}{cursor}{limit}"
        return f"\n\n[Read output capped at 32KB for this call. Use {at} to continue.]"


def read_part(lines: Sequence[str], end: str, place: ReadFrom) -> str:
    """Return the part of a file from a place on; up to four pages, if no number of lines is wanted.

    Args:
        lines: all lines of the file, without their ends.
        end: what follows the last line, a line end or nothing.
        place: a line that is there.
    """
    text, mark = "", ""
    for _ in range(MOST_PAGES):
        page, following = _page(lines, end, place)
        if place.limit is not None:
            return page + _limit_mark(lines, place) if following is None else page + following.mark
        joint = "\n" if text and page and not place.cursor else ""
        next_mark = following.mark if following else ""
        if text and not _fits(f"{text}{joint}{page}{next_mark}"):
            break
        text, mark = f"{text}{joint}{page}", next_mark
        if following is None:
            break
        place = following
    return text + mark


def _page(lines: Sequence[str], end: str, place: ReadFrom) -> tuple[str, ReadFrom | None]:
    """Return a page, and where the next one begins if it was cut."""
    last = len(lines) if place.limit is None else min(len(lines), place.line - 1 + place.limit)
    wanted = list(lines[place.line - 1 : last])
    wanted[0] = wanted[0][place.cursor :]
    text = "\n".join(wanted) + (end if last == len(lines) else "")
    if len(wanted) <= MOST_PAGE_LINES and _fits(text + _limit_mark(lines, place)):
        return text, None
    marks = (
        ReadFrom(place.line, place.cursor + len(wanted[0]), place.limit),
        ReadFrom(len(lines) + 1, 0, place.limit),
    )
    reserved = max(len(one.mark) for one in marks)
    room = min(MOST_RESULT_CHARS - reserved, len(_first_bytes(text, MOST_PAGE_BYTES - reserved)))
    if len(wanted[0]) > room:
        return wanted[0][:room], ReadFrom(place.line, place.cursor + room, place.limit)
    whole = text[:room].count("\n") + (room >= len(text) or text[room] == "\n")
    n = min(whole, MOST_PAGE_LINES, len(wanted))
    if n == len(wanted):
        return text[:room], None
    after = place.line + n
    return "\n".join(wanted[:n]), ReadFrom(after, 0, None if place.limit is None else last - after + 1)


def _limit_mark(lines: Sequence[str], place: ReadFrom) -> str:
    """What follows all lines that were wanted, if the file has more."""
    left = 0 if place.limit is None else len(lines) - (place.line - 1 + place.limit)
    if left <= 0:
        return ""
    more = "1 more line" if left == 1 else f"{left} more lines"
    return f"\n\n[{more} in file. Use offset={len(lines) - left + 1} to continue.]"


def _fits(text: str) -> bool:
    return len(text) <= MOST_RESULT_CHARS and len(text.encode()) <= MOST_PAGE_BYTES


def _first_bytes(text: str, most: int) -> str:
    return text.encode()[:most].decode(errors="ignore")
