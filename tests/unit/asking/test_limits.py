"""What bounds requests: which faults are retried and after what wait, slots, outages, the budget."""

from __future__ import annotations

import pytest

from pytest_openclaw.asking.sending import Budget, DownMarks, wait_before_retry
from pytest_openclaw.values import faults
from pytest_openclaw.values.replies import Fault
from pytest_openclaw.values.requests import Target

BUSY = faults.refused_by_server("p", "m", faults.WireError(status=429))


def _wait(fault: Fault, **changes: float) -> float | None:
    values = {"attempt": 1, "retries": 5, "elapsed_s": 0.0, "timeout_s": 300.0, **changes}
    return wait_before_retry(
        fault,
        attempt=int(values["attempt"]),
        retries=int(values["retries"]),
        elapsed_s=values["elapsed_s"],
        timeout_s=values["timeout_s"],
        random=lambda: 1.0,
    )


@pytest.mark.parametrize(("attempt", "wait_s"), [(1, 1.0), (2, 2.0), (3, 4.0), (7, 60.0), (50, 60.0)])
def test_the_back_off_doubles_to_a_minute(attempt: int, wait_s: float) -> None:
    """Full jitter draws up to 1, 2, 4 … and at most 60 s."""
    assert _wait(BUSY, attempt=attempt, retries=100) == wait_s


def test_the_last_retry_is_the_last() -> None:
    """After `retries` further attempts there is none."""
    assert _wait(BUSY, attempt=5) is not None
    assert _wait(BUSY, attempt=6) is None


def test_retry_after_goes_first_and_has_a_bound() -> None:
    """A server's wait is respected if the next attempt begins within the cell's timeout of the first."""
    asked = faults.refused_by_server("p", "m", faults.WireError(status=503), retry_after_s=7.0)

    assert _wait(asked) == 7.0
    assert _wait(asked, elapsed_s=295.0) is None
    assert _wait(asked, timeout_s=5.0) is None


@pytest.mark.parametrize("status", [408, 409, 429, 500, 502, 503, 504, 529])
def test_statuses_that_are_asked_again(status: int) -> None:
    """Temporary failures are retried."""
    assert _wait(faults.refused_by_server("p", "m", faults.WireError(status=status))) is not None


@pytest.mark.parametrize(
    "fault",
    [
        *(
            pytest.param(faults.refused_by_server("p", "m", faults.WireError(status=status)), id=str(status))
            for status in (400, 401, 402, 403, 404, 413, 422, 501)
        ),
        pytest.param(
            faults.refused_by_server("p", "m", faults.WireError(status=429, code="insufficient_quota")),
            id="quota",
        ),
        pytest.param(faults.unreachable("p", "u", "refused"), id="refused"),
        pytest.param(faults.stream_broken("p", "cut", "some text"), id="after-tokens"),
        pytest.param(faults.timed_out("p", 1.0), id="timeout"),
        pytest.param(faults.broke("p", "bug"), id="our-bug"),
    ],
)
def test_faults_that_are_final(fault: Fault) -> None:
    """Permanent failures are not retried."""
    assert _wait(fault) is None


def test_a_lost_connection_is_asked_again() -> None:
    """A reset before any byte may be temporary."""
    assert _wait(faults.connection_lost("p", "reset")) is not None


# --- outages ------------------------------------------------------------------------------------

A, B = Target(provider="p", model="a"), Target(provider="p", model="b")
REFUSED = faults.unreachable("p", "u", "refused")
NO_KEY = faults.auth_missing("p", "set a key")


def test_the_first_fault_of_an_endpoint_stays() -> None:
    """Later cells report the first fault."""
    down = DownMarks()
    down.add("l", A, REFUSED)
    down.add("l", A, faults.not_installed("p", "gone"))

    assert down.fault("l", B) is REFUSED
    assert down.fault("elsewhere", A) is None


def test_a_target_goes_down_alone() -> None:
    """Missing credentials of one target say nothing about another."""
    down = DownMarks()
    down.add("l", A, NO_KEY)

    assert (down.fault("l", A), down.fault("l", B)) == (NO_KEY, None)


def test_a_cells_own_fault_marks_no_target() -> None:
    """A timeout is reported in its own row alone."""
    down = DownMarks()
    down.add("l", A, faults.timed_out("p", 1.0))

    assert down.fault("l", A) is None


# --- the budget ---------------------------------------------------------------------------------


def test_a_budget_is_empty_when_it_is_spent() -> None:
    """Without a budget nothing is counted."""
    budget, unlimited = Budget(10.0), Budget(None)
    for usd in (4.0, 6.0):
        assert not budget.is_empty
        budget.pay(usd)
    unlimited.pay(5.0)

    assert (budget.spent_usd, budget.is_empty) == (10.0, True)
    assert (unlimited.spent_usd, unlimited.is_empty) == (0.0, False)
