"""Which ways in which tool use ended have become more frequent."""

from __future__ import annotations

from dataclasses import asdict

import msgspec

from pytest_openclaw.reports.comparison import details_of, in_short
from pytest_openclaw.stats.comparison import ComparedRuns, OutcomeChange
from pytest_openclaw.values.rows import Record
from pytest_openclaw.values.tool_calls import ToolOutcome
from tests.unit.reports.summaries import cell
from tests.unit.stats.compared import compare, only


def _cells(*outcomes: tuple[ToolOutcome, int]) -> list[Record]:
    ended = [outcome for outcome, n in outcomes for _ in range(n)]
    return [
        cell(f"P{number}", outcome, objective_pass=outcome == "valid") for number, outcome in enumerate(ended)
    ]


def test_more_of_an_outcome_is_seen_prompt_by_prompt() -> None:
    """Nine prompts that ended well have bad arguments now: both changes are named."""
    found = only(
        _cells(("valid", 39), ("no_call", 1)), _cells(("bad_arguments", 9), ("valid", 30), ("no_call", 1))
    )

    assert {one.outcome: one.word for one in found.outcomes} == {
        "valid": "fewer", "bad_arguments": "more", "no_call": "no difference seen",
    }  # fmt: skip
    assert "more bad_arguments: 0 -> 9 of 40 tool cells" in in_short(found)
    assert ("tool use", "fewer valid: 39 -> 30 of 40 tool cells") in [*details_of(found)]


def test_levels_are_shared_by_all_outcomes() -> None:
    """Six of six prompts alone would have a p of 0.03; of three outcomes that differ neither is seen."""
    found = only(
        _cells(("valid", 40)), _cells(("bad_arguments", 6), ("wrong_tool", 6), ("valid", 28))
    ).outcomes

    assert {one.outcome: (one.word, round(one.p_adjusted, 4)) for one in found if one.outcome != "valid"} == {
        "wrong_tool": ("no difference seen", 0.0938),
        "bad_arguments": ("no difference seen", 0.0938),
    }


def test_a_comparison_keeps_them_in_json() -> None:
    """As everything else of it."""
    compared = compare(_cells(("valid", 8)), _cells(("no_call", 8)))

    assert msgspec.convert(asdict(compared), ComparedRuns) == compared
    assert compared.targets[0].outcomes[1] == OutcomeChange(
        outcome="no_call", n_cells=8, n_base=0, n_candidate=8, p_adjusted=compared.targets[0].outcomes[1].p_adjusted, word="more",
    )  # fmt: skip
