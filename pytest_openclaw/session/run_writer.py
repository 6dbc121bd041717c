"""The run that a session records, from its first report to its summary."""

from __future__ import annotations

import time
from collections import Counter
from contextlib import ExitStack, contextmanager, nullcontext
from typing import TYPE_CHECKING, NoReturn

import pytest

from pytest_openclaw.core.errors import OpenClawError
from pytest_openclaw.session.repeat_threshold import passed_strictly
from pytest_openclaw.session.resuming import resume_command
from pytest_openclaw.types.payloads import KeptVerdict, LeftOut
from pytest_openclaw.types.records import Record

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from pytest_openclaw.core.json_types import JsonObject
    from pytest_openclaw.recording.live_line import LiveLine
    from pytest_openclaw.recording.plugins import Plugins
    from pytest_openclaw.recording.progress import Progress
    from pytest_openclaw.recording.run_session import Plan, RunSession
    from pytest_openclaw.session.plugin_session import State
    from pytest_openclaw.stats.summary import Summary
    from pytest_openclaw.types.payloads import ReportPayload
    from pytest_openclaw.types.prompts import Cell
    from pytest_openclaw.types.targets import CellKey, Target


class Ledger:
    """Used in a plain session and in xdist's controller; a worker's stays empty.

    Attributes:
        run: the run, once it is known what is selected.
        progress: how far it is, while it is shown; `line` shows it.
        summary: once it has been written.
        n_verdicts_failed: items that failed because of what a model said.
        n_faults_failed: by target, items that failed because nothing came back of what was asked; neither
            what broke here, nor whom `--openclaw-fail-unavailable` misses.
        tell: is told what is decided on the targets' repeats.
    """

    def __init__(self, state: State) -> None:
        self.run: RunSession | None = None
        self.progress: Progress | None = None
        self.line: LiveLine | None = None
        self.summary: Summary | None = None
        self.n_verdicts_failed = 0
        self.n_faults_failed: Counter[str] = Counter()
        self.tell: Callable[[JsonObject], None] = state.repeats.receive
        self._state = state
        self._open = ExitStack()
        self._is_full = False
        self._late_error: OSError | None = None
        self._n_lost = 0

    def begin(self, cells: Sequence[Cell]) -> None:
        """Make the run directory for these cells, unless there are none."""
        from pytest_openclaw.suites import definition

        prompts = {(cell.prompt.suite, cell.prompt.id): cell.prompt for cell in cells}
        self.begin_with(
            Counter((cell.target, cell.repeat) for cell in cells),
            [definition(prompt) for prompt in prompts.values()],
            [cell.key for cell in cells],
            has_python=True,
            fixed=Counter((cell.target, cell.repeat) for cell in cells if cell.is_fixed_repeat),
        )

    def begin_with(
        self,
        by_repeat: Mapping[tuple[Target, int], int],
        definitions: Sequence[JsonObject],
        cells: Iterable[CellKey],
        *,
        has_python: bool,
        fixed: Mapping[tuple[Target, int], int],
    ) -> None:
        """Make the run directory, or go on with a resumed one, unless this was done or there are no cells.

        Args:
            by_repeat: selected cells, by target and repeat.
            definitions: of the selected prompts, for `config.json`.
            cells: the selected ones, as far as their prompts are known.
            has_python: whether definitions and cells hold the Python benchmarks too.
            fixed: those among `by_repeat` whose prompt says itself how often it is asked.

        Raises:
            pytest.UsageError: the directory cannot be made, or this is not the run that was begun.
        """
        from pytest_openclaw.recording.run_directory import RunDirectory
        from pytest_openclaw.recording.run_session import Plan, RunSession

        state, settings = self._state, self._state.settings
        if self.run or not (by_repeat or state.resumption.earlier):
            return
        n_selected: Counter[Target] = Counter()
        for (target, _), n in by_repeat.items():
            n_selected[target] += n
        plan = Plan(
            n_selected={target: n_selected[target] for target in settings.targets if target in n_selected},
            prompts=tuple(definitions),
            providers=state.described,
            cells=frozenset(cells),
            has_python=has_python,
            by_repeat=by_repeat,
            fixed=fixed,
        )
        state.resumption.refuse_changes(plan, settings)
        try:
            directory = state.resumption.directory or self._open.enter_context(
                RunDirectory.new(settings.runs_dir, settings.run_id, exactly=settings.run_id_given)
            )
            self.run = RunSession(
                directory, settings, plan, state.resumption.earlier, state.baseline, self._plugins()
            )
        except (OpenClawError, OSError) as error:
            raise pytest.UsageError(f"the run cannot be recorded: {error}") from None
        self._show_progress(plan)
        state.interruptible()
        self._tell_decisions()

    def _plugins(self) -> Plugins:
        from pytest_openclaw.recording.plugins import Plugins
        from pytest_openclaw.session.registries import reports_of, row_hooks_of

        config = self._state.config
        return Plugins(
            reports=reports_of(config), row_hooks=row_hooks_of(config), clean=self._state.redactor.value
        )

    def _show_progress(self, plan: Plan) -> None:
        from pytest_openclaw.asking.waits import find_wait
        from pytest_openclaw.recording.live_line import LiveLine, terminal_of
        from pytest_openclaw.recording.progress import Progress

        state = self._state
        if (terminal := terminal_of(state.config)) is None:
            return
        endpoints = {target.label: state.providers[target.provider].endpoint for target in plan.n_selected}
        n_selected = {target.label: n for target, n in plan.n_selected.items()}
        progress = Progress(n_selected, endpoints, time.monotonic)
        self.progress = progress
        self.line = LiveLine(
            terminal,
            lambda width: progress.line(
                width, state.awaited(), lambda nodeid: find_wait(state.shared_path, nodeid)
            ),
        )

    @contextmanager
    def line_away(self) -> Iterator[None]:
        """Let somebody else write on the terminal."""
        with self.line.away() if self.line else nullcontext():
            yield

    def take(self, report: pytest.TestReport, payload: ReportPayload) -> None:
        """Record what a report brought, and end the session if that is impossible."""
        if self._state.calls_nobody:
            return
        assert self.run is not None, "a run begins before its first report"
        match payload.outcome:
            case LeftOut():
                self.run.leave_out(payload)
                self._tell_decisions()
                if self.progress:
                    self.progress.leave_out(payload.outcome.target)
            case KeptVerdict():
                self.n_verdicts_failed += report.failed and (
                    not payload.outcome.passed or passed_strictly(report)
                )
                if self.progress:
                    self.progress.count_kept(payload.outcome.target)
            case Record():
                self._take_row(report, payload, payload.outcome)

    def _take_row(self, report: pytest.TestReport, payload: ReportPayload, record: Record) -> None:
        assert self.run is not None, "a run begins before its first row"
        try:
            self.run.add(payload)
        except OSError as error:
            self._is_full = True
            self._cannot_record(error)
        if report.failed:
            self._count_failure(report, record)
        self._tell_decisions()
        if self.progress:
            self.progress.count(record.target.label, record.cost_usd)

    def _count_failure(self, report: pytest.TestReport, record: Record) -> None:
        if record.availability_status == "ok":
            self.n_verdicts_failed += record.objective_pass is not True or passed_strictly(report)
        elif record.availability_status != "skipped_unavailable" and record.failure_type != "harness_error":
            self.n_faults_failed[record.target.label] += 1

    def keep(self, payloads: Iterable[ReportPayload]) -> None:
        """Record the rows that no report has brought, at the session's end: of each cell that has none."""
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

    def finish(self, n_unrecorded_calls: int = 0) -> Summary:
        """Write the summary; end the session if that or a row before it is impossible.

        Args:
            n_unrecorded_calls: calls of workers that may have no row, if cells are missing.
        """
        assert self.run is not None, "there is something to sum up"
        try:
            self.summary = self.run.finish(
                n_unrecorded_calls + self._n_lost, spent_usd=self._state.budget.spent_usd
            )
        except OSError as error:
            self._cannot_record(error)
        if self._late_error:
            self._cannot_record(self._late_error)
        return self.summary

    def end_asking(self) -> None:
        """End the asking, and record what was answered while the session ended.

        The run directory stays open until its summary is written.
        """
        if self.line:
            self.line.stop()
        self.keep(self._state.end_asking())

    def discard(self) -> None:
        """Give back the run directory, and all that the session holds."""
        self.end_asking()
        self._open.close()
        self._state.discard()

    @property
    def resume_command(self) -> str:
        """The command that goes on with this run."""
        assert self.run is not None, "there is a run to go on with"
        command = resume_command(self._state.config.invocation_params.args, self.run.directory.run_id)
        return self._state.redactor.text(command)

    def _tell_decisions(self) -> None:
        assert self.run is not None, "a run decides on its repeats"
        while self.run.decisions:
            self.tell(self.run.decisions.popleft().told)

    def _cannot_record(self, error: OSError) -> NoReturn:
        """End the session, because what it measures would be lost; the rows so far are on disk."""
        assert self.run is not None, "a run is being recorded"
        pytest.exit(
            f"openclaw: cannot write in {self.run.directory.path} ({error.strerror or error}). "
            f"Every row before this is kept there; make room, then: {self.resume_command}",
            returncode=pytest.ExitCode.INTERNAL_ERROR,
        )
