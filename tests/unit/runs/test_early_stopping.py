"""The end of a target's repeats."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_openclaw.runs.session import Decision, EarlyStopping
from pytest_openclaw.stats.tool_use import is_futile, tool_use_of
from pytest_openclaw.values.requests import CellKey, Target
from pytest_openclaw.values.rows import Record
from tests.unit.reports.summaries import cell, fault, record

A = Target(provider="p", model="a")
B = Target(provider="p", model="b")
N = 11


def _row(number: int, repeat: int, *, used: bool, target: Target = A, **changes: Any) -> Record:
    outcome = "valid" if used else "no_call"
    return record(
        target, prompt_id=f"T{number}", repeat=repeat, tool_outcome=outcome, tool_use_success=used, **changes
    )


def _repeat(repeat: int, *, n_used: int = 0, first: int = 0) -> list[Record]:
    """A repeat of eleven tool prompts, of which `n_used` use a tool, starting with the `first`."""
    return [_row(n, repeat, used=first <= n < first + n_used) for n in range(N)]


def _stopping(
    n_cells: Mapping[tuple[Target, int], int],
    looks: tuple[int, ...],
    n_fixed: Mapping[tuple[Target, int], int] | None = None,
) -> EarlyStopping:
    """The decisions for so many cells by target and repeat, of which some are run in any case."""
    fixed = n_fixed or {}
    cells = {
        CellKey("s", f"T{n}", target, repeat): n < fixed.get((target, repeat), 0)
        for (target, repeat), total in n_cells.items()
        for n in range(total)
    }
    return EarlyStopping(cells, looks)


def _decisions(early_stopping: EarlyStopping, rows: Iterable[Record]) -> list[tuple[int, str | None]]:
    return [(made.repeat, made.ends) for row in rows for made in early_stopping.take(row)]


def test_a_conclusive_tier_ends_the_repeats() -> None:
    """It is decided with the last row of the conclusive repeat, not before."""
    early_stopping = _stopping({(A, n): N for n in (1, 2, 3)}, (1, 2, 3))
    rows = _repeat(1)

    assert _decisions(early_stopping, rows[:-1]) == []
    assert _decisions(early_stopping, rows[-1:]) == [(1, "tier 3 is settled after 1 repeat")]
    assert _decisions(early_stopping, _repeat(2)) == []
    assert early_stopping.ended == {A: 1}


def test_an_inconclusive_target_continues() -> None:
    """Rows of all repeats so far count together."""
    early_stopping = _stopping({(A, n): N for n in (1, 2, 3)}, (1, 2, 3))

    assert _decisions(early_stopping, _repeat(1, n_used=2)) == [(1, None)]
    assert _decisions(early_stopping, _repeat(2, n_used=2, first=2)) == [
        (2, "tier 3 is settled after 2 repeats")
    ]


def test_nothing_is_decided_on_the_last_repeat() -> None:
    """There is nothing to leave out after it."""
    early_stopping = _stopping({(A, 1): N, (A, 2): N}, (1, 2))

    assert _decisions(early_stopping, [*_repeat(1, n_used=6), *_repeat(2, n_used=6)]) == [(1, None)]
    assert early_stopping.ended == {}


def test_between_two_looks_no_tier_ends_the_repeats() -> None:
    """Each further look would be one more chance of a wrong tier."""
    early_stopping = _stopping({(A, n): N for n in range(1, 11)}, (1, 3, 10))
    rows = [row for n in (1, 2, 3) for row in _repeat(n, n_used=2, first=2 * n)]

    assert tool_use_of(rows[: 2 * N], 1, (1, 3, 10)).conclusive
    assert _decisions(early_stopping, rows) == [
        (1, None),
        (2, None),
        (3, "tier 3 is settled after 3 repeats"),
    ]


def test_a_server_that_answers_the_same_each_time_is_not_asked_again() -> None:
    """Its second repeat shows it, between two looks as well; its tier would be that of the first one."""
    early_stopping = _stopping({(A, n): N for n in range(1, 11)}, (1, 3, 10))
    ends = "all repeats are alike after 2 repeats: only new prompts can settle the tier"

    assert _decisions(early_stopping, [*_repeat(1, n_used=6), *_repeat(2, n_used=6)]) == [
        (1, None),
        (2, ends),
    ]
    assert early_stopping.ended == {A: 2}


def test_other_words_are_another_answer() -> None:
    """Equal verdicts do not make a server deterministic."""
    early_stopping = _stopping({(A, n): N for n in (1, 2, 3)}, (1, 3))
    second = [replace(row, output_tokens=10) for row in _repeat(2, n_used=6)]

    assert _decisions(early_stopping, [*_repeat(1, n_used=6), *second]) == [(1, None), (2, None)]


def test_what_more_repeats_would_hardly_settle_is_given_up() -> None:
    """From the second look on: where prompts end alike but for one, more repeats say nothing new."""
    early_stopping = _stopping({(A, n): N for n in range(1, 11)}, (1, 3, 10))
    rows = [row for n in (1, 2, 3) for row in _repeat(n, n_used=6 + (n == 2))]
    ends = "more repeats would hardly settle the tier after 3 repeats: new prompts can"

    assert _decisions(early_stopping, rows) == [(1, None), (2, None), (3, ends)]


def test_needless_calls_are_never_futile() -> None:
    """Whether they are too many is a second rate, which may go either way."""
    rows = [
        *(_row(n, repeat, used=True) for repeat in (1, 2) for n in range(30)),
        *(
            cell(f"C{n}", "called_needlessly" if n < repeat else "restrained", A, repeat=repeat)
            for repeat in (1, 2)
            for n in range(6)
        ),
    ]
    use = tool_use_of(rows, 1, (1, 2, 10))

    assert (use.capped_by, use.conclusive) == ("restraint", False)
    assert not is_futile(rows, use)


@given(order=st.permutations(range(3 * N)))
def test_speed_decides_nothing(order: list[int]) -> None:
    """In whatever order the rows arrive, the decisions are the same, one after the other."""
    early_stopping = _stopping({(A, n): N for n in (1, 2, 3, 4)}, (1, 2, 4))
    rows = [*_repeat(1, n_used=2), *_repeat(2, n_used=2, first=2), *_repeat(3, n_used=N)]

    assert _decisions(early_stopping, [rows[n] for n in order]) == [
        (1, None),
        (2, "tier 3 is settled after 2 repeats"),
    ]


def test_cells_that_were_left_out_are_not_awaited() -> None:
    """A cell that a mark skips has no row, and the repeat ends without it."""
    early_stopping = _stopping({(A, 1): N + 1, (A, 2): N}, (1, 2))

    assert _decisions(early_stopping, _repeat(1, n_used=6)) == []
    assert [*early_stopping.leave_out(A, 1)] == [Decision(target=A, repeat=1, ends=None)]


def test_repeats_that_were_not_selected_block_nothing() -> None:
    """With node ids a session may have the third repeat alone."""
    early_stopping = _stopping({(A, 3): 2}, (1, 3))

    assert [made.repeat for made in early_stopping.begin()] == [1, 2]


@pytest.mark.parametrize(
    ("n_answered", "ends"),
    [
        pytest.param(0, "nothing was answered in repeat 1", id="nothing"),
        pytest.param(1, None, id="something"),
    ],
)
def test_a_target_without_a_reply_is_not_asked_again(n_answered: int, ends: str | None) -> None:
    """A target that is unavailable would be unavailable the next time."""
    early_stopping = _stopping({(A, 1): 4, (A, 2): 4}, (1, 2))
    rows = [_row(n, 1, used=True) if n < n_answered else fault(A, prompt_id=f"T{n}") for n in range(4)]

    assert _decisions(early_stopping, rows) == [(1, ends)]


def test_each_target_is_decided_on_for_itself() -> None:
    """The rows of one target do not affect another, nor does a target that is not repeated."""
    early_stopping = _stopping({(A, 1): 1, (A, 2): 1}, (1, 2))

    assert _decisions(early_stopping, [_row(1, 1, used=True, target=B)]) == []
    assert _decisions(early_stopping, [_row(1, 1, used=True)]) == [(1, None)]


def test_fixed_repeats_are_awaited_and_not_decided_on() -> None:
    """Their rows belong to their repeats; if nothing else would be left out there is nothing to decide."""
    early_stopping = _stopping(
        {(A, 1): N + 1, (A, 2): N + 1, (A, 3): 1}, (1, 2), {(A, n): 1 for n in (1, 2, 3)}
    )
    own = [record(A, prompt_id="F1", repeat=n) for n in (1, 2, 3)]

    assert _decisions(early_stopping, _repeat(1, n_used=6)) == []
    assert _decisions(early_stopping, own[:1]) == [(1, None)]
    assert _decisions(early_stopping, [*_repeat(2, n_used=6), *own[1:]]) == []
    assert early_stopping.ended == {}


def test_a_target_with_nothing_but_numbers_of_its_own_is_never_ended() -> None:
    """All its cells are asked in any case."""
    early_stopping = _stopping({(A, 1): N, (A, 2): N}, (1, 2), {(A, 1): N, (A, 2): N})

    assert _decisions(early_stopping, [*_repeat(1), *_repeat(2)]) == []
