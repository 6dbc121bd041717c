"""Which failures of a prompt's repeats are failures of the session, decided where all reports arrive."""

from __future__ import annotations

from typing import Any

import pytest

from pytest_openclaw.judging.text import Noop
from pytest_openclaw.session.reporting import RepeatThreshold, defer
from pytest_openclaw.values.prompts import Cell, Prompt
from pytest_openclaw.values.requests import Target


def _cell(repeat: int, prompt_id: str = "P1", model: str = "m") -> Cell:
    prompt = Prompt(suite="s", id=prompt_id, name="n", prompt="p", validator=Noop(), repeat=5, min_passes=3)
    return Cell(prompt=prompt, target=Target(provider="p", model=model), repeat=repeat, n_repeats=5)


def _report(cell: Cell, longrepr: Any = None) -> pytest.TestReport:
    """A report of a failure, as a worker sends it; or with a text, of the case that it names."""
    nodeid, location = f"s::{cell.id}", ("s", 0, cell.id)
    return pytest.TestReport(nodeid, location, {}, "failed", longrepr, "call")


def _outcome(tolerance: RepeatThreshold, report: pytest.TestReport) -> tuple[str, str | None]:
    """The report after its arrival: its outcome, and why that was expected."""
    arriving = tolerance.pytest_runtest_logreport(report)
    next(arriving)
    return report.outcome, getattr(report, "wasxfail", None)


def _arrive(tolerance: RepeatThreshold, *cells: Cell) -> list[Any]:
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
def test_so_many_misses_are_no_failures(cells: list[Cell], expected: list[Any]) -> None:
    """The failures of one prompt on one target count together, in any order."""
    assert _arrive(RepeatThreshold(), *cells) == expected


def test_what_brings_no_claim_stays_as_it_is() -> None:
    """Other tests, faults, and cells of prompts without a threshold are not changed."""
    assert _outcome(RepeatThreshold(), _report(_cell(1), "broken")) == ("failed", None)
