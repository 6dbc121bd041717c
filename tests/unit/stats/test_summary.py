"""Rows → groups: what counts, what does not, what is null."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from pytest_openclaw.stats.groups import summarize_group
from pytest_openclaw.stats.intervals import Interval
from pytest_openclaw.stats.summary import known_failures, missed_by_all, slowest
from pytest_openclaw.values.requests import Target
from pytest_openclaw.values.rows import Record, to_row

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
    return summarize_group(TARGET, records, {}, n_targets=1)


def test_the_seed_fields_come_first() -> None:
    """A row begins with the seed's fields in the seed's order."""
    assert list(to_row(_record()))[:23] == [
        "record_type", "run_id", "provider", "model", "thinking_level", "prompt_id", "prompt_name",
        "availability_status", "started_at_ms", "ended_at_ms", "e2e_ms", "ttft_ms", "success", "failure_type",
        "objective_pass", "violation", "input_tokens", "output_tokens", "raw_output", "parsed_output",
        "tool_calls", "tool_call_count", "tool_use_success",
    ]  # fmt: skip


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
    """Each interval uses the rows of its percentile; too few cells have none."""
    group = _group(
        *(_record(prompt_id=f"P{n}", e2e_ms=n, ttft_ms=n if n <= 5 else None) for n in range(1, 73)),
        _record(prompt_id="E", e2e_ms=9999, availability_status="error", success=False),
    )

    # Ranks 28 and 45 of 72 by the binomial distribution; 64 and 72 for p95.
    assert group.latency_intervals_95 == {
        "p50": Interval(low=28, high=45),
        "p95": Interval(low=64, high=72),
        "p99": None,
    }
    assert group.ttft_intervals_95 == {"p50": None, "p95": None, "p99": None}


def test_harder_forms_of_a_prompt_are_one_in_latency_too() -> None:
    """They are correlated like repeats."""
    forms = [_record(prompt_id=f"X-{n}", pressure_of="X", e2e_ms=n) for n in range(1, 60)]

    assert _group(*forms).latency_intervals_95["p50"] is None


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
