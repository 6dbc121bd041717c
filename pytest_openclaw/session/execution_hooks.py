"""The hooks of the process that runs cells: collecting, selecting, reporting."""

from __future__ import annotations

from collections import Counter, deque
from contextlib import contextmanager
from dataclasses import replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import pytest

from pytest_openclaw import options
from pytest_openclaw.core import signals
from pytest_openclaw.session import items, report_payload
from pytest_openclaw.session.messages import DECIDED, PAYLOAD, SPENT, STOP
from pytest_openclaw.session.plugin_session import STATE
from pytest_openclaw.session.python_benchmarks import assert_answered, parametrize_reply
from pytest_openclaw.session.repeat_threshold import defer, expectation_of
from pytest_openclaw.session.report_texts import make_printable, make_warning_printable
from pytest_openclaw.suites.keywords import base_id

if TYPE_CHECKING:
    import warnings
    from collections.abc import Callable, Generator, Iterator
    from pathlib import Path

    from pytest_openclaw.session.plugin_session import State
    from pytest_openclaw.session.run_writer import Ledger
    from pytest_openclaw.types.payloads import ReportPayload
    from pytest_openclaw.types.prompts import Cell
    from pytest_openclaw.types.targets import CellKey, Target

LAST_OF_TARGET = pytest.StashKey[bool]()
IN_CALL = pytest.StashKey[bool]()
FAILED_SUBTEST = pytest.StashKey[pytest.CallInfo[None]]()


class Cells:
    """Registered in a plain session and in every xdist worker."""

    def __init__(self, state: State, ledger: Ledger) -> None:
        self._state = state
        self._ledger = ledger
        self._left: Counter[Target] = Counter()
        self._given: deque[int] = deque()
        self._cells: list[Cell | None] = []
        self._planned = False
        self._has_rows: set[Target] = set()
        self._begun: set[str] = set()
        state.config.stash[STATE] = state

    def pytest_collect_file(self, file_path: Path, parent: pytest.Collector) -> pytest.Collector | None:
        """Collect a prompt file that stands in a folder of suites or is named."""
        if not options.SUITE_NAME.match(file_path.name) or not self._state.holds_suite(file_path):
            return None
        return items.SuiteFile.from_parent(parent, path=file_path)

    def pytest_generate_tests(self, metafunc: pytest.Metafunc) -> None:
        """Parametrize a Python benchmark over the targets."""
        parametrize_reply(metafunc, self._state)

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_collection_modifyitems(
        self, config: pytest.Config, items: list[pytest.Item]
    ) -> Generator[None, object, object]:
        """Put cells endpoint by endpoint, and let an id in `-k` mean its prompt alone."""
        order_by_endpoint(self._state, items)
        name_prompts(items)
        with exact_ids(config, items):
            return (yield)

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtestloop(self, session: pytest.Session) -> None:
        """Ask ahead: all cells of a plain session, and in a worker those that it is given."""
        state = self._state
        if state.calls_nobody or (
            session.testsfailed and not session.config.option.continue_on_collection_errors
        ):
            return
        self._cells = [items.cell_of(item) for item in session.items]
        if not any(self._cells):
            return
        if state.settings.until_conclusive:
            state.repeats.plan(filter(None, self._cells))
        if state.handed_over is None:
            self._given.extend(range(len(session.items)))
            self._take_given(session)
        else:
            self._receive_commands(session)

    def _receive_commands(self, session: pytest.Session) -> None:
        """Listen to the controller: a worker asks for nothing that another may be given, or be told to."""
        handed_over = self._state.handed_over
        asks_ahead = handed_over is not None and not handed_over["gives_back"]
        # xdist offers no hook for this: tests/unit/distributed/test_xdist.py checks what is used here.
        plugins = session.config.pluginmanager.get_plugins()
        fitting = (p for p in plugins if hasattr(p, "handle_command") and hasattr(p, "torun"))
        interactor: Any = next(fitting, None)
        assert interactor is not None, "this pytest-xdist tells its workers in another way; install 3.8"
        handle: Callable[[Any], None] = interactor.handle_command

        def listen(command: Any) -> None:
            # In a thread of xdist's; the items are asked in the test's.
            if not isinstance(command, tuple):
                # The end of the line: the controller has died, and nobody would hear of an answer.
                self._stop(session, at_once=True)
                handle(command)
                return
            name, told = command
            if name == STOP:
                self._stop(session, at_once=told["at_once"])
                return
            if name == DECIDED:
                self._state.repeats.receive(told)
                return
            if name == SPENT:
                self._state.budget.receive(told["elsewhere_usd"])
                return
            if name == "runtests" and asks_ahead:
                self._given.extend(told["indices"])
            handle(command)

        interactor.handle_command = listen

    def _stop(self, session: pytest.Session, *, at_once: bool) -> None:
        """Run none of the tests that are left, and end the one under way too if it is to be at once."""
        session.shouldstop = "the session is stopping"
        self._state.stop_asking_ahead()
        if at_once and not signals.is_ending():
            signals.interrupt_main_thread()

    def _take_given(self, session: pytest.Session) -> None:
        tokens = []
        if self._given and not self._planned:
            # Not sooner: a worker elsewhere knows its share when it is given something.
            self._planned = True
            pairs = zip(session.items, self._cells, strict=True)
            plan = ((item.nodeid, cell) for item, cell in pairs if cell is not None)
            self._state.executor.plan(plan)
        while self._given:
            index = self._given.popleft()
            item, cell = session.items[index], self._cells[index]
            if cell is not None and not self._state.is_kept(cell):
                self._left[cell.target] += 1
                if report_payload.may_ask_ahead(item):
                    tokens.append(item.nodeid)
        if tokens:
            self._state.executor.expect(tokens)

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Generator[None, object, object]:
        """Note where a target ends, for the snapshot after it; keep no reply longer than its item runs."""
        self._take_given(item.session)
        if (cell := items.cell_of(item)) is not None:
            self._begun.add(item.nodeid)
            if not self._state.is_kept(cell):
                self._begin_repeat(item, cell)
                self._left[cell.target] -= 1
                item.stash[LAST_OF_TARGET] = self._left[cell.target] <= 0
        try:
            return (yield)
        except (KeyboardInterrupt, pytest.exit.Exception):
            self._state.in_hand = report_payload.in_hand(item)
            raise
        finally:
            report_payload.forget(item)

    def _begin_repeat(self, item: pytest.Item, cell: Cell) -> None:
        """Let the cell's repeat be asked ahead, once it is decided that there is one."""
        state, session = self._state, item.session
        if cell.repeat == 1 or not state.settings.until_conclusive or state.calls_nobody:
            return
        if cell.is_fixed_repeat:
            return
        if state.handed_over is not None and state.handed_over["others"] == "own_parts":
            # Every worker runs its cells in their common order, so what this one waits for comes before it.
            state.repeats.await_turn(cell, lambda: bool(session.shouldstop or session.shouldfail))
        elif state.repeats.permit(cell) == "wait":
            state.repeats.go_on(cell)
        state.executor.feed()

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_setup(self, item: pytest.Item) -> None:
        """Set up nothing for a Python benchmark whose verdict is kept: its test is not run again."""
        if isinstance(item, pytest.Function) and items.kept_of(item):
            item.funcargs.update(dict.fromkeys(item.fixturenames))

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtest_call(self, item: pytest.Item) -> Generator[None, object, object]:
        """Fail a cell whose answer is empty or refused, whatever a Python benchmark would assert.

        The verdict of a kept cell is repeated.
        """
        items.replay(item)
        assert_answered(item)
        item.stash[IN_CALL] = True
        try:
            return (yield)
        finally:
            del item.stash[IN_CALL]

    @pytest.hookimpl(tryfirst=True)
    def pytest_pyfunc_call(self, pyfuncitem: pytest.Function) -> bool | None:
        """Take a kept Python benchmark for run."""
        return True if items.kept_of(pyfuncitem) else None

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_makereport(
        self, item: pytest.Item, call: pytest.CallInfo[None]
    ) -> Generator[None, pytest.TestReport, pytest.TestReport]:
        """Put the cell's row on its report, so that it travels from worker to controller."""
        report = yield
        cell = items.cell_of(item)
        if cell is None:
            return report
        if IN_CALL in item.stash:  # the report of a subtest, which pytest makes before the test has ended
            if report.failed:
                item.stash.setdefault(FAILED_SUBTEST, call)
            self._clean(report)
            return report
        if call.when == "call" and call.excinfo is None:
            call = item.stash.get(FAILED_SUBTEST, call)
        # A cell has one row, whichever phase ends it.
        if call.when == "call" or (call.when == "setup" and call.excinfo is not None):
            payload = self._payload(item, call, report, cell)
            if self._state.config.getoption("xmlpath", None):
                from pytest_openclaw.reports.junit import cell_properties

                item.user_properties.extend(cell_properties(payload.outcome))
            setattr(report, PAYLOAD, payload)
            if cell.prompt.min_passes is not None and report_payload.is_verdict(item, report, call):
                defer(report, cell, self._n_asked[cell.key._replace(repeat=1)])
        self._clean(report)
        return report

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Make printable what was added to a cell's report since it was made, such as a subtest's output."""
        if report.nodeid in self._begun:
            self._clean(report)

    @pytest.hookimpl(tryfirst=True)
    def pytest_warning_recorded(self, warning_message: warnings.WarningMessage) -> None:
        """Make a warning printable before a worker sends it and the terminal shows it."""
        if any(self._cells):
            make_warning_printable(warning_message, self._state.redactor)

    def _clean(self, report: pytest.TestReport) -> None:
        self._state.redact(report)
        make_printable(report, self._state.config)

    @cached_property
    def _n_asked(self) -> Counter[CellKey]:
        """How many repeats of each prompt are selected, by target."""
        return Counter(cell.key._replace(repeat=1) for cell in self._cells if cell is not None)

    def _payload(
        self, item: pytest.Item, call: pytest.CallInfo[None], report: pytest.TestReport, cell: Cell
    ) -> ReportPayload:
        """Return what the report carries: a row, or why there is no new one."""
        from pytest_openclaw.asking.cell_records import payload_of, record_of
        from pytest_openclaw.asking.resources import collect_snapshot
        from pytest_openclaw.suites import definition
        from pytest_openclaw.types.payloads import KeptVerdict, ReportPayload

        if kept := items.kept_of(item):
            return ReportPayload(outcome=KeptVerdict(target=cell.target.label, passed=kept.passed))
        result, executor = report_payload.result_of(item, call), self._state.executor
        if result is None:
            executor.drop(item.nodeid)
            return self._left_out(cell)
        self._has_rows.add(cell.target)
        redactor = self._state.redactor
        record = record_of(self._state.settings.run_id, cell, result.call, result.judgment, redactor)
        if is_python := not isinstance(item, items.CellItem):
            record = replace(record, known_failure=expectation_of(report))
        payload = payload_of(record, executor.notes, redactor)
        return replace(
            payload,
            after=collect_snapshot() if item.stash[LAST_OF_TARGET] else None,
            prompt=definition(cell.prompt) if is_python else None,
        )

    def _left_out(self, cell: Cell) -> ReportPayload:
        from pytest_openclaw.asking.resources import collect_snapshot
        from pytest_openclaw.types.payloads import LeftOut, ReportPayload

        outcome = LeftOut(target=cell.target.label, repeat=cell.repeat, is_fixed=cell.is_fixed_repeat)
        if not self._state.repeats.why_left_out(cell) or cell.target not in self._has_rows:
            return ReportPayload(outcome=outcome)
        # The target has ended here, which was not known at its last row.
        self._has_rows.discard(cell.target)
        return ReportPayload(outcome=outcome, after=collect_snapshot())

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_keyboard_interrupt(self) -> Generator[None, None, None]:
        """Have the session end in order when it is interrupted again."""
        signals.ends()
        return (yield)

    @pytest.hookimpl(tryfirst=True)
    def pytest_sessionfinish(self) -> None:
        """Stop asking, and record what was answered meanwhile; a worker sends it at its end."""
        signals.ends()
        if not self._state.is_worker:
            self._ledger.end_asking()


def order_by_endpoint(state: State, collected: list[pytest.Item]) -> None:
    """Put the cells, on the places that cells have, in the order in which they are best asked."""
    from pytest_openclaw.suites import spread

    cells = [(item, cell) for item in collected if (cell := items.cell_of(item)) is not None]
    targets = {cell.target for _, cell in cells}
    endpoints = {t: state.providers[t.provider].endpoint for t in state.settings.targets if t in targets}
    ordered = iter(
        spread(
            cells,
            target_of=lambda pair: pair[1].target,
            endpoints=endpoints,
            repeat_of=lambda pair: pair[1].repeat,
        )
    )
    collected[:] = [next(ordered)[0] if items.cell_of(item) is not None else item for item in collected]


def name_prompts(collected: list[pytest.Item]) -> None:
    """Give every cell the words by which `-k` finds it: name, category, tags and the token of its id."""
    from pytest_openclaw.suites import keyword_token

    for item in collected:
        if (cell := items.cell_of(item)) is not None:
            prompt = cell.prompt
            words = {
                prompt.name,
                prompt.category or "",
                *prompt.tags,
                keyword_token(base_id(prompt.id)),
            }
            item.extra_keyword_matches.update(words - {""})


@contextmanager
def exact_ids(config: pytest.Config, collected: list[pytest.Item]) -> Iterator[None]:
    """Let `-k P1` select the prompt P1 and never P10, while pytest evaluates the expression."""
    from pytest_openclaw.suites import rewrite_keyword

    keyword = config.option.keyword
    ids = {base_id(cell.prompt.id) for item in collected if (cell := items.cell_of(item)) is not None}
    config.option.keyword = rewrite_keyword(keyword, ids) if keyword else keyword
    try:
        yield
    finally:
        config.option.keyword = keyword
