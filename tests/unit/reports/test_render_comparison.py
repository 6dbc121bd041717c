"""Two runs compared, in words."""

from __future__ import annotations

from typing import Any

import pytest

from pytest_openclaw.reports.comparison import in_short, render_comparison
from tests.unit.stats.compared import cells, compare

QUICK: dict[str, Any] = {"e2e_ms": 250, "ttft_ms": 10, "output_tokens": 18}


@pytest.mark.parametrize(
    ("base", "candidate", "said"),
    [
        pytest.param(cells("+" * 9), cells("+" * 2 + "-" * 7), "9/9 -> 2/9, p 0.016", id="worse"),
        pytest.param(cells("+++"), cells("++-"), "3/3 -> 2/3, p 1", id="no-difference"),
        pytest.param(cells("oo"), cells("oo"), "no judged cell could be compared", id="nothing-judged"),
        pytest.param(cells("o" * 6), cells("o" * 6, **QUICK), "no judged cell could be compared; latency 2.50x (slower); TTFT 0.50x (faster); output tokens 2.00x (more)", id="ratios"),
    ],
)  # fmt: skip
def test_a_target_in_one_line(base: Any, candidate: Any, said: str) -> None:
    """Verdicts and other differences."""
    (one,) = compare(base, candidate).targets

    assert in_short(one) == said


def test_a_ratio_has_its_interval_and_its_p() -> None:
    """Of the candidate to the baseline, in words too."""
    lines = [*render_comparison(compare(cells("+" * 6), cells("+" * 6, e2e_ms=50)))]

    assert "  latency        0.50x (95 % 0.50x to 0.50x), faster; 6 prompts, p 0.031" in lines
