"""Records without their texts."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from pytest_openclaw.runs.reading import LEFT_OUT, without_texts
from tests.unit.runs.stored_runs import A, row


def test_texts_are_left_out() -> None:
    """Everything else has its value and type."""
    turns = ({"text": "long", "input_tokens": 7, "calls": [{"name": "read", "problem": "bad_arguments"}]},)
    record = row(A, "P1", raw_output="long", turns=turns, extra={"x": 1}, cost_usd=0, cut=("raw_output",))

    light = without_texts(record, {})

    assert light == replace(record, **LEFT_OUT)
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
