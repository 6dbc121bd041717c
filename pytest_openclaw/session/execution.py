"""The hooks of the process that runs cells: collecting, selecting, running, reporting."""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pytest

from pytest_openclaw.asking.asker import PlannedCell
from pytest_openclaw.session.cells import cell_of, held_by, run_of
from pytest_openclaw.session.items import SuiteFile, SuiteFiles
from pytest_openclaw.session.python_benchmarks import parametrize_reply, with_cell
from pytest_openclaw.session.repeat_threshold import defer
from pytest_openclaw.session.reporting import clean_report, clean_warning
from pytest_openclaw.suites.cells import base_id
from pytest_openclaw.values.rows import PAYLOAD
from pytest_openclaw.values.settings import parse_shard

if TYPE_CHECKING:
    import warnings
    from collections.abc import Callable, Generator, Iterator, Mapping
    from pathlib import Path

    from pytest_openclaw.session.cells import CellParts
    from pytest_openclaw.values.prompts import Suite
    from pytest_openclaw.values.protocols import Provider
    from pytest_openclaw.values.settings import Shard

DIVIDED = pytest.StashKey[str]()
"""In pytest's config: the digest of the cells that the shards divide."""
UNKNOWN_IDS = pytest.StashKey[str]()
"""In pytest's config: the error of selected prompt ids that no suite has."""


@dataclass(frozen=True, kw_only=True)
class Collected:
    """The cells that a session has collected and selected.

    Attributes:
        divided: the digest of the cells of all shards; None if the session runs all that it selects.
        unknown_ids: the error of prompt ids that were selected and do not exist; empty without any.
    """

    cells: tuple[PlannedCell, ...]
    divided: str | None
    unknown_ids: str

    @classmethod
    def of(cls, session: pytest.Session) -> Collected:
        """Return what a session has collected."""
        cells = tuple(
            PlannedCell(token=item.nodeid, cell=cell, is_ahead=_may_send_ahead(item))
            for item in session.items
            if (cell := cell_of(item)) is not None
        )
        stash = session.config.stash
        return cls(cells=cells, divided=stash.get(DIVIDED, None), unknown_ids=stash.get(UNKNOWN_IDS, ""))


def _may_send_ahead(item: pytest.Item) -> bool:
    """Whether the item will use its reply, as far as its marks say."""
    return not any(
        mark.name in ("skip", "skipif") or (mark.name == "xfail" and not mark.kwargs.get("run", True))
        for mark in item.iter_markers()
    )


class ExecutionHooks:
    """Registered in a plain session and in every xdist worker."""

    def __init__(self, config: pytest.Config, parts: CellParts, providers: Mapping[str, Provider]) -> None:
        self._config = config
        self._parts = parts
        self._providers = providers
        self._suites = SuiteFiles(config, parts.settings)
        self._under_way = ""
        self._in_call = False
        self._failed_subtest: pytest.CallInfo[None] | None = None

    # --- collecting ---

    def pytest_collect_file(self, file_path: Path, parent: pytest.Collector) -> pytest.Collector | None:
        """Collect a file that is a suite."""
        if (read := self._suites.reader_of(file_path)) is None:
            return None
        return SuiteFile.from_parent(
            parent, path=file_path, read=read, suites=self._suites, parts=self._parts
        )

    @pytest.hookimpl(trylast=True)
    def pytest_openclaw_suite(self, path: Path) -> Callable[[str], Suite] | None:
        """Read our own format by the hook that plugins use."""
        return self._suites.own_reader(path)

    def pytest_generate_tests(self, metafunc: pytest.Metafunc) -> None:
        """Parametrize a Python benchmark over the targets."""
        parametrize_reply(metafunc, self._suites)

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_collection_modifyitems(
        self, config: pytest.Config, items: list[pytest.Item]
    ) -> Generator[None, object, object]:
        """Put cells endpoint by endpoint, let an id in `-k` mean its prompt only, and take the shard."""
        if not config.getoption("lf", False):  # it skips files
            config.stash[UNKNOWN_IDS] = self._suites.unknown_ids()
        items[:] = [with_cell(item, self._parts) for item in items]
        _order_cells(self._providers, items, is_mixed=self._parts.settings.until_conclusive)
        with _exact_ids(config, items):
            result = yield
        if shard := self._parts.settings.shard:
            _keep_shard(config, items, parse_shard(shard))
        return result

    # --- running ---

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Generator[None, object, object]:
        """Keep no reply longer than its item runs; an interrupted one is judged at the end."""
        self._under_way = item.nodeid if cell_of(item) is not None else ""
        result = yield
        if run := run_of(item):
            self._parts.link.done(item.nodeid)
            run.result = None  # pytest keeps every item to the end, and an answer may have megabytes
        return result

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtest_call(self, item: pytest.Item) -> Generator[None, object, object]:
        """Fail a Python benchmark whose answer is empty or refused, whatever it would assert."""
        if run := run_of(item):
            run.before_test()
        self._in_call, self._failed_subtest = True, None
        try:
            return (yield)
        finally:
            self._in_call = False

    # --- reporting ---

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_makereport(
        self, item: pytest.Item, call: pytest.CallInfo[None]
    ) -> Generator[None, pytest.TestReport, pytest.TestReport]:
        """Put the cell's row on its report, so that it travels from worker to controller."""
        report = yield
        if self._in_call:  # of a subtest
            self._failed_subtest = self._failed_subtest or (call if report.failed else None)
            return report
        # A cell has one row, whichever phase ends it.
        ends = call.when == "call" or (call.when == "setup" and call.excinfo is not None)
        if ends and (held := held_by(item)) is not None:
            if call.when == "call" and call.excinfo is None:
                call = self._failed_subtest or call
            payload = held.payload(call, report)
            if self._config.getoption("xmlpath", None):
                from pytest_openclaw.reports.ci_files import cell_properties

                item.user_properties.extend(cell_properties(payload))
            setattr(report, PAYLOAD, payload)
            if call.excinfo is not None and isinstance(call.excinfo.value, held.verdict_errors):
                defer(report, held.cell)
        return report

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtest_logreport(self, report: pytest.TestReport) -> Generator[None, object, object]:
        """Make a cell's report safe before a worker sends it, and before anything shows it."""
        if report.nodeid == self._under_way:
            clean_report(report, self._parts.redactor, self._config)
        return (yield)

    @pytest.hookimpl(tryfirst=True)
    def pytest_warning_recorded(self, warning_message: warnings.WarningMessage) -> None:
        """Make a warning printable before a worker sends it and the terminal shows it."""
        if self._under_way:
            clean_warning(warning_message, self._parts.redactor)


def _order_cells(providers: Mapping[str, Provider], collected: list[pytest.Item], *, is_mixed: bool) -> None:
    """Put the cells, on the places that cells have, in the order in which they are best sent."""
    from pytest_openclaw.suites.cells import mixed, spread

    cells = [(item, cell) for item in collected if (cell := cell_of(item)) is not None]
    places = mixed(cell.prompt for _, cell in cells) if is_mixed else {}
    ordered = iter(
        spread(
            cells,
            target_of=lambda pair: pair[1].target,
            endpoints={cell.target: providers[cell.target.provider].endpoint for _, cell in cells},
            repeat_of=lambda pair: pair[1].repeat,
            place_of=lambda pair: places.get((pair[1].prompt.suite, pair[1].prompt.id), 0),
        )
    )
    collected[:] = [next(ordered)[0] if cell_of(item) is not None else item for item in collected]


def _keep_shard(config: pytest.Config, selected: list[pytest.Item], shard: Shard) -> None:
    """Deselect the cells of the other shards; other tests are run in each."""
    from pytest_openclaw.suites.cells import digest_of_cells, shard_of

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
def _exact_ids(config: pytest.Config, collected: list[pytest.Item]) -> Iterator[None]:
    """Let `-k` find a cell by its words, and by its prompt's id P1 but not P10, while pytest evaluates it."""
    keyword = config.option.keyword
    if not keyword:
        yield
        return
    from pytest_openclaw.suites.cells import keyword_token, rewrite_keyword

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
