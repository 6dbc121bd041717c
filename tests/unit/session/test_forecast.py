"""The cost of cells in earlier runs, and the forecast for the same cells."""

from __future__ import annotations

from typing import Any

import pytest

from pytest_openclaw.features.dry_run import Line, PastAnswers, Sum, Typical, total
from pytest_openclaw.values.requests import CellKey, Target
from pytest_openclaw.values.rows import Record

A, B, C = (Target(provider="p", model=model) for model in "abc")


def row(
    target: Target, prompt_id: str, e2e_ms: int, n_input: int | None, n_output: int | None, **values: Any
) -> Record:
    """An answered row."""
    fields = {"availability_status": "ok", "run_id": "r", "repeat": 1, **values}
    return Record(
        provider=target.provider,
        model=target.model,
        thinking_level=None,
        prompt_id=prompt_id,
        prompt_name=prompt_id,
        suite="s",
        started_at_ms=0,
        ended_at_ms=e2e_ms,
        e2e_ms=e2e_ms,
        input_tokens=n_input,
        output_tokens=n_output,
        **fields,
    )  # fmt: skip


def key(target: Target, prompt_id: str) -> CellKey:
    """A cell of the suite."""
    return CellKey("s", prompt_id, target, 1)


NEW = [
    row(A, "P1", 100, 10, 1),
    row(A, "P1", 300, 10, 3, repeat=2),
    row(A, "P1", 900, 10, 5, repeat=3),
    row(A, "P2", 500, 20, 7, cached_tokens=4),
    row(A, "P3", 5, None, None, availability_status="error"),
]
OLD = [row(A, "P1", 9999, 99, 99), row(B, "P1", 1000, 11, 2), row(B, "P4", 3000, 40, 4)]


@pytest.mark.parametrize(
    ("cell", "wanted"),
    [
        pytest.param(key(A, "P1"), Typical(e2e_ms=300, input_tokens=10, output_tokens=3, run_id="new"), id="median-of-its-repeats-in-the-newest-run"),
        pytest.param(key(A, "P2"), Typical(e2e_ms=500, input_tokens=20, cached_tokens=4, output_tokens=7, run_id="new"), id="once"),
        pytest.param(key(A, "P3"), Typical(e2e_ms=400, input_tokens=10, output_tokens=4, run_id="new"), id="only-a-fault-so-the-target-s-medians"),
        pytest.param(key(A, "P4"), Typical(e2e_ms=400, input_tokens=40, output_tokens=4, run_id="new"), id="the-input-of-its-prompt-elsewhere"),
        pytest.param(key(B, "P1"), Typical(e2e_ms=1000, input_tokens=11, output_tokens=2, run_id="old"), id="an-older-run"),
        pytest.param(key(C, "P2"), Typical(input_tokens=20, output_tokens=7, run_id="new"), id="a-new-target-has-no-time"),
        pytest.param(key(C, "P9"), Typical(), id="nothing-is-known"),
    ],
)  # fmt: skip
def test_typical(cell: CellKey, wanted: Typical) -> None:
    """A cell takes what its prompt took on its target; else time is the target's and input the prompt's."""
    assert PastAnswers([("new", NEW), ("old", OLD)]).typical(cell) == wanted


def line(label: str, endpoint: str, seconds: float, n_known: int = 2) -> Line:
    """A target of two cells."""
    known = Sum(value=seconds, n_known=n_known, n=2)
    return Line(
        label=label,
        endpoint=endpoint,
        n_cells=2,
        n_calls=3,
        input_tokens=known,
        output_tokens=known,
        seconds=known,
        usd=known,
    )


def test_endpoints_go_on_side_by_side() -> None:
    """Targets of one endpoint wait for each other, and the slowest endpoint decides; all else adds up."""
    whole = total([line("a", "x", 10), line("b", "x", 20), line("c", "y", 25, n_known=1)])

    assert (whole.n_cells, whole.n_calls) == (6, 9)
    assert whole.seconds == Sum(value=30, n_known=5, n=6)
    assert whole.usd == Sum(value=55, n_known=5, n=6)
    assert not whole.usd.is_whole


def test_what_is_not_known_is_no_zero() -> None:
    """A sum has the number of cells that it covers."""
    assert Sum.of([1.5, None, 2.5]) == Sum(value=4.0, n_known=2, n=3)
    assert Sum.of([]).is_whole
