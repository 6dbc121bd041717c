"""How often different models look better than each other: by the test that ships."""

from math import sqrt

import numpy as np
import pytest

from pytest_openclaw.stats.comparison import LEVEL, sign_flip

pytestmark = [pytest.mark.newest, pytest.mark.simulation, pytest.mark.xdist_group("simulation")]

SEED = 20261123
N_RUNS = 2000
RATE = 0.8


def _around(share: float) -> float:
    """What chance makes of a share, 999 times in 1000; a stated one is rounded to a hundredth."""
    return 0.005 + 3.1 * sqrt(share * (1 - share) / N_RUNS)


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
