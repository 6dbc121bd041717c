"""Which faults are retried and after what wait, and what is not asked any more."""

from __future__ import annotations

import pytest

from pytest_openclaw.asking import sending
from pytest_openclaw.asking.sending import wait_before_retry
from pytest_openclaw.values import faults
from pytest_openclaw.values.faults import CallFailed
from pytest_openclaw.values.replies import Fault
from tests.unit.asking.asking import open_room
from tests.unit.asking.fake_providers import Fake, cell, raises

BUSY = faults.refused_by_server("p", "m", faults.WireError(status=429))


def _wait(fault: Fault, **changes: float) -> float | None:
    values = {"attempt": 1, "retries": 5, "elapsed_s": 0.0, "timeout_s": 300.0, **changes}
    return wait_before_retry(
        fault,
        attempt=int(values["attempt"]),
        retries=int(values["retries"]),
        elapsed_s=values["elapsed_s"],
        timeout_s=values["timeout_s"],
    )


@pytest.fixture(autouse=True)
def _no_jitter(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each wait is the longest."""
    monkeypatch.setattr(sending.random, "uniform", lambda _, most: most)


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


REFUSED = faults.unreachable("p", "u", "refused")
NO_KEY = faults.auth_missing("p", "set a key")


@pytest.mark.parametrize(
    ("fault", "asked"),
    [
        pytest.param(REFUSED, ["a"], id="an-endpoint-is-down-for-all-its-targets"),
        pytest.param(NO_KEY, ["a", "b"], id="a-target-is-down-by-itself"),
        pytest.param(faults.timed_out("p", 1.0), ["a", "a", "b"], id="a-cell's-own-fault-marks-nothing"),
    ],
)
def test_what_is_down_is_not_asked_again(fault: Fault, asked: list[str]) -> None:
    """Two cells of model a, then one of b on the same endpoint: which of them are sent."""
    provider = Fake(raises(CallFailed(fault)))
    with open_room(provider) as room:
        for number, model in enumerate(["a", "a", "b"]):
            room.ask(cell(f"P{number}", model=model))

    assert [request.model for request in provider.asked] == asked
