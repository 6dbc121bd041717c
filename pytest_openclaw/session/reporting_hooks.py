"""The hooks of the process in which reports arrive: rows to disk, progress, summary, exit status."""

from __future__ import annotations

import os
import re
import warnings
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from pytest_openclaw.recording.selection import Selection
from pytest_openclaw.session import ci
from pytest_openclaw.session.cell_runs import cell_of
from pytest_openclaw.stored.resume import is_python
from pytest_openclaw.types.payloads import PAYLOAD

if TYPE_CHECKING:
    from collections.abc import Callable, Generator

    from pytest_openclaw.session.plugin_session import PluginSession
    from pytest_openclaw.stats.summary import Summary

NO_VERDICT = 10
"""Exit status when a gate is set and there is nothing that it could judge."""
REPEAT = re.compile(r"\]-r[0-9]+\Z")


class ReportingHooks:
    """Registered in a plain session and in xdist's controller.

    Args:
        session: the plugin's.

    Attributes:
        take_last: under xdist, records what workers have sent and returns how many of their calls may have
            no row; None in a plain session.
    """

    def __init__(self, session: PluginSession) -> None:
        self.session = session
        self._writer = session.writer
        self.take_last: Callable[[], int] | None = None

    def pytest_report_header(self) -> str:
        """Say in one line what is measured."""
        from pytest_openclaw.reports.columns import WIDTH
        from pytest_openclaw.reports.numbers import listed

        goes_on = ""
        if resumed := self.session.resumed:
            n_kept = len(resumed.kept)
            kept = f"{n_kept} {'cell' if n_kept == 1 else 'cells'} kept"
            goes_on = f"; {resumed.path.name} goes on, {kept}"
        labels = [target.label for target in self.session.settings.targets]
        return (
            f"openclaw: {listed(labels, max(WIDTH // 2, WIDTH - len('openclaw: ') - len(goes_on)))}{goes_on}"
        )

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtestloop(self, session: pytest.Session) -> None:
        """Start the run of the selected cells; under xdist they are known later."""
        stops = session.testsfailed and not session.config.option.continue_on_collection_errors
        if self.session.sends and not stops and self.take_last is None:
            self._writer.begin(Selection.of([cell_of(item) for item in session.items]))

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtest_logstart(self, nodeid: str) -> Generator[None, None, None]:
        """Tell the progress which item is awaited, and keep its line off the terminal while pytest writes."""
        if progress := self._writer.display.progress:
            progress.started(nodeid)
        with self._writer.display.away():
            return (yield)

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtest_logfinish(self, nodeid: str) -> Generator[None, None, None]:
        """Tell the progress that an item is awaited no longer."""
        if progress := self._writer.display.progress:
            progress.ended(nodeid)
        with self._writer.display.away():
            return (yield)

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Write the row before anything else is done with the report."""
        show_repeat(report)
        # Taken off, because pytest keeps every report: ten thousand answers stay on disk alone.
        payload = vars(report).pop(PAYLOAD, None)
        if payload and self.session.sends:
            self._writer.take(report, payload)

    @pytest.hookimpl(wrapper=True, tryfirst=True, specname="pytest_runtest_logreport")
    def keep_line_away(self) -> Generator[None, None, None]:
        """Keep the line of the progress off the terminal while pytest shows a report."""
        with self._writer.display.away():
            return (yield)

    @pytest.hookimpl(trylast=True)
    def pytest_sessionfinish(self, session: pytest.Session, exitstatus: int | pytest.ExitCode) -> None:
        """Write the summary, and let the gates decide; xdist's workers have ended by now."""
        writer = self._writer
        writer.display.stop()
        if (run := writer.run) is None:
            return
        summary = writer.finish(self.take_last() if self.take_last else 0)
        # A gate that is passed has counted its target's faults as misses.
        held = {gate.target for gate in summary.gates}
        forgiven = sum(n for target, n in writer.n_faults_failed.items() if target in held)
        session.exitstatus = exit_status(
            int(exitstatus),
            gate_alone=self.session.settings.verdict == "gate",
            others_failed=session.testsfailed > writer.n_verdicts_failed + forgiven,
            gates=summary.verdict,
            # Where every cell was skipped by a mark, nobody was to answer.
            answered=bool(summary.n_answered or not summary.n_cells),
        )
        self._write_for_ci(summary, run.directory.path)

    def _write_for_ci(self, summary: Summary, run: Path) -> None:
        """Leave what CI systems read; a place that cannot be written there costs the run nothing."""
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
            warnings.warn(pytest.PytestWarning(f"openclaw: CI is not told of the run: {error}"), stacklevel=1)

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        """Show the table, the findings and the paths; GitHub's annotations and complaints in any case."""
        writer, session = self._writer, self.session
        summary, run = writer.summary, writer.run
        if summary is None or run is None or not (summary.n_rows or summary.gates):
            return
        from pytest_openclaw.providers.prices import Prices
        from pytest_openclaw.reports.terminal import TITLE, markup_of, render_complaints, render_terminal
        from pytest_openclaw.session.spending import notes_on_cost

        page = run.directory.path / "summary.md"
        start = session.config.invocation_params.dir
        where = page.relative_to(start) if page.is_relative_to(start) else page
        # pytest 9 leaves it to each plugin to heed `--no-summary`; pytest 8 asks none of them then.
        if not session.config.getoption("no_summary", False):
            terminalreporter.write_sep("=", TITLE)
            prices = Prices(session.providers, session.settings)
            notes = notes_on_cost(prices, summary, is_resumed=session.resumed is not None)
            for line in render_terminal(summary, str(where), writer.resume_command, notes):
                label, markup = markup_of(line)
                terminalreporter.write(label, **markup)
                terminalreporter.write_line(line.removeprefix(label))
        suites = {prompt["suite"] for prompt in run.plan.prompts}
        files = {suite: session.config.rootpath / suite for suite in suites if not is_python(suite)}
        for line in ci.annotate(summary, files):
            terminalreporter.write_line(line)
        for line in render_complaints(session.cell_parts.redactor.value(run.guests.complaints)):
            terminalreporter.write_line(line)


def show_repeat(report: pytest.TestReport) -> None:
    """Let the id of a repeat be shown as it is: pytest 9.2 puts a bracket behind `P1[…]-r2`."""
    parsed: Any = getattr(report, "id", None)
    if parsed is not None and parsed.params is not None and REPEAT.search(report.nodeid):
        names = tuple(report.nodeid.removeprefix(f"{parsed.path}::").split("::"))
        vars(report)["_id"] = replace(parsed, names=names, params=None)


def exit_status(
    pytest_status: int, *, gate_alone: bool, others_failed: bool, gates: str, answered: bool
) -> int:
    """Return the session's exit status.

    Args:
        pytest_status: pytest's own; an interruption, a usage error or an empty session stays.
        gate_alone: failed verdicts do not count, only gates and faults do.
        others_failed: something failed that no gate has counted and that is no verdict: a fault of a target
            without a gate, a benchmark that broke, another test, a collection.
        gates: the ruling of all gates together.
        answered: at least one cell has an answer.
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
