"""What proves a tool: distinct prompts, most of which went right."""

from __future__ import annotations

from typing import Any

import pytest

from pytest_openclaw.stats.tool_use import Proof, tool_proofs
from pytest_openclaw.values.rows import Record
from pytest_openclaw.values.tool_calls import ToolOutcome
from tests.unit.reports.summaries import cell


@pytest.mark.parametrize(
    ("n_right", "n", "n_missing"),
    [
        pytest.param(3, 3, 0, id="three"),
        pytest.param(2, 2, 1, id="two"),
        pytest.param(0, 0, 3, id="none"),
        pytest.param(4, 5, 0, id="exactly-80-percent"),
        pytest.param(3, 4, 1, id="75-percent"),
        pytest.param(0, 1, 4, id="one-miss"),
        pytest.param(60, 93, 72, id="many-misses"),
    ],
)
def test_three_prompts_and_four_fifths_are_enough(n_right: int, n: int, n_missing: int) -> None:
    """Both are needed; so many further prompts without a miss would do."""
    proof = Proof(n=n, n_right=n_right, n_prompts=n, n_prompts_right=n_right)

    assert (proof.is_enough, proof.n_missing) == (n_missing == 0, n_missing)
    completed = Proof(n_prompts=n + n_missing, n_prompts_right=n_right + n_missing)
    assert completed.is_enough
    short = Proof(n_prompts=n + n_missing - 1, n_prompts_right=n_right + n_missing - 1)
    assert n_missing == 0 or not short.is_enough


def _native(prompt_id: str, outcome: ToolOutcome, *tools: str, **changes: Any) -> Record:
    return cell(prompt_id, outcome, **{"tools_offered": 11, "tools_tested": tools, **changes})


@pytest.mark.parametrize(
    ("records", "proofs"),
    [
        pytest.param([_native("P", "valid", "read", repeat=n) for n in range(9)], {"read": (9, 9, 1, 1)}, id="repeats"),
        pytest.param([_native("P", "valid" if n else "no_call", "read", repeat=n) for n in range(4)], {"read": (4, 3, 1, 0)}, id="too-few-repeats"),
        pytest.param([_native("P", "valid", "read", "exec"), _native("Q", "wrong_tool", "exec")], {"exec": (2, 1, 2, 1), "read": (1, 1, 1, 1)}, id="two-tools"),
        pytest.param([_native("P", "valid", "read", tools_offered=None)], {}, id="as-text"),
        pytest.param([_native("P", "valid", "read", probe="secret")], {}, id="probe"),
    ],
)  # fmt: skip
def test_cells_prove_tools(records: list[Record], proofs: dict[str, tuple[int, ...]]) -> None:
    """Cells, right ones, prompts, right ones; a prompt went right if 80 % of its repeats did."""
    found = tool_proofs(records)

    assert {
        tool: (one.n, one.n_right, one.n_prompts, one.n_prompts_right) for tool, one in found.items()
    } == proofs
