"""Markdown for a comment on GitHub: escapes foreign text and limits the page's size."""

from __future__ import annotations

import string
from typing import TYPE_CHECKING

from pytest_openclaw.reports.numbers import DASH, one_line

if TYPE_CHECKING:
    from collections.abc import Sequence

LONGEST = 60_000
"""Bytes; GitHub refuses a comment of more than 65,536 characters."""
_ROOM_FOR_THE_REST = 100
_AS_THEY_ARE = frozenset(string.ascii_letters + string.digits + " ,-()/%+=;")


def code(text: str, width: int = 160) -> str:
    """Return a foreign text as code on one line.

    Within `<code>` GitHub mentions no user and links no issue, commit or address. Whatever has a meaning in
    Markdown or HTML is a numeric character reference, which has none: no table bar, no tag, no end of code.
    """
    line = one_line(text, width)
    spelled = (
        character if character in _AS_THEY_ARE or not character.isascii() else f"&#{ord(character)};"
        for character in line
    )
    return f"<code>{''.join(spelled)}</code>" if line.strip() else DASH


class Page:
    """A page of limited size; parts that no longer fit are left out."""

    def __init__(self, *lines: str) -> None:
        self._lines = [*lines]
        self._left = LONGEST - _bytes(lines)

    def add(self, lines: Sequence[str], *, head: Sequence[str] = (), foot: Sequence[str] = ()) -> None:
        """Add a block of lines as far as there is room, and say how many are left out.

        Args:
            lines: of one list or table; without any nothing is added.
            head: before them, such as a table's first two rows.
            foot: after them, such as the end of a fold.
        """
        room = self._left - _bytes([*head, *foot]) - _ROOM_FOR_THE_REST
        shown: list[str] = []
        for line in lines:
            room -= _bytes([line])
            if room < 0:
                break
            shown.append(line)
        if not shown:
            return
        rest = len(lines) - len(shown)
        block = ["", *head, *shown, *(["", f"… and {rest} more, in summary.md"] if rest else []), *foot]
        self._lines += block
        self._left -= _bytes(block)

    def fold(self, title: str, lines: Sequence[str], *, head: Sequence[str] = ()) -> None:
        """Add lines that a click unfolds; the title is a text of our own."""
        opening = [f"<details><summary>{title}</summary>", ""]
        self.add(lines, head=[*opening, *head], foot=["", "</details>"])

    def table(self, headers: Sequence[str], rows: Sequence[Sequence[str]], most: int, what: str) -> None:
        """Add a table, whose rows after the first so many are folded away."""
        head = [_row(headers), _row(["---"] * len(headers))]
        lines = [_row(row) for row in rows]
        self.add(lines[:most], head=head)
        self.fold(f"{len(lines) - most} more {what}", lines[most:], head=head)

    @property
    def text(self) -> str:
        """The whole page."""
        return "\n".join(self._lines) + "\n"


def _row(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cells)} |"


def _bytes(lines: Sequence[str]) -> int:
    return sum(len(line.encode()) + 1 for line in lines)
