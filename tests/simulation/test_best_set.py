"""The best target is among those that a run names; how often different models look better than each other."""

from math import sqrt

import numpy as np
import pytest

from pytest_openclaw.stats.intervals import LEVEL, sign_flip
from pytest_openclaw.values.requests import Target
from tests.unit.reports.summaries import cell, summary_of

pytestmark = [pytest.mark.newest, pytest.mark.simulation, pytest.mark.xdist_group("simulation")]

RATES = (0.97, 0.95, 0.94, 0.93, 0.92, 0.91, 0.9, 0.89)
TARGETS = [Target(provider="p", model=f"m{number}") for number in range(len(RATES))]


def _named(n_prompts, repeats, n_runs):
    """Return how often the best is named, how often it has the highest rate, and how many are named."""
    source = np.random.default_rng(20261123)
    n_best = n_first = n_named = 0
    for _ in range(n_runs):
        passed = source.random((len(RATES), repeats, n_prompts)) < np.array(RATES)[:, None, None]
        best = summary_of(
            [
                cell(f"P{prompt}", "valid" if is_right else "no_call", target, repeat=repeat)
                for target, of_target in zip(TARGETS, passed.tolist(), strict=True)
                for repeat, of_repeat in enumerate(of_target, 1)
                for prompt, is_right in enumerate(of_repeat)
            ]
        ).best
        n_best += TARGETS[0].label in best.targets
        n_named += len(best.targets)
        # Ties are broken at random.
        n_first += int((passed.sum(axis=(1, 2)) + source.random(len(RATES))).argmax()) == 0
    return n_best / n_runs, n_first / n_runs, n_named / n_runs


@pytest.mark.parametrize(
    ("n_prompts", "repeats", "share", "n_runs"),
    [
        (34, 1, 0.40, 20),
        *(
            pytest.param(*design, 150, marks=pytest.mark.nightly)
            for design in ((34, 1, 0.40), (34, 3, 0.64), (100, 3, 0.85))
        ),
    ],
)
def test_the_best_target_is_named(n_prompts, repeats, share, n_runs):
    """In 95 of 100 runs, while the target with the highest rate is another one much more often."""
    named, first, size = _named(n_prompts, repeats, n_runs)

    print(f"{n_prompts} x {repeats}: named {named:.0%}, highest rate {first:.0%}, {size:.1f} targets")
    assert named >= 0.95 - 3.1 * sqrt(0.05 * 0.95 / n_runs)
    assert 1 <= size <= len(RATES)
    assert first < named
    assert abs(first - share) <= 3.1 * sqrt(share * (1 - share) / n_runs)


SEED = 20261123
N_RUNS = 2000
RATE = 0.8


def _around(share):
    """What chance makes of a share, 999 times in 1000; a stated one is rounded to a hundredth."""
    return 0.005 + 3.1 * sqrt(share * (1 - share) / N_RUNS)


@pytest.mark.parametrize("repeats", [3, 5])
def test_models_of_equal_rates_and_unlike_profiles_differ_up_to_6_percent(repeats):
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
