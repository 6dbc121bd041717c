"""The pieces of a section, and how foreign names appear in them.

The page's charts: points with their intervals, placed here, drawn by `assets/charts.js`.

Data inside a page: JSON that no HTML parser can mistake for markup, and long texts kept once.

What the page shows, read and worked out beforehand: a run and its cells.
"""

from __future__ import annotations

import json
import math
import re
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, NamedTuple

from pytest_openclaw.reports.numbers import one_line
from pytest_openclaw.util.text import valid_text

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from pytest_openclaw.stats.intervals import Interval
    from pytest_openclaw.stats.summary import Summary
    from pytest_openclaw.util.json_types import JsonObject
    from pytest_openclaw.values.requests import CellKey, Target
    from pytest_openclaw.values.rows import Record
    from pytest_openclaw.values.tool_calls import Tool


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


class ChartPoint(NamedTuple):
    """A target's value with its interval, in the chart's unit.

    Attributes:
        shown: the same in words.

    """

    target: str
    value: float
    low: float
    high: float
    shown: str


def point(target: str, value: float, interval: Interval | None, shown: str) -> ChartPoint:
    """Return a value with its interval, or without a line if it has none."""
    low, high = (interval.low, interval.high) if interval else (value, value)
    return ChartPoint(target, value, low, high, shown)


class Zone(NamedTuple):
    """A part of the axis that has a name, in the chart's unit."""

    name: str
    low: float
    high: float


@dataclass(frozen=True, kw_only=True)
class Chart:
    """A chart as the page takes it; all places are shares of its width.

    Attributes:
        description: what it shows, for readers who cannot see it; a table beside it has the figures.
        ticks: labels of the axis.
        marks: where dashed lines are.
        zones: names above the points.

    """

    title: str
    description: str
    points: Sequence[ChartPoint]
    ticks: Sequence[tuple[float, str]]
    marks: Sequence[float] = field(default_factory=tuple)
    zones: Sequence[tuple[float, str]] = field(default_factory=tuple)


def rates(title: str, points: Sequence[ChartPoint], zones: Sequence[Zone] = ()) -> Chart:
    """Return rates of 0 to 1.

    Args:
        title: what the rates are of.
        points: of the targets.
        zones: named parts of the axis, from left to right; where two meet is a mark.

    """
    ticks = [0.0, *(zone.low for zone in zones[1:]), 1.0] if zones else [0.0, 0.25, 0.5, 0.75, 1.0]
    return Chart(
        title=title,
        description=f"{title}: a point with its 95 % interval for each target.",
        points=points,
        ticks=[(at, f"{100 * at:.0f} %") for at in ticks],
        marks=[zone.low for zone in zones[1:]],
        zones=[((zone.low + zone.high) / 2, zone.name) for zone in zones],
    )


def differences(title: str, points: Sequence[ChartPoint]) -> Chart:
    """Return differences of rates, -1 to 1; left of 0 a target has become worse."""
    widest = max((abs(end) for point in points for end in (point.low, point.high)), default=0.0)
    reach = min(1.0, max(0.1, math.ceil(widest * 10) / 10))

    def place(value: float) -> float:
        return (value + reach) / (2 * reach)

    return Chart(
        title=title,
        description=f"{title}: a point with its 95 % interval for each target, left of 0 if it is worse.",
        points=_placed(points, place),
        ticks=[(place(at), f"{100 * at:+.0f}") for at in (-reach, 0.0, reach)],
        marks=[place(0)],
    )


def times(title: str, points: Sequence[ChartPoint]) -> Chart:
    """Return times in milliseconds on a logarithmic axis: medians, and lines to the 95th percentile."""
    low = min(max(1.0, point.low) for point in points) / 1.1
    high = max(1.0, *(point.high for point in points)) * 1.1

    def place(value: float) -> float:
        return math.log(max(1.0, value) / low) / math.log(high / low)

    return Chart(
        title=title,
        description=f"{title}: the median of each target, and a line to its 95th percentile.",
        points=_placed(points, place),
        ticks=[(place(at), _in_words(at)) for at in _round_times(low, high)],
    )


def _placed(points: Sequence[ChartPoint], place: Callable[[float], float]) -> list[ChartPoint]:
    return [
        point._replace(value=place(point.value), low=place(point.low), high=place(point.high))
        for point in points
    ]


def _in_words(ms: float) -> str:
    return f"{ms / 1000:g} s" if ms >= 1000 else f"{ms:g} ms"


def _round_times(low: float, high: float) -> list[float]:
    """1, 2 and 5 of every power of ten in between; 1 alone, where there would be too many."""
    powers = range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
    leading = (1, 2, 5) if high < 30 * low else (1,)
    return [float(one * 10**power) for power in powers for one in leading if low <= one * 10**power <= high]


CHUNK_CHARS = 250_000
"""A browser parses so much in a few milliseconds, when it is first needed."""
# `<` alone opens tags, comments and `</script>`; the others hide or reverse text in the file.
_UNSAFE = re.compile(
    "[<>&\x7f-\x9f\xad\u061c\u180e\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\uffff]"
)
_JSON = json.JSONEncoder(ensure_ascii=False, allow_nan=False, separators=(",", ":"))


def island(value: Any) -> str:
    """Return a value as JSON for a `<script type="application/json">`; ends no script, whatever it holds."""
    return _UNSAFE.sub(lambda found: f"\\u{ord(found[0]):04x}", valid_text(_JSON.encode(value)))


def element(name: str, value: Any, **data: int) -> str:
    """Return the element that holds a value.

    Args:
        name: its class.
        value: plain JSON.
        data: numbers for its `data-` attributes.

    """
    attributes = "".join(f' data-{key}="{number:d}"' for key, number in data.items())
    return f'<script type="application/json" class="{name}"{attributes}>{island(value)}</script>'


class TextPool:
    """Texts by number, each kept once; the first is the empty one."""

    def __init__(self) -> None:
        self._numbers: dict[str, int] = {"": 0}

    def add(self, text: str) -> int:
        """Return the text's number."""
        return self._numbers.setdefault(text, len(self._numbers))

    def chunks(self) -> Iterator[tuple[int, list[str]]]:
        """Yield the texts in parts that are parsed one by one, each with its first number."""
        first, size, part = 0, 0, list[str]()
        for number, text in enumerate(self._numbers):
            if part and size + len(text) > CHUNK_CHARS:
                yield first, part
                first, size, part = number, 0, []
            part.append(text)
            size += len(text)
        yield first, part


def fill(values: Mapping[str, str], template: str) -> str:
    """Fill `{{name}}` in a template, once: what a value holds is never filled again.

    Raises:
        KeyError: the template names what is not there.

    """
    return re.sub(r"\{\{(\w+)\}\}", lambda found: values[found[1]], template)


@dataclass(frozen=True, kw_only=True)
class Shown:
    """A cell.

    Attributes:
        tools: those that its prompt offered; None if they are not known any more.
        before: the row of the same cell in the baseline; None if it has none.

    """

    record: Record
    tools: Sequence[Tool] | None = None
    before: Record | None = None


@dataclass(frozen=True, kw_only=True)
class ShownBaseline:
    """A baseline that the run is compared with.

    Attributes:
        gone: cells of it that the run has not.

    """

    run_id: str
    gone: Sequence[CellKey] = ()


@dataclass(frozen=True, kw_only=True)
class ShownRun:
    """All that the page shows.

    Attributes:
        cells: of a large run a sample.
        unshown: the rows of all other cells, each with the one of the baseline.
        prompts: definitions as `config.json` has them, of a sample those of its cells.
        notes: what is worth knowing of the run's files, such as a line that is torn.

    """

    summary: Summary
    cells: Sequence[Shown]
    prompts: Sequence[JsonObject]
    config: JsonObject
    inventory: JsonObject
    earlier: ShownBaseline | None = None
    notes: Sequence[str] = field(default_factory=tuple)
    unshown: Sequence[tuple[Record, Record | None]] = ()

    @property
    def pairs(self) -> Iterator[tuple[Record, Record | None]]:
        """The row of each cell, shown or not, with the one of the baseline."""
        yield from ((cell.record, cell.before) for cell in self.cells)
        yield from self.unshown
