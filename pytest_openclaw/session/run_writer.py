"""The run that a session records, from its first report to its summary."""

from __future__ import annotations

from collections import Counter
from contextlib import ExitStack
from typing import TYPE_CHECKING, NoReturn

import pytest

from pytest_openclaw.core.errors import OpenClawError
from pytest_openclaw.session.repeat_threshold import passed_strictly
from pytest_openclaw.session.resuming import resume_command
from pytest_openclaw.types.payloads import KeptVerdict, LeftOut
from pytest_openclaw.types.records import Record

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from pytest_openclaw.asking.budget import SpentBudget
    from pytest_openclaw.core.json_types import JsonObject
    from pytest_openclaw.core.redact import Redactor
    from pytest_openclaw.recording.run_session import RunSession
    from pytest_openclaw.recording.selection import Plan, Selection
    from pytest_openclaw.session.progress_display import ProgressDisplay
    from pytest_openclaw.session.resuming import ResumedRun
    from pytest_openclaw.stats.run_comparison import Measured
    from pytest_openclaw.stats.summary import Summary
    from pytest_openclaw.types.payloads import ReportPayload
    from pytest_openclaw.types.settings import Settings


class RunWriter:
    """Used in a plain session and in xdist's controller; in a worker it has no run.

    Attributes:
        run: the run, once the selection is known.
        display: shows the progress.
        summary: the summary, once it is written.
        n_verdicts_failed: items that failed because of the model's reply.
        n_faults_failed: by target, items that failed because a call had no reply; excludes harness errors
            and targets that failed only by `--openclaw-fail-unavailable`.
        on_decision: receives the decisions on the targets' repeats.

    Args:
        config: pytest's.
        settings: the session's.
        described: the settings that shape a request, by provider.
        resumed: the run to continue.
        baseline: the run to compare with.
        redactor: removes secrets.
        budget: counts what the run has spent.
        on_start: called when the recording starts.
    """

    def __init__(
        self,
        config: pytest.Config,
        settings: Settings,
        *,
        described: Mapping[str, JsonObject],
        resumed: ResumedRun | None,
        baseline: Measured | None,
        redactor: Redactor,
        budget: SpentBudget,
        display: ProgressDisplay,
        on_decision: Callable[[JsonObject], None],
        on_start: Callable[[], None],
    ) -> None:
        self.run: RunSession | None = None
        self.display = display
        self.summary: Summary | None = None
        self.n_verdicts_failed = 0
        self.n_faults_failed: Counter[str] = Counter()
        self.on_decision = on_decision
        self._config = config
        self._settings = settings
        self._described = described
        self._resumed = resumed
        self._baseline = baseline
        self._redactor = redactor
        self._budget = budget
        self._on_start = on_start
        self._open = ExitStack()
        self._is_full = False
        self._late_error: OSError | None = None
        self._n_lost = 0

    def begin(self, selection: Selection) -> None:
        """Start the run of these cells, or continue a resumed one; only once, and only if there are cells.

        Raises:
            pytest.UsageError: the directory cannot be created, or the definition of the run has changed.
        """
        if self.run or not (self._resumed or any(selection.keys)):
            return
        plan = selection.plan(self._settings.targets, self._described)
        if self._resumed:
            self._resumed.refuse_changes(plan, self._settings)
        try:
            self.run = self._open_run(plan)
        except (OpenClawError, OSError) as error:
            raise pytest.UsageError(f"the run cannot be recorded: {error}") from None
        self.display.start(plan.n_selected)
        self._on_start()
        self._publish_decisions()

    def _open_run(self, plan: Plan) -> RunSession:
        from pytest_openclaw.recording.plugins import Plugins
        from pytest_openclaw.recording.run_directory import RunDirectory
        from pytest_openclaw.recording.run_session import RunSession
        from pytest_openclaw.session.registries import reports_of, row_hooks_of

        settings, resumed = self._settings, self._resumed
        directory = resumed.directory if resumed else None
        directory = directory or self._open.enter_context(
            RunDirectory.new(settings.runs_dir, settings.run_id, exactly=settings.run_id_given)
        )
        earlier = resumed.earlier if resumed else None
        plugins = Plugins(
            reports=reports_of(self._config), row_hooks=row_hooks_of(self._config), clean=self._redactor.value
        )
        return RunSession(directory, settings, plan, earlier, self._baseline, plugins)

    def take(self, report: pytest.TestReport, payload: ReportPayload) -> None:
        """Record a report's payload; end the session if that is impossible."""
        assert self.run is not None, "a run begins before its first report"
        match payload.outcome:
            case LeftOut():
                self.run.leave_out(payload)
                self._publish_decisions()
                if self.display.progress:
                    self.display.progress.leave_out(payload.outcome.target)
            case KeptVerdict():
                self.n_verdicts_failed += report.failed and (
                    not payload.outcome.passed or passed_strictly(report)
                )
                if self.display.progress:
                    self.display.progress.count_kept(payload.outcome.target)
            case Record():
                self._take_row(report, payload, payload.outcome)

    def _take_row(self, report: pytest.TestReport, payload: ReportPayload, record: Record) -> None:
        assert self.run is not None, "a run begins before its first row"
        try:
            is_first = self.run.add(payload)
        except OSError as error:
            self._is_full = True
            self._cannot_record(error)
        if report.failed:
            self._count_failure(report, record)
        self._publish_decisions()
        if is_first and self.display.progress:
            self.display.progress.count(record.target.label, record.cost_usd)

    def _count_failure(self, report: pytest.TestReport, record: Record) -> None:
        if record.availability_status == "ok":
            self.n_verdicts_failed += record.objective_pass is not True or passed_strictly(report)
        elif record.availability_status != "skipped_unavailable" and record.failure_type != "harness_error":
            self.n_faults_failed[record.target.label] += 1

    def keep(self, payloads: Iterable[ReportPayload]) -> None:
        """Record replies that no report contained, at the session's end, for each cell without a row."""
        if self.run is None:
            return
        known = {record.key for record in self.run.records}
        for payload in payloads:
            assert isinstance(payload.outcome, Record), "what was answered has a row"
            if payload.outcome.key in known:
                continue
            if not (self._is_full or self._late_error):
                try:
                    self.run.add(payload)
                    continue
                except OSError as error:
                    self._late_error = error
            self._n_lost += 1

    def keep_diagnoses(self, diagnoses: Mapping[str, JsonObject], host: str | None = None) -> None:
        """Record what the repeats of cells have shown, by target.

        Args:
            diagnoses: of `diagnosing.Suspects`, by the target's label.
            host: the machine that sent them, by its name in rows; None is this one.
        """
        if self.run is None or self._is_full or self._late_error:
            return
        try:
            for label, evidence in diagnoses.items():
                self.run.take_diagnosis(label, evidence, host)
        except OSError as error:
            self._late_error = error

    def finish(self, n_unrecorded_calls: int = 0) -> Summary:
        """Write the summary; end the session if that or a row before it is impossible.

        Args:
            n_unrecorded_calls: calls of workers that may have no row, if cells are missing.
        """
        assert self.run is not None, "there is something to sum up"
        try:
            self.summary = self.run.finish(
                n_unrecorded_calls + self._n_lost, spent_usd=self._budget.spent_usd
            )
        except OSError as error:
            self._cannot_record(error)
        if self._late_error:
            self._cannot_record(self._late_error)
        return self.summary

    def close(self) -> None:
        """Close the run directory; it stays open until the summary is written."""
        self.display.stop()
        self._open.close()

    @property
    def resume_command(self) -> str:
        """The command that continues this run."""
        assert self.run is not None, "there is a run to continue"
        command = resume_command(self._config.invocation_params.args, self.run.directory.run_id)
        return self._redactor.text(command)

    def _publish_decisions(self) -> None:
        assert self.run is not None, "a run decides on its repeats"
        while self.run.decisions:
            self.on_decision(self.run.decisions.popleft().plain)

    def _cannot_record(self, error: OSError) -> NoReturn:
        """End the session, because further measurements would be lost; the rows so far are on disk."""
        assert self.run is not None, "a run is being recorded"
        if isinstance(error, FileNotFoundError):
            help_ = "If it was moved, move it back"
        else:
            help_ = "Every row before this is kept there; make room"
        pytest.exit(
            f"openclaw: cannot write in {self.run.directory.path} ({error.strerror or error}). "
            f"{help_}, then: {self.resume_command}",
            returncode=pytest.ExitCode.INTERNAL_ERROR,
        )
