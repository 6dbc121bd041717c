"""Two runs compared, in words."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from pytest_openclaw.reports.comparison import in_short, render_comparison, render_p
from tests.unit.stats.compared import cells, compare


@pytest.mark.parametrize(
    ("p", "shown"),
    [(1.0, "1.00"), (0.5, "0.50"), (0.0312, "0.03"), (0.0496, "0.050"), (0.04996, "0.050"), (0.0042, "0.004"), (0.00031, "0.0003"), (0.00001, "< 0.0001")],
)  # fmt: skip
def test_p_is_short(p: float, shown: str) -> None:
    """It has two digits, or as many as it needs to be more than zero."""
    assert render_p(p) == shown


@pytest.mark.parametrize(
    ("base", "candidate", "said"),
    [
        pytest.param(cells("+" * 9), cells("+" * 2 + "-" * 7), "9/9 -> 2/9, p 0.02", id="worse"),
        pytest.param(cells("-" * 9), cells("+" * 9), "0/9 -> 9/9, p 0.004", id="better"),
        pytest.param(cells("+++"), cells("++-"), "3/3 -> 2/3, p 1.00", id="no-difference"),
        pytest.param(cells("oo"), cells("oo"), "no judged cell could be compared", id="nothing-judged"),
        pytest.param(cells("o" * 6), cells("o" * 6, e2e_ms=250, ttft_ms=10, output_tokens=18), "no judged cell could be compared; 2.5x slower; TTFT 2x faster; 2x more output tokens", id="ratios"),
    ],
)  # fmt: skip
def test_a_target_in_one_line(base: Any, candidate: Any, said: str) -> None:
    """Verdicts and other differences."""
    (one,) = compare(base, candidate).targets

    assert in_short(one) == said


def test_what_is_faster_is_faster_at_both_ends() -> None:
    """The interval is inverted with the words: of 0.4 to 0.8 the ends are 2.5 times and 1.25 times faster."""
    base = cells("+" * 6, e2e_ms=100)
    candidate = [replace(row, e2e_ms=ms) for row, ms in zip(base, (40, 50, 50, 50, 50, 80), strict=True)]

    assert "  latency        2x faster, 95 % 1.25x to 2.5x; 6 prompts, p 0.03" in render_comparison(
        compare(base, candidate)
    )
