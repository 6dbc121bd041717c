"""Records in columns have the figures of the records themselves."""

from __future__ import annotations

from dataclasses import fields, replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_openclaw.stats.bounds import bounds_of
from pytest_openclaw.stats.groups import Snapshots, summarize_group
from pytest_openclaw.stats.record_table import INTEGERS, LEFT_OUT, NUMBERS, SHARED, RecordTable
from pytest_openclaw.stats.sampling import PER_KIND, sample_of
from pytest_openclaw.types.records import Record
from tests.searching import examples
from tests.unit.stored.stored_runs import A, B, row

IN_COLUMNS = {*INTEGERS, *NUMBERS, *(name for names in SHARED for name in names), "turns", "cut", "reruns"}


def test_every_field_of_a_record_is_kept_or_left_out() -> None:
    """A new field must be given a place."""
    assert IN_COLUMNS | LEFT_OUT.keys() == {field.name for field in fields(Record)}
    assert not IN_COLUMNS & LEFT_OUT.keys()


def _table(*records: Record) -> RecordTable:
    table = RecordTable()
    for record in records:
        table.add(record)
    return table


@examples(60)
@given(
    st.lists(
        st.fixed_dictionaries(
            {
                "e2e_ms": st.integers(0, 2**53),
                "ttft_ms": st.none() | st.integers(0, 2**40),
                "cost_usd": st.none() | st.just(0) | st.floats(0, 9),
                "violation": st.none() | st.text(max_size=4),
                "objective_pass": st.none() | st.booleans(),
                "tool_calls": st.lists(st.sampled_from(["read", "exec"]), max_size=2).map(tuple),
                "cut": st.none() | st.just({"raw_output": 3}),
            }
        ),
        max_size=8,
    )
)
def test_values_are_those_of_the_record(changes: list[dict[str, Any]]) -> None:
    """Each with its type: 0 is not 0.0, and true is not 1."""
    records = [row(A, f"P{number}", **change) for number, change in enumerate(changes)]

    for kept, record in zip(_table(*records), records, strict=True):
        found = {name: getattr(kept, name) for name in IN_COLUMNS}
        assert found == {name: getattr(record, name) for name in IN_COLUMNS}
        assert [*map(type, found.values())] == [type(getattr(record, name)) for name in found]
        assert (kept.key, kept.target) == (record.key, record.target)


def test_texts_are_left_out_and_turns_are_bare() -> None:
    """Of a turn the problems of its calls and its tokens are kept."""
    turns = ({"text": "long", "input_tokens": 7, "calls": [{"name": "read", "problem": "bad_arguments"}]},)
    (kept,) = _table(row(A, "P1", raw_output="long", turns=turns, extra={"x": 1}))

    assert kept.turns == ({"calls": [{"problem": "bad_arguments"}], "input_tokens": 7},)
    assert {name: getattr(kept, name) for name in LEFT_OUT} == LEFT_OUT


def test_the_run_and_its_machine_may_be_known_later() -> None:
    """What is given beside a record is kept in its place, and the record is not changed."""
    record = row(A, "P1", host=None)

    kept = RecordTable().add(record, run_id="run_2", host="here")

    assert (kept.run_id, kept.host, kept.key) == ("run_2", "here", record.key)
    assert (record.run_id, record.host) != ("run_2", "here")


def test_bounds_of_a_gate_change_a_row_in_columns() -> None:
    """The cell without an answer passes at best and fails at worst, as if it were a record."""
    lost = row(A, "P2", availability_status="error", success=False, failure_type="timeout", tool_demand=None)
    records = [row(A, "P1"), lost]
    in_columns, whole = ([*_table(*records)], records)

    found = [
        bounds_of(summarize_group(A, rows, Snapshots(), n_targets=1), rows, 3) for rows in (in_columns, whole)
    ]

    assert found[0].at_best.passed == found[1].at_best.passed
    assert (found[0].at_best.passed.n_success, found[0].at_worst.passed.n_success) == (3, 1)


def _run(n: int) -> list[Record]:
    """Cells of two targets, of which three ended in ways of their own."""
    cells = [row(target, f"P{number}") for target in (A, B) for number in range(n)]
    cells[3] = replace(cells[3], objective_pass=False, violation="no")
    cells[-1] = replace(cells[-1], availability_status="error", success=False, failure_type="timeout")
    cells[-2] = replace(cells[-2], availability_status="error", success=False, failure_type="http_500")
    return cells


@pytest.mark.parametrize("most", [10, 100, 999])
def test_a_sample_has_every_way_to_end(most: int) -> None:
    """It is as large as it may be, in the order of the run, and the same each time."""
    cells = _run(500)
    places = sample_of(cells, most)

    assert len(places) == most
    assert places == sorted(set(places)) == sample_of(cells, most)
    assert {3, 998, 999} <= {*places}


def test_a_sample_takes_the_same_prompts_of_each_target() -> None:
    """So that targets can be compared; only the ways to end differ."""
    cells = _run(500)
    of_targets: dict[str, set[str]] = {"a": set(), "b": set()}
    for place in sample_of(cells, 200):
        of_targets[cells[place].model].add(cells[place].prompt_id)

    assert len(of_targets["a"] ^ of_targets["b"]) <= 3 + PER_KIND


def test_a_run_that_is_not_large_is_shown_whole() -> None:
    """Up to the limit, nothing is left out."""
    assert sample_of(_run(5), 10) == [*range(10)]
