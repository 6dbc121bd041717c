"""The shares that docs/statistics.md and docs/comparison.md state, summed over every outcome by the shipped rules."""

from __future__ import annotations

from bisect import bisect_left
from functools import cache
from itertools import product

import numpy as np
import pytest
from scipy import stats

from pytest_openclaw.stats.gates import check_tier
from pytest_openclaw.stats.significance import LEVEL, sign_flip
from pytest_openclaw.stats.tiers import calls_needlessly
from pytest_openclaw.stats.tool_use import tool_proofs, tool_use_of
from tests.unit.reports.summaries import cell, tool_cells
from tests.unit.stats.compared import cells, only

FLIPS = 0.128
"""How often two repeats differ at a rate of 0.8 and a resemblance of 0.6: 2 * 0.8 * 0.2 * (1 - 0.6)."""


@pytest.mark.parametrize(("rate", "share"), [(0.85, 0.0975), (0.90, 0.3256), (0.95, 0.7593)])
def test_how_often_34_prompts_pass_a_tier_gate(rate: float, share: float) -> None:
    """`--openclaw-require-tier=1`, each prompt asked once."""
    passes = [
        check_tier(tool_use_of(tool_cells(right, 34 - right)), 1).state == "passes" for right in range(35)
    ]

    assert passes.index(True) == 32
    assert stats.binom.pmf(range(35), 34, rate)[passes].sum() == pytest.approx(share, abs=0.0005)


@pytest.mark.parametrize(("rate", "share"), [(0.25, 0.391), (0.30, 0.253), (0.35, 0.151)])
def test_how_often_12_prompts_miss_needless_calls(rate: float, share: float) -> None:
    """The cap of a fifth, where more than a fifth of all calls are needless."""
    missed = [not calls_needlessly(needless, 12) for needless in range(13)]

    assert stats.binom.pmf(range(13), 12, rate)[missed].sum() == pytest.approx(share, abs=0.0005)


def test_how_often_chance_proves_a_tool() -> None:
    """Three distinct prompts, each right in half of all cases."""
    proven = [
        tool_proofs(
            cell(f"P{n}", "valid" if right else "no_call", tools_offered=11, tools_tested=("read",))
            for n, right in enumerate(outcome)
        )["read"].is_enough
        for outcome in product([False, True], repeat=3)
    ]

    assert sum(proven) / len(proven) == 0.125


@cache
def _is_worse(worse: int, better: int) -> bool:
    found = sign_flip([-1] * worse + [1] * better)
    return found.sign < 0 and found.p < LEVEL


def _share_seen(n: int, turned_worse: float, turned_better: float) -> float:
    """Return how often McNemar's test says "worse" of `n` prompts asked once."""
    outcomes = stats.multinomial(n, [turned_worse, turned_better, 1 - turned_worse - turned_better])
    return float(
        sum(
            outcomes.pmf([worse, better, n - worse - better])
            for better in range(n + 1)
            for worse in range(n + 1 - better)
            if _is_worse(worse, better)
        )
    )


@pytest.mark.parametrize(
    ("rate", "loss", "n"),
    [(1.0, 0.1, 78), (1.0, 0.3, 25), (0.95, 0.2, 59), (0.9, 0.3, 43), (0.8, 0.3, 55), (0.5, 0.3, 55)],
)
def test_how_many_prompts_show_a_loss(rate: float, loss: float, n: int) -> None:
    """The table of docs/statistics.md: with one prompt less, four runs in five do not show it."""
    others = (rate - loss) / (1 - loss)
    turned_better = (1 - loss) * others * (1 - others)

    assert _share_seen(n, loss + turned_better, turned_better) >= 0.8
    assert _share_seen(n - 1, loss + turned_better, turned_better) < 0.8


@cache
def _low(n: int, worse: int, better: int) -> float:
    """The lower end of the difference, of `n` prompts asked once."""
    same = "+" * (n - worse - better)
    found = only(cells("+" * worse + "-" * better + same), cells("-" * worse + "+" * better + same))
    assert found.verdicts.range_95 is not None
    return found.verdicts.range_95.low


@pytest.mark.parametrize(
    ("n", "shares"),
    [
        (36, (0.0637, 0.3115, 0.6098)),
        pytest.param(60, (0.1582, 0.4926, 0.8582), marks=pytest.mark.nightly),
        pytest.param(100, (0.2547, 0.7725, 0.9805), marks=pytest.mark.nightly),
        pytest.param(200, (0.4975, 0.9703, 0.9999), marks=pytest.mark.nightly),
    ],
)
def test_how_often_a_loss_is_ruled_out_where_nothing_changed(n: int, shares: tuple[float, ...]) -> None:
    """The table of docs/comparison.md for one repeat, for margins of 5, 10 and 15 points."""
    for margin, share in zip((0.05, 0.1, 0.15), shares, strict=True):
        passed = 0.0
        outcomes = stats.multinomial(n, [FLIPS / 2, FLIPS / 2, 1 - FLIPS])
        for better in range(int(n * FLIPS / 2 + 6 * np.sqrt(n * FLIPS / 2)) + 1):
            first_that_fails = bisect_left(
                range(min(n - better, 40)), True, key=lambda worse: _low(n, worse, better) <= -margin
            )
            passed += sum(
                outcomes.pmf([worse, better, n - worse - better]) for worse in range(first_that_fails)
            )
        assert passed == pytest.approx(share, abs=0.0006)
