"""The owner of a run: it starts the requests, writes the rows and the summary, and sets the exit status.

The owner is a plain session, or xdist's controller, which receives the reports of all workers.
"""

from __future__ import annotations

import warnings
from collections import Counter
from collections.abc import Generator, Iterable, Mapping
from contextlib import AbstractContextManager, ExitStack, nullcontext
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

import pytest

from pytest_openclaw.asking.asker import Asker
from pytest_openclaw.judging.judge import JudgedCell
from pytest_openclaw.providers.prices import Prices
from pytest_openclaw.reports.numbers import one_line
from pytest_openclaw.runs.rows import record_of
from pytest_openclaw.session.cells import CellParts, JudgedElsewhere
from pytest_openclaw.session.execution import Collected, ProcessRole, Runner, hint_on_suites
from pytest_openclaw.session.registries import describe, plugins_of
from pytest_openclaw.session.reporting import (
    RepeatThreshold,
    SessionEnd,
    exit_status,
    passed_strictly,
    write_step_summary,
)
from pytest_openclaw.session.showing import EndSection, Live, resume_command
from pytest_openclaw.util.errors import OpenClawError
from pytest_openclaw.util.files import JsonObject
from pytest_openclaw.util.signals import interrupted_by_signals, session_ends
from pytest_openclaw.util.text import counted, first_few
from pytest_openclaw.values.prompts import Cell
from pytest_openclaw.values.protocols import Provider
from pytest_openclaw.values.replies import CallResult
from pytest_openclaw.values.requests import CellKey, Target
from pytest_openclaw.values.rows import PAYLOAD, KeptVerdict, LeftOut, Payload, Record

if TYPE_CHECKING:
    from pytest_openclaw.conclusions.summary import Summary
    from pytest_openclaw.reports.blocks import SummaryFinding
    from pytest_openclaw.runs.session import Plan, ResumedRun, RunSession

MOST_NAMED = 4
"""Targets that the header names."""
_NOT_NEEDED = "openclaw_not_needed"
"""The attribute of the report of a repeat that was not sent, because its target is settled."""


@dataclass(frozen=True, kw_only=True)
class Start(CellParts):
    """The checked choices and objects with which an owner starts."""

    config: pytest.Config
    providers: Mapping[str, Provider]
    asker: Asker
    resumed: ResumedRun | None
    holdings: Mapping[str, Any]


class Watcher:
    """A part that takes part in a session to its end."""

    def note(self, cell: Cell, record: Record) -> None:
        """Receive a row."""

    def examine(self) -> Iterable[tuple[Target, str, JsonObject, JsonObject]]:
        """Send further requests after the tests.

        Yields:
            The target, the name of a fact in `inventory.json`, the fact, and the whole evidence for a file.
        """
        return ()

    def written(self, run: Path) -> Iterable[SummaryFinding]:  # noqa: ARG002 - for other parts
        """Return findings once the run is written."""
        return ()


class Owner(ProcessRole):
    """The hooks of the process that owns the run; `PlainSession` and xdist's `Controller` are owners.

    Attributes:
        asker: sends all requests.
        run: the run; None before the cells are selected.
        watchers: parts that receive each cell's row, and may send further requests after the tests.
    """

    def __init__(self, start: Start) -> None:
        self.start = start
        self.settings = start.settings
        self.providers = start.providers
        self.asker = start.asker
        self.run: RunSession | None = None
        self.watchers: list[Watcher] = []
        self._notes: list[SummaryFinding] = []
        self._live: Live | None = None
        self._config = start.config
        self._redactor = start.redactor
        self._end = EndSection(start.config, start.settings.targets)
        self._shows_skips = not {"s", "a", "A"}.isdisjoint(getattr(start.config.option, "reportchars", ""))
        self._threshold = RepeatThreshold()
        self._cells: dict[CellKey, Cell] = {}
        self._summary: Summary | None = None
        self._hint = ""
        self._open = ExitStack()
        # The number of items whose reply failed, and by target, of items whose call got no reply. Harness
        # errors are not counted, nor unavailable targets, which fail only by `--openclaw-fail-unavailable`.
        self._n_verdicts_failed = 0
        self._n_faults_failed: Counter[str] = Counter()
        self._write_error: OSError | None = None

    # --- the run begins ---

    def pytest_report_header(self) -> str:
        """Show the measured targets in one line."""
        width, notes = self._config.get_terminal_writer().fullwidth, ""
        if resumed := self.start.resumed:
            notes = f"; {resumed.earlier.run_id} continues, {counted(len(resumed.kept), 'cell')} kept"
        if self.settings.shard:
            notes += f"; shard {self.settings.shard}"
        named = f"openclaw: {first_few([one.label for one in self.settings.targets], MOST_NAMED)}"
        return f"{one_line(named, max(width // 2, width - len(notes)))}{notes}"

    def begin(self, collected: Collected) -> None:
        """Start the run of these cells, or continue a resumed run, and send the cells.

        Raises:
            pytest.UsageError: a prompt does not exist, the directory cannot be created, or the definition of
                the run has changed.
        """
        from pytest_openclaw.runs.session import Plan

        if collected.unknown_ids:
            raise pytest.UsageError(collected.unknown_ids)
        selected = [planned.cell for planned in collected.cells]
        resumed, kept = self.start.resumed, self.start.kept
        if not self.start.sends or self.run or not (resumed or selected):
            return
        self._config.hook.pytest_openclaw_begin(cells=selected, providers=self.providers, config=self._config)
        plan = Plan.of(selected, self.settings, describe(self.providers), collected.divided)
        if resumed and (why := resumed.refusal(plan, self.settings)):
            raise pytest.UsageError(why)
        try:
            self.run = self._open_run(plan)
        except (OpenClawError, OSError) as error:
            raise pytest.UsageError(f"the run cannot be recorded: {error}") from None
        self._open.enter_context(self._redactor.applied())
        self._open.enter_context(interrupted_by_signals())
        if asked := [planned for planned in collected.cells if planned.cell.key not in kept]:
            self._cells = {planned.cell.key: planned.cell for planned in asked}
            self._live = Live(self._config, {one.token: one.cell for one in asked}, self.asker)
            self._open.callback(self._live.is_over.set)
            self.asker.plan([replace(one, stage=plan.stopping.waiting_stage(one.cell.key)) for one in asked])
        self._publish_decisions(self.run)

    def _open_run(self, plan: Plan) -> RunSession:
        from pytest_openclaw.runs.directory import RunDirectory
        from pytest_openclaw.runs.session import RunSession

        settings, resumed = self.settings, self.start.resumed
        directory = resumed.directory if resumed else None
        directory = directory or self._open.enter_context(
            RunDirectory.new(settings.runs_dir, settings.run_id, exactly=settings.run_id_given)
        )
        plugins = plugins_of(self._config, self._redactor.value)
        earlier = resumed.earlier if resumed else None
        return RunSession(directory, settings, plan, earlier, self.start.holdings, plugins)

    # --- rows ---

    def handle(self, report: pytest.TestReport) -> None:
        """Decide whether a repeat fails, and write the row."""
        super().handle(report)
        self._threshold.decide(report)
        # pytest keeps every report. The row is removed, as ten thousand replies would fill the memory.
        payload = vars(report).pop(PAYLOAD, None)
        if payload and self.run:
            self._end.note(report, payload)
            if self._live and not isinstance(payload, KeptVerdict):
                self._live.take(payload)
            self._take(self.run, report, payload)
            self._publish_decisions(self.run)

    def pytest_report_teststatus(self, report: pytest.TestReport) -> tuple[str, str, str] | None:
        """Deselect a repeat that was not needed, and print no letter, unless `-rs` asks for the reason."""
        is_deselected = getattr(report, _NOT_NEEDED, False) and not self._shows_skips
        return ("deselected", "", "NOT NEEDED") if is_deselected else None

    def _take(self, run: RunSession, report: pytest.TestReport, payload: Payload) -> None:
        match payload:
            case LeftOut():
                run.leave_out(payload)
                vars(report)[_NOT_NEEDED] = payload.is_settled
            case KeptVerdict():
                self._n_verdicts_failed += report.failed and (not payload.passed or passed_strictly(report))
            case Record():
                self._add(run, payload)
                if self._write_error:
                    self._cannot_record(run, self._write_error)
                if report.failed:
                    self._count_failure(report, payload)
                for watcher in self.watchers:
                    if cell := self._cells.get(payload.key):
                        watcher.note(cell, payload)

    def _add(self, run: RunSession, record: Record) -> None:
        """Write a row, unless an earlier one could not be written."""
        try:
            if not self._write_error:
                run.add(record)
                while self.asker.facts:
                    run.take_facts(*self.asker.facts.popleft())
        except OSError as error:
            self._write_error = error

    def _count_failure(self, report: pytest.TestReport, record: Record) -> None:
        if record.availability_status == "ok":
            self._n_verdicts_failed += record.objective_pass is not True or passed_strictly(report)
        elif record.availability_status != "skipped_unavailable" and record.failure_type != "harness_error":
            self._n_faults_failed[record.target.label] += 1

    def _publish_decisions(self, run: RunSession) -> None:
        while run.decisions:
            decision = run.decisions.popleft()
            self.asker.decide(decision.target.label, decision.stage, decision.ends)

    def keep(self, records: Iterable[Record]) -> None:
        """Record rows that arrive without a report, at the session's end."""
        if (run := self.run) and not self._write_error:
            for record in records:
                self._add(run, record)

    # --- what the terminal shows meanwhile ---

    def quiet(self) -> AbstractContextManager[None]:
        """Erase the live line while other plugins write."""
        return self._live.quiet() if self._live else nullcontext()

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_logstart(self, nodeid: str) -> Generator[None, object, object]:
        """Show the cell that begins, below the reporter's line."""
        with self.quiet():
            result = yield
        if self._live:
            self._live.begin(nodeid)
        return result

    def hide(self) -> None:
        """Erase the live line until a test begins."""
        if self._live:
            self._live.hide()

    pytest_enter_pdb = pytest_internalerror = hide

    # --- the run ends ---

    def pytest_keyboard_interrupt(self) -> None:
        """Stop sending."""
        super().pytest_keyboard_interrupt()
        self.hide()
        self.asker.stop()

    # Inside pytest's own wrapper, which shows the terminal summary afterwards.
    @pytest.hookimpl(wrapper=True, trylast=True)
    def pytest_sessionfinish(
        self, session: pytest.Session, exitstatus: int | pytest.ExitCode
    ) -> Generator[None, object, object]:
        """Stop sending if the session was interrupted; once xdist's workers have exited, conclude."""
        self.hide()
        if not _is_whole(session, exitstatus):
            self.asker.stop()
        self.end_tests()
        try:
            return (yield)
        finally:  # also if a signal or an error ends another plugin's work here
            self.keep(self.late_records())
            self._conclude(session, exitstatus)

    def end_tests(self) -> None:
        """End the tests that still wait for a reply in other processes."""

    def late_records(self) -> Iterable[Record]:
        """Return the rows that arrived too late for a report."""
        return ()

    def _conclude(self, session: pytest.Session, exitstatus: int | pytest.ExitCode) -> None:
        session_ends()
        if (run := self.run) is None:
            if exitstatus == pytest.ExitCode.NO_TESTS_COLLECTED:
                self._hint = hint_on_suites(session.config)
            return
        self._stop_asking(run, is_whole=_is_whole(session, exitstatus))
        try:
            self._summary = summary = run.finish(spent_usd=self.asker.spent_usd)
        except OSError as error:
            self._cannot_record(run, error)
        if self._write_error:
            self._cannot_record(run, self._write_error)
        for watcher in self.watchers:
            self._notes += watcher.written(run.directory.path)
        ended = SessionEnd(
            summary=summary,
            settings=self.settings,
            # If every cell was skipped by a mark, no reply was expected.
            is_answered=bool(summary.n_answered or not summary.n_cells),
            n_failed=session.testsfailed,
            n_verdicts_failed=self._n_verdicts_failed,
            n_faults_failed=self._n_faults_failed,
        )
        session.exitstatus = exit_status(int(exitstatus), ended)
        try:
            write_step_summary(run.directory.path)
        except OSError as error:
            text = f"openclaw: the step summary cannot be written: {error}"
            warnings.warn(pytest.PytestWarning(text), stacklevel=1)

    def _stop_asking(self, run: RunSession, *, is_whole: bool) -> None:
        """End all requests, and record replies of cells whose tests have not ended."""
        if is_whole:
            try:
                for watcher in self.watchers:
                    for target, name, evidence, whole in watcher.examine():
                        clean = self._redactor.value
                        run.take_evidence(target, name, clean(evidence), clean(whole))
            except OSError as error:
                self._write_error = error
        replies = self.asker.close()
        # Replies that only a test or a worker can judge are dropped; a resumed run sends these cells again.
        self.keep(
            self._judged(cell, call)
            for cell, call in replies
            if not (run.has_ended(cell.key) or isinstance(cell.prompt.validator, JudgedElsewhere))
        )

    def _judged(self, cell: Cell, call: CallResult) -> Record:
        settings = self.settings
        result = JudgedCell(cell=cell, call=call).judged_or_broken(settings.timeout_s)
        record = record_of(settings.run_id, cell, result.call, result.judgment or result.done, self._redactor)
        return replace(record, reported=False)

    def _cannot_record(self, run: RunSession, error: OSError) -> NoReturn:
        """End the session, because further measurements would be lost; the rows so far are on disk."""
        pytest.exit(
            f"openclaw: cannot write in {run.directory.path} ({error.strerror or error}). "
            f"Every row before this is kept there; make room, then: {self._resume_command(run)}",
            returncode=pytest.ExitCode.INTERNAL_ERROR,
        )

    def _resume_command(self, run: RunSession) -> str:
        return self._redactor.text(resume_command(self._config.invocation_params.args, run.directory.run_id))

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_terminal_summary(
        self, terminalreporter: pytest.TerminalReporter
    ) -> Generator[None, object, object]:
        """Shorten pytest's sections about cells, and show the run's summary below them."""
        with self._end.shortened(terminalreporter):
            result = yield
        if self._hint:
            terminalreporter.write_line(self._hint)
        if (run := self.run) and (summary := self._summary):
            from pytest_openclaw.reports.terminal import notes_on_cost

            notes = [*notes_on_cost(Prices(self.providers, self.settings), summary), *self._notes]
            complaints = self._redactor.value(run.plugins.complaints)
            paths = run.directory.path / "summary.md", self._resume_command(run)
            self._end.show_run(terminalreporter, summary, paths, notes, complaints)
        return result

    def close(self) -> None:
        """Close the asker and the run directory, which stays open until the summary is written."""
        self.asker.close()
        self._open.close()


class PlainSession(Owner, Runner):
    """The only plugin of a session without workers: it runs the cells, and owns the run."""

    def __init__(self, start: Start) -> None:
        Owner.__init__(self, start)
        Runner.__init__(self, start.config, start, start.providers)

    def pytest_runtestloop(self, session: pytest.Session) -> None:
        """Start the run of the selected cells."""
        if not session.testsfailed or session.config.option.continue_on_collection_errors:
            self.begin(self.collected(session))


def _is_whole(session: pytest.Session, exitstatus: int | pytest.ExitCode) -> bool:
    has_ended = exitstatus in (pytest.ExitCode.OK, pytest.ExitCode.TESTS_FAILED)
    return has_ended and not (session.shouldstop or session.shouldfail)
