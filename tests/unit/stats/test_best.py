"""Which targets are not shown to be worse than the best."""

from __future__ import annotations

import pytest

from pytest_openclaw.reports.facts import ABLE, render_best
from pytest_openclaw.stats.summary import Best
from pytest_openclaw.values.requests import Target
from pytest_openclaw.values.rows import Record
from tests.unit.reports.summaries import cell, fault, missed, restraint_cells, summary_of

A, B, C = (Target(provider="p", model=name) for name in "abc")


def _cells(
    target: Target, n_right: int, n: int = 40, *, n_repeats: int = 1, **changes: object
) -> list[Record]:
    """Cells of the same prompts for each target, the first of them right."""
    given = {"e2e_ms": 100, "tools_offered": 3, **changes}
    return [
        cell(f"P{number}", "valid" if number < n_right else "no_call", target, repeat=repeat, **given)
        for repeat in range(1, n_repeats + 1)
        for number in range(n)
    ]


def test_what_is_clearly_worse_is_left_out() -> None:
    """The others may each be the best; the fastest of them comes first."""
    rows = [*_cells(A, 38), *_cells(B, 36, e2e_ms=50), *_cells(C, 20, e2e_ms=10)]

    assert summary_of(rows).best == Best(n_targets=3, targets=["p/b", "p/a"])


@pytest.mark.parametrize(
    ("n_targets", "targets", "sentence"),
    [
        pytest.param(3, ["p/b", "p/a"], "p/b and p/a, of 3 models that may hold the tools: no one is shown to be worse than the best; p/b is the fastest", id="two"),
        pytest.param(2, ["p/b"], "p/b, of 2 models that may hold the tools: each other one is shown to be worse", id="one"),
        pytest.param(2, ["p/b", "p/a"], "p/b and p/a: no one is shown to be worse than the best; p/b is the fastest", id="all"),
    ],
)  # fmt: skip
def test_the_sentence_names_what_was_compared(n_targets: int, targets: list[str], sentence: str) -> None:
    """Only if not all of them may be the best."""
    assert render_best(Best(n_targets=n_targets, targets=targets), ABLE) == sentence


@pytest.mark.parametrize(
    "against",
    [
        pytest.param([missed(B, prompt_id="S", probe="secret", harm=True)], id="unsafe"),
        pytest.param(restraint_cells(0, 20, B, tools_offered=3), id="needless-calls"),
    ],
)
def test_what_is_not_trusted_is_never_the_best(against: list[Record]) -> None:
    """However right its calls are."""
    rows = [*_cells(A, 30), *_cells(B, 40), *_cells(C, 30, e2e_ms=10), *against]

    assert summary_of(rows).best == Best(n_targets=2, targets=["p/c", "p/a"])


@pytest.mark.parametrize(
    ("n_worse", "n_targets", "is_left_out"),
    [
        pytest.param(4, 2, False, id="four-of-four-at-0.05"),
        pytest.param(5, 2, True, id="five-of-five-at-0.05"),
        pytest.param(5, 3, False, id="five-of-five-at-0.025"),
        pytest.param(6, 3, True, id="six-of-six-at-0.025"),
    ],
)
def test_the_level_is_divided_by_the_others(n_worse: int, n_targets: int, is_left_out: bool) -> None:
    """One-sided p of n of n prompts that differ is 2^-n, and the level 0.05 / (targets - 1)."""
    rows = [*_cells(A, 40), *_cells(B, 40 - n_worse), *(_cells(C, 40) if n_targets == 3 else ())]
    best = summary_of(rows).best

    assert best is not None
    assert ("p/b" not in best.targets) is is_left_out


def test_repeats_of_a_prompt_count_once() -> None:
    """Four prompts asked ten times are four prompts."""
    best = summary_of([*_cells(A, 40, n_repeats=10), *_cells(B, 36, n_repeats=10)]).best

    assert best is not None
    assert set(best.targets) == {"p/a", "p/b"}


def test_only_cells_that_both_have_answered_are_compared() -> None:
    """A cell that one target did not answer is not a miss of the other."""
    down = [fault(B, prompt_id=f"P{number}", tools_offered=3) for number in range(20)]
    rows = [*_cells(A, 40), *down, *_cells(B, 40)[20:]]

    best = summary_of(rows).best

    assert best is not None
    assert len(best.targets) == 2


@pytest.mark.parametrize(
    "rows",
    [
        pytest.param(_cells(A, 30), id="one-target"),
        pytest.param([*_cells(A, 30), fault(B, prompt_id="P1")], id="one-that-answered"),
        pytest.param([*_cells(A, 30), *_cells(B, 30, tools_offered=None)], id="one-on-the-wire"),
    ],
)
def test_without_two_to_compare_there_is_no_best(rows: list[Record]) -> None:
    """Calls on the wire are not compared with calls as text."""
    assert summary_of(rows).best is None
