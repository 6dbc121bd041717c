"""What reports are made of, and how a terminal, Markdown and an HTML page show it.

A fact is worded once, as a block. A page chooses blocks and their order; each way of showing escapes foreign
text as it needs: Markdown on GitHub must not link or mention, a terminal must not obey.
"""

from __future__ import annotations

import re
import string
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING

from pytest_openclaw.reports.numbers import (
    DASH,
    LONGEST_SENTENCE,
    columns,
    labeled,
    lines_of,
    one_line,
    padded,
    whole_lines_of,
)
from pytest_openclaw.util.text import map_texts, printable

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from pytest_openclaw.util.files import JsonObject


@dataclass(frozen=True, kw_only=True)
class Sentence:
    """A paragraph."""

    text: str


@dataclass(frozen=True, kw_only=True)
class Table:
    """A table; the first column names its rows.

    Attributes:
        head: the columns' names.
        rows: their cells. A row of two cells has a name and a text in place of figures.
        words: names of columns whose texts begin on the left, in addition to the first one.
        caption: what it shows.
        below: a line under each row, for a terminal.
        drop: names of columns that a narrow terminal leaves out, the first one first.
        shrinks: the column that a narrow terminal shortens.
    """

    head: Sequence[str]
    rows: Sequence[Sequence[str]]
    words: Sequence[str] = ()
    caption: str = ""
    below: Sequence[str] = ()
    drop: Sequence[str] = ()
    shrinks: int = 0

    def is_left(self, column: int) -> bool:
        """Whether a column's texts begin on the left."""
        return column == 0 or self.head[column] in self.words

    @property
    def kept(self) -> list[int]:
        """The columns that have a text in some row."""
        rows = [row for row in self.rows if len(row) == len(self.head)] or [self.head]
        return [n for n in range(len(self.head)) if any(row[n] for row in rows)]


@dataclass(frozen=True, kw_only=True)
class Finding:
    """A fact under a label.

    Attributes:
        target: whose it is; empty if it is about the run, or names its target.
        advice: what to do; a terminal prints it once for all targets that share it.
    """

    label: str
    text: str
    target: str = ""
    advice: str = ""

    @property
    def whole(self) -> str:
        """The text with the advice."""
        return f"{self.text}; {self.advice}" if self.advice else self.text


@dataclass(frozen=True, kw_only=True)
class Findings:
    """A list of facts."""

    entries: Sequence[Finding]


@dataclass(frozen=True, kw_only=True)
class Answer:
    """The recommendation for a target.

    Attributes:
        kind: of the recommendation.
        tier: in words; empty without one.
        further: what would improve it; may be empty.
    """

    target: str
    kind: str
    sentence: str
    tier: str = ""
    further: str = ""


@dataclass(frozen=True, kw_only=True)
class Answers:
    """The recommendations of a run."""

    entries: Sequence[Answer]


@dataclass(frozen=True)
class ChartPoint:
    """A target's value with its interval, as shares of the chart's width, and in words."""

    target: str
    value: float
    low: float
    high: float
    shown: str


@dataclass(frozen=True, kw_only=True)
class Chart:
    """A chart of points with intervals; all places are shares of its width. Only an HTML page draws it.

    Attributes:
        description: what it shows, for readers who cannot see it; a table of its section has the figures.
        ticks: labels of the axis.
        marks: where dashed lines are.
        zones: names above the points.
    """

    title: str
    description: str
    points: Sequence[ChartPoint]
    ticks: Sequence[tuple[float, str]]
    marks: Sequence[float] = ()
    zones: Sequence[tuple[float, str]] = ()


@dataclass(frozen=True, kw_only=True)
class Details:
    """A block that a click unfolds."""

    title: str
    block: Block


Block = Sentence | Table | Findings | Answers | Chart | Details


@dataclass(frozen=True, kw_only=True)
class Section:
    """Blocks under a title; it is left out if all of them are empty.

    Attributes:
        id: by which links reach it, and pages choose it.
        intro: a sentence under the title, which alone is not worth showing.
    """

    id: str
    title: str
    intro: str = ""
    blocks: Sequence[Block] = field(default_factory=list)

    @property
    def filled(self) -> list[Block]:
        """The blocks that are not empty."""
        return [block for block in self.blocks if not is_empty(block)]


def is_empty(block: Block) -> bool:
    """Whether there is nothing to show."""
    match block:
        case Details():
            return is_empty(block.block)
        case Sentence(text=content) | Table(rows=content):
            return not content
        case Findings(entries=content) | Answers(entries=content) | Chart(points=content):
            return not content


# --- HTML -------------------------------------------------------------------------------------------


def section_data(section: Section) -> JsonObject:
    """Return a section as the page's script takes it; the script escapes all texts."""
    blocks = [_block_data(block) for block in section.filled]
    return {"id": section.id, "title": section.title, "intro": section.intro, "blocks": blocks}


def _block_data(block: Block) -> JsonObject:
    if isinstance(block, Details):
        return {"kind": "details", "title": block.title, "block": _block_data(block.block)}
    data = map_texts(asdict(block), lambda text: one_line(text, LONGEST_SENTENCE))
    if isinstance(block, Table):
        data |= {"left": [*map(block.is_left, range(len(block.head)))], "kept": block.kept}
    return {**data, "kind": type(block).__name__.lower()}


# --- a terminal -------------------------------------------------------------------------------------

LABEL_WIDTH = 18
LEAST_NAME = 24
"""Columns that a name keeps, if it has as many, before the next column is left out."""


def table_lines(table: Table, width: int) -> Iterator[str]:
    """Yield a table's lines for a terminal, no wider than `width` if shortening one column is enough."""
    rows = [table.head, *(row for row in table.rows if len(row) > 2 or len(table.head) == 2)]
    texts = [row for row in table.rows if len(row) == 2 != len(table.head)]
    longest = max(columns(row[table.shrinks]) for row in (*rows, *texts))
    kept = _kept_columns(table, rows, width, min(longest, LEAST_NAME))
    others = sum(1 + _widest(rows, n) for n in kept if n != table.shrinks)
    room = max(1, min(longest, width - others))
    shown = [
        [one_line(row[n], room) if n == table.shrinks else printable(row[n]) for n in kept] for row in rows
    ]
    widths = [_widest(shown, n) for n in range(len(kept))]
    if texts and table.shrinks == 0:
        widths[0] = max(widths[0], min(room, longest))
    gap = "  " if sum(widths) + 2 * (len(widths) - 1) <= width else " "
    below = iter(["", *table.below])
    if len(rows) > 1:
        for row in shown:
            cells = zip(row, widths, kept, strict=True)
            yield gap.join(padded(cell, size, left=table.is_left(n)) for cell, size, n in cells).rstrip()
            if line := next(below, ""):
                while columns(line) > width - 2:
                    line = line.rpartition(", ")[0]
                yield f"  {line}"
    name_width = min(longest, max(LEAST_NAME, width // 3))
    for name, text in texts:
        for label, line in labeled(one_line(name, name_width), lines_of(text, width - name_width - 1)):
            yield f"{padded(label, name_width, left=True)} {line}"


def _kept_columns(table: Table, rows: Sequence[Sequence[str]], width: int, name_width: int) -> list[int]:
    """Return which columns fit; a column without a text is left out."""
    kept, drop = table.kept, iter(table.drop)
    while name_width + sum(1 + _widest(rows, n) for n in kept if n != table.shrinks) > width:
        if (head := next(drop, None)) is None:
            break
        kept = [n for n in kept if table.head[n] != head]
    return kept


def _widest(rows: Sequence[Sequence[str]], column: int) -> int:
    return max(columns(row[column]) for row in rows)


def finding_lines(
    findings: Iterable[Finding], names: Mapping[str, str], width: int
) -> Iterator[tuple[str, str]]:
    """Yield the lines of findings for a terminal, each a label and a text; a label is printed once.

    `names` has the targets' names by label; without any, a finding does not say whose it is.
    """
    found: dict[str, dict[str, list[str]]] = {}
    for one in findings:
        name = f"{names.get(one.target, one.target)}: " if one.target and names else ""
        found.setdefault(one.label, {}).setdefault(one.advice, []).append(f"{name}{one.text}")
    for label, by_advice in found.items():
        texts: list[str] = []
        for advice, its in by_advice.items():
            texts += [f"{'; '.join(its)};", advice] if advice else its
        yield from labeled(label, (line for text in texts for line in lines_of(text, width - LABEL_WIDTH)))


def answer_lines(answer: Answer, width: int) -> list[str]:
    """Return a recommendation as a sentence of a line or more."""
    return whole_lines_of(f"{answer.target}: {answer.sentence}", width, "  ")


# --- Markdown ---------------------------------------------------------------------------------------

LONGEST_COMMENT = 60_000
"""Bytes; GitHub refuses a comment of more than 65,536 characters."""
_ROOM_FOR_THE_REST = 100
_CELL_WIDTH = 400
_AS_THEY_ARE = frozenset(string.ascii_letters + string.digits + " ,-()/%+=;")
# Addresses, mentions, issues and commits: GitHub links them in the rendered page, where `\@` is a bare `@`.
# `@low` behind a model's name is none.
_LINKED = re.compile(
    r"://|www\.|mailto:|xmpp:|(?<![a-z0-9_])@[a-z0-9]|@[a-z0-9_-]+\.|#[0-9]|GH-[0-9]|\$"
    r"|\b(?=[a-f]*[0-9])(?=[0-9]*[a-f])[0-9a-f]{7,40}\b|(?<!\w):[a-z0-9_+-]+:(?!\w)|<!--",
    re.IGNORECASE,
)


def markdown_text(text: str, width: int = _CELL_WIDTH) -> str:
    """Make a text harmless in Markdown: one line, no table bar, no HTML, no link, no mention."""
    if not text.strip():
        return DASH
    if _LINKED.search(text):
        return code(text, width)
    line = one_line(text, width).replace("\\", "\\\\").replace("&", "&amp;")
    for character in "|`*_[]#~":
        line = line.replace(character, "\\" + character)
    return line.replace("<", "&lt;").replace(">", "&gt;")


def code(text: str, width: int = _CELL_WIDTH) -> str:
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


class MarkdownPage:
    """A page, whose lists and tables are cut where it would become longer than `limit` bytes."""

    def __init__(self, *lines: str, limit: int | None = None) -> None:
        self._lines = [*lines]
        self._limit = limit
        self._size = _bytes(lines)

    def add(self, *blocks: Block | Section) -> None:
        """Add blocks; empty ones are left out."""
        for block in blocks:
            if isinstance(block, Section):
                if filled := block.filled:
                    self._add([f"## {block.title}"])
                    self.add(Sentence(text=block.intro), *filled)
            elif is_empty(block):
                continue
            elif isinstance(block, Details):
                head, lines = _markdown_lines(block.block)
                opening = f"<details><summary>{block.title}</summary>"
                self._add(lines, [opening, "", *head], ["", "</details>"])
            else:
                head, lines = _markdown_lines(block)
                self._add(lines, head)

    def _add(self, lines: Sequence[str], head: Sequence[str] = (), foot: Sequence[str] = ()) -> None:
        shown = [*lines]
        if self._limit is not None:
            room = self._limit - self._size - _bytes([*head, *foot]) - _ROOM_FOR_THE_REST
            while shown and _bytes(shown) > room:
                del shown[-max(1, len(shown) // 20) :]
        if not shown:
            return
        rest = len(lines) - len(shown)
        more = ["", f"… and {rest} more, in summary.md"] if rest else []
        added = ["", *head, *shown, *more, *foot]
        self._lines += added
        self._size += _bytes(added)

    @property
    def text(self) -> str:
        """The whole page."""
        return "\n".join(self._lines) + "\n"


def _markdown_lines(block: Block) -> tuple[list[str], list[str]]:
    """Return the lines that a block needs, such as a table's head, and those that may be cut."""
    match block:
        case Sentence():
            return [], [_sentence(block.text)]
        case Answers():
            return [], [f"- {markdown_text(one.target)}: {_sentence(one.sentence)}" for one in block.entries]
        case Findings():
            parts = ((one.target, one.label, one.whole) for one in block.entries)
            return [], [f"- {': '.join(_sentence(text) for text in its if text)}" for its in parts]
        case Table():
            # Imported when a report is written, not when a session starts.
            from tabulate import tabulate

            whole = [[*row, *[""] * (len(block.head) - len(row))] for row in (block.head, *block.rows)]
            head, *rows = [[markdown_text(row[n]) if row[n] else "" for n in block.kept] for row in whole]
            aligned = ["left" if block.is_left(n) else "right" for n in block.kept]
            table = tabulate(rows, head, tablefmt="pipe", disable_numparse=True, colalign=aligned)
            lines = table.splitlines()
            return lines[:2], lines[2:]
        case _:  # a chart, whose figures are in a table
            return [], []


def _sentence(text: str) -> str:
    return markdown_text(text, LONGEST_SENTENCE)


def _bytes(lines: Sequence[str]) -> int:
    return sum(len(line.encode()) + 1 for line in lines)
