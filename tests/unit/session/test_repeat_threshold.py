"""Which failures of a prompt's repeats are failures of the session, decided where all reports arrive."""

from __future__ import annotations

from typing import Any

import pytest

from pytest_openclaw.judging.text import Noop
from pytest_openclaw.session.repeat_threshold import RepeatThreshold, defer, expectation_of
from pytest_openclaw.values.prompts import Cell, Prompt
from pytest_openclaw.values.requests import Target

STRICTLY = "[XPASS(strict)] "


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


def _arrive(tolerance: RepeatThreshold, *cells: Cell, n_selected: int = 5, text: str = "") -> list[Any]:
    outcomes = []
    for cell in cells:
        report = _report(cell, text or ("s", 0, "missed"))
        defer(report, cell, n_selected)
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


@pytest.mark.parametrize(
    ("n_selected", "expected"),
    [(5, ALLOWED[:1]), (3, [FAILED]), (1, [FAILED])],
    ids=["all", "as-many-as-must-pass", "one"],
)
def test_repeats_that_are_left_out_have_not_passed(n_selected: int, expected: list[Any]) -> None:
    """A session of fewer repeats allows fewer failures."""
    assert _arrive(RepeatThreshold(), _cell(2), n_selected=n_selected) == expected


def test_so_many_unexpected_passes_are_no_failures() -> None:
    """A known failure passes when it passes as often as it must, not before; the failure names them."""
    tolerance = RepeatThreshold()
    outcomes = _arrive(tolerance, _cell(1), _cell(4), text=f"{STRICTLY}flaky")
    last = _report(_cell(5), f"{STRICTLY}flaky")
    defer(last, _cell(5), 5)

    assert outcomes == [("passed", "flaky")] * 2
    assert _outcome(tolerance, last) == FAILED
    assert last.longrepr == f'{STRICTLY}flaky (pass = "3 of 5": r1, r4, r5 passed)'


def test_what_brings_no_claim_stays_as_it_is() -> None:
    """Other tests, faults, and cells of prompts without a threshold are not changed."""
    assert _outcome(RepeatThreshold(), _report(_cell(1), "broken")) == ("failed", None)


@pytest.mark.parametrize(
    ("outcome", "longrepr", "wasxfail", "why"),
    [
        pytest.param("skipped", "text", "not yet", "not yet", id="xfailed"),
        pytest.param("passed", None, "not yet", "not yet", id="xpassed"),
        pytest.param("failed", f"{STRICTLY}not yet", None, "not yet", id="xpassed-strictly"),
        pytest.param("skipped", "text", "reason: in the test", "in the test", id="imperatively"),
        pytest.param("skipped", "text", "", "expected to fail", id="without-a-reason"),
        pytest.param("failed", "text", None, None, id="failed"),
        pytest.param("passed", None, None, None, id="passed"),
    ],
)
def test_why_pytest_expected_it(outcome: Any, longrepr: Any, wasxfail: str | None, why: str | None) -> None:
    """Whether a test failed as expected or passed all the same, pytest's reason is known."""
    report = _report(_cell(1), longrepr)
    report.outcome = outcome
    if wasxfail is not None:
        report.wasxfail = wasxfail

    assert expectation_of(report) == why
