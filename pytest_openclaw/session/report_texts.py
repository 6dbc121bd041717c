"""Foreign text in what pytest shows of a cell: tracebacks, reasons, captured output and logs, warnings."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from pytest_openclaw.core.text import map_texts, printable

if TYPE_CHECKING:
    import warnings

    import pytest

    from pytest_openclaw.core.redact import Redactor

_COLOR = re.compile(r"(\x1b\[(?:[0-7]|[34][0-7])m)")
"""By which pytest colors the level of a log record."""


def make_printable(report: pytest.TestReport, config: pytest.Config) -> None:
    """Spell out what a terminal or a CI system would obey and no wire takes: a test may quote a reply."""
    if isinstance(report.longrepr, tuple):  # where it was skipped, and why
        path, line, reason = report.longrepr
        report.longrepr = (path, line, printable(reason, wraps=True))
    elif report.longrepr is not None:
        report.longrepr = _printable_longrepr(report, config)
    if why := getattr(report, "wasxfail", ""):
        report.wasxfail = printable(why, wraps=True)
    report.sections = [
        (name, _printable_log(text) if name.startswith("Captured log") else printable(text))
        for name, text in report.sections
    ]


def redact(report: pytest.TestReport, redactor: Redactor) -> None:
    """Take secrets out of what pytest shows and writes of a cell."""
    shown = str(report.longrepr) if report.longrepr is not None else ""
    if redactor.text(shown) != shown:
        # A location beside the text stays a location; everything else becomes the text that it shows.
        report.longrepr = (
            redactor.value(report.longrepr) if isinstance(report.longrepr, tuple) else redactor.text(shown)
        )
    report.sections = [(redactor.text(name), redactor.text(text)) for name, text in report.sections]


def make_warning_printable(warning: warnings.WarningMessage, redactor: Redactor) -> None:
    """Take secrets out of a warning and make it printable; its category stays."""
    text = str(warning.message)
    if (shown := printable(redactor.text(text))) != text:
        warning.message = UserWarning(shown)


def _printable_longrepr(report: pytest.TestReport, config: pytest.Config) -> Any:
    """Return the traceback with its parts printable; it stays a structure, as on its way between processes.

    Not the text of it all: pytest shows the message alone in its last lines, in full on CI.
    """
    data = config.hook.pytest_report_to_serializable(config=config, report=report)
    longrepr = map_texts(data["longrepr"], printable)
    if longrepr == data["longrepr"]:
        return report.longrepr
    made = config.hook.pytest_report_from_serializable(config=config, data={**data, "longrepr": longrepr})
    return made.longrepr


def _printable_log(text: str) -> str:
    parts = _COLOR.split(text)
    return "".join(part if _COLOR.fullmatch(part) else printable(part) for part in parts)
