"""The pieces of a section, and how foreign names appear in them."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from pytest_openclaw.reports.numbers import one_line

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pytest_openclaw.reports.html.charts import Chart
    from pytest_openclaw.types.targets import Target

NAME_WIDTH = 64


@dataclass(frozen=True, kw_only=True)
class Table:
    """A table; the first column heads its rows.

    Attributes:
        caption: what it shows.
        n_words: so many columns, from the left, are words; all others are figures.
        fills: of each row and column, how full the field is, 0 to 1, below 0 for what is not good; None
            without.
    """

    caption: str
    head: Sequence[str]
    rows: Sequence[Sequence[str]]
    n_words: int = 1
    fills: Sequence[Sequence[float | None]] = ()


@dataclass(frozen=True, kw_only=True)
class PageAnswer:
    """What the run says of a target.

    Attributes:
        kind: of the recommendation.
        tier: in words, empty without one.
        further: what would improve the recommendation, as a sentence; may be empty.
    """

    target: str
    kind: str
    sentence: str
    tier: str
    further: str


@dataclass(frozen=True, kw_only=True)
class Section:
    """A part of the page.

    Attributes:
        id: by which links reach it.
        intro: a sentence under the title.
        answers: above everything else.
        notes: sentences, each with a word that says what it is about.
        more: tables that are shown when they are asked for.
    """

    id: str
    title: str
    intro: str = ""
    answers: Sequence[PageAnswer] = ()
    charts: Sequence[Chart] = ()
    tables: Sequence[Table] = ()
    notes: Sequence[tuple[str, str]] = field(default_factory=tuple)
    more: Sequence[Table] = ()

    @property
    def is_empty(self) -> bool:
        """Whether there is nothing to be said under the title."""
        return not (self.answers or self.charts or self.tables or self.notes or self.more)

    def without_empty_tables(self) -> Section:
        """Return a copy without tables that have no rows."""
        tables, more = ([table for table in some if table.rows] for some in (self.tables, self.more))
        return replace(self, tables=tables, more=more)


def named(target: Target) -> str:
    """Return a target's label as charts and tables show it: on one line, every odd character escaped."""
    return one_line(target.label, NAME_WIDTH)
