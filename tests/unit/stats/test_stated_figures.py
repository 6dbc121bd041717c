"""The shares that docs/statistics.md and docs/comparison.md state, summed over every outcome by the shipped rules."""

from __future__ import annotations

from bisect import bisect_left
from functools import cache
from itertools import product

import numpy as np
import pytest
from scipy import stats

from pytest_openclaw.stats.gate_checks import check_tier
from pytest_openclaw.stats.proofs import tool_proofs
from pytest_openclaw.stats.significance import LEVEL, PValue, sign_flip
from pytest_openclaw.stats.tiers import calls_needlessly
from pytest_openclaw.stats.tool_use import tool_use_of
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


def test_the_exact_test_takes_one_prompt_more_for_tier_1() -> None:
    """16 without a miss by Wilson's interval, 17 by the binomial distribution."""
    settled = [n for n in range(1, 30) if tool_use_of(tool_cells(n, 0)).conclusive]

    assert settled[0] == 16
    assert next(n for n in range(1, 30) if stats.binom.cdf(n - 1, n, 0.8) >= 0.975) == 17


@cache
def _is_worse(worse: int, better: int, kind: PValue) -> bool:
    found = sign_flip([-1] * worse + [1] * better, kind)
    return found.sign < 0 and found.p < LEVEL


def _share_worse(n: int, loss: float, kind: PValue, flips: float = FLIPS) -> float:
    """Return how often a loss is seen: of a rate of 0.8, a share of the prompts now fails whenever asked."""
    lost = loss / 0.8
    return _share_seen(n, lost * 0.8 + (1 - lost) * flips / 2, (1 - lost) * flips / 2, kind)


def _share_seen(n: int, turned_worse: float, turned_better: float, kind: PValue) -> float:
    outcomes = stats.multinomial(n, [turned_worse, turned_better, 1 - turned_worse - turned_better])
    return float(
        sum(
            outcomes.pmf([worse, better, n - worse - better])
            for better in range(n + 1)
            for worse in range(n + 1 - better)
            if _is_worse(worse, better, kind)
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

    assert _share_seen(n, loss + turned_better, turned_better, "exact") >= 0.8
    assert _share_seen(n - 1, loss + turned_better, turned_better, "exact") < 0.8


@pytest.mark.parametrize(
    ("n", "loss", "exact", "mid"),
    [
        (36, 0.05, 0.039, 0.075),
        (36, 0.10, 0.140, 0.217),
        (36, 0.20, 0.513, 0.616),
        (60, 0.05, 0.086, 0.132),
        (60, 0.10, 0.293, 0.377),
        (60, 0.20, 0.804, 0.858),
        (100, 0.10, 0.515, 0.587),
        (100, 0.20, 0.964, 0.976),
    ],
)
def test_how_often_one_repeat_shows_a_loss(n: int, loss: float, exact: float, mid: float) -> None:
    """The mid-p sees 4 to 10 points more, less only where the exact test sees nearly all."""
    assert _share_worse(n, loss, "exact") == pytest.approx(exact, abs=0.0006)
    assert _share_worse(n, loss, "mid") == pytest.approx(mid, abs=0.0006)


@pytest.mark.parametrize(
    ("n", "flips", "exact", "mid"),
    [
        (36, 0.128, 0.0036, 0.0110),
        (36, 0.5, 0.0149, 0.0235),
        (60, 0.128, 0.0089, 0.0186),
        (60, 0.5, 0.0153, 0.0224),
        (100, 0.128, 0.0126, 0.0220),
        (100, 0.5, 0.0184, 0.0247),
    ],
)
def test_how_often_one_repeat_raises_a_false_alarm(n: int, flips: float, exact: float, mid: float) -> None:
    """Where nothing has changed, either p says "worse" in at most 2.5 % here."""
    assert _share_worse(n, 0, "exact", flips) == pytest.approx(exact, abs=0.0001)
    assert _share_worse(n, 0, "mid", flips) == pytest.approx(mid, abs=0.0001)


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
        (60, (0.1582, 0.4926, 0.8582)),
        (100, (0.2547, 0.7725, 0.9805)),
        (200, (0.4975, 0.9703, 0.9999)),
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
