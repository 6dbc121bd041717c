"""Rows → groups: what counts, what does not, what is null."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import jsonschema
import pytest

from pytest_openclaw.stats.gates import check_gates, overall
from pytest_openclaw.stats.groups import Snapshots, group_records, summarize_group
from pytest_openclaw.stats.intervals import Interval
from pytest_openclaw.stats.summary import Summary, known_failures, missed_by_all, slowest, summary_to_json
from pytest_openclaw.values.requests import Target
from pytest_openclaw.values.rows import Record, from_row, to_row
from pytest_openclaw.values.run_files import load_schema
from pytest_openclaw.values.settings import Gates

TARGET = Target(provider="p", model="m")


def _record(**changes: Any) -> Record:
    base = Record(
        run_id="r",
        provider="p",
        model="m",
        thinking_level=None,
        prompt_id="P1",
        prompt_name="one",
        availability_status="ok",
        started_at_ms=1000,
        ended_at_ms=1100,
        e2e_ms=100,
        success=True,
        suite="s",
    )
    return replace(base, **changes)


def _group(*records: Record) -> Any:
    return summarize_group(TARGET, records, Snapshots(), n_targets=1)


def test_a_row_round_trips() -> None:
    """`from_row(to_row(r)) == r`, and the row satisfies the published schema."""
    record = _record(
        tool_calls=("a",),
        tool_call_details=({"id": None, "name": "a", "arguments": ""},),
        parsed_output={"x": 1},
    )

    row = to_row(record)

    jsonschema.validate(row, load_schema("row"))
    assert from_row(row) == record


def test_the_seed_fields_come_first() -> None:
    """A row begins with the seed's fields in the seed's order."""
    assert list(to_row(_record()))[:23] == [
        "record_type", "run_id", "provider", "model", "thinking_level", "prompt_id", "prompt_name",
        "availability_status", "started_at_ms", "ended_at_ms", "e2e_ms", "ttft_ms", "success", "failure_type",
        "objective_pass", "violation", "input_tokens", "output_tokens", "raw_output", "parsed_output",
        "tool_calls", "tool_call_count", "tool_use_success",
    ]  # fmt: skip


def test_unknown_keys_pass_through() -> None:
    """A row of a later version keeps what this one does not know."""
    row = {**to_row(_record()), "new_field": [1]}

    assert to_row(from_row(row)) == row


@pytest.mark.parametrize(
    ("change", "message"),
    [({"record_type": "event"}, "not a result"), ({"schema_version": 2}, "schema_version is 2")],
)
def test_foreign_rows_are_refused(change: dict[str, Any], message: str) -> None:
    """An object that is no row, or a newer row, is an error that says so."""
    with pytest.raises(ValueError, match=message):
        from_row({**to_row(_record()), **change})


def test_latencies_are_of_successful_rows() -> None:
    """Faults and empty replies do not count for a latency."""
    group = _group(
        _record(e2e_ms=100),
        _record(e2e_ms=300),
        _record(e2e_ms=9000, availability_status="error", success=False),
        _record(e2e_ms=8000, success=False),
    )

    assert group.latency_ms == {"p50": 200.0, "p95": 290.0, "p99": 298.0, "mean": 200.0}


def test_percentiles_have_intervals_with_enough_cells() -> None:
    """Each interval uses the rows of its percentile; a missing one has a reason."""
    group = _group(
        *(_record(prompt_id=f"P{n}", e2e_ms=n, ttft_ms=n if n <= 5 else None) for n in range(1, 60)),
        _record(prompt_id="E", e2e_ms=9999, availability_status="error", success=False),
    )

    # Ranks 22 and 38 of 59 by the binomial distribution; 50 and 59 for p95.
    assert group.latency_intervals_95 == {
        "p50": Interval(low=22, high=38),
        "p95": Interval(low=50, high=59),
        "p99": None,
    }
    assert group.ttft_intervals_95 == {"p50": None, "p95": None, "p99": None}
    assert group.interval_notes == {
        "latency_ms.p99": "p99 takes 299 values, there are 59",
        "ttft_ms.p50": "p50 takes 6 values, there are 5",
        "ttft_ms.p95": "p95 takes 59 values, there are 5",
        "ttft_ms.p99": "p99 takes 299 values, there are 5",
        "tokens_per_s.p50": "no values",
    }


def test_harder_forms_of_a_prompt_are_one_in_latency_too() -> None:
    """They are correlated like repeats."""
    forms = [_record(prompt_id=f"X-{n}", pressure_of="X", e2e_ms=n) for n in range(1, 60)]

    assert _group(*forms).interval_notes["latency_ms.p50"] == "p50 takes 6 prompts, there is 1 with 59 values"


def test_rates_leave_out_what_was_not_answered() -> None:
    """They include the seed's rates, and ours that count an empty reply as no pass."""
    group = _group(
        _record(objective_pass=True),
        _record(objective_pass=False, violation="no"),
        _record(objective_pass=None),
        _record(success=False, failure_type="empty_response"),
        _record(success=False, availability_status="skipped_unavailable"),
    )

    assert group.success_rate_ok == 0.75
    assert group.objective_pass_rate == 0.5
    assert (group.passed.n_success, group.passed.n) == (1, 3)


def test_tool_use_counts_tool_cells_alone() -> None:
    """Restraint is counted beside use, and ordinary cells in neither."""
    group = _group(
        _record(tool_outcome="valid", tool_use_success=True),
        _record(tool_outcome="no_call"),
        _record(tool_outcome="restrained"),
        _record(tool_outcome="called_needlessly"),
        _record(),
        _record(tool_outcome=None, availability_status="error", success=False),
    )

    use = group.tool_use
    assert (use.n, use.n_success, use.rate, use.tier, use.conclusive) == (2, 1, 0.5, 2, False)
    assert (use.restraint.n, use.restraint.n_success) == (2, 1)
    assert use.outcomes == {"valid": 1, "no_call": 1, "restrained": 1, "called_needlessly": 1}


def test_wall_clock_spans_the_rows() -> None:
    """From the first start to the last end."""
    assert _group(_record(), _record(started_at_ms=3000, ended_at_ms=3500)).wall_clock_ms == 2500


def test_speed_is_the_median_of_those_that_are_known() -> None:
    """A row without a speed neither counts as slow nor hides the others."""
    rows = [
        _record(prompt_id=f"P{n}", tokens_per_s=speed) for n, speed in enumerate((10.0, None, 30.0, 40.0))
    ]

    assert _group(*rows).tokens_per_s == 30.0
    assert _group(rows[1]).tokens_per_s is None


def test_a_summary_satisfies_its_schema() -> None:
    """This includes a target without a row."""
    groups = (_group(_record(violation="v", objective_pass=False)), _group())
    gates = check_gates(Gates(min_pass_rate=0.5, require_tier=1), groups, {TARGET: 1}, {})
    summary = Summary(
        run_id="r",
        state="finished",
        generated_at_ms=1,
        n_cells=1,
        n_rows=1,
        groups=groups,
        gates=gates,
        verdict=overall(gates),
    )

    jsonschema.validate(summary_to_json(summary), load_schema("summary"))


def test_groups_keep_the_order_of_their_rows() -> None:
    """Targets are in the order of their first rows."""
    assert [
        target.model for target in group_records([_record(model="b"), _record(model="a"), _record(model="b")])
    ] == ["b", "a"]


def test_missed_by_all_wants_every_target_to_fail() -> None:
    """A prompt that one target passed is not missed, and neither is one without a verdict."""
    records = [
        _record(prompt_id="A", objective_pass=False, violation="x"),
        _record(prompt_id="A", model="n", objective_pass=True),
        _record(prompt_id="B", objective_pass=False, violation="y"),
        _record(prompt_id="C", objective_pass=None),
    ]

    assert [(missed.prompt_id, missed.violation) for missed in missed_by_all(records)] == [("B", "y")]


def test_a_known_failure_is_not_missed_by_all() -> None:
    """It is, if another target missed it unexpectedly; the violation shown is that target's."""
    records = [
        _record(prompt_id="A", objective_pass=False, known_failure="too small"),
        _record(prompt_id="B", objective_pass=False, known_failure="too small", violation="x"),
        _record(prompt_id="B", model="n", objective_pass=False, violation="y"),
    ]

    assert [(missed.prompt_id, missed.violation) for missed in missed_by_all(records)] == [("B", "y")]


def test_known_failures_are_counted_by_prompt_and_target() -> None:
    """One is as expected as long as any answered repeat was missed; faults do not count."""
    known = {"known_failure": "too small"}
    records = [
        _record(prompt_id="A", objective_pass=True, **known),
        _record(prompt_id="A", repeat=2, objective_pass=False, **known),
        _record(prompt_id="B", objective_pass=True, **known),
        _record(prompt_id="C", success=False, objective_pass=None, failure_type="refusal", **known),
        _record(prompt_id="D", objective_pass=None, **known),
        _record(prompt_id="E", availability_status="error", success=False, objective_pass=None, **known),
        _record(prompt_id="F", objective_pass=False),
    ]

    found = [(one.prompt_id, one.n, one.n_missed, one.is_as_expected) for one in known_failures(records)]

    assert found == [("A", 2, 1, True), ("B", 1, 0, False), ("C", 1, 1, True), ("D", 1, 0, False)]


def test_slowest_is_a_successful_row() -> None:
    """A timeout is not the slowest answer."""
    records = [_record(e2e_ms=5), _record(e2e_ms=9, prompt_id="S"), _record(e2e_ms=99, success=False)]

    found = slowest(records)

    assert found is not None
    assert found.prompt_id == "S"
    assert slowest([]) is None
