"""Tiers, and how sure one must be if it is looked at several times."""

from functools import cache
from math import sqrt
from pathlib import Path

import numpy as np
import pytest
from scipy import stats

from pytest_openclaw.parts.gates import GateSettings
from pytest_openclaw.parts.repeats import look_schedule
from pytest_openclaw.stats.intervals import LEVEL, sign_flip, wilson_95
from pytest_openclaw.stats.tool_use import classify_tier, is_conclusive, joint_z, joint_z_against
from pytest_openclaw.values.parts import whole
from pytest_openclaw.values.settings import Settings, looks_of
from tests.unit.reports.summaries import summary_of, tool_cells


@pytest.mark.parametrize(
    ("successes", "n", "tier"),
    [(4, 5, 1), (799, 1000, 2), (1, 2, 2), (499, 1000, 3), (0, 3, 3), (0, 0, None)],
)
def test_classify_tier(successes, n, tier):
    """The seed's thresholds, compared without rounding."""
    assert classify_tier(successes, n) == tier


@pytest.mark.parametrize(
    ("successes", "n", "tier", "conclusive"),
    [(24, 25, 1, True), (65, 100, 2, True), (1, 6, 3, False), (0, 6, 3, True)],
)
def test_a_tier_is_conclusive_if_its_whole_interval_is_inside(successes, n, tier, conclusive):
    """The interval is Wilson's."""
    assert is_conclusive(tier, wilson_95(successes, n)) is conclusive


@pytest.mark.parametrize(("n_targets", "smallest"), [(1, 16), (2, 21), (3, 23), (8, 30)])
def test_tiers_of_several_targets_hold_jointly(n_targets, smallest):
    """Bonferroni: each target gets its share of the 2.5 %, so that Tier 1 needs more prompts without a miss."""
    z = joint_z(n_targets)

    assert z == joint_z(n_targets, (5,)) == pytest.approx(stats.norm.isf(0.025 / n_targets))
    flawless = [n for n in range(1, 60) if is_conclusive(1, wilson_95(n, n, z=z))]
    assert flawless[0] == smallest


def _correlations(information):
    return np.array([[sqrt(min(a, b) / max(a, b)) for a in information] for b in information])


def _ever_above(z, correlations):
    """The chance that any of the standardized rates is above z, by SciPy's multivariate normal."""
    spread = stats.multivariate_normal(cov=correlations, allow_singular=True, seed=1)
    return float(1 - spread.cdf(np.full(len(correlations), z)))


@pytest.mark.parametrize(
    ("looks", "z"),
    [
        ((1, 2), 2.18),
        ((1, 3), 2.20),
        ((1, 2, 4), 2.31),
        ((1, 3, 10), 2.35),
        ((1, 2, 3, 4, 5), 2.41),
        ((1, 2, 3, 5, 10), 2.46),
        (tuple(range(1, 11)), 2.56),
    ],
)
def test_the_constants_of_pocock(looks, z):
    """For one target; the values for equal steps are in Jennison & Turnbull (2000), table 2.1."""
    assert joint_z(1, looks) == pytest.approx(z, abs=0.006)


@pytest.mark.parametrize(
    ("n_targets", "looks", "z"),
    [(1, (1, 3, 10), 2.578), (1, (1, 3), 2.511), (3, (1, 3, 10), 2.954), (1, (), 1.960)],
)
def test_the_limits_against_a_model_cover_the_looks_within_the_suite(n_targets, looks, z):
    """A claim against any target is wrong in 2.5 % of runs."""
    correlations = _correlations((12, 24, 48, *(200 * look for look in looks)))

    found = joint_z_against(n_targets, looks)

    assert found == pytest.approx(z, abs=0.002)
    if looks:
        assert _ever_above(found, correlations) == pytest.approx(0.025 / n_targets, rel=0.05)


@pytest.mark.parametrize("n_targets", [1, 3, 8])
@pytest.mark.parametrize("looks", [(1, 2), (1, 3), (1, 3, 5), (1, 3, 10)])
def test_they_spend_the_level_of_the_joint_normal_distribution(looks, n_targets):
    """Where repeats do not resemble each other, any look is wrong in 0.025 of cases over the targets."""
    found = _ever_above(joint_z(n_targets, looks), _correlations(looks))

    assert found == pytest.approx(0.025 / n_targets, rel=0.03)


@pytest.mark.parametrize(
    ("repeat", "looks"),
    [(1, (1,)), (2, (1, 2)), (3, (1, 3)), (5, (1, 3, 5)), (10, (1, 3, 10)), (30, (1, 3, 10, 30))],
)
def test_the_schedule_follows_from_the_most_repeats(repeat, looks):
    """After 1, 3 and 10 of them, and after the last."""
    assert look_schedule(whole(Settings)(repeat=repeat, until_conclusive=True)) == looks
    assert look_schedule(whole(Settings)(repeat=repeat)) == ()


@pytest.mark.parametrize(
    ("config", "looks"),
    [
        pytest.param({"until_conclusive": False, "looks": None}, (), id="fixed"),
        pytest.param({"until_conclusive": True, "looks": [1, 3, 10]}, (1, 3, 10), id="written"),
        pytest.param({}, (), id="none"),
        pytest.param({"until_conclusive": None, "looks": None, "parts": [{"until_conclusive": True, "looks": [1, 3]}, {"until_conclusive": True, "looks": [1, 2]}, {}]}, (1, 2, 3), id="merged"),
    ],
)  # fmt: skip
def test_a_stored_run_says_when_it_looked(config, looks):
    """A merged run had the looks of all its parts."""
    assert looks_of(config) == looks


def test_the_page_has_these_limits():
    """The table of docs/reference/statistics.md, for 1, 3 and 8 targets."""
    page = (Path(__file__).parents[3] / "docs/reference/statistics.md").read_text("utf-8")
    table = page.partition("| looks after repeats |")[2].partition("\n\n")[0].splitlines()[2:]
    rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in table]

    assert len(rows) == 6
    for schedule, _, *limits in rows:
        looks = tuple(int(look) for look in schedule.split(",")) if schedule != "one" else ()
        assert limits == [f"{joint_z(n_targets, looks):.3f}" for n_targets in (1, 3, 8)]


@pytest.mark.parametrize(("rate", "share"), [(0.85, 0.0975), (0.90, 0.3256), (0.95, 0.7593)])
def test_how_often_34_prompts_pass_a_tier_gate(rate, share):
    """`--openclaw-require-tier=1`, each prompt asked once."""
    passes = [
        summary_of(tool_cells(right, 34 - right), gates=GateSettings.of(require_tier=1)).verdict == "passed"
        for right in range(35)
    ]

    assert passes.index(True) == 32
    assert stats.binom.pmf(range(35), 34, rate)[passes].sum() == pytest.approx(share, abs=0.0005)


@cache
def _is_worse(worse, better):
    found = sign_flip([-1] * worse + [1] * better)
    return found.sign < 0 and found.p < LEVEL


def _share_seen(n, turned_worse, turned_better):
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
def test_how_many_prompts_show_a_loss(rate, loss, n):
    """The table of docs/reference/statistics.md: with one prompt less, four runs in five do not show it."""
    others = (rate - loss) / (1 - loss)
    turned_better = (1 - loss) * others * (1 - others)

    assert _share_seen(n, loss + turned_better, turned_better) >= 0.8
    assert _share_seen(n - 1, loss + turned_better, turned_better) < 0.8
