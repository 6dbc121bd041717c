"""Records without their texts, and samples of them."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from pytest_openclaw.features.pages import PER_KIND, sample_of
from pytest_openclaw.runs.reading import LEFT_OUT, without_texts
from pytest_openclaw.values.rows import Record
from tests.unit.runs.stored_runs import A, B, row


def test_texts_are_left_out_and_turns_are_bare() -> None:
    """Everything else has its value and type; of a turn the problems of its calls and its tokens are kept."""
    turns = ({"text": "long", "input_tokens": 7, "calls": [{"name": "read", "problem": "bad_arguments"}]},)
    record = row(A, "P1", raw_output="long", turns=turns, extra={"x": 1}, cost_usd=0, cut={"raw_output": 3})

    light = without_texts(record, {})

    assert light.turns == ({"calls": [{"problem": "bad_arguments"}], "input_tokens": 7},)
    assert light == replace(record, **LEFT_OUT, turns=light.turns)
    assert type(light.cost_usd) is int


def test_equal_values_are_kept_once() -> None:
    """Rows are read from separate lines, and a run has many equal texts and calls."""
    shared: dict[Any, Any] = {}

    one, other = (
        without_texts(row(A, "P1", violation="".join(["n", "o"]), tool_calls=(*["read"],)), shared)
        for _ in range(2)
    )

    assert one.violation is other.violation
    assert one.tool_calls is other.tool_calls


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
