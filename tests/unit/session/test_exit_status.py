"""The session's exit status: pytest's own, a gate's, or that there is no verdict."""

from __future__ import annotations

from itertools import product

import pytest

from pytest_openclaw.session.reporting import exit_status

CELLS = False
GATE = True
# Pytest's status, the verdict mode, and whether something failed that no gate has counted.
SITUATIONS = {
    "all-passed": (0, CELLS, False),
    "cells-failed": (1, CELLS, False),
    "something-else-failed": (1, CELLS, True),
    "gate-mode-all-passed": (0, GATE, False),
    "gate-mode-cells-failed": (1, GATE, False),
    "gate-mode-something-else-failed": (1, GATE, True),
}
STATUSES = {
    # By the gates' ruling and whether any cell was answered; one status for each situation above.
    ("not_gated", True): (0, 1, 1, 0, 0, 1),
    ("passed", True): (0, 1, 1, 0, 0, 1),
    ("failed", True): (1, 1, 1, 1, 1, 1),
    ("no_verdict", True): (10, 10, 10, 10, 10, 10),
    ("not_gated", False): (1, 1, 1, 1, 1, 1),
    ("passed", False): (1, 1, 1, 1, 1, 1),
    ("failed", False): (1, 1, 1, 1, 1, 1),
    ("no_verdict", False): (10, 10, 10, 10, 10, 10),
}


@pytest.mark.parametrize(
    ("situation", "gates", "answered", "status"),
    [
        pytest.param(
            situation, gates, answered, status,
            id=f"{name}-{gates}-{'answered' if answered else 'nothing-answered'}",
        )
        for (gates, answered), statuses in STATUSES.items()
        for (name, situation), status in zip(SITUATIONS.items(), statuses, strict=True)
    ],
)  # fmt: skip
def test_the_status(situation: tuple[int, bool, bool], gates: str, answered: bool, status: int) -> None:
    """A failed gate is 1, no verdict is 10, and nothing answered is never a success."""
    pytest_status, gates_only, others_failed = situation

    found = exit_status(
        pytest_status, gates_only=gates_only, others_failed=others_failed, gates=gates, answered=answered
    )

    assert found == status


@pytest.mark.parametrize("pytest_status", [2, 3, 4, 5])
def test_pytests_own_ends_stay(pytest_status: int) -> None:
    """An interruption, an internal error, a wrong option and an empty session are reported as usual."""
    for (gates, answered), gates_only, others_failed in product(STATUSES, (CELLS, GATE), (True, False)):
        assert (
            exit_status(
                pytest_status,
                gates_only=gates_only,
                others_failed=others_failed,
                gates=gates,
                answered=answered,
            )
            == pytest_status
        )
