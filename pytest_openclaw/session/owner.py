"""The owner of a run: the asker, the rows on disk, the summary. A plain session, or xdist's controller.

A run that is resumed: found, locked and read, and the command that continues it.
"""

from __future__ import annotations

import re
import shlex
from collections import Counter
from contextlib import ExitStack
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, NoReturn, Protocol

import pytest

from pytest_openclaw.options import options_given
from pytest_openclaw.session.repeat_threshold import passed_strictly
from pytest_openclaw.util.errors import OpenClawError
from pytest_openclaw.values.rows import KeptVerdict, LeftOut, Record
from pytest_openclaw.values.settings import SAMPLING

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
    from pathlib import Path

    from pytest_openclaw.asking.asker import Asker, PlannedCell
    from pytest_openclaw.runs.directory import RunDirectory
    from pytest_openclaw.runs.resume import Plan, Replay
    from pytest_openclaw.runs.session import EarlierSessions, RunSession
    from pytest_openclaw.session.progress import ProgressDisplay
    from pytest_openclaw.stats.run_comparison import Measured
    from pytest_openclaw.stats.summary import Summary
    from pytest_openclaw.util.json_types import JsonObject
    from pytest_openclaw.util.redact import Redactor
    from pytest_openclaw.values.prompts import Cell
    from pytest_openclaw.values.protocols import Provider
    from pytest_openclaw.values.replies import CallResult
    from pytest_openclaw.values.requests import CellKey, Target
    from pytest_openclaw.values.rows import Payload
    from pytest_openclaw.values.settings import Settings


# Options that a resumed run keeps itself, and those that would end it at the first replayed verdict.
DROPPED = ("--openclaw-models", "--openclaw-providers", "--openclaw-thinking", "--openclaw-run-id",
           "--openclaw-resume", "--maxfail")  # fmt: skip
STOPPING = {"-x", "--exitfirst", "--sw", "--stepwise", "--stepwise-skip", "--sw-skip"}


@dataclass(frozen=True, kw_only=True)
class ResumedRun:
    """The run that this session continues, as earlier sessions left it.

    Attributes:
        path: the run's directory.
        earlier: the content of that directory.
        directory: the directory, locked; None in a session that writes nothing.

    """

    path: Path
    earlier: EarlierSessions
    directory: RunDirectory | None = None

    @property
    def kept(self) -> Mapping[CellKey, Replay]:
        """The kept verdicts, by cell."""
        return self.earlier.kept.replays

    def refuse_changes(self, plan: Plan, settings: Settings) -> None:
        """Reject a session that would change the definition of the run.

        Raises:
            pytest.UsageError: something differs; the message lists it.

        """
        from pytest_openclaw.runs.resume import find_changes, refusal

        if changes := find_changes(self.earlier.config, plan, settings, self.earlier.kept):
            raise pytest.UsageError(refusal(self.path.name, changes))

    def for_workers(self, settings: Settings) -> JsonObject:
        """Return the settings that workers need of a resumed run."""
        chosen = ("run_id", "stream", "fail_unavailable", "repeat", "until_conclusive", "shard", *SAMPLING)
        return {name: getattr(settings, name) for name in chosen}


def hold_resumed(path: Path, stack: ExitStack) -> ResumedRun:
    """Lock a run until the stack is closed, and read the rows that it keeps; nothing is written yet.

    Raises:
        pytest.UsageError: it is running in another session, or cannot be read.

    """
    from pytest_openclaw.runs.directory import RunDirectory

    try:
        directory = stack.enter_context(RunDirectory.reopen(path))
    except (OpenClawError, OSError) as error:
        raise pytest.UsageError(f"--openclaw-resume={path.name}: {error}") from None
    return replace(read_resumed(path), directory=directory)


def read_resumed(path: Path) -> ResumedRun:
    """Read the rows that a run keeps, even while another session is running it.

    Raises:
        pytest.UsageError: it cannot be read.

    """
    from pytest_openclaw.runs.directory import RESULTS
    from pytest_openclaw.runs.reading import load_config, load_inventory
    from pytest_openclaw.runs.resume import read_kept
    from pytest_openclaw.runs.session import EarlierSessions

    try:
        earlier = EarlierSessions(
            config=load_config(path),
            inventory=load_inventory(path),
            kept=read_kept(path / RESULTS),
        )
    except (OpenClawError, OSError) as error:
        raise pytest.UsageError(f"--openclaw-resume={path.name}: {error}") from None
    return ResumedRun(path=path, earlier=earlier)


def find_resumed(
    config: pytest.Config, settings: Settings, providers: Collection[str]
) -> tuple[Path, Settings]:
    """Return the directory of the run to resume, and its settings.

    Args:
        config: pytest's.
        settings: from options and ini file; the targets are those of the command line.
        providers: names of the existing ones.

    Raises:
        pytest.UsageError: there is no such run, or the command line selects another one.

    """
    from pytest_openclaw.runs.reading import find_run, load_config
    from pytest_openclaw.runs.resume import other_targets, refusal, settings_of, targets_of

    try:
        path = find_run(settings.runs_dir, settings.resume)
        earlier = load_config(path)
        if settings.run_id_given and settings.run_id != path.name:
            wanted = f"--openclaw-run-id={settings.run_id}"
            raise OpenClawError(f"the run is {path.name}, and {wanted} another one; leave that out")
        for target in targets_of(earlier):
            if target.provider not in providers:
                there_are = ", ".join(sorted(providers))
                what = f"the run asked {target.label}, and there is no such provider now"
                raise OpenClawError(f"{what}; there are {there_are}")
        if settings.targets and (changes := other_targets(earlier, settings.targets)):
            shown = [f"--openclaw-models: {change}" for change in changes]
            raise pytest.UsageError(refusal(path.name, shown))
        return path, replace(settings_of(earlier, settings, options_given(config)), run_id=path.name)
    except OpenClawError as error:
        raise pytest.UsageError(f"--openclaw-resume={settings.resume}: {error}.") from None


def resume_command(args: Sequence[str], run_id: str) -> str:
    """Return the command that continues a run: this session's own, for the same cells.

    Args:
        args: the command line of this session, without the program.
        run_id: the run's.

    """
    kept: list[str] = []
    words = iter(args)
    for word in words:
        name, has_value, _ = word.partition("=")
        if name in DROPPED:
            if not has_value:
                next(words, None)
        elif word not in STOPPING:
            # Combined switches of pytest, such as -xq.
            bundle = re.fullmatch(r"-[xvqsl]+", word)
            kept += [word.replace("x", "")] if bundle else [word]
    return shlex.join(["pytest", *kept, f"--openclaw-resume={run_id}"])


class Suspects(Protocol):
    """Finds why cells ended without a call: the feature `diagnosing`."""

    def note(self, cell: Cell, record: Record) -> None:
        """Take a cell's row."""
        ...

    def examine(self, asker: Asker, settings: Settings) -> Mapping[Target, JsonObject]:
        """Return, by target, what further requests show."""
        ...


class Owner:
    """Records the run of a session, from its selection to its summary.

    Attributes:
        asker: sends all requests.
        resumed: the run that this session continues.
        run: the run, once the selection is known.
        display: shows the progress.
        summary: the summary, once it is written.
        n_verdicts_failed: items that failed because of the model's reply.
        n_faults_failed: by target, items that failed because a call had no reply; excludes harness errors
            and targets that failed only by `--openclaw-fail-unavailable`.

    Args:
        config: pytest's.
        settings: the session's.
        providers: by name.
        asker: see above.
        resumed: see above.
        baseline: the run to compare with.
        redactor: removes secrets.
        display: see above.
        on_start: called when the recording starts.

    """

    def __init__(
        self,
        config: pytest.Config,
        settings: Settings,
        *,
        providers: Mapping[str, Provider],
        asker: Asker,
        resumed: ResumedRun | None,
        baseline: Measured | None,
        redactor: Redactor,
        display: ProgressDisplay,
        on_start: Callable[[], None],
    ) -> None:
        self.asker = asker
        self.resumed = resumed
        self.run: RunSession | None = None
        self.display = display
        self.summary: Summary | None = None
        self.suspects: Suspects | None = None
        self.n_verdicts_failed = 0
        self.n_faults_failed: Counter[str] = Counter()
        self._config = config
        self._settings = settings
        self._providers = providers
        self._baseline = baseline
        self._redactor = redactor
        self._on_start = on_start
        self._cells: dict[CellKey, Cell] = {}
        self._open = ExitStack()
        self._is_full = False
        self._late_error: OSError | None = None
        self._n_lost = 0

    # --- the run begins ---

    def begin(self, cells: Sequence[PlannedCell | None], divided: str | None) -> None:
        """Start the run of these cells, or continue a resumed one, and send the cells.

        Args:
            cells: of each item, in order; None for an item that is not a cell.
            divided: see `Plan`.

        Raises:
            pytest.UsageError: the directory cannot be created, or the definition of the run has changed.

        """
        from pytest_openclaw.runs.resume import Plan
        from pytest_openclaw.session.registries import describe

        selected = [planned.cell for planned in cells if planned]
        if self.run or not (self.resumed or selected):
            return
        plan = Plan.of(selected, self._settings.targets, describe(self._providers), divided)
        if self.resumed:
            self.resumed.refuse_changes(plan, self._settings)
        try:
            self.run = self._open_run(plan)
        except (OpenClawError, OSError) as error:
            raise pytest.UsageError(f"the run cannot be recorded: {error}") from None
        self.display.start(plan.n_selected)
        self._on_start()
        kept = self.resumed.kept if self.resumed else {}
        if asked := [planned for planned in cells if planned and planned.cell.key not in kept]:
            if self.suspects:
                self._cells = {planned.cell.key: planned.cell for planned in asked}
            self.asker.plan(asked)
        self._publish_decisions()

    def _open_run(self, plan: Plan) -> RunSession:
        from pytest_openclaw.runs.directory import RunDirectory
        from pytest_openclaw.runs.report_files import Plugins
        from pytest_openclaw.runs.session import RunSession
        from pytest_openclaw.session.registries import reports_of, row_hooks_of

        settings, resumed = self._settings, self.resumed
        directory = resumed.directory if resumed else None
        directory = directory or self._open.enter_context(
            RunDirectory.new(settings.runs_dir, settings.run_id, exactly=settings.run_id_given)
        )
        earlier = resumed.earlier if resumed else None
        plugins = Plugins(
            reports=reports_of(self._config), row_hooks=row_hooks_of(self._config), clean=self._redactor.value
        )
        return RunSession(directory, settings, plan, earlier, self._baseline, plugins)

    # --- rows ---

    def take(self, report: pytest.TestReport, payload: Payload) -> None:
        """Record a report's payload; end the session if that is impossible."""
        assert self.run is not None, "a run begins before its first report"
        progress = self.display.progress
        match payload:
            case LeftOut():
                self.run.leave_out(payload)
                self._publish_decisions()
                if progress:
                    progress.leave_out(payload.target)
            case KeptVerdict():
                self.n_verdicts_failed += report.failed and (not payload.passed or passed_strictly(report))
                if progress:
                    progress.count_kept(payload.target)
            case Record():
                self._take_row(report, payload)

    def _take_row(self, report: pytest.TestReport, record: Record) -> None:
        assert self.run is not None, "a run begins before its first row"
        try:
            is_first = self._add(record)
        except OSError as error:
            self._is_full = True
            self._cannot_record(error)
        if report.failed:
            self._count_failure(report, record)
        self._publish_decisions()
        if self.suspects and record.key in self._cells:
            self.suspects.note(self._cells[record.key], record)
        if is_first and self.display.progress:
            self.display.progress.count(record.target.label, record.cost_usd)

    def _add(self, record: Record) -> bool:
        """Write a row and the new facts about targets; see `RunSession.add`."""
        assert self.run is not None, "a run begins before its first row"
        is_first = self.run.add(record)
        while self.asker.facts:
            self.run.take_facts(*self.asker.facts.popleft())
        return is_first

    def _count_failure(self, report: pytest.TestReport, record: Record) -> None:
        if record.availability_status == "ok":
            self.n_verdicts_failed += record.objective_pass is not True or passed_strictly(report)
        elif record.availability_status != "skipped_unavailable" and record.failure_type != "harness_error":
            self.n_faults_failed[record.target.label] += 1

    def keep(self, records: Iterable[Record]) -> None:
        """Record rows that no report contained, at the session's end, for each cell without a row."""
        if self.run is None:
            return
        known = {record.key for record in self.run.records}
        for record in records:
            if record.key in known:
                continue
            known.add(record.key)
            if not (self._is_full or self._late_error):
                try:
                    self._add(record)
                    continue
                except OSError as error:
                    self._late_error = error
            self._n_lost += 1

    def _publish_decisions(self) -> None:
        assert self.run is not None, "a run decides on its repeats"
        while self.run.decisions:
            decision = self.run.decisions.popleft()
            self.asker.decide(decision.target.label, decision.repeat, decision.ends)

    # --- the run ends ---

    def stop_asking(self, *, is_whole: bool) -> None:
        """End all requests; record the replies of cells whose tests have not ended.

        Args:
            is_whole: the session was not interrupted, so that targets without calls can be diagnosed.

        """
        if is_whole and self.suspects and self.run:
            self._diagnose(self.suspects)
        replies, n_given_up = self.asker.close()
        self._n_lost += n_given_up
        # Some are judged only by their tests or in workers; a resumed run sends these again.
        judged = (
            self._judged(cell, call)
            for cell, call in replies
            if cell.prompt.validator.type not in {"python", "judged_by_workers"}
        )
        self.keep(judged)

    def _judged(self, cell: Cell, call: CallResult) -> Record:
        from pytest_openclaw.judging.judge import CellResult
        from pytest_openclaw.runs.rows import record_of

        settings = self._settings
        result = CellResult(cell=cell, call=call).judged_or_broken(settings.timeout_s)
        record = record_of(settings.run_id, cell, result.call, result.judgment or result.done, self._redactor)
        return replace(record, reported=False)

    def _diagnose(self, suspects: Suspects) -> None:
        """Repeat a cell of each target whose tool cells ended without a call, and record what that shows."""
        assert self.run is not None, "its rows are recorded"
        try:
            for target, evidence in suspects.examine(self.asker, self._settings).items():
                self.run.take_diagnosis(target, self._redactor.value(evidence))
        except OSError as error:
            self._late_error = error

    def finish(self) -> Summary:
        """Write the summary; end the session if that or a row before it is impossible."""
        assert self.run is not None, "there is something to sum up"
        try:
            self.summary = self.run.finish(self._n_lost, spent_usd=self.asker.spent_usd)
        except OSError as error:
            self._cannot_record(error)
        if self._late_error:
            self._cannot_record(self._late_error)
        return self.summary

    def close(self) -> None:
        """End what a session that broke has left; the directory stays open until the summary is written."""
        self.display.stop()
        self.asker.close()
        self._open.close()

    @property
    def resume_command(self) -> str:
        """The command that continues this run."""
        assert self.run is not None, "there is a run to continue"
        command = resume_command(self._config.invocation_params.args, self.run.directory.run_id)
        return self._redactor.text(command)

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
