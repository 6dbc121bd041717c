"""The session's exit status, and which failures of a prompt's repeats count."""

from itertools import product
from types import SimpleNamespace

import pytest

from pytest_openclaw.judging.text import Noop
from pytest_openclaw.session.reporting import RepeatThreshold, SessionEnd, defer, exit_status
from pytest_openclaw.values.prompts import Cell, Prompt
from pytest_openclaw.values.requests import Target

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
def test_the_status(situation, gates, answered, status):
    """A failed gate is 1, no verdict is 10, and nothing answered is never a success."""
    pytest_status, gates_only, others_failed = situation

    ended = _ended(gates, answered=answered, gates_only=gates_only, others_failed=others_failed)

    assert exit_status(pytest_status, ended) == status


def _ended(gates, *, answered, gates_only, others_failed):
    summary = SimpleNamespace(verdict=gates, gates=())
    settings = SimpleNamespace(verdict="gate" if gates_only else "cells")
    return SessionEnd(summary, settings, answered, 1 + others_failed, 1, {})


@pytest.mark.parametrize("pytest_status", [2, 3, 4, 5])
def test_the_other_statuses_of_pytest_stay(pytest_status):
    """An interruption, an internal error, a wrong option and an empty session are reported as usual."""
    for (gates, answered), gates_only, others_failed in product(STATUSES, (CELLS, GATE), (True, False)):
        ended = _ended(gates, answered=answered, gates_only=gates_only, others_failed=others_failed)

        assert exit_status(pytest_status, ended) == pytest_status


def test_a_miss_that_is_reported_twice_counts_once():
    """Of `pass = "3 of 5"`, the third repeat that fails is one too many."""
    prompt = Prompt(suite="s", id="P1", name="n", prompt="p", validator=Noop(), repeat=5, min_passes=3)
    threshold, outcomes = RepeatThreshold(), []
    for repeat in (2, 2, 3, 4):
        cell = Cell(prompt=prompt, target=Target(provider="p", model="m"), repeat=repeat, n_repeats=5)
        report = pytest.TestReport(f"s::{cell.id}", ("s", 0, cell.id), {}, "failed", ("s", 0, "x"), "call")
        defer(report, cell, 5)
        threshold.decide(report)
        outcomes.append(report.outcome)

    assert outcomes == ["skipped", "skipped", "skipped", "failed"]
