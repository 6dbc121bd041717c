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


def _cell(repeat, prompt_id="P1", model="m"):
    prompt = Prompt(suite="s", id=prompt_id, name="n", prompt="p", validator=Noop(), repeat=5, min_passes=3)
    return Cell(prompt=prompt, target=Target(provider="p", model=model), repeat=repeat, n_repeats=5)


def _report(cell, longrepr=None):
    """A report of a failure, as a worker sends it; or with a text, of the case that it names."""
    nodeid, location = f"s::{cell.id}", ("s", 0, cell.id)
    return pytest.TestReport(nodeid, location, {}, "failed", longrepr, "call")


def _outcome(tolerance, report):
    """The report after its arrival: its outcome, and why that was expected."""
    tolerance.decide(report)
    return report.outcome, getattr(report, "wasxfail", None)


def _arrive(tolerance, *cells):
    outcomes = []
    for cell in cells:
        report = _report(cell, ("s", 0, "missed"))
        defer(report, cell, 5)
        assert not report.failed, "a worker would stop at it under -x"
        outcomes.append(_outcome(tolerance, report))
    return outcomes


ALLOWED = [("skipped", f'miss {n} of the 2 that pass = "3 of 5" allows') for n in (1, 2)]
FAILED = ("failed", None)


@pytest.mark.parametrize(
    ("cells", "expected"),
    [
        pytest.param([_cell(2), _cell(4)], ALLOWED, id="as-many-as-are-allowed"),
        pytest.param([_cell(n) for n in (5, 1, 2, 3)], [*ALLOWED, FAILED, FAILED], id="too-many"),
        pytest.param([_cell(2), _cell(2), _cell(3)], [ALLOWED[0], *ALLOWED], id="one-that-is-reported-twice"),
        pytest.param(
            [_cell(n, **other) for other in ({}, {"prompt_id": "P2"}, {"model": "n"}) for n in (1, 2)],
            ALLOWED * 3,
            id="prompts-and-targets-apart",
        ),
    ],
)
def test_allowed_misses_are_not_failures(cells, expected):
    """The failures of one prompt on one target count together, in any order."""
    assert _arrive(RepeatThreshold(), *cells) == expected


def test_a_failure_without_a_threshold_is_unchanged():
    """Other tests, faults, and cells of prompts without a threshold are not changed."""
    assert _outcome(RepeatThreshold(), _report(_cell(1), "broken")) == ("failed", None)
