"""The hooks of the process that runs cells: collecting, selecting, sending, reporting."""

from __future__ import annotations

from collections import Counter
from contextlib import contextmanager
from functools import cached_property
from typing import TYPE_CHECKING

import pytest

from pytest_openclaw import options
from pytest_openclaw.asking.asker import PlannedCell
from pytest_openclaw.session.cell_runs import DIVIDED, HELD, CellRun, KeptCell, cell_of, held_by, run_of
from pytest_openclaw.session.items import KeptFunction, SuiteFile, cells_of
from pytest_openclaw.session.python_benchmarks import BenchmarkRun, benchmark_cell, parametrize_reply
from pytest_openclaw.session.repeat_threshold import defer, passed_strictly
from pytest_openclaw.session.reporting import make_printable, make_warning_printable, redact
from pytest_openclaw.suites.cells import base_id
from pytest_openclaw.values.rows import PAYLOAD, LeftOut, Record
from pytest_openclaw.values.settings import parse_shard

if TYPE_CHECKING:
    import warnings
    from collections.abc import Generator, Iterator, Mapping
    from pathlib import Path

    from pytest_openclaw.session.composition import PluginSession
    from pytest_openclaw.values.prompts import Cell
    from pytest_openclaw.values.protocols import Provider
    from pytest_openclaw.values.requests import CellKey
    from pytest_openclaw.values.rows import Payload
    from pytest_openclaw.values.settings import Shard

FAILED_SUBTEST = pytest.StashKey[pytest.CallInfo[None]]()


class ExecutionHooks:
    """Registered in a plain session and in every xdist worker."""

    def __init__(self, session: PluginSession) -> None:
        self._session = session
        self._parts = session.cell_parts
        self._link = session.cell_parts.link
        self._cells: list[Cell | None] = []
        self._under_way = ""
        self._in_call: pytest.Item | None = None

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
        return [self._kept(cell) or CellRun(cell, self._parts) for cell in cells]

    def _kept(self, cell: Cell) -> KeptCell | None:
        replay = self._session.kept.get(cell.key)
        return KeptCell(cell=cell, replay=replay, parts=self._parts) if replay else None

    def pytest_generate_tests(self, metafunc: pytest.Metafunc) -> None:
        """Parametrize a Python benchmark over the targets."""
        parametrize_reply(metafunc, self._session.suites, self._session.settings)

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
        """Give the selected cells to the owner, before xdist sends the list of items."""
        self._cells = [cell_of(item) for item in session.items]
        planned = [
            PlannedCell(token=item.nodeid, cell=cell, is_ahead=may_send_ahead(item)) if cell else None
            for item, cell in zip(session.items, self._cells, strict=True)
        ]
        self._link.collected(planned, session.config.stash.get(DIVIDED, None))

    # --- running ---

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Generator[None, object, object]:
        """Keep no reply longer than its item runs."""
        if cell_of(item) is not None:
            self._under_way = item.nodeid
        if (run := run_of(item)) is None:
            return (yield)
        try:
            report = yield
        except (KeyboardInterrupt, pytest.exit.Exception):
            # A reply that has come is judged at the session's end, but not again by what was interrupted.
            if run.is_being_judged:
                self._link.release(item.nodeid)
            raise
        else:
            self._link.release(item.nodeid)
            return report
        finally:
            # pytest keeps every item to the end, and an answer may have megabytes
            run.result = run.first = None

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
        payload = held.payload if isinstance(held, KeptCell) else payload_of(held, call, report)
        is_first = not (isinstance(payload, Record) and payload.reruns)
        if is_first and self._session.config.getoption("xmlpath", None):
            from pytest_openclaw.reports.ci_files import cell_properties

            item.user_properties.extend(cell_properties(payload))
        setattr(report, PAYLOAD, self._link.carried(payload))
        if held.cell.prompt.min_passes is not None and is_verdict(held, report, call):
            defer(report, held.cell, self._n_selected[held.cell.key._replace(repeat=1)])

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Make printable what was added to a cell's report since it was made, such as a subtest's output."""
        if report.nodeid == self._under_way:
            self._clean(report)
            if hasattr(report, PAYLOAD):
                self._link.reported()

    @pytest.hookimpl(tryfirst=True)
    def pytest_warning_recorded(self, warning_message: warnings.WarningMessage) -> None:
        """Make a warning printable before a worker sends it and the terminal shows it."""
        if any(self._cells):
            make_warning_printable(warning_message, self._parts.redactor)

    def _clean(self, report: pytest.TestReport) -> None:
        if report.longrepr is not None or report.sections or hasattr(report, "wasxfail"):  # few have any
            redact(report, self._parts.redactor)
            make_printable(report, self._session.config)

    @cached_property
    def _n_selected(self) -> Counter[CellKey]:
        """How many repeats of each prompt are selected, by target."""
        return Counter(cell.key._replace(repeat=1) for cell in self._cells if cell is not None)


def payload_of(run: CellRun, call: pytest.CallInfo[None], report: pytest.TestReport) -> Payload:
    """Return what the report of a cell carries: its row, or that it was left out."""
    if result := run.result_after(call):
        return run.counted(run.record(result, report))
    cell = run.cell
    return LeftOut(target=cell.target.label, repeat=cell.repeat, is_fixed=cell.is_fixed_repeat)


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
