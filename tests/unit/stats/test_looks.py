"""How sure a tier must be when it is looked at several times."""

from __future__ import annotations

from math import sqrt
from pathlib import Path

import numpy as np
import pytest
from scipy import stats

from pytest_openclaw.stats.tiers import joint_z, joint_z_against
from pytest_openclaw.values.settings import Settings, looks_of


def _correlations(looks: tuple[int, ...], resemblance: float) -> np.ndarray:
    """Of the rates after so many repeats, from the covariances of a prompt's cells.

    Two cells of a prompt have the covariance `resemblance`, one with itself 1. The mean of the first r and
    that of the first s then have the mean of r * s such entries.
    """
    n = max(looks)
    cells = np.full((n, n), resemblance) + (1 - resemblance) * np.eye(n)
    covariances = np.array([[cells[:r, :s].mean() for s in looks] for r in looks])
    spreads = np.sqrt(np.diag(covariances))
    return covariances / np.outer(spreads, spreads)


def _ever_above(z: float, correlations: np.ndarray) -> float:
    """The chance that any of the standardized rates is above z, by SciPy's multivariate normal."""
    spread = stats.multivariate_normal(cov=correlations, allow_singular=True, seed=1)
    return float(1 - spread.cdf(np.full(len(correlations), z)))


@pytest.mark.parametrize(
    ("looks", "z"),
    [
        pytest.param((1, 2), 2.18, id="two"),
        pytest.param((1, 3), 2.20, id="one-and-three"),
        pytest.param((1, 2, 4), 2.31, id="doubled"),
        pytest.param((1, 3, 10), 2.35, id="as-shipped"),
        pytest.param((1, 2, 3, 4, 5), 2.41, id="each-of-five"),
        pytest.param((1, 2, 3, 5, 10), 2.46, id="five-of-ten"),
        pytest.param(tuple(range(1, 11)), 2.56, id="each-of-ten"),
    ],
)
def test_the_constants_of_pocock(looks: tuple[int, ...], z: float) -> None:
    """For one target; the values for equal steps are in Jennison & Turnbull (2000), table 2.1."""
    assert joint_z(1, looks) == pytest.approx(z, abs=0.006)


@pytest.mark.parametrize(
    ("n_targets", "looks", "z"),
    [
        pytest.param(1, (1, 3, 10), 2.578, id="as-shipped"),
        pytest.param(1, (1, 3), 2.511, id="at-most-three-repeats"),
        pytest.param(3, (1, 3, 10), 2.954, id="three-targets"),
        pytest.param(1, (), 1.960, id="a-fixed-number"),
    ],
)
def test_the_limits_against_a_model_cover_the_looks_within_the_suite(
    n_targets: int, looks: tuple[int, ...], z: float
) -> None:
    """A claim against any target is wrong in 2.5 % of runs."""
    information = (12, 24, 48, *(200 * look for look in looks))
    correlations = np.array([[sqrt(min(a, b) / max(a, b)) for a in information] for b in information])

    found = joint_z_against(n_targets, looks)

    assert found == pytest.approx(z, abs=0.002)
    if looks:
        assert _ever_above(found, correlations) == pytest.approx(0.025 / n_targets, rel=0.05)


@pytest.mark.parametrize("n_targets", [1, 3, 8])
@pytest.mark.parametrize("looks", [(1, 2), (1, 3), (1, 3, 5), (1, 3, 10)])
def test_they_spend_the_level_of_the_joint_normal_distribution(
    looks: tuple[int, ...], n_targets: int
) -> None:
    """Where repeats do not resemble each other, any look is wrong in 0.025 of cases over the targets."""
    level = 0.025 / n_targets

    found = _ever_above(joint_z(n_targets, looks), _correlations(looks, 0))

    assert found == pytest.approx(level, rel=0.03)


@pytest.mark.parametrize("looks", [(1, 3), (1, 3, 10)])
def test_resemblance_makes_errors_rarer(looks: tuple[int, ...]) -> None:
    """Looks at prompts that end alike see the same, so that 0 is the worst case."""
    z = joint_z(1, looks)
    errors = [_ever_above(z, _correlations(looks, resemblance)) for resemblance in (0, 0.2, 0.5, 0.9)]

    assert errors == sorted(errors, reverse=True)
    assert errors[-1] < 0.02


@pytest.mark.parametrize(("n_targets", "looks"), [(1, ()), (1, (1,)), (3, ()), (3, (5,))])
def test_a_fixed_number_of_repeats_is_one_look(n_targets: int, looks: tuple[int, ...]) -> None:
    """With nothing but the targets to account for."""
    assert joint_z(n_targets, looks) == pytest.approx(stats.norm.isf(0.025 / n_targets))


@pytest.mark.parametrize(
    ("repeat", "looks"),
    [(1, (1,)), (2, (1, 2)), (3, (1, 3)), (5, (1, 3, 5)), (10, (1, 3, 10)), (30, (1, 3, 10, 30))],
)
def test_the_schedule_follows_from_the_most_repeats(repeat: int, looks: tuple[int, ...]) -> None:
    """After 1, 3 and 10 of them, and after the last."""
    assert Settings(repeat=repeat, until_conclusive=True).looks == looks
    assert Settings(repeat=repeat).looks == ()


@pytest.mark.parametrize(
    ("config", "looks"),
    [
        pytest.param({"repeat": 5, "until_conclusive": False, "looks": None}, (), id="fixed"),
        pytest.param({"repeat": 10, "until_conclusive": True, "looks": [1, 3, 10]}, (1, 3, 10), id="written"),
        pytest.param({}, (), id="none"),
        pytest.param({"until_conclusive": None, "looks": None, "parts": [{"until_conclusive": True, "looks": [1, 3]}, {"until_conclusive": True, "looks": [1, 2]}, {}]}, (1, 2, 3), id="merged"),
    ],
)  # fmt: skip
def test_a_stored_run_says_when_it_looked(config: dict[str, object], looks: tuple[int, ...]) -> None:
    """A merged run had the looks of all its parts."""
    assert looks_of(config) == looks


def test_the_page_has_these_limits() -> None:
    """The table of docs/statistics.md, for 1, 3 and 8 targets."""
    page = (Path(__file__).parents[3] / "docs/statistics.md").read_text("utf-8")
    table = page.partition("| looks after repeats |")[2].partition("\n\n")[0].splitlines()[2:]
    rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in table]

    assert len(rows) == 6
    for schedule, _, *limits in rows:
        looks = [int(look) for look in schedule.split(",")] if schedule != "one" else []
        assert limits == [f"{joint_z(n_targets, looks):.3f}" for n_targets in (1, 3, 8)]
