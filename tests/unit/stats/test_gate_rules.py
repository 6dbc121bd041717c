"""Gates: when they pass, when they fail, and the effect of cells without a reply."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_openclaw.session.settings import parse_gate_line
from pytest_openclaw.stats.gates import GateResult
from pytest_openclaw.values.requests import Target
from pytest_openclaw.values.rows import Record
from pytest_openclaw.values.settings import Gates
from tests.searching import examples
from tests.unit.reports.summaries import TARGET, cell, fault, missed, record, restraint_cells, summary_of

OTHER = Target(provider="lab", model="Small:1b")


def passes(n: int, **changes: Any) -> list[Record]:
    """Passed cells, each of a separate prompt, of 100 ms."""
    return [record(prompt_id=f"P{number}", **changes) for number in range(n)]


def misses(n: int, **changes: Any) -> list[Record]:
    """Cells with a violation, each of a separate prompt."""
    return [missed(prompt_id=f"M{number}", **changes) for number in range(n)]


def faults(n: int, **changes: Any) -> list[Record]:
    """Cells with a fault, each of a separate prompt."""
    given = {
        "availability_status": "error",
        "failure_type": "timeout",
        "fault_message": "timed out",
        **changes,
    }
    return [fault(prompt_id=f"F{number}", tool_demand="none", **given) for number in range(n)]


def away(n: int, **changes: Any) -> list[Record]:
    """Cells without a server to answer them."""
    return [fault(prompt_id=f"A{number}", tool_demand="none", **changes) for number in range(n)]


def ruled(rows: list[Record], gates: Gates, n_selected: int | None = None) -> GateResult:
    """The ruling of the only gate that is set, on one target."""
    (found,) = summary_of(rows, gates=gates, n_selected={TARGET: n_selected or len(rows)}).gates
    return found


HALF, MOST = Gates(min_pass_rate=0.5), Gates(min_pass_rate=0.9)
FAST = Gates(max_p95_ms=100.0)
SLOW = {"e2e_ms": 101}


@pytest.mark.parametrize(
    ("rows", "n_unasked", "gates", "ruling", "reason"),
    [
        # Every cell has an answer.
        pytest.param([*passes(9), *misses(1)], 0, MOST, "passed", "9 of 10 judged cells passed (90.0 %), 90.0 % wanted", id="reached"),
        pytest.param([*passes(8), *misses(2)], 0, MOST, "failed", "8 of 10 judged cells passed (80.0 %), 90.0 % wanted", id="missed"),
        pytest.param([*passes(8999), *misses(1001)], 0, MOST, "failed", "(89.9 %), 90.0 % wanted", id="never-rounded-up"),
        pytest.param([*passes(1), *misses(2)], 0, Gates(min_pass_rate=1 / 3), "passed", "1 of 3", id="a-third-is-a-third"),
        pytest.param([*passes(19), *misses(1)], 0, Gates(min_pass_rate=0.9505), "failed", "95.05 % wanted", id="all-digits-of-what-is-wanted"),
        pytest.param([*passes(1), record(prompt_id="S", success=False, objective_pass=None)], 0, MOST, "failed", "1 of 2 judged", id="silence-is-a-miss"),
        pytest.param([record(objective_pass=None)], 0, MOST, "no_verdict", "no answered cell counts for it (0 judged cells)", id="nothing-judged"),
        pytest.param([*misses(5)], 0, Gates(min_pass_rate=0), "passed", "0 of 5", id="nothing-wanted"),
        # Faults: counted both ways.
        pytest.param([*passes(19), *faults(1)], 0, MOST, "passed", "19 of 19 judged cells passed (100.0 %), 90.0 % wanted; with 1 cell without an answer against it: 19 of 20", id="passed-with-a-fault-as-a-miss"),
        pytest.param([*passes(9), *faults(1)], 0, MOST, "passed", "against it: 9 of 10", id="passed-exactly"),
        pytest.param([*passes(8), *faults(1)], 0, MOST, "no_verdict", "8 of 8 judged cells passed (100.0 %), 90.0 % wanted, but 1 of 9 cells have no answer: 8 of 9 to 9 of 9", id="might-have-failed"),
        pytest.param([*passes(17), *misses(2), *faults(1)], 0, MOST, "no_verdict", "but 1 of 20 cells have no answer: 17 of 20 to 18 of 20", id="might-have-passed"),
        pytest.param([*passes(7), *misses(2), *faults(1)], 0, MOST, "failed", "7 of 9 judged cells passed (77.7 %), 90.0 % wanted; even with 1 cell without an answer for it: 8 of 10", id="failed-with-a-fault-as-a-pass"),
        pytest.param([*faults(3)], 0, Gates(min_pass_rate=0), "no_verdict", "nothing was answered: timed out", id="faults-alone"),
        pytest.param([*passes(9), *faults(1, availability_status="auth_error")], 0, MOST, "passed", "9 of 10", id="auth-is-a-fault"),
        pytest.param([*passes(8), *faults(1, availability_status="rate_limited")], 0, MOST, "no_verdict", "8 of 9 to 9 of 9", id="rate-limited-is-a-fault"),
        # Unavailable: never a pass, and still a failure if it would be one in any case.
        pytest.param([*passes(99), *away(1)], 0, HALF, "no_verdict", "99 of 99 judged cells passed (100.0 %), 50.0 % wanted, but 1 of 100 cells were unavailable", id="unavailable-is-no-pass"),
        pytest.param([*passes(4), *misses(5), *away(1)], 0, HALF, "no_verdict", "but 1 of 10 cells were unavailable", id="unavailable-might-have-passed"),
        pytest.param([*passes(1), *misses(8), *away(1)], 0, HALF, "failed", "1 of 9 judged cells passed (11.1 %), 50.0 % wanted; even with 1 cell without an answer for it: 2 of 10", id="unavailable-changes-nothing"),
        pytest.param([*away(3)], 0, Gates(min_pass_rate=0), "no_verdict", "nothing was answered: ollama_openai: nothing answers", id="all-unavailable"),
        # Not asked: the same.
        pytest.param([*passes(99)], 1, HALF, "no_verdict", "but 1 of 100 cells were not asked", id="not-asked-is-no-pass"),
        pytest.param([*passes(4), *misses(5)], 1, HALF, "no_verdict", "but 1 of 10 cells were not asked", id="not-asked-might-have-passed"),
        pytest.param([*passes(7), *away(2, failure_type="budget_spent")], 1, HALF, "no_verdict", "but 3 of 10 cells were not asked", id="a-spent-budget-asks-no-more"),
        pytest.param([*passes(1), *misses(8)], 1, HALF, "failed", "even with 1 cell without an answer for it: 2 of 10", id="not-asked-changes-nothing"),
        pytest.param([], 3, Gates(min_pass_rate=0), "no_verdict", "nothing was answered: no cell was answered", id="none-asked"),
        pytest.param([*passes(8), *faults(1), *away(1)], 5, HALF, "no_verdict", "but 1 of 15 cells were unavailable", id="all-at-once"),
        # The slowest latency.
        pytest.param([*passes(5)], 0, FAST, "passed", "p95 100 ms of 5 successful cells, at most 100 ms wanted", id="fast"),
        pytest.param([*passes(5, **SLOW)], 0, FAST, "failed", "p95 101 ms of 5 successful cells, at most 100 ms wanted", id="slow"),
        pytest.param([record(), record(prompt_id="S", e2e_ms=101)], 0, FAST, "failed", "p95 101 ms", id="a-fraction-over-is-rounded-up"),
        pytest.param([*passes(5), record(prompt_id="S", success=False, e2e_ms=9000)], 0, FAST, "passed", "of 5 successful cells", id="silence-has-no-latency"),
        pytest.param([record(success=False)], 0, FAST, "no_verdict", "no answered cell counts for it (0 successful cells)", id="no-latency"),
        pytest.param([*passes(99), *faults(1)], 0, FAST, "passed", "p95 100 ms of 99 successful cells", id="one-fault-in-a-hundred-is-slow"),
        pytest.param([*passes(10), *faults(1)], 0, FAST, "no_verdict", "but 1 of 11 cells have no answer: never to 100 ms", id="one-fault-in-ten-may-be-slow"),
        pytest.param([*passes(19), record(prompt_id="S", e2e_ms=500), *faults(10)], 0, FAST, "no_verdict", "never to 100 ms", id="ten-faults-may-be-fast"),
        pytest.param([*passes(10), *misses(9, **SLOW), *faults(1)], 0, FAST, "failed", "p95 101 ms of 19 successful cells, at most 100 ms wanted", id="slow-with-a-fault-that-is-fast"),
        pytest.param([*passes(99), *away(1)], 0, FAST, "no_verdict", "but 1 of 100 cells were unavailable", id="fast-but-unavailable"),
        pytest.param([*passes(9)], 1, FAST, "no_verdict", "but 1 of 10 cells were not asked", id="fast-but-not-asked"),
        pytest.param([*passes(9, **SLOW)], 1, FAST, "failed", "p95 101 ms of 9 successful cells, at most 100 ms wanted", id="slow-though-one-was-not-asked"),
        pytest.param([*faults(9)], 0, FAST, "no_verdict", "nothing was answered", id="no-latency-but-faults"),
        # The whole interval.
        pytest.param([*passes(35)], 0, replace(MOST, conclusive=True), "passed", "35 of 35 judged cells passed (95 % interval 90.1 % to 100.0 %), a lower end of 90.0 % wanted", id="conclusive"),
        pytest.param([*passes(34)], 0, replace(MOST, conclusive=True), "no_verdict", "not conclusive: 34 of 34 judged cells passed (95 % interval 89.8 % to 100.0 %), a lower end of 90.0 % wanted; 1 more prompt without a miss would pass it", id="not-conclusive"),
        pytest.param([*passes(8), *misses(2)], 0, replace(MOST, conclusive=True), "no_verdict", "8 of 10 judged cells passed (95 % interval 49.0 % to 94.3 %), a lower end of 90.0 % wanted; 59 more prompts", id="missed-and-open"),
        pytest.param([*passes(8), *misses(12)], 0, replace(MOST, conclusive=True), "failed", "8 of 20 judged cells passed (95 % interval 21.8 % to 61.3 %), a lower end of 90.0 % wanted", id="conclusively-missed"),
        pytest.param([*passes(9)], 0, Gates(min_pass_rate=1.0, conclusive=True), "no_verdict", "10,000 more prompts without a miss would not pass it", id="all-of-all-prompts"),
        pytest.param([*passes(34), *faults(1)], 0, replace(MOST, conclusive=True), "no_verdict", "34 of 35 (from 85.4 %) to 35 of 35 (from 90.1 %)", id="the-fault-might-have-been-the-proof"),
        pytest.param([*passes(35), *faults(1)], 0, replace(MOST, conclusive=True), "no_verdict", "35 of 36 (from 85.8 %)", id="the-fault-leaves-it-open"),
        pytest.param([*passes(60), *faults(1)], 0, replace(MOST, conclusive=True), "passed", "60 of 61 (from 91.2 %)", id="conclusive-with-a-fault-as-a-miss"),
        pytest.param([*passes(30), *faults(1)], 0, replace(MOST, conclusive=True), "no_verdict", "1 of 31 cells have no answer: 30 of 31 (from 83.8 %) to 31 of 31 (from 88.9 %)", id="no-proof-with-it-either"),
        pytest.param([*passes(80)], 0, replace(FAST, conclusive=True), "passed", "p95 100 ms of 80 successful cells (95 % interval 100 ms to 100 ms), an upper end of 100 ms at most wanted", id="conclusively-fast"),
        pytest.param([*passes(78), *misses(2, **SLOW)], 0, replace(FAST, conclusive=True), "no_verdict", "not conclusive: p95 100 ms of 80 successful cells (95 % interval 100 ms to 101 ms)", id="not-conclusively-fast"),
        pytest.param([*passes(70), *misses(10, **SLOW)], 0, replace(FAST, conclusive=True), "failed", "p95 101 ms of 80 successful cells (95 % interval 101 ms to 101 ms)", id="slow-anyhow"),
        pytest.param([*passes(40)], 0, replace(FAST, conclusive=True), "no_verdict", "not conclusive: p95 100 ms of 40 successful cells (p95 takes 59 values, there are 40)", id="too-few-for-an-interval"),
        pytest.param([*passes(58), *faults(1)], 0, replace(FAST, conclusive=True), "no_verdict", "59 cells have no answer: 100 ms (to never) to 100 ms (to 100 ms)", id="the-fault-might-make-it-enough"),
        pytest.param([*passes(80), *faults(1)], 0, replace(FAST, conclusive=True), "no_verdict", "100 ms (to never) to 100 ms (to 100 ms)", id="the-fault-might-be-slow"),
        pytest.param([*passes(300), *faults(1)], 0, replace(FAST, conclusive=True), "passed", "p95 100 ms of 300 successful cells (95 % interval 100 ms to 100 ms)", id="conclusively-fast-with-a-fault"),
    ],
)  # fmt: skip
def test_one_gate_on_one_target(
    rows: list[Record], n_unasked: int, gates: Gates, ruling: str, reason: str
) -> None:
    """It fails or passes only if no missing reply could change that; each ruling has its reason."""
    found = ruled(rows, gates, len(rows) + n_unasked)

    assert found.ruling == ruling
    assert reason in found.reason


def _row(number: int, demand: Any, repeat: int, how: str, ms: int) -> Record:
    given = {"prompt_id": f"{demand}{number}", "repeat": repeat, "tool_demand": demand, "e2e_ms": ms}
    if how == "fault":
        return fault(**given, availability_status="error")
    outcomes = {"call": ("valid", "no_call"), "restraint": ("restrained", "called_needlessly")}
    row = record(**given, objective_pass=how == "well")
    return (
        replace(row, tool_outcome=None)
        if demand == "none"
        else _as_tool_cell(row, outcomes[demand][how != "well"])
    )


def _as_tool_cell(row: Record, outcome: Any) -> Record:
    return replace(row, tool_outcome=outcome, tool_use_success=outcome == "valid")


ROWS = st.lists(
    st.builds(
        _row,
        st.integers(0, 9),
        st.sampled_from(["call", "restraint", "none"]),
        st.integers(1, 3),
        st.sampled_from(["well", "well", "well", "wrong", "fault"]),
        st.integers(1, 200),
    ),
    min_size=1,
    max_size=40,
    unique_by=lambda row: (row.prompt_id, row.repeat),
)
EVERY_GATE = st.builds(
    Gates,
    min_pass_rate=st.floats(0, 1),
    min_tool_rate=st.floats(0, 1),
    require_tier=st.integers(1, 3),
    max_p95_ms=st.floats(1, 300),
    conclusive=st.booleans(),
)


@examples(60, 300)
@given(ROWS, EVERY_GATE, st.randoms(use_true_random=False))
def test_a_missing_answer_never_overturns_a_ruling(rows: list[Record], gates: Gates, random: Any) -> None:
    """Whatever the missing replies are in a resumed run, a passed gate stays passed and a failed one failed."""
    completed = [
        row
        if row.availability_status == "ok"
        else _row(
            int(row.prompt_id[-1]),
            row.tool_demand,
            row.repeat,
            random.choice(["well", "wrong"]),
            random.randint(0, 300),
        )
        for row in rows
    ]

    before = summary_of(rows, gates=gates).gates
    after = {gate.gate: gate.ruling for gate in summary_of(completed, gates=gates).gates}

    assert all(gate.ruling in ("no_verdict", after[gate.gate]) for gate in before)


@pytest.mark.parametrize("gate", ["min_pass_rate", "min_tool_rate", "require_tier", "max_p95_ms"])
@pytest.mark.parametrize("away_rows", [[], away(1)], ids=["not-asked", "unavailable"])
def test_no_gate_is_passed_where_somebody_was_not_asked(gate: str, away_rows: list[Record]) -> None:
    """With any gate set, an unavailable or unasked cell prevents a pass, however good the others are."""
    wanted = {"require_tier": 3, "max_p95_ms": 1e9}.get(gate, 0.0)
    rows = [*(cell(f"T{n}", "valid") for n in range(50)), *away_rows]

    found = ruled(rows, Gates(**{gate: wanted}), 51)  # type: ignore[arg-type]

    assert found.ruling == "no_verdict"
    assert ("unavailable" in found.reason) == bool(away_rows)


def test_each_target_has_the_gates_of_its_lines() -> None:
    """Lines add gates, change them and switch them off; a target without a line has the general ones."""
    rows = [*passes(3), *(record(OTHER, prompt_id=f"P{n}", e2e_ms=5000) for n in range(3))]
    lines = (
        parse_gate_line("lab/*: min-pass-rate=off max-p95-ms=1e3"),
        parse_gate_line("other/*: require-tier=1"),
    )

    summary = summary_of(rows, gates=Gates(min_pass_rate=0.5, by_target=lines))

    assert [(gate.target, gate.gate, gate.ruling) for gate in summary.gates] == [
        (TARGET.label, "min-pass-rate", "passed"),
        (OTHER.label, "max-p95-ms", "failed"),
    ]
    assert summary.verdict == "failed"
    assert summary.unmatched_gates == ("other/*",)


def test_a_target_that_no_gate_holds_is_not_gated() -> None:
    """If every gate is off for every target, there is no ruling."""
    gates = Gates(min_pass_rate=0.5, by_target=(parse_gate_line("*: min-pass-rate=off"),))

    assert summary_of(misses(3), gates=gates).verdict == "not_gated"


def test_a_cell_not_asked_may_have_been_of_any_kind() -> None:
    """It prevents a failure on tool use if it could: as a native call, or as one more text call."""
    fifteen = [cell(f"T{n}", "valid") for n in range(15)]

    assert ruled(fifteen, Gates(require_tier=1), 16).ruling == "no_verdict"
    misses = [cell(f"M{n}", "no_call", tools_offered=2) for n in range(12)]
    assert ruled([*fifteen, *misses], Gates(require_tier=1), 28).ruling == "failed"
    assert ruled([*fifteen, *misses[:1]], Gates(require_tier=1), 17).ruling == "no_verdict"
    assert ruled([cell("T", "no_call")], Gates(min_tool_rate=0.9), 2).ruling == "no_verdict"
    capped = [*(cell(f"T{n}", "valid") for n in range(20)), *restraint_cells(3, 1)]
    assert ruled(capped, Gates(require_tier=1), 25).ruling == "no_verdict"
