"""Every line of the outcome table: row, pytest's outcome, exit status."""

from __future__ import annotations

from typing import Any

import pytest

EXACT = {"type": "exact", "value": "yes"}

CASES = [
    pytest.param(
        "say yes",
        EXACT,
        "passed",
        {"availability_status": "ok", "success": True, "objective_pass": True},
        0,
        id="passed",
    ),
    pytest.param(
        "say yes", {"type": "noop"}, "passed", {"success": True, "objective_pass": None}, 0, id="noop"
    ),
    pytest.param(
        "say no",
        EXACT,
        "failed",
        {"success": True, "objective_pass": False, "failure_type": None},
        1,
        id="violation",
    ),
    pytest.param(
        "say ",
        EXACT,
        "failed",
        {
            "availability_status": "ok",
            "success": False,
            "failure_type": "empty_response",
            "objective_pass": None,
        },
        1,
        id="empty",
    ),
    pytest.param(
        "filtered",
        EXACT,
        "failed",
        {"availability_status": "ok", "success": False, "failure_type": "content_filter"},
        1,
        id="filtered",
    ),
    pytest.param(
        "call read",
        {"type": "tool_invocation", "expected_tools": ["read"]},
        "passed",
        {"success": True, "tool_calls": ["read"], "tool_use_success": True},
        0,
        id="native-call-is-an-answer",
    ),
    pytest.param(
        "refused",
        EXACT,
        "skipped",
        {"availability_status": "skipped_unavailable", "failure_type": "connect_error", "attempts": 1},
        1,
        id="refused",
    ),
    pytest.param(
        "nomodel",
        EXACT,
        "skipped",
        {"availability_status": "skipped_unavailable", "failure_type": "model_not_found"},
        1,
        id="no-model",
    ),
    pytest.param(
        "nologin",
        EXACT,
        "errors",
        {
            "availability_status": "auth_error",
            "failure_type": "auth_missing",
            "attempts": 0,
            "e2e_ms": 0,
            "ttft_ms": None,
        },
        1,
        id="not-logged-in",
    ),
    pytest.param(
        "busy",
        EXACT,
        "errors",
        {"availability_status": "rate_limited", "failure_type": "http_429", "attempts": 3},
        1,
        id="rate-limited",
    ),
    pytest.param(
        "quota",
        EXACT,
        "errors",
        {"availability_status": "rate_limited", "failure_type": "quota_exhausted", "attempts": 1},
        1,
        id="quota",
    ),
    pytest.param(
        "broken",
        EXACT,
        "errors",
        {"availability_status": "error", "failure_type": "http_400", "attempts": 1},
        1,
        id="http-400",
    ),
    pytest.param(
        "timeout",
        EXACT,
        "errors",
        {"availability_status": "error", "failure_type": "timeout", "attempts": 1},
        1,
        id="timeout",
    ),
    pytest.param(
        "crash",
        EXACT,
        "errors",
        {"availability_status": "error", "failure_type": "harness_error"},
        1,
        id="provider-crashes",
    ),
]


@pytest.mark.parametrize(("prompt", "validator", "outcome", "expected", "status"), CASES)
def test_each_ending_has_its_row_outcome_and_status(
    project: Any, prompt: str, validator: Any, outcome: str, expected: dict[str, Any], status: int
) -> None:
    """A cell ends in exactly one row, one pytest outcome and one exit status."""
    project.suite({"P1": (prompt, validator)})

    session = project.run("--openclaw-retries=2")

    session.outcomes(**{outcome: 1})
    row = session.row("P1")
    assert {key: row[key] for key in expected} == expected
    assert session.status == status


def test_our_own_breakage_shows_its_traceback(project: Any) -> None:
    """A broken provider is an error with a traceback, and the row keeps the reason."""
    project.suite({"P1": ("crash", EXACT)})

    session = project.run()

    assert "RuntimeError: the provider is broken" in session.text
    assert "async def ask" in session.text or "in ask" in session.text
    assert "the provider is broken" in session.row("P1")["fault_message"]


def test_a_fault_shows_no_traceback(project: Any) -> None:
    """A fault of the network is one sentence."""
    project.suite({"P1": ("timeout", EXACT)})

    session = project.run()

    assert "no complete answer within 1 s" in session.text
    assert "Traceback" not in session.text
    assert ".py:" not in session.text


@pytest.mark.under_workers
def test_a_failed_cell_reads_like_an_assertion(project: Any) -> None:
    """Prompt, violation, reply, target and times are in the failure."""
    project.suite({"P1": ("say maybe", EXACT)})

    session = project.run("-v")

    for part in ("P1", "maybe", "scripted/m", "e2e", "say maybe"):
        assert part in session.text


def test_one_unreachable_server_is_called_once(plain_project: Any) -> None:
    """After a refused connection the remaining cells of the endpoint are recorded without a call."""
    plain_project.suite({f"P{n}": ("refused", EXACT) for n in range(4)})

    session = plain_project.run("--openclaw-concurrency=1")

    session.outcomes(skipped=4)
    assert [row["attempts"] for row in session.rows] == [1, 0, 0, 0]
    for row in session.rows[1:]:
        assert (row["e2e_ms"], row["ttft_ms"]) == (0, None)
        assert row["started_at_ms"] == row["ended_at_ms"]


def test_an_unknown_model_stops_its_target_only(plain_project: Any) -> None:
    """A target without its model is not asked again; other targets are."""
    plain_project.suite({"P1": ("nomodel", EXACT), "P2": ("say yes", EXACT)})

    session = plain_project.run("--openclaw-concurrency=1", models="scripted/a,scripted/b")

    assert [row["attempts"] for row in session.rows] == [1, 0, 1, 0]


def test_what_is_in_flight_meets_a_dead_server_itself(plain_project: Any) -> None:
    """With several requests at a time, those under way fail each for itself, and no later one is sent."""
    plain_project.suite({f"P{n:02}": ("refused", EXACT) for n in range(20)})

    session = plain_project.run("--openclaw-concurrency=4")

    session.outcomes(skipped=20)
    assert 1 <= sum(row["attempts"] for row in session.rows) <= 4


def test_unavailable_fails_when_asked_to(project: Any) -> None:
    """`--openclaw-fail-unavailable` turns the skip into an error, the row stays."""
    project.suite({"P1": ("refused", EXACT)})

    session = project.run("--openclaw-fail-unavailable")

    session.outcomes(errors=1)
    assert session.row("P1")["availability_status"] == "skipped_unavailable"
    assert session.status == 1


def test_nothing_answered_is_a_failure_in_one_line(project: Any) -> None:
    """A run in which no cell was answered exits 1, although pytest skipped everything."""
    project.suite({"P1": ("refused", EXACT)})

    session = project.run()

    assert session.status == 1
    assert "no cell was answered" in session.text


def test_another_model_that_answers_is_said(project: Any) -> None:
    """A server that answers with another model shows in the row, the terminal and the summary."""
    project.suite({"P1": ("other llama9:1b", {"type": "noop"})})

    session = project.run()

    assert session.row("P1")["effective_model"] == "llama9:1b"
    assert session.summary["groups"][0]["effective_models"] == ["llama9:1b"]
    assert "llama9:1b instead of it" in session.text
