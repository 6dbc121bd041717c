"""Which faults are retried, and after what wait."""

from __future__ import annotations

import pytest

from pytest_openclaw.asking.retry import wait_before_retry
from pytest_openclaw.types import faults
from pytest_openclaw.types.replies import Fault

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
