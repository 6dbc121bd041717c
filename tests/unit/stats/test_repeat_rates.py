"""The results of a prompt's repeats."""

from __future__ import annotations

from itertools import combinations
from statistics import fmean

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_openclaw.stats.repeats import pass_at_k, pass_hat_k, repeats_of
from tests.unit.reports.summaries import fault, missed, record, summary_of

askings = st.lists(st.booleans(), min_size=2, max_size=7)


def _rows(*prompts: tuple[int, int]) -> list[object]:
    """Prompts, each with `passed` of `n` repeats."""
    return [
        (record if repeat <= passed else missed)(prompt_id=f"P{number}", repeat=repeat)
        for number, (passed, n) in enumerate(prompts, start=1)
        for repeat in range(1, n + 1)
    ]


@given(askings, st.data())
def test_they_are_the_shares_of_all_choices_of_k(passed: list[bool], data: st.DataObject) -> None:
    """They are the shares of all choices of k repeats in which one passes, and in which all do."""
    k = data.draw(st.integers(1, len(passed)))
    choices = list(combinations(passed, k))

    assert pass_at_k(len(passed), sum(passed), k) == pytest.approx(fmean(map(any, choices)))
    assert pass_hat_k(len(passed), sum(passed), k) == pytest.approx(fmean(map(all, choices)))


@pytest.mark.parametrize(("n", "n_success", "k"), [(3, 1, 4), (3, 1, 0), (3, 4, 1), (3, -1, 1)])
def test_the_impossible_is_refused(n: int, n_success: int, k: int) -> None:
    """Three repeats say nothing of four."""
    for function in (pass_at_k, pass_hat_k):
        with pytest.raises(ValueError, match=r"say nothing|impossible"):
            function(n, n_success, k)


def test_prompts_are_averaged() -> None:
    """Each prompt counts once, whatever its repeats; the figures by hand."""
    found = repeats_of(_rows((1, 2), (2, 2), (0, 3)))

    assert found is not None
    assert [(at.k, at.pass_at_k, at.pass_hat_k, at.n_prompts) for at in found.k] == [
        (1, 0.5, 0.5, 3),
        (2, pytest.approx(2 / 3), pytest.approx(1 / 3), 3),
    ]
    assert found.flip_rate == pytest.approx(1 / 3)
    assert [(prompt.prompt_id, prompt.n_success, prompt.n) for prompt in found.flakiest] == [("P1", 1, 2)]


def test_a_prompt_with_lost_repeats_does_not_hide_the_others() -> None:
    """The k is the number of repeats that at least half of the prompts have; others are left out."""
    found = repeats_of(_rows((5, 5), (4, 5), (2, 2), (1, 1)))

    assert found is not None
    assert [at.n_prompts for at in found.k] == [3, 3, 2, 2, 2]
    assert [prompt.prompt_id for prompt in found.prompts] == ["P1", "P2", "P3"]


def test_the_plain_rate_has_the_interval_of_all_cells() -> None:
    """One of one equals `passed`, so both have the same value."""
    group = summary_of(_rows(*[(n % 6, 5) for n in range(30)])).groups[0]

    assert group.repeats is not None
    first, *others = group.repeats.k
    assert first.pass_at_k == pytest.approx(group.passed.rate)
    assert first.pass_at_k_interval_95 == first.pass_hat_k_interval_95 == group.passed.interval_95
    for at in others:
        assert at.pass_hat_k_interval_95 is not None
        assert at.pass_hat_k_interval_95.low < at.pass_hat_k < at.pass_hat_k_interval_95.high


def test_without_repeats_there_is_nothing_to_say() -> None:
    """Prompts asked once, and repeats without a reply or a verdict, do not count."""
    rows = [
        *_rows((1, 1), (0, 1)),
        fault(prompt_id="P1", repeat=2),
        record(prompt_id="P2", repeat=2, objective_pass=None),
    ]

    assert summary_of(rows).groups[0].repeats is None


def test_an_empty_reply_is_a_miss() -> None:
    """A repeat with an empty answer counts as in `passed`."""
    rows = [record(), record(repeat=2, success=False, objective_pass=None, failure_type="empty_response")]

    found = summary_of(rows).groups[0].repeats

    assert found is not None
    assert found.flip_rate == 1


def test_the_flakiest_are_five_at_most() -> None:
    """They are the prompts whose repeats disagree most, in order of their rows if equal."""
    found = repeats_of(_rows((1, 9), (8, 9), (4, 9), (2, 9), (5, 9), (3, 9), (0, 9), (9, 9)))

    assert found is not None
    assert [prompt.prompt_id for prompt in found.flakiest] == ["P3", "P5", "P6", "P4", "P1"]
