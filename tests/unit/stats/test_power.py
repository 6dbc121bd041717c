"""The loss that a number of prompts can detect."""

from __future__ import annotations

import pytest
from scipy import stats as scipy_stats

from pytest_openclaw.stats.power import fewest_prompts, fewest_worse, power, smallest_loss
from pytest_openclaw.stats.significance import sign_flip


@pytest.mark.parametrize(
    ("n_prompts", "flips", "loss"), [(6, 0.0, 0.5), (30, 0.1, 0.2), (36, 0.3, 0.1), (120, 0.2, 0.1)]
)
def test_one_repeat_is_exact(n_prompts: int, flips: float, loss: float) -> None:
    """The power of McNemar's test, summed over the trinomial of SciPy."""
    worse, better = loss + (1 - loss) * flips / 2, (1 - loss) * flips / 2
    trinomial = scipy_stats.multinomial(n_prompts, [worse, better, 1 - worse - better])
    expected = sum(
        trinomial.pmf([w, b, n_prompts - w - b])
        for w in range(n_prompts + 1)
        for b in range(n_prompts + 1 - w)
        if w > b and scipy_stats.binom.sf(w - 1, w + b, 0.5) * 2 < 0.05
    )

    assert power(n_prompts, 1, flips, loss) == pytest.approx(expected, abs=1e-9)


@pytest.mark.parametrize("n", [*range(12), 40, 101])
def test_the_fewest_worse_are_those_that_the_test_sees(n: int) -> None:
    """With one prompt less, McNemar's test detects nothing."""
    fewest = fewest_worse(n)

    assert all(
        (sign_flip([-1] * k + [1] * (n - k)).p < 0.05) == (k >= fewest) for k in range(n // 2 + 1, n + 1)
    )


@pytest.mark.parametrize("repeats", [1, 3, 10])
def test_more_prompts_see_more(repeats: int) -> None:
    """The computed prompts reach the power, half of them do not; more targets, more flips need more prompts."""
    needed = fewest_prompts(repeats, 0.2, 0.1)

    assert needed is not None
    assert power(needed, repeats, 0.2, 0.1) >= 0.8
    assert power(needed // 2, repeats, 0.2, 0.1) < 0.8
    assert (fewest_prompts(repeats, 0.2, 0.1, n_targets=3) or 0) > needed
    assert (fewest_prompts(repeats, 0.3, 0.1) or 0) > needed
    assert (smallest_loss(needed, repeats, 0.2) or 1) <= 0.1


def test_repeats_help_where_verdicts_flip() -> None:
    """Repeats save prompts if a model is unsteady, and none if its verdicts never change."""
    unsteady = [fewest_prompts(repeats, 0.2, 0.1) or 0 for repeats in (1, 2, 3, 5, 10)]
    steady = [fewest_prompts(repeats, 0.0, 0.1) for repeats in (1, 3, 10)]

    assert unsteady == sorted(unsteady, reverse=True)
    assert len(set(unsteady)) == 5
    assert len(set(steady)) == 1


@pytest.mark.parametrize(("n_prompts", "n_targets"), [(0, 1), (5, 1), (6, 2)])
def test_too_few_see_nothing(n_prompts: int, n_targets: int) -> None:
    """Five prompts that all fail may still be chance, and so may six for each of two targets."""
    assert smallest_loss(n_prompts, 1, 0.0, n_targets=n_targets) is None
    assert fewest_prompts(1, 0.5, 0.001) is None
