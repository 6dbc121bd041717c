"""Runs that end once they are conclusive are wrong as seldom as they say, through the code that ships."""

from itertools import product
from math import sqrt

import numpy as np
import pytest

from pytest_openclaw.parts.repeats import EarlyStopping, stages_of
from tests.simulation.early import NEEDLESS, RATES, REPEATS, schedule_of, simulate

pytestmark = [pytest.mark.newest, pytest.mark.simulation, pytest.mark.xdist_group("simulation")]

SEED = 20261123
LEVEL = 0.025


def _simulate(rate, needless, n_runs, **more):
    found = simulate(np.random.default_rng(SEED), 72, rate, needless, n_runs, **more)
    print(found)
    return found


def _is_rarely_wrong(found, level=LEVEL):
    return max(found.against, found.trusting) <= level + 3.1 * sqrt(level * (1 - level) / found.n)


@pytest.mark.parametrize(
    ("rate", "needless", "n_runs"),
    [
        (0.5, 0.2, 40),
        *(pytest.param(*rates, 1000, marks=pytest.mark.nightly) for rates in product(RATES, NEEDLESS)),
    ],
)
def test_a_recommendation_is_wrong_in_one_of_forty_runs_on_either_side(rate, needless, n_runs):
    """With looks within the suite, whose categories differ in difficulty."""
    assert _is_rarely_wrong(_simulate(rate, needless, n_runs))


@pytest.mark.nightly
@pytest.mark.parametrize("resemblance", [0.2, 0.5, 1.0])
@pytest.mark.parametrize("rate", [0.5, 0.8])
def test_repeats_may_resemble_each_other(rate, resemblance):
    """Where both true rates lie on their limits."""
    assert _is_rarely_wrong(_simulate(rate, 0.2, 1000, resemblance=resemblance))


@pytest.mark.nightly
@pytest.mark.parametrize("n_targets", [3, 8])
@pytest.mark.parametrize(("rate", "needless"), [(0.5, 0.2), (0.97, 0.2), (0.8, 0.05)])
def test_several_targets_share_the_level(rate, needless, n_targets):
    """Each is wrong so seldom that it is rare that any is."""
    assert _is_rarely_wrong(_simulate(rate, needless, 2000, n_targets=n_targets), LEVEL / n_targets)


@pytest.mark.nightly
@pytest.mark.parametrize("repeat", [2, 3, 5])
def test_shorter_schedules_keep_the_level(repeat):
    """With the constants of their own looks."""
    assert _is_rarely_wrong(_simulate(0.8, 0.2, 1000, repeats=repeat))


@pytest.mark.parametrize("rate", [0.02, 0.4, 0.97])
def test_a_simulated_run_ends_where_a_session_ends_it(rate):
    """Although the session decides row by row, and the simulation asks once for equal counts."""
    source, schedule = np.random.default_rng(SEED), schedule_of(34, REPEATS, 1)
    stages = stages_of(schedule.cells)
    for _ in range(20):
        called = source.random(len(schedule.cells)) < rate
        stopping = EarlyStopping(stages, schedule.looks)
        n_asked = 0
        for row in schedule.rows(called):
            if stopping.ended:
                break
            n_asked += 1
            any(stopping.take(row))

        assert schedule.run(called)[0] == n_asked


def test_a_hopeless_model_is_settled_after_12_prompts():
    """Whatever it does where no call may be made."""
    assert _simulate(0.0, 0.4, 20).prompts == 12


def test_a_good_model_is_settled():
    """Each prompt is asked a few times."""
    found = _simulate(0.97, 0.05, 40)

    assert found.settled > 0.9
    assert found.prompts < 3 * 72
