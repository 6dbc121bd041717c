"""Tiers of runs that end once they are conclusive are wrong as seldom as they say, through the code that ships."""

from __future__ import annotations

from math import sqrt

import numpy as np
import pytest

from pytest_openclaw.values.settings import Settings
from tests.simulation import early
from tests.simulation.stopping import LIMITS, RESEMBLANCES, SEED, simulate

pytestmark = [pytest.mark.newest, pytest.mark.simulation, pytest.mark.xdist_group("simulation")]

LEVEL = 0.025


def _most(n: int) -> float:
    """What chance makes of the level, 999 times in 1000."""
    return LEVEL + 3.1 * sqrt(LEVEL * (1 - LEVEL) / n)


@pytest.mark.parametrize(
    ("limit", "resemblance", "n_runs"),
    [
        (0.8, 0.2, 100),
        *(
            pytest.param(limit, resemblance, 2000, marks=pytest.mark.nightly)
            for limit in LIMITS
            for resemblance in RESEMBLANCES
        ),
    ],
)
def test_a_tier_is_on_the_wrong_side_of_its_limit_in_one_of_forty_runs(
    limit: float, resemblance: float, n_runs: int
) -> None:
    """On either side, whatever the resemblance: the true rate is on the limit."""
    found = simulate(np.random.default_rng(SEED), limit, resemblance, n_runs)

    print(found)
    assert found.above <= _most(n_runs)
    assert found.below <= _most(n_runs)


@pytest.mark.nightly
@pytest.mark.parametrize("repeat", [2, 3, 5])
def test_shorter_schedules_keep_the_level(repeat: int) -> None:
    """With the constants of their own looks, where repeats do not resemble each other."""
    settings = Settings(until_conclusive=True, repeat=repeat)

    found = simulate(np.random.default_rng(SEED), 0.8, 0.0, 2000, settings)

    assert max(found.above, found.below) <= _most(found.n)


@pytest.mark.nightly
def test_most_runs_end_conclusive_where_the_rate_is_far_from_a_limit() -> None:
    """And each prompt is asked a few times then; where all repeats are alike, they end early as well."""
    clear, alike = (simulate(np.random.default_rng(SEED), 0.95, one, 300) for one in (0.0, 1.0))

    assert clear.conclusive > 0.97
    assert clear.repeats < 4
    assert alike.repeats <= 2


@pytest.mark.parametrize(
    ("rate", "needless", "n_runs"),
    [
        (0.5, 0.2, 40),
        *(
            pytest.param(rate, needless, 1000, marks=pytest.mark.nightly)
            for rate in early.RATES
            for needless in early.NEEDLESS
        ),
    ],
)
def test_a_recommendation_is_wrong_in_one_of_forty_runs_on_either_side(
    rate: float, needless: float, n_runs: int
) -> None:
    """With looks within the suite, whose categories differ in difficulty."""
    found = early.simulate(np.random.default_rng(SEED), 72, rate, needless, n_runs)

    print(found)
    assert max(found.against, found.trusting) <= _most(n_runs)


def test_a_hopeless_model_is_settled_after_12_prompts() -> None:
    """Whatever it does where no call may be made."""
    assert early.simulate(np.random.default_rng(SEED), 72, 0.0, 0.4, 20).prompts == 12
