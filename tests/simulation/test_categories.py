"""Where prompts of a category resemble each other, the interval over categories holds, through the code that ships."""

from __future__ import annotations

from math import sqrt

import numpy as np
import pytest

from pytest_openclaw.stats.rates import rate_of
from tests.unit.reports.summaries import record

pytestmark = [pytest.mark.newest, pytest.mark.simulation, pytest.mark.xdist_group("simulation")]

N_CATEGORIES, N_PROMPTS = 9, 4


def _coverage(rate: float, resemblance: float, n_runs: int) -> tuple[float, float, float]:
    """Return how often the interval and that over categories hold the rate, and how wide the latter is."""
    source = np.random.default_rng(20261123)
    spread = 1 / resemblance - 1
    plain = by_category = width = 0.0
    for _ in range(n_runs):
        own = source.beta(rate * spread, (1 - rate) * spread, N_CATEGORIES)
        passed = (source.random((N_PROMPTS, N_CATEGORIES)) < own).tolist()
        found = rate_of(
            (
                record(prompt_id=f"P{category}-{prompt}", category=f"c{category}", objective_pass=is_right)
                for prompt, of_prompt in enumerate(passed)
                for category, is_right in enumerate(of_prompt)
            ),
            lambda row: row.objective_pass is True,
        )
        interval, wider = found.interval_95, found.category_interval_95
        assert interval is not None
        assert wider is not None
        plain += interval.low <= rate <= interval.high
        by_category += wider.low <= rate <= wider.high
        width += wider.high - wider.low
    return plain / n_runs, by_category / n_runs, width / n_runs


@pytest.mark.parametrize(
    ("rate", "resemblance", "n_runs"),
    [
        (0.8, 0.2, 300),
        *(
            pytest.param(rate, resemblance, 2000, marks=pytest.mark.nightly)
            for rate in (0.5, 0.8)
            for resemblance in (0.1, 0.2)
        ),
    ],
)
def test_the_interval_over_categories_holds_the_rate(rate: float, resemblance: float, n_runs: int) -> None:
    """Nearly as often as it says, and more often than the other one."""
    plain, by_category, width = _coverage(rate, resemblance, n_runs)

    print(f"{rate} {resemblance}: {plain:.1%}, over categories {by_category:.1%}, {100 * width:.0f} points")
    # Of nine clusters the resemblance is known roughly only.
    assert by_category >= 0.93 - 3.1 * sqrt(0.05 * 0.95 / n_runs)
    assert plain < by_category
    assert plain < 0.94
