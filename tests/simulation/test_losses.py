"""The loss gate and pooled baselines err as seldom as they say, through the code that ships."""

from __future__ import annotations

import random
from math import sqrt

import pytest

from pytest_openclaw.stats.comparison import Obstacles, compare_records, pair_cells
from pytest_openclaw.stats.summary import summarize_run
from pytest_openclaw.values.settings import Gates
from tests.simulation.changes import TARGETS, Verdicts, beta, losing, rows_of

pytestmark = [pytest.mark.newest, pytest.mark.simulation, pytest.mark.xdist_group("simulation")]

TARGET = TARGETS[0]
POOLED = {
    "prompts differ, 70 %": (0.7, 0.5, False),
    "prompts differ little, 90 %": (0.9, 0.1, False),
    "repeats end alike, 90 %": (0.9, 0.3, True),
}
"""Mean and resemblance of the prompts' own rates, and whether all repeats of one in a run end alike."""


def _rulings(loss: float, n_prompts: int, repeats: int, n_runs: int, limit: float) -> dict[str, float]:
    """Return how often the gate comes to which ruling where so many prompts fail for good."""
    rng = random.Random(f"{loss} {n_prompts} {repeats}")
    # Rate 0.8 and resemblance 0.6, as in the table of docs/comparison.md.
    model = losing(loss, 0.128) if loss else beta(0.8, 0.6)
    counts = dict.fromkeys(("passed", "failed", "no_verdict"), 0)
    for _ in range(n_runs):
        base, candidate = (rows_of(rng, TARGET, verdicts) for verdicts in model(rng, n_prompts, repeats))
        summary = summarize_run(
            candidate,
            {TARGET: len(candidate)},
            Gates(fail_on=f"loss>{limit}"),
            {},
            run_id="candidate",
            generated_at_ms=0,
            comparison=compare_records(base, candidate, [(TARGET, TARGET)], Obstacles(), baseline="base"),
        )
        counts[summary.gates[0].ruling] += 1
    return {ruling: n / n_runs for ruling, n in counts.items()}


def _around(share: float, n: int) -> float:
    return 3.1 * sqrt(share * (1 - share) / n)


@pytest.mark.parametrize(
    ("n_prompts", "repeats", "n_runs"),
    [
        (60, 1, 100),
        *(pytest.param(*case, 500, marks=pytest.mark.nightly) for case in ((36, 1), (60, 3), (100, 1))),
    ],
)
def test_a_target_that_has_lost_as_much_as_allowed_hardly_ever_passes(
    n_prompts: int, repeats: int, n_runs: int
) -> None:
    """In at most 3 of 100 runs, nor does it fail more often."""
    rulings = _rulings(0.1, n_prompts, repeats, n_runs, 0.1)

    assert rulings["passed"] <= 0.03 + _around(0.03, n_runs)
    assert rulings["failed"] <= 0.03 + _around(0.03, n_runs)


@pytest.mark.nightly
@pytest.mark.parametrize(
    ("n_prompts", "repeats", "limit", "share"),
    [
        (36, 3, 0.1, 0.53),
        (60, 3, 0.05, 0.25),
        (60, 3, 0.1, 0.87),
        (100, 3, 0.05, 0.55),
        (200, 3, 0.05, 0.89),
    ],
)
def test_an_unchanged_target_passes_as_often_as_the_page_says(
    n_prompts: int, repeats: int, limit: float, share: float
) -> None:
    """The table of docs/comparison.md for 3 repeats; those of one are summed exactly in the unit tests."""
    n_runs = 200

    assert abs(_rulings(0, n_prompts, repeats, n_runs, limit)["passed"] - share) <= 0.03 + _around(
        share, n_runs
    )


@pytest.mark.parametrize(
    ("model", "repeats", "n_runs"),
    [
        ("prompts differ, 70 %", 1, 100),
        *(
            pytest.param(model, repeats, 500, marks=pytest.mark.nightly)
            for model in POOLED
            for repeats in (1, 3)
        ),
    ],
)
def test_a_pool_of_baselines_raises_no_more_alarms_than_one(model: str, repeats: int, n_runs: int) -> None:
    """Where nothing has changed, "worse" and "better" in at most 2.5 of 100 comparisons each."""
    rng = random.Random(f"{model} {repeats}")
    words = []
    for _ in range(n_runs):
        verdicts = _runs(model, rng, repeats, 4)
        candidate, first, *others = (rows_of(rng, TARGET, one) for one in verdicts)
        pool = [pair_cells(rows, candidate, [(TARGET, TARGET)], Obstacles()) for rows in others]
        compared = compare_records(
            first, candidate, [(TARGET, TARGET)], Obstacles(), baseline="base", pool=pool
        )
        words.append(compared.targets[0].verdicts.word)

    assert words.count("worse") / n_runs <= 0.025 + _around(0.025, n_runs)
    assert words.count("better") / n_runs <= 0.025 + _around(0.025, n_runs)


def _runs(model: str, rng: random.Random, repeats: int, n: int) -> list[Verdicts]:
    """Return the verdicts of several runs of one model, whose prompts keep their rates."""
    mean, resemblance, all_alike = POOLED[model]
    size = 1 / resemblance - 1
    rates = [rng.betavariate(mean * size, (1 - mean) * size) for _ in range(36)]
    return [
        [
            [rng.random() < rate] * repeats if all_alike else [rng.random() < rate for _ in range(repeats)]
            for rate in rates
        ]
        for _ in range(n)
    ]
