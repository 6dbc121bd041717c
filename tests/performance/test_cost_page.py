"""The page of figures."""

from __future__ import annotations

import pytest

from tests.performance.table import Bound, Failure, Page, Sample, number, render

pytestmark = pytest.mark.newest

BOUND = Bound("at most", 1.0)

PAGE = Page(
    title="Costs",
    conditions=[("machine", "2 cores")],
    notes={"Overhead": "Wall ms a cell."},
    samples=[
        Sample("Overhead", "loop", "ms at 8", 0.5),
        Sample("Overhead", "ours", "ms at 8", 0.25),
        Sample("Overhead", "ours", "× loop at 8", 0.5, BOUND),
        Sample("Overhead", "loop", "ms at 8", 0.75),
        Sample("Overhead", "ours", "ms at 8", 1.25),
        Sample("Overhead", "ours", "× loop at 8", 1.25, BOUND),
        Sample("Overhead", "loop", "ms at 8", 0.7),
        Sample("Overhead", "ours", "ms at 8", 150.4),
        Sample("Overhead", "ours", "× loop at 8", 1.5, BOUND),
        Sample("Start", "ours", "s", 0.5, Bound("under", 0.8)),
    ],
    failures=[Failure("Overhead", "ours at 64", "status 1:\nTraceback")],
)

TEXT = """\
# Costs

- machine: 2 cores

A figure is the median over the passes, with the smallest and the largest behind it.

## Targets

| measure | row | figure | target | median | min – max |  |
| --- | --- | --- | --- | --- | --- | --- |
| Overhead | ours | × loop at 8 | at most 1 | 1.25 | 0.5 – 1.5 | **missed** |
| Start | ours | s | under 0.8 | 0.5 | 0.5 – 0.5 | met |

## Overhead

Wall ms a cell.

|  | loop | ours |
| --- | --- | --- |
| ms at 8 | 0.7 (0.5 – 0.75) | 1.25 (0.25 – 150) |
| × loop at 8 | – | 1.25 (0.5 – 1.5) |

- ours at 64 did not count: status 1: Traceback

## Start

|  | ours |
| --- | --- |
| s | 0.5 |
"""


def test_the_page_has_targets_first_then_every_figure() -> None:
    """Medians with their spread, missed targets, and runs that did not count."""
    assert render(PAGE) == TEXT


@pytest.mark.parametrize(
    ("side", "met"),
    [
        ("at most", [True, True, False]),
        ("at least", [False, True, True]),
        ("under", [True, False, False]),
        ("exactly", [False, True, False]),
    ],
)
def test_bounds(side: str, met: list[bool]) -> None:
    """A bound is met below, at and above its value as its name says."""
    bound = Bound(side, 2.0)  # type: ignore[arg-type]

    assert [bound.is_met(value) for value in (1.9, 2.0, 2.1)] == met


@pytest.mark.parametrize(
    ("value", "text"),
    [(1.0, "1"), (0.98642, "0.986"), (1.2345, "1.23"), (12.345, "12.3"), (123.45, "123"), (-0.96, "-0.96")],
)
def test_a_figure_has_three_digits(value: float, text: str) -> None:
    """More would be noise."""
    assert number(value) == text
