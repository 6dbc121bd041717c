"""The session's exit status: pytest's own, a gate's, or that there is no verdict."""

from __future__ import annotations

import pytest

from pytest_openclaw.recorder import exit_status

GATED = {"passed", "failed", "no_verdict"}


@pytest.mark.parametrize(
    ("pytest_status", "gate_alone", "others_failed", "gates", "answered", "status"),
    [
        pytest.param(0, False, False, "not_gated", True, 0, id="all-passed"),
        pytest.param(1, False, False, "not_gated", True, 1, id="cells-failed"),
        pytest.param(1, True, False, "not_gated", True, 0, id="gate-alone-forgives-verdicts"),
        pytest.param(1, True, True, "not_gated", True, 1, id="gate-alone-forgives-no-fault"),
        pytest.param(1, True, False, "passed", True, 0, id="gate-alone-passed"),
        pytest.param(1, True, True, "passed", True, 1, id="a-gate-forgives-no-fault"),
        pytest.param(1, False, False, "passed", True, 1, id="cells-count-beside-a-gate"),
        pytest.param(0, False, False, "failed", True, 1, id="gate-failed"),
        pytest.param(0, True, False, "failed", True, 1, id="gate-alone-failed"),
        pytest.param(0, False, False, "no_verdict", True, 10, id="no-verdict"),
        pytest.param(1, True, True, "no_verdict", False, 10, id="no-verdict-goes-before-faults"),
        pytest.param(0, False, False, "not_gated", False, 1, id="nobody-answered"),
        pytest.param(0, True, False, "not_gated", False, 1, id="nobody-answered-gate-alone"),
    ],
)
def test_the_status(
    pytest_status: int, gate_alone: bool, others_failed: bool, gates: str, answered: bool, status: int
) -> None:
    """A failed gate is 1, no verdict is 10, and nothing answered is never a success."""
    found = exit_status(
        pytest_status, gate_alone=gate_alone, others_failed=others_failed, gates=gates, answered=answered
    )

    assert found == status


@pytest.mark.parametrize("gates", sorted(GATED | {"not_gated"}))
@pytest.mark.parametrize("pytest_status", [2, 3, 4, 5])
def test_pytests_own_ends_stay(pytest_status: int, gates: str) -> None:
    """An interruption, an internal error, a wrong option and an empty session are told as ever."""
    assert (
        exit_status(pytest_status, gate_alone=True, others_failed=False, gates=gates, answered=True)
        == pytest_status
    )
