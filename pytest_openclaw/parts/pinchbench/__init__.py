"""PinchBench's tasks as cells: files `task_*.md`, played in scripted worlds and graded by their own code."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

import pytest

from pytest_openclaw.options import RATE, lookup

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    from pytest_openclaw.conclusions.summary import SummaryPart
    from pytest_openclaw.values.prompts import Suite
    from pytest_openclaw.values.rows import Record

KEY = "openclaw_pinchbench_pass"
_HELP = "Score from which a PinchBench task passes, 0 to 1 (1)."


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the score from which a task passes, as an option and as an ini key."""
    parser.addini(KEY, _HELP, default=None)
    group = parser.getgroup("openclaw")
    group.addoption("--openclaw-pinchbench-pass", dest=KEY, metavar="SCORE", default=None, help=_HELP)


def pytest_openclaw_suite(path: Path, config: pytest.Config) -> Callable[[str], Suite] | None:
    """Read a task as a suite of one prompt."""
    if not path.match("task_*.md"):
        return None
    from pytest_openclaw.parts.pinchbench.tasks import read_task

    given = config.getoption(KEY, None) or config.getini(KEY) or "1"
    try:
        # A given --openclaw-timeout replaces the tasks' own.
        return partial(read_task, path, pass_at=RATE(given), is_timed=not lookup(config, "timeout")[0])
    except ValueError as error:
        raise pytest.UsageError(f"{KEY}={given}: {error}") from None


def pytest_openclaw_summary(records: Sequence[Record]) -> SummaryPart | None:
    """Add the mean scores of targets and categories."""
    from pytest_openclaw.parts.pinchbench.scores import scores_of

    return scores_of(records)
