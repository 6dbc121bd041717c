"""How often repeats show a loss, and different models look better: by the test that ships."""

from __future__ import annotations

from math import sqrt

import numpy as np
import pytest

from pytest_openclaw.stats.comparison import LEVEL, sign_flip

pytestmark = [pytest.mark.newest, pytest.mark.simulation, pytest.mark.xdist_group("simulation")]

SEED = 20261123
N_RUNS = 2000
RATE, RESEMBLANCE = 0.8, 0.6


def _around(share: float) -> float:
    """What chance makes of a share, 999 times in 1000; a stated one is rounded to a hundredth."""
    return 0.005 + 3.1 * sqrt(share * (1 - share) / N_RUNS)


@pytest.mark.parametrize(
    ("n_prompts", "repeats", "loss", "share"),
    [
        pytest.param(36, 5, 0.05, 0.10, marks=pytest.mark.nightly),
        pytest.param(36, 5, 0.10, 0.35, marks=pytest.mark.nightly),
        pytest.param(36, 3, 0.20, 0.78, marks=pytest.mark.nightly),
        (36, 5, 0.20, 0.84),
        pytest.param(60, 5, 0.05, 0.24, marks=pytest.mark.nightly),
        (60, 3, 0.10, 0.54),
        pytest.param(60, 3, 0.20, 0.97, marks=pytest.mark.nightly),
        pytest.param(100, 3, 0.10, 0.82, marks=pytest.mark.nightly),
        pytest.param(100, 5, 0.10, 0.91, marks=pytest.mark.nightly),
    ],
)
def test_repeats_show_a_loss_as_often_as_stated(
    n_prompts: int, repeats: int, loss: float, share: float
) -> None:
    """A rate of 0.8, of which a share of the prompts takes the loss by failing whenever asked."""
    source = np.random.default_rng(SEED)
    spread = 1 / RESEMBLANCE - 1
    seen = 0
    for _ in range(N_RUNS):
        own = source.beta(RATE * spread, (1 - RATE) * spread, n_prompts)
        kept = source.random(n_prompts) >= loss / RATE
        found = sign_flip((source.binomial(repeats, own * kept) - source.binomial(repeats, own)).tolist())
        seen += found.sign < 0 and found.p < LEVEL

    print(f"{n_prompts} x {repeats}, {loss}: {seen / N_RUNS:.1%}")
    assert abs(seen / N_RUNS - share) <= _around(share)


@pytest.mark.parametrize("repeats", [3, 5])
def test_models_of_equal_rates_and_unlike_profiles_differ_up_to_6_percent(repeats: int) -> None:
    """One model passes each prompt in 80 % of cases, the other one passes some always and the others never."""
    source = np.random.default_rng(SEED)
    words = []
    for _ in range(N_RUNS):
        steady = source.random(36) < RATE
        found = sign_flip((source.binomial(repeats, RATE, 36) - repeats * steady).tolist())
        words.append(found.sign if found.p < LEVEL else 0)

    print(f"{repeats}: better {words.count(1) / N_RUNS:.1%}, worse {words.count(-1) / N_RUNS:.1%}")
    assert max(words.count(1), words.count(-1)) / N_RUNS <= 0.06 + _around(0.06)
    assert max(words.count(1), words.count(-1)) / N_RUNS > LEVEL / 2
