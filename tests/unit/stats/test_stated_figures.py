"""The shares that docs/statistics.md states, summed over every outcome by the shipped rules."""

from __future__ import annotations

from functools import cache
from itertools import product

import pytest
from scipy import stats

from pytest_openclaw.stats.comparison import LEVEL, sign_flip
from pytest_openclaw.stats.tiers import calls_needlessly
from pytest_openclaw.stats.tool_use import tool_proofs
from pytest_openclaw.values.settings import Gates
from tests.unit.reports.summaries import cell, summary_of, tool_cells


@pytest.mark.parametrize(("rate", "share"), [(0.85, 0.0975), (0.90, 0.3256), (0.95, 0.7593)])
def test_how_often_34_prompts_pass_a_tier_gate(rate: float, share: float) -> None:
    """`--openclaw-require-tier=1`, each prompt asked once."""
    passes = [
        summary_of(tool_cells(right, 34 - right), gates=Gates(require_tier=1)).verdict == "passed"
        for right in range(35)
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
