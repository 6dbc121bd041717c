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


def test_unavailable_fails_when_asked_to(project: Any) -> None:
    """`--openclaw-fail-unavailable` turns the skip into an error, the row stays."""
    project.suite({"P1": ("refused", EXACT)})

    session = project.run("--openclaw-fail-unavailable")

    session.outcomes(errors=1)
    assert session.row("P1")["availability_status"] == "skipped_unavailable"
    assert session.status == 1


def test_another_model_that_answers_is_said(project: Any) -> None:
    """A server that answers with another model shows in the row, the terminal and the summary."""
    project.suite({"P1": ("other llama9:1b", {"type": "noop"})})

    session = project.run()

    assert session.row("P1")["effective_model"] == "llama9:1b"
    assert session.summary["groups"][0]["effective_models"] == ["llama9:1b"]
    assert "llama9:1b instead of it" in session.text
