"""`pass = "4 of 5"`: accepts some failed repeats.

They are counted where all reports arrive, because the repeats of a prompt may run in different workers. Until
then a report is not a failure: under `-x` the worker would stop.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from pytest_openclaw.suites.prompt import pass_text

if TYPE_CHECKING:
    from collections.abc import Generator

    from pytest_openclaw.values.prompts import Cell

SECTION = "repeats"
"""Names the part of a failure that says which repeats were missed."""
CLAIM = "openclaw_repeat"
"""The attribute of a failed repeat's report: prompt and target, repeat, threshold, how many may fail."""
STRICT = "[XPASS(strict)] "
"""The beginning of pytest's message for a strict xfail that passed."""


def defer(report: pytest.TestReport, cell: Cell) -> None:
    """Mark the report of a failed repeat; the session decides with all repeats known."""
    prompt = cell.prompt
    if not report.failed or prompt.min_passes is None or prompt.repeat is None:
        return
    group = "\n".join((prompt.suite, prompt.id, cell.target.label))
    asked, allowed = pass_text(prompt.min_passes, prompt.repeat), prompt.repeat - prompt.min_passes
    setattr(report, CLAIM, [group, cell.repeat, asked, allowed])
    _forgive(report, "")


def passed_strictly(report: pytest.TestReport) -> bool:
    """Whether pytest reports a test as failed because it was expected to fail and passed."""
    return report.failed and isinstance(report.longrepr, str) and report.longrepr.startswith(STRICT)


class RepeatThreshold:
    """Registered where reports arrive: in a plain session and in xdist's controller."""

    def __init__(self) -> None:
        self._missed: dict[str, set[int]] = {}

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtest_logreport(self, report: pytest.TestReport) -> Generator[None, object, object]:
        """Decide on a report before other plugins count it."""
        if claim := vars(report).pop(CLAIM, None):
            group, repeat, asked, allowed = claim
            missed = self._missed.setdefault(group, set())
            missed.add(repeat)
            if len(missed) > allowed:
                _refuse(report, asked, allowed, missed)
            else:
                _forgive(report, f'miss {len(missed)} of the {allowed} that pass = "{asked}" allows')
        return (yield)


def _forgive(report: pytest.TestReport, why: str) -> None:
    """Turn the report into an expected failure."""
    changed: Any = report
    changed.outcome, changed.wasxfail = "skipped", why


def _refuse(report: pytest.TestReport, asked: str, allowed: int, missed: set[int]) -> None:
    """Turn the report into a failure that names the repeats that caused it."""
    changed: Any = report
    changed.outcome = "failed"
    del changed.wasxfail
    text = f'missed {", ".join(f"r{repeat}" for repeat in sorted(missed))}; pass = "{asked}" allows {allowed}'
    if hasattr(changed.longrepr, "addsection"):
        changed.longrepr.addsection(SECTION, text)
    else:
        changed.longrepr = f"{changed.longrepr}\n  {SECTION} {text}"
