"""Shared results are compared prompt by prompt, and grouped by what is shown."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_openclaw.stats.shared_results import PromptCounts, SharedResult, compare_shared, leaders
from pytest_openclaw.stats.significance import sign_flip


def _result(right: Sequence[int], *, n: int = 1, first: int = 0, **conditions: object) -> SharedResult:
    """A target with so many right calls of `n` in each prompt, prompts numbered from `first`."""
    names = [f"{number:016x}" for number in range(first, first + len(right))]
    return SharedResult(
        name="lab/a",
        source="a.json",
        figures={},
        conditions=conditions,
        prompts={name: PromptCounts(n, one, n, one) for name, one in zip(names, right, strict=True)},
        clusters={name: name for name in names},
    )


def test_only_common_prompts_count() -> None:
    """Prompts that one of them was not asked make no difference."""
    found = compare_shared(_result([1] * 10), _result([0] * 10, first=4))

    assert (found.n_prompts, found.difference) == (6, 1.0)
    assert found.p == sign_flip([1] * 6).p == pytest.approx(2 / 2**6)


def test_without_a_common_prompt_nothing_is_known() -> None:
    """There is neither a difference nor an interval, and none is shown."""
    found = compare_shared(_result([1] * 10), _result([0] * 10, first=20))

    assert (found.n_prompts, found.difference, found.interval_95, found.p) == (0, None, None, 1.0)


def test_repeats_of_a_prompt_are_one_unit() -> None:
    """Four repeats of each prompt are no more evidence than one."""
    once = compare_shared(_result([1] * 6), _result([0] * 6))
    often = compare_shared(_result([4] * 6, n=4), _result([0] * 6, n=4))

    assert often.p == once.p
    assert often.interval_95 == once.interval_95


def test_other_conditions_are_named() -> None:
    """A setting that is not equal, or that only one of them has."""
    found = compare_shared(_result([1], temperature=0, surface=None), _result([1], temperature=1, seed=3))

    assert found.other_conditions == ["seed", "temperature"]


def test_equal_results_are_not_certainly_equal() -> None:
    """The interval of no difference over five prompts is wide."""
    found = compare_shared(_result([0] * 5), _result([0] * 5))

    assert found.interval_95 is not None
    assert found.interval_95.high - found.interval_95.low > 0.5


@given(st.lists(st.tuples(st.integers(0, 3), st.integers(0, 3)), max_size=12))
def test_the_difference_turns_its_sign_with_the_sides(pairs: list[tuple[int, int]]) -> None:
    """Both sides see the same p, and opposite differences and intervals."""
    one, other = (_result([pair[side] for pair in pairs], n=3) for side in (0, 1))

    there, back = compare_shared(one, other), compare_shared(other, one)

    assert (there.n_prompts, there.p) == (back.n_prompts, back.p)
    if there.difference is not None and there.interval_95 and back.interval_95:
        exact = sum(Fraction(a - b, 3) for a, b in pairs) / len(pairs)
        assert there.difference == pytest.approx(float(exact))
        assert there.interval_95.low == pytest.approx(-back.interval_95.high)
        assert there.interval_95.low <= there.difference <= there.interval_95.high


def test_leaders_are_those_not_shown_to_be_worse() -> None:
    """A target that misses all is out; one that differs in a prompt is not; one without common prompts is not."""
    best, near, bad = _result([1] * 20), _result([1] * 19 + [0]), _result([0] * 20)
    elsewhere = _result([0] * 20, first=100)

    assert leaders([best, bad, near, elsewhere]) == {0, 2, 3}


@given(st.lists(st.lists(st.integers(0, 1), min_size=8, max_size=8), min_size=1, max_size=4))
def test_there_is_always_a_leader(rates: list[list[int]]) -> None:
    """The one with the most right calls is never shown to be worse."""
    most = max(range(len(rates)), key=lambda place: sum(rates[place]))

    assert most in leaders([_result(right) for right in rates])


def test_a_target_under_other_conditions_makes_no_other_one_worse() -> None:
    """Another temperature, surface or release measures another thing."""
    good, same, other = _result([1] * 20, temperature=0.7), _result([1] * 20), _result([0] * 20)

    assert leaders([good, other]) == {0, 1}
    assert leaders([same, other]) == {0}
