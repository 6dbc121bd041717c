"""Samples → the Markdown page: targets first, then every figure with its spread."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from statistics import median
from typing import Literal


@dataclass(frozen=True)
class Bound:
    """The target value of a figure."""

    side: Literal["at most", "at least", "under", "exactly"]
    value: float

    def is_met(self, value: float) -> bool:
        """Whether a figure meets the target."""
        return {
            "at most": value <= self.value,
            "at least": value >= self.value,
            "under": value < self.value,
            "exactly": value == self.value,
        }[self.side]


@dataclass(frozen=True)
class Sample:
    """One figure of one pass.

    Attributes:
        section: the table that it belongs to.
        row: the program that was measured.
        figure: the quantity, with its unit.
        bound: the target, if this figure has one.
    """

    section: str
    row: str
    figure: str
    value: float
    bound: Bound | None = None


@dataclass(frozen=True)
class Failure:
    """A run that did not count."""

    section: str
    row: str
    reason: str


@dataclass(frozen=True)
class Page:
    """All measurements.

    Attributes:
        conditions: name and value of the conditions: machine, versions, load.
        notes: explanations for the reader, by section.
    """

    title: str
    conditions: Sequence[tuple[str, str]]
    notes: dict[str, str]
    samples: Sequence[Sample]
    failures: Sequence[Failure]


def render(page: Page) -> str:
    """Return the page."""
    lines = [f"# {page.title}", ""]
    lines += [f"- {name}: {value}" for name, value in page.conditions]
    lines += ["", "A figure is the median over the passes, with the smallest and the largest behind it.", ""]
    lines += _targets(page)
    for section in dict.fromkeys([s.section for s in page.samples] + [f.section for f in page.failures]):
        lines += [f"## {section}", ""]
        if note := page.notes.get(section):
            lines += [note, ""]
        lines += _matrix([sample for sample in page.samples if sample.section == section])
        failed = [failure for failure in page.failures if failure.section == section]
        lines += [f"- {failure.row} did not count: {_one_line(failure.reason)}" for failure in failed]
        lines += [""] if failed else []
    return "\n".join(lines).rstrip() + "\n"


def _targets(page: Page) -> list[str]:
    keys = {(s.section, s.row, s.figure): s.bound for s in page.samples if s.bound}
    if not keys:
        return []
    rows = []
    for (section, row, figure), bound in keys.items():
        values = _values(page.samples, section, row, figure)
        reached = "met" if bound.is_met(median(values)) else "**missed**"
        target = f"{bound.side} {number(bound.value)}"
        rows.append([section, row, figure, target, number(median(values)), spread(values), reached])
    head = ["measure", "row", "figure", "target", "median", "min – max", ""]
    return ["## Targets", "", *_table(head, rows), ""]


def _matrix(samples: Sequence[Sample]) -> list[str]:
    """Return a line per figure, a column per program: there are more figures than programs."""
    if not samples:
        return []
    section, rows = samples[0].section, list(dict.fromkeys(sample.row for sample in samples))
    figures = [
        [figure, *(_cell(_values(samples, section, row, figure)) for row in rows)]
        for figure in dict.fromkeys(sample.figure for sample in samples)
    ]
    return [*_table(["", *rows], figures), ""]


def _values(samples: Iterable[Sample], section: str, row: str, figure: str) -> list[float]:
    return [s.value for s in samples if (s.section, s.row, s.figure) == (section, row, figure)]


def _cell(values: Sequence[float]) -> str:
    if not values:
        return "–"
    return number(median(values)) + (f" ({spread(values)})" if len(values) > 1 else "")


def _table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> list[str]:
    return [f"| {' | '.join(line)} |" for line in (head, ["---"] * len(head), *rows)]


def spread(values: Sequence[float]) -> str:
    """Return the smallest and the largest."""
    return f"{number(min(values))} – {number(max(values))}"


def number(value: float) -> str:
    """Return a figure with three significant digits, whole above 100."""
    if value == int(value) and abs(value) < 1e6:
        return str(int(value))
    size = abs(value)
    return f"{value:.0f}" if size >= 100 else f"{value:.1f}" if size >= 10 else f"{value:.3g}"


def _one_line(text: str) -> str:
    return " ".join(text.split())[:500]
