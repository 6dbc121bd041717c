"""The parts of reports: a fact is worded once, as a block.

A page chooses blocks and their order. `terminal.py`, `pages.py` (Markdown) and `html/` render any block.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING

from pytest_openclaw.reports.numbers import LONGEST_SENTENCE, one_line
from pytest_openclaw.util.text import map_texts

if TYPE_CHECKING:
    from pytest_openclaw.util.files import JsonObject


@dataclass(frozen=True, kw_only=True)
class Table:
    """A table; the first column names its rows.

    Attributes:
        head: the columns' names.
        rows: their cells. A row of two cells is a name and a text instead of figures.
        words: names of columns that are aligned on the left, as the first column always is.
        caption: a title for it.
        drop: names of columns that a narrow terminal leaves out, in this order.
        shrinks: the column that a narrow terminal shortens.
    """

    head: Sequence[str]
    rows: Sequence[Sequence[str]]
    words: Sequence[str] = ()
    caption: str = ""
    drop: Sequence[str] = ()
    shrinks: int = 0

    def __bool__(self) -> bool:
        return bool(self.rows)

    def is_left(self, column: int) -> bool:
        """Whether a column is aligned on the left."""
        return column == 0 or self.head[column] in self.words

    @property
    def kept(self) -> list[int]:
        """The indices of columns that have a text in some row."""
        rows = [row for row in self.rows if len(row) == len(self.head)] or [self.head]
        return [n for n in range(len(self.head)) if any(row[n] for row in rows)]


@dataclass(frozen=True, kw_only=True)
class SummaryFinding:
    """A fact under a label; `target` is empty if the text is about the whole run or names a target."""

    label: str
    text: str
    target: str = ""


@dataclass(frozen=True, kw_only=True)
class TargetAnswer:
    """The recommendation for a target; `tier` is in words, and empty if the target has no tier."""

    target: str
    kind: str
    sentence: str
    tier: str = ""


@dataclass(frozen=True, kw_only=True)
class Details:
    """A block that a click unfolds."""

    title: str
    block: Block

    def __bool__(self) -> bool:
        return bool(self.block)


Block = str | Table | Details | list[SummaryFinding] | list[TargetAnswer]
"""A part of a report, which is left out if it is false."""


@dataclass(frozen=True, kw_only=True)
class Section:
    """Blocks under a title; it is left out if all of them are empty.

    Attributes:
        id: the name by which links and pages refer to the section.
        intro: a sentence under the title; a section with nothing else is not shown.
        is_in_comment: whether the comment on a pull request has it.
    """

    id: str
    title: str
    intro: str = ""
    blocks: Sequence[Block] = ()
    is_in_comment: bool = False

    @property
    def filled(self) -> list[Block]:
        """The blocks that are not empty."""
        return [block for block in self.blocks if block]


def section_data(section: Section) -> JsonObject:
    """Return a section as JSON for the HTML page's script, which escapes all texts."""
    blocks = [_block_data(block) for block in section.filled]
    return {"id": section.id, "title": section.title, "intro": section.intro, "blocks": blocks}


def _block_data(block: Block) -> JsonObject:
    data: JsonObject
    match block:
        case str():
            data = {"kind": "sentence", "text": block}
        case Details():
            return {"kind": "details", "title": block.title, "block": _block_data(block.block)}
        case Table():
            left = [*map(block.is_left, range(len(block.head)))]
            data = {"kind": "table", **asdict(block), "left": left, "kept": block.kept}
        case _:
            kind = "answers" if isinstance(block[0], TargetAnswer) else "findings"
            data = {"kind": kind, "entries": [*map(asdict, block)]}
    data = map_texts(data, lambda text: one_line(text, LONGEST_SENTENCE))
    return data
