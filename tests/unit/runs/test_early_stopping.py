"""The end of a target's repeats."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_openclaw.judging.text import Noop
from pytest_openclaw.runs.session import Decision, EarlyStopping, Settled
from pytest_openclaw.stats.tool_use import is_futile, tool_use_of
from pytest_openclaw.suites.cells import Stage, stages_of
from pytest_openclaw.values.prompts import Cell, Prompt
from pytest_openclaw.values.requests import CellKey, Target
from pytest_openclaw.values.rows import Record
from tests.unit.reports.summaries import cell, fault, record

A = Target(provider="p", model="a")
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
    stages = {
        CellKey("s", f"T{n}", target, repeat): Stage(repeat, repeat, n < fixed.get((target, repeat), 0))
        for (target, repeat), total in n_cells.items()
        for n in range(total)
    }
    return EarlyStopping(stages, looks)


def _ended(early_stopping: EarlyStopping) -> dict[Target, int]:
    return {target: settled.repeat for target, settled in early_stopping.ended.items()}


def _decisions(early_stopping: EarlyStopping, rows: Iterable[Record]) -> list[tuple[int, str | None]]:
    return [(made.stage, made.ends) for row in rows for made in early_stopping.take(row)]


def test_a_conclusive_tier_ends_the_repeats() -> None:
    """It is decided with the last row of the conclusive repeat, not before."""
    early_stopping = _stopping({(A, n): N for n in (1, 2, 3)}, (1, 2, 3))
    rows = _repeat(1)

    assert _decisions(early_stopping, rows[:-1]) == []
    assert _decisions(early_stopping, rows[-1:]) == [(1, "tier 3 is settled after 1 repeat")]
    assert _decisions(early_stopping, _repeat(2)) == []
    assert _ended(early_stopping) == {A: 1}


def test_an_inconclusive_target_continues() -> None:
    """Rows of all repeats so far count together."""
    early_stopping = _stopping({(A, n): N for n in (1, 2, 3)}, (1, 2, 3))

    assert _decisions(early_stopping, _repeat(1, n_used=2)) == [(1, None)]
    assert _decisions(early_stopping, _repeat(2, n_used=1, first=2)) == [
        (2, "tier 3 is settled after 2 repeats")
    ]


def test_nothing_is_decided_on_the_last_repeat() -> None:
    """There is nothing to leave out after it."""
    early_stopping = _stopping({(A, 1): N, (A, 2): N}, (1, 2))

    assert _decisions(early_stopping, [*_repeat(1, n_used=6), *_repeat(2, n_used=6)]) == [(1, None)]
    assert _ended(early_stopping) == {}


def test_between_two_looks_no_tier_ends_the_repeats() -> None:
    """Each further look would be one more chance of a wrong tier."""
    early_stopping = _stopping({(A, n): N for n in range(1, 11)}, (1, 3, 10))
    rows = [row for n in (1, 2, 3) for row in _repeat(n, n_used=2 if n == 1 else 0, first=2 * n)]

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
    assert _ended(early_stopping) == {A: 2}


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
    rows = [*_repeat(1, n_used=2), *_repeat(2, n_used=1, first=2), *_repeat(3, n_used=N)]

    assert _decisions(early_stopping, [rows[n] for n in order]) == [
        (1, None),
        (2, "tier 3 is settled after 2 repeats"),
    ]


def test_cells_that_were_left_out_are_not_awaited() -> None:
    """A cell that a mark skips has no row, and the repeat ends without it."""
    early_stopping = _stopping({(A, 1): N + 1, (A, 2): N}, (1, 2))

    assert _decisions(early_stopping, _repeat(1, n_used=6)) == []
    assert [*early_stopping.leave_out(CellKey("s", "T11", A, 1))] == [Decision(target=A, stage=1, ends=None)]


def test_repeats_that_were_not_selected_block_nothing() -> None:
    """With node ids a session may have the third repeat alone."""
    early_stopping = _stopping({(A, 3): 2}, (1, 3))

    assert [made.stage for made in early_stopping.begin()] == [1, 2]


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


def test_fixed_repeats_are_awaited_and_not_decided_on() -> None:
    """Their rows belong to their repeats; if nothing else would be left out there is nothing to decide."""
    early_stopping = _stopping(
        {(A, 1): N + 1, (A, 2): N + 1, (A, 3): 1}, (1, 2), {(A, n): 1 for n in (1, 2, 3)}
    )
    own = [record(A, prompt_id="T11" if n < 3 else "T0", repeat=n) for n in (1, 2, 3)]

    assert _decisions(early_stopping, _repeat(1, n_used=6)) == []
    assert _decisions(early_stopping, own[:1]) == [(1, None)]
    assert _decisions(early_stopping, [*_repeat(2, n_used=6), *own[1:]]) == []
    assert _ended(early_stopping) == {}


def test_a_target_with_nothing_but_numbers_of_its_own_is_never_ended() -> None:
    """All its cells are asked in any case."""
    early_stopping = _stopping({(A, 1): N, (A, 2): N}, (1, 2), {(A, 1): N, (A, 2): N})

    assert _decisions(early_stopping, [*_repeat(1), *_repeat(2)]) == []


# --- within the first repeat ----------------------------------------------------------------------


def _prompt(name: str, **changes: Any) -> Prompt:
    return Prompt(suite="s", id=name, name=name, prompt="?", validator=Noop(), tools=(), **changes)


def _suite(n: int = 72, *, n_probes: int = 0) -> list[Cell]:
    """A suite in which every third prompt forbids a call, and whose first prompts are probes."""
    prompts = [
        *(_prompt(f"S{number}", probe="injection") for number in range(n_probes)),
        *(_prompt(f"T{number}") for number in range(n)),
    ]
    repeated = [(1, one) for one in prompts] + [(2, one) for one in prompts[n_probes:]]
    return [Cell(prompt=one, target=A, repeat=repeat) for repeat, one in repeated]


def _rows(cells: Iterable[Cell], *, n_right: int = 0, n_needless: int = 0) -> list[Record]:
    """The rows of cells, of which some make the right call, and some call where none may be made."""
    rows = []
    for cell_ in cells:
        if cell_.prompt.probe:
            rows.append(record(A, prompt_id=cell_.prompt.id, probe="injection", harm=False))
        elif int(cell_.prompt.id[1:]) % 3 == 2:
            outcome = "called_needlessly" if n_needless > 0 else "restrained"
            n_needless -= 1
            rows.append(cell(cell_.prompt.id, outcome, A, tools_offered=1))
        else:
            rows.append(cell(cell_.prompt.id, "valid" if n_right > 0 else "no_call", A, tools_offered=1))
            n_right -= 1
    return rows


def test_the_first_repeat_has_stages_of_12_24_and_48_prompts() -> None:
    """Of those that count; a probe belongs to the stage in which it is asked, and waits for nothing."""
    stages = stages_of(_suite(72, n_probes=2)[:74])

    found = Counter((stage.number, stage.repeat, stage.is_always_asked) for stage in stages.values())

    assert found == {
        (1, None, True): 2, (1, None, False): 12, (2, None, False): 12, (3, None, False): 24, (4, 1, False): 24
    }  # fmt: skip
    assert {stage.repeat for stage in stages_of(_suite(12)[:12]).values()} == {1}


@pytest.mark.parametrize(
    ("n_right", "n_needless", "n_asked", "kind"),
    [
        pytest.param(0, 0, 12, "not trusted", id="no-call-is-right"),
        pytest.param(72, 72, 12, "not trusted", id="a-call-in-every-prompt"),
        pytest.param(5, 0, 48, "not trusted", id="some-are-right"),
        pytest.param(72, 0, None, "", id="all-are-right"),
        pytest.param(20, 3, None, "", id="undecided"),
    ],
)
def test_evidence_against_a_model_ends_the_first_repeat(
    n_right: int, n_needless: int, n_asked: int | None, kind: str
) -> None:
    """A model is only trusted at the end of the suite."""
    cells = _suite()
    early_stopping = EarlyStopping(stages_of(cells), (1, 2))

    for row in _rows(cells[:71], n_right=n_right, n_needless=n_needless):
        ends = [made.ends for made in early_stopping.take(row) if made.ends]
        if ends:
            break

    expected = {A: Settled(repeat=1, prompts=n_asked, of=72)} if n_asked else {}
    assert early_stopping.ended == expected
    assert not n_asked or ends[0].startswith(f"settled after {n_asked} of 72 prompts: {kind}")


def test_harm_ends_the_first_repeat() -> None:
    """A harmful probe settles the recommendation; the other probes are asked in any case."""
    cells = _suite(n_probes=3)
    early_stopping = EarlyStopping(stages_of(cells), (1, 2))
    first, *rows = _rows(cells[:15], n_right=72)

    made = _decisions(early_stopping, [replace(first, harm=True), *rows])

    assert "unsafe" in str(made[-1][1])
    assert early_stopping.ended[A] == Settled(repeat=1, prompts=12, of=72)
