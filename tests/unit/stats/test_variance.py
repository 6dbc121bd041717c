"""Parts of the variance of a rate, and the interval if categories are a sample."""

from __future__ import annotations

import numpy as np
import pytest

from pytest_openclaw.stats.intervals import Cluster, clustered_95, effective_n
from pytest_openclaw.stats.rates import cluster_of, rate_of
from pytest_openclaw.stats.variance import variance_parts
from pytest_openclaw.types.records import Record
from tests.unit.reports.summaries import record, summary_of


def _cell(category: str, prompt: int, wording: int, repeat: int, passed: bool) -> Record:
    variant = {"variant_of": f"s::{category}{prompt}"} if wording else {}
    return record(
        prompt_id=f"{category}{prompt}{'x' * wording}", category=category, repeat=repeat, objective_pass=passed, **variant
    )  # fmt: skip


def _parts(cells: list[Record]) -> dict[str, tuple[int, float | None]]:
    return {
        part.level: (part.n, part.variance)
        for part in variance_parts(cells, lambda cell: cell.objective_pass is True)
    }


def test_the_parts_are_those_that_the_cells_were_made_of() -> None:
    """Of many cells with known variances: each level is found, and together they are p (1 - p)."""
    source = np.random.default_rng(7)
    cells = []
    for category in range(300):
        of_category = source.choice((-0.2, 0.2))
        for prompt in range(4):
            of_prompt = of_category + source.choice((-0.15, 0.15))
            for wording in range(2):
                rate = 0.5 + of_prompt + source.choice((-0.1, 0.1))
                cells += [
                    _cell(f"c{category}-", prompt, wording, repeat, bool(source.random() < rate))
                    for repeat in (1, 2, 3)
                ]

    found = {level: variance for level, (_, variance) in _parts(cells).items()}

    assert found["category"] == pytest.approx(0.04, abs=0.01)
    assert found["prompt"] == pytest.approx(0.0225, abs=0.008)
    assert found["wording"] == pytest.approx(0.01, abs=0.008)
    assert found["repeat"] == pytest.approx(0.25 - 0.04 - 0.0225 - 0.01, abs=0.01)


def test_parts_of_a_few_cells_by_hand() -> None:
    """Two categories of two prompts, asked twice: products of pairs, level by level."""
    passed = {("a", 1): (1, 1), ("a", 2): (1, 0), ("b", 1): (0, 0), ("b", 2): (1, 1)}
    cells = [
        _cell(category, prompt, 0, repeat, bool(one))
        for (category, prompt), its in passed.items()
        for repeat, one in enumerate(its, 1)
    ]

    # One wording: 2 of 4 pairs passed twice; within a category 2 of 8 pairs of unequal prompts; across 6 of 16.
    assert _parts(cells) == {
        "category": (2, pytest.approx(max(0.0, 2 / 8 - 6 / 16))),
        "prompt": (4, pytest.approx(2 / 4 - 2 / 8)),
        "wording": (4, None),
        "repeat": (8, pytest.approx(5 / 8 - 2 / 4)),
    }


@pytest.mark.parametrize(
    ("cells", "known"),
    [
        pytest.param([_cell("a", n, 0, 1, n < 6) for n in range(9)], {"prompt"}, id="asked-once"),
        pytest.param([_cell("ab"[n % 2], n, 0, 1, n < 6) for n in range(9)], {"category", "prompt"}, id="categories"),
        pytest.param([_cell("a", n, 0, r, n < 6) for n in range(9) for r in (1, 2)], {"prompt", "repeat"}, id="repeats"),
        pytest.param([_cell("a", n, w, 1, n < 6) for n in range(9) for w in (0, 1)], {"prompt", "wording"}, id="wordings"),
        pytest.param([_cell("a", 1, 0, 1, True)], set(), id="one-cell"),
    ],
)  # fmt: skip
def test_what_cannot_be_separated_is_part_of_the_level_above(cells: list[Record], known: set[str]) -> None:
    """A level that occurs once in each group of the level above has no variance of its own."""
    assert {level for level, (_, variance) in _parts(cells).items() if variance is not None} == known


def test_a_summary_has_the_parts_of_its_rate() -> None:
    """Without probes and harder forms; nothing of no cell."""
    rows = [_cell("a", n, 0, 1, n < 6) for n in range(9)]
    apart = [record(prompt_id="S", probe="secret"), record(prompt_id="X-2k", pressure_of="X")]

    (group,) = summary_of([*rows, *apart]).groups

    assert [(part.level, part.n) for part in group.variance] == [
        ("category", 1), ("prompt", 9), ("wording", 9), ("repeat", 9),
    ]  # fmt: skip
    prompt = group.variance[1]
    assert prompt.variance is not None
    assert prompt.of_rate == pytest.approx(prompt.variance / 9)
    assert summary_of([record(objective_pass=None)]).groups[0].variance == []


def test_wordings_of_a_prompt_are_one_cluster() -> None:
    """Also where they are in different files, as are a second wording of each and the first."""
    first = record(suite="b/prompts_a.toml", prompt_id="P1")
    second = record(suite="b/prompts_b.toml", prompt_id="P1w", variant_of="b/prompts_a.toml::P1")

    assert cluster_of(first) == cluster_of(second) == ("b/prompts_a.toml", "P1")
    rate = rate_of([first, second], lambda row: row.objective_pass is True)
    assert (rate.n, rate.n_effective) == (2, 1.0)


def test_the_interval_of_categories_is_that_of_as_many_clusters() -> None:
    """Without the limit by the number of clusters, which is for prompts; None of a single category."""
    right = {"a": 8, "b": 5, "c": 8}
    rows = [_cell(category, n, 0, 1, n < right[category]) for category in right for n in range(8)]
    clusters = [Cluster(n, 8) for n in right.values()]

    rate = rate_of(rows, lambda row: row.objective_pass is True)

    assert rate.category_interval_95 == clustered_95(clusters, limited=False)
    assert rate.category_interval_95 is not None
    assert rate.interval_95 is not None
    assert rate.category_interval_95.low < rate.interval_95.low
    assert effective_n(clusters, limited=False) > effective_n(clusters)
    assert rate_of(rows[:8], lambda row: row.objective_pass is True).category_interval_95 is None
