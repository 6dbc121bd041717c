"""The plan of a run, made from the selected cells."""

from __future__ import annotations

from pytest_openclaw.judging.text import Noop
from pytest_openclaw.runs.resume import Plan
from pytest_openclaw.values.prompts import Cell, Prompt
from pytest_openclaw.values.requests import Target

A = Target(provider="p", model="a")
B = Target(provider="p", model="b[x]", thinking_level="low")
NOOP = Noop()
ONCE = Prompt(suite="s.toml", id="P1", name="once", prompt="?", validator=NOOP)
FIXED = Prompt(suite="t.py", id="R1[r2]", name="fixed", prompt="?", validator=NOOP, repeat=2)
CELLS = [
    Cell(prompt=ONCE, target=B),
    Cell(prompt=FIXED, target=A, repeat=1, n_repeats=2),
    Cell(prompt=FIXED, target=A, repeat=2, n_repeats=2),
    Cell(prompt=ONCE, target=A),
]


def test_a_plan_counts_what_is_selected() -> None:
    """Cells are counted by target in the session's order, by repeat, and separately for a prompt's own number."""
    plan = Plan.of(CELLS, [A, B], {"p": {"kind": "p"}})

    assert list(plan.n_selected.items()) == [(A, 3), (B, 1)]
    assert plan.by_repeat == {(A, 1): 2, (A, 2): 1, (B, 1): 1}
    assert plan.fixed == {(A, 1): 1, (A, 2): 1}
    assert [prompt["id"] for prompt in plan.prompts] == ["P1", "R1[r2]"]
    assert plan.cells == {cell.key for cell in CELLS}
