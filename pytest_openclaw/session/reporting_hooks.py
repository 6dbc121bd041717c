"""The hooks of the process in which reports arrive: rows to disk, progress, summary, exit status."""

from __future__ import annotations

import os
import re
import warnings
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from pytest_openclaw.core.signals import session_ends
from pytest_openclaw.core.text import counted
from pytest_openclaw.session import ci
from pytest_openclaw.session.cell_failures import CellFailures
from pytest_openclaw.session.links import OwnLink
from pytest_openclaw.session.suite_files import hint_on_suites
from pytest_openclaw.types.payloads import PAYLOAD

if TYPE_CHECKING:
    from collections.abc import Callable

    from pytest_openclaw.session.owner import Owner
    from pytest_openclaw.session.plugin_session import PluginSession
    from pytest_openclaw.stats.summary import Summary

NO_VERDICT = 10
"""Exit status if a gate is set and the run has nothing to judge by it."""
_ENDED = {pytest.ExitCode.OK, pytest.ExitCode.TESTS_FAILED}
REPEAT = re.compile(r"\]-r[0-9]+\Z")


class ReportingHooks:
    """Registered in a plain session and in xdist's controller.

    Args:
        session: the plugin session.
        owner: of its run.

    Attributes:
        take_last: under xdist, records the rows that were under way; None in a plain session.
        failures: shows the cells that failed.
    """

    def __init__(self, session: PluginSession, owner: Owner) -> None:
        self.session = session
        self.owner = owner
        self._hint = ""
        self.failures = CellFailures(session.config, session.settings.targets)
        self.take_last: Callable[[], None] | None = None

    def pytest_report_header(self) -> str:
        """Show in one line what is measured."""
        from pytest_openclaw.reports.numbers import listed

        goes_on = ""
        if resumed := self.owner.resumed:
            n_kept = len(resumed.kept)
            kept = f"{counted(n_kept, 'cell')} kept"
            goes_on = f"; {resumed.path.name} goes on, {kept}"
        if shard := self.session.settings.shard:
            goes_on += f"; shard {shard}"
        labels = [target.label for target in self.session.settings.targets]
        width = self.session.config.get_terminal_writer().fullwidth
        return (
            f"openclaw: {listed(labels, max(width // 2, width - len('openclaw: ') - len(goes_on)))}{goes_on}"
        )

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtestloop(self, session: pytest.Session) -> None:
        """Start the run of the selected cells; under xdist they are known later."""
        stops = session.testsfailed and not session.config.option.continue_on_collection_errors
        if not self.session.sends or stops or self.take_last is not None:
            return
        link = self.session.cell_parts.link
        assert isinstance(link, OwnLink), "a plain session owns its run"
        self.owner.begin(link.cells, link.divided)

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Write the row before anything else is done with the report."""
        show_repeat(report)
        # Removed, because pytest keeps every report: ten thousand replies stay on disk only.
        payload = vars(report).pop(PAYLOAD, None)
        if payload and self.session.sends:
            self.failures.note(report, payload)
            self.owner.take(report, payload)

    def pytest_runtest_logfinish(self, nodeid: str) -> None:
        """Keep no reply longer than its item runs, in a worker too."""
        self.owner.asker.done(nodeid)

    @pytest.hookimpl(tryfirst=True)
    def pytest_keyboard_interrupt(self) -> None:
        """Send nothing more."""
        self.owner.asker.stop()

    @pytest.hookimpl(tryfirst=True)
    def pytest_sessionfinish(self, session: pytest.Session, exitstatus: int | pytest.ExitCode) -> None:
        """Send nothing more if the session was interrupted; the tests of xdist's workers end by it."""
        if exitstatus not in _ENDED or session.shouldstop or session.shouldfail:
            self.owner.asker.stop()

    @pytest.hookimpl(trylast=True, specname="pytest_sessionfinish")
    def pytest_sessionfinish_last(self, session: pytest.Session, exitstatus: int | pytest.ExitCode) -> None:
        """Write the summary and apply the gates; xdist's workers have exited by now."""
        owner = self.owner
        session_ends()
        owner.display.stop()
        if (run := owner.run) is None:
            if exitstatus == pytest.ExitCode.NO_TESTS_COLLECTED:
                self._hint = hint_on_suites(session.config)
            return
        if self.take_last:
            self.take_last()
        is_whole = exitstatus in _ENDED and not (session.shouldstop or session.shouldfail)
        owner.stop_asking(is_whole=is_whole)
        summary = owner.finish()
        # A passed gate has counted its target's faults as failed cells.
        held = {gate.target for gate in summary.gates}
        forgiven = sum(n for target, n in owner.n_faults_failed.items() if target in held)
        session.exitstatus = exit_status(
            int(exitstatus),
            gate_alone=self.session.settings.verdict == "gate",
            others_failed=session.testsfailed > owner.n_verdicts_failed + forgiven,
            gates=summary.verdict,
            # If every cell was skipped by a mark, no reply was expected.
            answered=bool(summary.n_answered or not summary.n_cells),
        )
        self._write_for_ci(summary, run.directory.path)

    def _write_for_ci(self, summary: Summary, run: Path) -> None:
        """Write the output for CI systems; a file that cannot be written is a warning."""
        config = self.session.config
        xml = config.getoption("xmlpath", None)
        try:
            if (
                xml
                and (
                    path := config.invocation_params.dir / Path(os.path.expandvars(xml)).expanduser()
                ).is_file()
            ):
                ci.complete_junit(path, summary, str(run))
            ci.write_step_summary((run / "summary.md").read_text("utf-8"))
        except OSError as error:
            warnings.warn(
                pytest.PytestWarning(f"openclaw: the output for CI cannot be written: {error}"), stacklevel=1
            )

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        """Show the table, the findings and the paths; GitHub's annotations and complaints in any case."""
        owner, session = self.owner, self.session
        summary, run = owner.summary, owner.run
        if self._hint:
            terminalreporter.write_line(self._hint)
        if summary is None or run is None or not (summary.n_rows or summary.gates):
            return
        from pytest_openclaw.providers.prices import Prices
        from pytest_openclaw.reports.terminal import colored, render_complaints, render_terminal, title_of
        from pytest_openclaw.session.spending import notes_on_cost
        from pytest_openclaw.suites.load import is_suite_file

        page = run.directory.path / "summary.md"
        start = session.config.invocation_params.dir
        where = page.relative_to(start) if page.is_relative_to(start) else page
        width = session.config.get_terminal_writer().fullwidth
        # In pytest 9 each plugin has to respect `--no-summary`; pytest 8 does not call this hook then.
        if not session.config.getoption("no_summary", False):
            terminalreporter.write_sep("=", title_of(summary))
            prices = Prices(session.providers, session.settings)
            notes = notes_on_cost(prices, summary, is_resumed=owner.resumed is not None)
            command = owner.resume_command
            lines = render_terminal(
                summary, str(where), command, notes, width=width, are_misses_shown=self.failures.are_shown
            )
            for parts in colored(lines, summary.groups):
                for text, markup in parts:
                    terminalreporter.write(text, **markup)
                terminalreporter.write_line("")
        files = {suite: session.config.rootpath / suite for suite in run.suites if is_suite_file(suite)}
        for line in ci.annotate(summary, files):
            terminalreporter.write_line(line)
        complaints = session.cell_parts.redactor.value(run.plugins.complaints)
        for line in render_complaints(complaints, width):
            terminalreporter.write_line(line)


def show_repeat(report: pytest.TestReport) -> None:
    """Show the id of a repeat unchanged: pytest 9.2 adds a bracket to `P1[…]-r2`."""
    if not REPEAT.search(report.nodeid):
        return
    parsed: Any = getattr(report, "id", None)
    if parsed is not None and parsed.params is not None:
        names = tuple(report.nodeid.removeprefix(f"{parsed.path}::").split("::"))
        vars(report)["_id"] = replace(parsed, names=names, params=None)


def exit_status(
    pytest_status: int, *, gate_alone: bool, others_failed: bool, gates: str, answered: bool
) -> int:
    """Return the session's exit status.

    Args:
        pytest_status: pytest's own; an interruption, a usage error or an empty session keeps it.
        gate_alone: only gates and faults count, not failed verdicts.
        others_failed: something failed that is no verdict and that no gate has counted: a fault of a target
            without a gate, an error in a benchmark, another test, a collection.
        gates: the result of all gates together.
        answered: at least one cell has a reply.
    """
    if pytest_status not in {pytest.ExitCode.OK, pytest.ExitCode.TESTS_FAILED}:
        return pytest_status
    if gates == "failed":
        return int(pytest.ExitCode.TESTS_FAILED)
    if gates == "no_verdict":
        return NO_VERDICT
    if not answered:
        return int(pytest.ExitCode.TESTS_FAILED)
    if gate_alone:
        return int(pytest.ExitCode.TESTS_FAILED if others_failed else pytest.ExitCode.OK)
    return pytest_status
