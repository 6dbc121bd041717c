"""Shows failed cells in pytest's last lines: a line each, once, unless more is asked for."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from pytest_openclaw.core.text import broken_between_words, printable
from pytest_openclaw.options import SUITE_NAME
from pytest_openclaw.session.repeat_threshold import SECTION
from pytest_openclaw.types.payloads import KeptVerdict
from pytest_openclaw.types.records import Record

if TYPE_CHECKING:
    from collections.abc import Generator, Iterator, Sequence

    from pytest_openclaw.types.payloads import Payload
    from pytest_openclaw.types.targets import Target

TITLES = {"error": "ERRORS", "failed": "FAILURES"}
"""The categories of pytest's reports that are shortened, with the titles of pytest's own sections."""
SHORT_STYLES = {"auto", "line"}
USUAL_REPORT_CHARS = "fE"
"""Pytest's default for `-r`."""


class CellFailures:
    """Registered where reports arrive.

    Args:
        config: pytest's.
        targets: of the run; the lines name them if there are several.
    """

    def __init__(self, config: pytest.Config, targets: Sequence[Target]) -> None:
        self._config = config
        self._only = targets[0].label if len(targets) == 1 else None
        self._nodeids: set[str] = set()
        self._whole: dict[str, list[pytest.TestReport]] = {}

    def note(self, report: pytest.TestReport, payload: Payload) -> None:
        """Remember a report that is a missed cell or a fault; what broke in our own code is no such."""
        if report.failed and _is_plain(payload):
            self._nodeids.add(report.nodeid)

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_terminal_summary(
        self, terminalreporter: pytest.TerminalReporter
    ) -> Generator[None, object, object]:
        """Show the lines in place of pytest's sections, and give pytest's counts their reports back."""
        stats = terminalreporter.stats
        self._break_suite_errors(terminalreporter)
        self._whole = {kind: stats[kind] for kind in TITLES if kind in stats}
        if not self._config.getoption("no_summary", False):
            self._show(terminalreporter)
        try:
            return (yield)
        finally:
            stats.update(self._whole)

    @pytest.hookimpl(trylast=True, specname="pytest_terminal_summary")
    def pytest_terminal_summary_last(self, terminalreporter: pytest.TerminalReporter) -> None:
        """Leave cells out of pytest's short summary, unless `-r` asks for it: they have been shown."""
        terminalreporter.stats.update(self._whole)
        if self._config.option.reportchars == USUAL_REPORT_CHARS and self._style != "no":
            self._take_out(terminalreporter)

    @property
    def are_shown(self) -> bool:
        """Whether the missed cells are listed above the answer; a gate's misses fail no test and are not."""
        return bool(self._nodeids) and self._style != "no"

    @property
    def _style(self) -> str:
        style: str = self._config.option.tbstyle
        return style

    @property
    def _is_short(self) -> bool:
        """Whether nothing asks for more: neither `-v` nor `--tb`, nor the node id of a cell."""
        names_a_cell = any("::" in word for word in self._config.option.file_or_dir or ())
        return self._style in SHORT_STYLES and self._config.get_verbosity() <= 0 and not names_a_cell

    def _show(self, terminal: pytest.TerminalReporter) -> None:
        if self._style == "no":
            self._show_suite_errors(terminal)
        if not self._is_short:
            return
        for kind, reports in self._take_out(terminal).items():
            terminal.write_sep("=", TITLES[kind])
            # A fault's message ends in what to do, so nothing is left out of it.
            width = self._config.get_terminal_writer().fullwidth if kind == "failed" else None
            for report in reports:
                line = in_one_line(report, width, only=self._only)
                terminal.write_line(broken_between_words(line, _width(terminal)))
            if kind == "failed":
                first = reports[0].nodeid.rpartition("::")[2].partition("[")[0]
                terminal.write_line(f"in full: pytest-openclaw show last {first}, or pytest -v")

    def _show_suite_errors(self, terminal: pytest.TerminalReporter) -> None:
        """Show what is wrong in a suite whatever `--tb` says: it is no traceback."""
        errors = _suite_errors(terminal)
        if errors:
            terminal.write_sep("=", TITLES["error"])
        for report in errors:
            terminal.write_line(str(report.longrepr))

    def _break_suite_errors(self, terminal: pytest.TerminalReporter) -> None:
        """Set line breaks between words in what is wrong in a suite."""
        for report in _suite_errors(terminal):
            if isinstance(report.longrepr, str):  # from a worker
                report.longrepr = broken_between_words(report.longrepr, _width(terminal))
            elif isinstance(text := getattr(report.longrepr, "longrepr", None), str):
                vars(report.longrepr)["longrepr"] = broken_between_words(text, _width(terminal))

    def _take_out(self, terminal: pytest.TerminalReporter) -> dict[str, list[pytest.TestReport]]:
        """Remove the cells from pytest's reports, and return them."""
        taken = {}
        for kind in TITLES:
            reports = terminal.stats.get(kind, [])
            if cells := [report for report in reports if report.nodeid in self._nodeids]:
                taken[kind] = cells
                terminal.stats[kind] = [report for report in reports if report.nodeid not in self._nodeids]
        return taken


def _suite_errors(terminal: pytest.TerminalReporter) -> list[pytest.CollectReport]:
    return [
        report
        for report in terminal.stats.get("error", [])
        if report.when == "collect" and SUITE_NAME.match(report.nodeid.rpartition("/")[2])
    ]


def _width(terminal: pytest.TerminalReporter) -> int | None:
    """Return the columns of the terminal; None of a file or a pipe."""
    return terminal.config.get_terminal_writer().fullwidth if terminal.isatty else None


def in_one_line(report: pytest.TestReport, width: int | None, *, only: str | None) -> str:
    """Return a cell's id and why it failed.

    Args:
        report: the cell's.
        width: columns that it may take; None sets no limit.
        only: the run's only target, which is left out of the id.
    """
    from pytest_openclaw.reports.numbers import one_line

    name = report.nodeid.rpartition("::")[2]
    prompt_id = name.partition("[")[0]
    # The text of a suite's cell begins with id and name, which may be the same.
    text = next(_reasons(report), "failed").removeprefix(f"{prompt_id} ").removeprefix(f"{prompt_id}: ")
    text = "; ".join([text, *_repeats(report.longrepr)])
    line = printable(f"{name.replace(f'[{only}]', '')} {text}")
    return line if width is None else one_line(line, width)


def _reasons(report: pytest.TestReport) -> Iterator[str]:
    crash = getattr(report.longrepr, "reprcrash", None)
    for text in (getattr(crash, "message", ""), str(report.longrepr)):
        yield from (line.removeprefix("Missed: ").removeprefix("Failed: ") for line in text.splitlines()[:1])


def _repeats(longrepr: object) -> Iterator[str]:
    """Yield which repeats were missed, if the cell failed because too many were."""
    for name, content, _ in getattr(longrepr, "sections", ()):
        if name == SECTION:
            yield content
    if isinstance(longrepr, str):
        lines = longrepr.splitlines()[1:]
        yield from (line.removeprefix(f"  {SECTION} ") for line in lines if line.startswith(f"  {SECTION} "))


def _is_plain(outcome: object) -> bool:
    match outcome:
        case KeptVerdict():
            return not outcome.passed
        case Record():
            return outcome.failure_type != "harness_error"
    return False
