"""Makes foreign text safe in pytest's output: tracebacks, reasons, captured output and logs, warnings."""

from __future__ import annotations

import re
import shutil
import sys
from typing import TYPE_CHECKING, Any

import pytest

from pytest_openclaw.core.text import broken_between_words, map_texts, printable

if TYPE_CHECKING:
    import warnings

    from pytest_openclaw.core.redact import Redactor

_COLOR = re.compile(r"(\x1b\[(?:[0-7]|[34][0-7])m)")
"""The codes with which pytest colors the level of a log record."""


_ERROR = "ERROR: "
"""What pytest writes before a usage error."""


def in_whole_words(error: pytest.UsageError) -> pytest.UsageError:
    """Return a usage error of ours with line breaks for the terminal; another one unchanged."""
    place = error.__traceback__
    while place and place.tb_next:
        place = place.tb_next
    is_ours = place and place.tb_frame.f_globals["__name__"].startswith("pytest_openclaw.")
    if not is_ours or not sys.stderr.isatty():
        return error
    width = shutil.get_terminal_size().columns
    return pytest.UsageError(*(broken_between_words(str(text), width, len(_ERROR)) for text in error.args))


def make_printable(report: pytest.TestReport, config: pytest.Config) -> None:
    """Escape characters that a terminal or a CI system would act on: a test may quote a reply."""
    if isinstance(report.longrepr, tuple):  # location and reason of a skip
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
    """Remove secrets from a cell's report."""
    shown = str(report.longrepr) if report.longrepr is not None else ""
    if redactor.text(shown) != shown:
        # A location beside the text is kept; everything else becomes its text.
        report.longrepr = (
            redactor.value(report.longrepr) if isinstance(report.longrepr, tuple) else redactor.text(shown)
        )
    report.sections = [(redactor.text(name), redactor.text(text)) for name, text in report.sections]


def make_warning_printable(warning: warnings.WarningMessage, redactor: Redactor) -> None:
    """Remove secrets from a warning and make it printable; its category is unchanged."""
    text = str(warning.message)
    if (shown := printable(redactor.text(text))) != text:
        warning.message = UserWarning(shown)


def _printable_longrepr(report: pytest.TestReport, config: pytest.Config) -> Any:
    """Return the traceback with printable parts, still as the structure that xdist sends.

    A plain text would not do: pytest's last lines show the message alone, on CI in full.
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
