"""Whether a target fits a role, and what is missing if that is open."""

from __future__ import annotations

import pytest

from pytest_openclaw.stats.groups import summarize_group
from pytest_openclaw.stats.recommendation import role_results
from pytest_openclaw.stats.tool_use import is_apart, tool_use_of
from pytest_openclaw.values.rows import Record
from tests.unit.reports.summaries import cell, fault, record
from tests.unit.stats.routes import role_rows, target

ONE = target("m")


@pytest.mark.parametrize(
    ("right", "wrong", "n_targets", "kind", "needs"),
    [
        pytest.param(12, 0, 1, "fit", 0, id="flawless"),
        pytest.param(10, 2, 1, "fit", 0, id="two-misses"),
        pytest.param(9, 3, 1, "not_enough_evidence", 3, id="three-misses-are-below-80-percent"),
        pytest.param(4, 0, 1, "fit", 0, id="four-exclude-a-half"),
        pytest.param(3, 0, 1, "not_enough_evidence", 1, id="three-do-not"),
        pytest.param(4, 0, 3, "not_enough_evidence", 2, id="of-three-targets-together-nor-do-four"),
        pytest.param(6, 6, 1, "not_fit", 0, id="half-of-them"),
        pytest.param(0, 3, 1, "not_fit", 0, id="none-of-three"),
        pytest.param(1, 2, 1, "not_fit", 0, id="one-of-three"),
        pytest.param(0, 2, 1, "not_enough_evidence", 9, id="two-misses-alone"),
    ],
)
def test_a_role_is_judged_by_its_prompts(
    right: int, wrong: int, n_targets: int, kind: str, needs: int
) -> None:
    """As a tool must be proven; the further prompts are the fewest that make it fit."""
    rows = role_rows("title", right, wrong, ONE)
    use = tool_use_of(rows, n_targets)

    (found,) = role_results(rows, use)

    assert (found.role, found.kind, found.needs) == ("title", kind, needs)
    if needs:
        enough = [*rows, *(record(ONE, role="title", prompt_id=f"C{n}", suite="s") for n in range(needs))]
        assert role_results(enough, use)[0].kind == "fit"
        assert role_results(enough[:-1], use)[0].kind != "fit"


def test_a_fault_is_no_miss_and_an_empty_answer_is() -> None:
    """Only answered cells count, and a role without an answer is not judged."""
    empty = record(ONE, role="title", success=False, objective_pass=None, failure_type="empty_response")
    silent = fault(ONE, role="utility")

    title, utility = role_results([empty, fault(ONE, role="title"), silent], tool_use_of([empty]))

    assert (title.n, title.n_right) == (1, 0)
    assert (utility.n, utility.rate, utility.interval_95) == (0, None, None)
    assert (utility.kind, utility.sentence) == (
        "not_enough_evidence",
        "not enough evidence: no cell was answered",
    )


@pytest.mark.parametrize(
    ("right", "wrong", "sentence"),
    [
        pytest.param(11, 1, "fit: 11 of 12 cells right (95 % interval 64.6 % to 98.5 %)", id="fit"),
        pytest.param(1, 11, "not fit: 1 of 12 cells right (95 % interval 1.4 % to 35.3 %)", id="not-fit"),
        pytest.param(3, 0, "not enough evidence: 3 of 3 cells right (95 % interval 43.8 % to 100.0 %); 1 more prompt without a miss would make it fit", id="open"),
    ],
)  # fmt: skip
def test_a_sentence_has_the_evidence(right: int, wrong: int, sentence: str) -> None:
    """It is the same in every report."""
    rows = role_rows("decision", right, wrong, ONE)

    assert role_results(rows, tool_use_of(rows))[0].sentence == sentence


def _heartbeats() -> list[Record]:
    given = {"role": "heartbeat", "suite": "prompts_role_heartbeat.toml", "tools_offered": 11}
    return [cell(f"H{n}", "called_needlessly", ONE, objective_pass=False, **given) for n in range(9)]


def test_a_role_is_outside_the_rates_of_tool_use() -> None:
    """Its cells may have tools, and neither tier nor restraint counts them."""
    rows = _heartbeats()

    group = summarize_group(ONE, rows, {}, n_targets=1)

    assert all(is_apart(row) for row in rows)
    assert (group.tool_use.tier, group.tool_use.restraint.n) == (None, 0)
    assert [(result.role, result.kind) for result in group.roles] == [("heartbeat", "not_fit")]
