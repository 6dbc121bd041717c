"""The hooks of the process that runs cells: collecting, selecting, sending, reporting."""

from __future__ import annotations

import gc
from collections import Counter
from contextlib import contextmanager
from dataclasses import replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import pytest

from pytest_openclaw import options
from pytest_openclaw.core import signals
from pytest_openclaw.recording.selection import Selection
from pytest_openclaw.session.cell_runs import (
    DIVIDED,
    HELD,
    SELECTION,
    CellRun,
    KeptCell,
    cell_of,
    held_by,
    run_of,
)
from pytest_openclaw.session.items import KeptFunction, SuiteFile
from pytest_openclaw.session.python_benchmarks import BenchmarkRun, benchmark_cell, parametrize_reply
from pytest_openclaw.session.repeat_threshold import defer, passed_strictly
from pytest_openclaw.session.report_texts import make_printable, make_warning_printable, redact
from pytest_openclaw.session.suite_files import cells_of
from pytest_openclaw.suites.keywords import base_id
from pytest_openclaw.types.payloads import PAYLOAD, LeftOut, ReportPayload
from pytest_openclaw.types.records import Record
from pytest_openclaw.types.settings import parse_shard

if TYPE_CHECKING:
    import warnings
    from collections.abc import Generator, Iterator, Mapping
    from pathlib import Path

    from pytest_openclaw.asking.diagnosing import Suspects
    from pytest_openclaw.core.json_types import JsonObject
    from pytest_openclaw.judging.cell_result import CellResult
    from pytest_openclaw.session.plugin_session import PluginSession
    from pytest_openclaw.types.prompts import Cell
    from pytest_openclaw.types.protocols import Provider
    from pytest_openclaw.types.settings import Shard
    from pytest_openclaw.types.targets import CellKey, Target

_ENDED = {pytest.ExitCode.OK, pytest.ExitCode.TESTS_FAILED}
FAILED_SUBTEST = pytest.StashKey[pytest.CallInfo[None]]()


class ExecutionHooks:
    """Registered in a plain session and in every xdist worker."""

    def __init__(self, session: PluginSession) -> None:
        self._session = session
        self._parts = session.cell_parts
        self._connection = session.cell_parts.connection
        self._coordinator = session.coordinator
        self._pytest_session: pytest.Session | None = None
        self._cells: list[Cell | None] = []
        self._is_planned = False
        self._last: dict[Target, str] = {}
        self._has_rows: set[Target] = set()
        self._under_way = ""
        self._in_call: pytest.Item | None = None
        self._keywords: Mapping[str, Any] = {}
        self._in_hand: CellResult | None = None
        self._suspects: Suspects | None = None

    # --- collecting ---

    def pytest_collect_file(self, file_path: Path, parent: pytest.Collector) -> pytest.Collector | None:
        """Collect a prompt file that is in a folder of suites or is named."""
        if not options.SUITE_NAME.match(file_path.name) or not self._session.suites.is_suite(file_path):
            return None
        return SuiteFile.from_parent(parent, path=file_path, read=self._read_suite)

    def _read_suite(self, path: Path) -> list[CellRun | KeptCell]:
        suites = self._session.suites
        suite = suites.load(path)
        cells = cells_of(suite.prompts, self._session.settings) if suites.is_selected(path, suite) else []
        if cells:
            self._get_ready()
        return [self._kept(cell) or CellRun(cell, self._parts) for cell in cells]

    def _kept(self, cell: Cell) -> KeptCell | None:
        replay = self._session.kept.get(cell.key)
        return KeptCell(cell=cell, replay=replay, parts=self._parts) if replay else None

    def _get_ready(self) -> None:
        """Start what takes a moment to start, while pytest continues to collect."""
        given = self._coordinator.given
        if self._session.sends and (given is None or given.is_here):
            self._connection.client.start()

    def pytest_generate_tests(self, metafunc: pytest.Metafunc) -> None:
        """Parametrize a Python benchmark over the targets."""
        if parametrize_reply(metafunc, self._session.suites, self._session.settings):
            self._get_ready()

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_collection_modifyitems(
        self, config: pytest.Config, items: list[pytest.Item]
    ) -> Generator[None, object, object]:
        """Put cells endpoint by endpoint, let an id in `-k` mean its prompt alone, and take the shard."""
        items[:] = [self._with_cell(item) for item in items]
        order_by_endpoint(self._session.providers, items)
        with exact_ids(config, items):
            result = yield
        if shard := self._session.settings.shard:
            keep_shard(config, items, parse_shard(shard))
        return result

    def _with_cell(self, item: pytest.Item) -> pytest.Item:
        """Give a Python benchmark its cell; one that is kept becomes an item that repeats the verdict."""
        if not isinstance(item, pytest.Function) or (cell := benchmark_cell(item)) is None:
            return item
        if kept := self._kept(cell):
            return KeptFunction.of(item, kept)
        item.stash[HELD] = BenchmarkRun(cell, self._parts)
        return item

    @pytest.hookimpl(tryfirst=True)
    def pytest_collection_finish(self, session: pytest.Session) -> None:
        """Say what is selected, before xdist sends what a worker has collected."""
        self._cells = [cell_of(item) for item in session.items]
        own = self._session
        selection = Selection.of(self._cells, session.config.stash.get(DIVIDED, None))
        session.config.stash[SELECTION] = selection
        self._coordinator.collected(selection, own.settings, own.providers, own.shared_dir, own.suites.files)
        if own.sends and any(run_of(item) for item in session.items):
            # Before any item runs: the asker must not take the first process that ends for the last one.
            self._connection.client.start()
        gc.freeze()  # the items, too, last to the end; see `plugin.py`

    # --- running ---

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtestloop(self, session: pytest.Session) -> None:
        """Send cells ahead, in the order of their items."""
        if not self._session.sends or (
            session.testsfailed and not session.config.option.continue_on_collection_errors
        ):
            return
        if not any(self._cells):
            return
        self._pytest_session = session
        self._coordinator.begin(session, self)
        if self._coordinator.given is None:
            self._plan(session)

    def decide(self, decision: JsonObject) -> None:
        """Take a decision on the repeats of a target."""
        from pytest_openclaw.asking.messages import RepeatDecision

        self._connection.client.decide(RepeatDecision(**decision))

    def count_elsewhere(self, usd: float) -> None:
        """Take what all other hosts together have spent."""
        self._connection.client.count_elsewhere(usd)

    def stop(self, *, at_once: bool) -> None:
        """Run none of the tests that are left, and end the one under way too if it is to be at once."""
        assert self._pytest_session is not None, "the session runs items"
        self._pytest_session.shouldstop = "the session is stopping"
        if client := self._connection.used:
            client.stop()
        if at_once and not signals.is_ending():
            signals.interrupt_main_thread()

    def _plan(self, session: pytest.Session) -> None:
        """Have the cells sent ahead that processes of this host run."""
        from pytest_openclaw.asking.messages import Listed

        self._is_planned = True
        assignment = self._coordinator.assignment()
        places = range(len(session.items)) if assignment is None else set(assignment.places or ())
        listed = []
        for place, item in enumerate(session.items):
            if (run := run_of(item)) is None:
                continue
            is_usable = may_send_ahead(item)
            if place in places:
                self._last[run.cell.target] = item.nodeid
            listed.append(Listed(item.nodeid, run.cell, is_ahead=is_usable and place in places))
        limits = None
        if assignment:
            providers = self._session.providers
            limits = {providers[name].endpoint: limit for name, limit in assignment.limits.items()}
        if listed:
            self._connection.client.plan(listed, limits)

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(
        self, item: pytest.Item, nextitem: pytest.Item | None
    ) -> Generator[None, object, object]:
        """Note where a target ends, for the snapshot after it; keep no reply longer than its item runs."""
        if cell_of(item) is not None:
            self._under_way = item.nodeid
        run = run_of(item)
        if self._session.sends and self._pytest_session:
            self._claim(item, nextitem)
        if run is None:
            return (yield)
        run.is_last = nextitem is None or self._last.get(run.cell.target) == item.nodeid
        try:
            report = yield
        except (KeyboardInterrupt, pytest.exit.Exception):
            self._in_hand = run.result_in_hand()
            if client := self._connection.used:
                client.release(item.nodeid)
            raise
        else:
            if client := self._connection.used:
                client.forget(item.nodeid)
            return report
        finally:
            # pytest keeps every item to the end, and an answer may have megabytes
            run.result = run.first = None

    def _claim(self, item: pytest.Item, nextitem: pytest.Item | None) -> None:
        """Have the replies sent to this process that it needs now and next; a plain session needs all."""
        if not self._is_planned:  # not sooner in a worker: its controller has accepted the session now
            self._plan(item.session)
        if self._coordinator.given is None:
            return
        tokens = [one.nodeid for one in (item, nextitem) if one and run_of(one) and may_send_ahead(one)]
        if tokens:
            self._connection.client.claim(tokens)

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtest_call(self, item: pytest.Item) -> Generator[None, object, object]:
        """Fail a Python benchmark whose answer is empty or refused, whatever it would assert."""
        if run := run_of(item):
            run.before_test()
        self._in_call = item
        try:
            return (yield)
        finally:
            self._in_call = None

    # --- reporting ---

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_makereport(
        self, item: pytest.Item, call: pytest.CallInfo[None]
    ) -> Generator[None, pytest.TestReport, pytest.TestReport]:
        """Put the cell's row on its report, so that it travels from worker to controller."""
        report = yield
        if cell_of(item) is None:
            return report
        self._share_keywords(report)
        if self._in_call is item:  # the report of a subtest, which pytest makes before the test has ended
            if report.failed:
                item.stash.setdefault(FAILED_SUBTEST, call)
            self._clean(report)
            return report
        if call.when == "call" and call.excinfo is None:
            call = item.stash.get(FAILED_SUBTEST, call)
        # A cell has one row, whichever phase ends it.
        if call.when == "call" or (call.when == "setup" and call.excinfo is not None):
            self._attach(item, call, report)
        self._clean(report)
        return report

    def _attach(self, item: pytest.Item, call: pytest.CallInfo[None], report: pytest.TestReport) -> None:
        held = held_by(item)
        assert held, "it is a cell"
        payload = held.payload if isinstance(held, KeptCell) else self._payload(held, call, report)
        is_first = not (isinstance(payload.outcome, Record) and payload.outcome.reruns)
        if is_first and self._session.config.getoption("xmlpath", None):
            from pytest_openclaw.reports.junit import cell_properties

            item.user_properties.extend(cell_properties(payload.outcome))
        carried = self._coordinator.report(payload, self.n_unreported, self._spent_usd)
        setattr(report, PAYLOAD, carried)
        if held.cell.prompt.min_passes is not None and is_verdict(held, report, call):
            defer(report, held.cell, self._n_selected[held.cell.key._replace(repeat=1)])

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Make printable what was added to a cell's report since it was made, such as a subtest's output."""
        if report.nodeid == self._under_way:
            self._clean(report)

    @pytest.hookimpl(tryfirst=True)
    def pytest_warning_recorded(self, warning_message: warnings.WarningMessage) -> None:
        """Make a warning printable before a worker sends it and the terminal shows it."""
        if any(self._cells):
            make_warning_printable(warning_message, self._parts.redactor)

    def _share_keywords(self, report: pytest.TestReport) -> None:
        """Have the reports of an item share their keywords: pytest keeps all reports to the end."""
        if report.keywords == self._keywords:
            report.keywords = self._keywords
        self._keywords = report.keywords

    def _clean(self, report: pytest.TestReport) -> None:
        if report.longrepr is not None or report.sections or hasattr(report, "wasxfail"):  # few have any
            redact(report, self._parts.redactor)
            make_printable(report, self._session.config)

    @cached_property
    def _n_selected(self) -> Counter[CellKey]:
        """How many repeats of each prompt are selected, by target."""
        return Counter(cell.key._replace(repeat=1) for cell in self._cells if cell is not None)

    def _payload(self, run: CellRun, call: pytest.CallInfo[None], report: pytest.TestReport) -> ReportPayload:
        """Return what the report carries: a row, or why there is none."""
        from pytest_openclaw.asking.resources import collect_snapshot

        result = run.result_after(call)
        if result is None:
            return self._left_out(run)
        self._has_rows.add(run.cell.target)
        payload = run.payload(result, report)
        if self._session.settings.diagnose and isinstance(payload.outcome, Record):
            self._note_suspect(run.cell, payload.outcome)
        return replace(payload, after=collect_snapshot()) if run.is_last else payload

    def _note_suspect(self, cell: Cell, record: Record) -> None:
        from pytest_openclaw.asking.diagnosing import Suspects

        self._suspects = self._suspects or Suspects(self._session.providers)
        self._suspects.note(cell, record)

    def _left_out(self, run: CellRun) -> ReportPayload:
        from pytest_openclaw.asking.resources import collect_snapshot

        cell = run.cell
        outcome = LeftOut(target=cell.target.label, repeat=cell.repeat, is_fixed=cell.is_fixed_repeat)
        if not run.is_left_out or cell.target not in self._has_rows:
            return ReportPayload(outcome=outcome)
        # The target has ended here, which was not known at its last row.
        self._has_rows.discard(cell.target)
        return ReportPayload(outcome=outcome, after=collect_snapshot())

    # --- ending ---

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_keyboard_interrupt(self) -> Generator[None, None, None]:
        """Have the session end in order when it is interrupted again."""
        signals.ends()
        return (yield)

    @pytest.hookimpl(tryfirst=True)
    def pytest_sessionfinish(self, session: pytest.Session, exitstatus: int | pytest.ExitCode) -> None:
        """Stop sending, and record or hand over what no report contains."""
        signals.ends()
        ended_early = exitstatus not in _ENDED or session.shouldstop or session.shouldfail
        diagnoses = {} if ended_early else self._diagnose()
        unreported = self._end()
        n_lost = self.n_unreported - len(unreported)
        self._session.budget.count_here(self._spent_usd or 0.0)
        writer = self._session.writer
        writer.keep(self._coordinator.end(unreported, diagnoses, n_lost, self._spent_usd))
        writer.keep_diagnoses(diagnoses)

    def _diagnose(self) -> dict[str, JsonObject]:
        """Repeat a cell of each target whose tool cells ended without a call; once on each machine."""
        if self._suspects is None:
            return {}
        own, client = self._session, self._connection.client
        found = self._suspects.examine(client, own.settings, own.shared_dir)
        return {label: self._parts.redactor.value(evidence) for label, evidence in found.items()}

    @property
    def n_unreported(self) -> int:
        """Calls of this process that no report contains yet."""
        return self._connection.n_out + (self._in_hand is not None)

    @property
    def _spent_usd(self) -> float | None:
        if self._session.settings.budget_usd is None:
            return None
        return client.spent_usd if (client := self._connection.used) else 0.0

    def _end(self) -> list[ReportPayload]:
        """Stop sending; return the rows of what was answered and no report contains."""
        left, parts = self._connection.close(), self._parts
        if not left and self._in_hand is None:
            return []
        from pytest_openclaw.asking.cell_records import payload_of, record_of
        from pytest_openclaw.judging.cell_result import CellResult

        results = [self._in_hand] if self._in_hand else []
        for cell, call in left:
            # A Python benchmark is judged by its test alone, so it is sent again in a resumed run.
            if cell.prompt.validator.type != "python":
                results.append(CellResult(cell=cell, call=call).judged_or_broken(parts.settings.timeout_s))
        notes, run_id = self._connection.client.notes, parts.settings.run_id
        records = (
            record_of(run_id, one.cell, one.call, one.judgment or one.done, parts.redactor) for one in results
        )
        return [payload_of(replace(record, reported=False), notes, parts.redactor) for record in records]


def may_send_ahead(item: pytest.Item) -> bool:
    """Whether the item will use its reply, as far as its marks say."""
    return not any(
        mark.name in ("skip", "skipif") or (mark.name == "xfail" and not mark.kwargs.get("run", True))
        for mark in item.iter_markers()
    )


def is_verdict(held: CellRun | KeptCell, report: pytest.TestReport, call: pytest.CallInfo[None]) -> bool:
    """Whether an item failed by what its model said, and not by a fault or by another plugin's hook."""
    if not report.failed or call.when != "call":
        return False
    if call.excinfo is None:
        return passed_strictly(report)
    return isinstance(call.excinfo.value, held.verdict_errors)


def order_by_endpoint(providers: Mapping[str, Provider], collected: list[pytest.Item]) -> None:
    """Put the cells, on the places that cells have, in the order in which they are best sent."""
    from pytest_openclaw.suites import spread

    cells = [(item, cell) for item in collected if (cell := cell_of(item)) is not None]
    endpoints = {cell.target: providers[cell.target.provider].endpoint for _, cell in cells}
    ordered = iter(
        spread(
            cells,
            target_of=lambda pair: pair[1].target,
            endpoints=endpoints,
            repeat_of=lambda pair: pair[1].repeat,
        )
    )
    collected[:] = [next(ordered)[0] if cell_of(item) is not None else item for item in collected]


def keep_shard(config: pytest.Config, selected: list[pytest.Item], shard: Shard) -> None:
    """Deselect the cells of the other shards; other tests are run in each."""
    from pytest_openclaw.suites import digest_of_cells, shard_of

    keys = {item: cell.key for item in selected if (cell := cell_of(item)) is not None}
    if 0 < len(keys) < shard.of:
        raise pytest.UsageError(
            f"--openclaw-shard={shard}: {len(keys)} cells are selected; give N as {len(keys)} at most."
        )
    config.stash[DIVIDED] = digest_of_cells(keys.values())
    own = shard_of(keys.values(), shard)
    if others := [item for item, key in keys.items() if key not in own]:
        config.hook.pytest_deselected(items=others)
        selected[:] = [item for item in selected if item not in keys or keys[item] in own]


@contextmanager
def exact_ids(config: pytest.Config, collected: list[pytest.Item]) -> Iterator[None]:
    """Let `-k` find a cell by its words, and by its prompt's id P1 but not P10, while pytest evaluates it."""
    keyword = config.option.keyword
    if not keyword:
        yield
        return
    from pytest_openclaw.suites import keyword_token, rewrite_keyword

    ids = set()
    for item in collected:
        if (cell := cell_of(item)) is not None:
            prompt, prompt_id = cell.prompt, base_id(cell.prompt.id)
            words = {prompt.name, prompt.category or "", *prompt.tags, keyword_token(prompt_id)}
            item.extra_keyword_matches.update(words - {""})
            ids.add(prompt_id)
    config.option.keyword = rewrite_keyword(keyword, ids)
    try:
        yield
    finally:
        config.option.keyword = keyword
