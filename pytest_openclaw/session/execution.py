"""The hooks of the process that runs cells: collecting, selecting, running, reporting."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass, replace
from functools import cached_property, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from pytest_openclaw import options
from pytest_openclaw.asking.asker import PlannedCell
from pytest_openclaw.judging.registry import Registry
from pytest_openclaw.openclaw.catalog import read_catalogue
from pytest_openclaw.session.cells import CellParts, CellRun, Missed, add_cell, cell_of, prompt_of, run_of
from pytest_openclaw.session.registries import validator_registry
from pytest_openclaw.session.reporting import cell_properties, clean_report, clean_warning, defer
from pytest_openclaw.suites.cells import (
    base_id,
    build_cells,
    digest_of_cells,
    keyword_token,
    rewrite_keyword,
    select_prompts,
    shard_of,
    spread,
    unmatched,
)
from pytest_openclaw.suites.load import known_failure_of, load_suite
from pytest_openclaw.util.errors import SuiteError
from pytest_openclaw.util.text import closest, printable, valid_text
from pytest_openclaw.values.parts import Pacing, pace_of
from pytest_openclaw.values.prompts import Cell, Prompt, Suite
from pytest_openclaw.values.protocols import Provider
from pytest_openclaw.values.requests import CellKey
from pytest_openclaw.values.rows import PAYLOAD
from pytest_openclaw.values.settings import Shard, parse_shard
from pytest_openclaw.worlds import python

if TYPE_CHECKING:
    import warnings


@dataclass(frozen=True, kw_only=True)
class Collected:
    """The cells that a session has collected and selected.

    Attributes:
        divided: the digest of the cells of all shards; None without shards.
        unknown_ids: the error about selected prompt ids that do not exist; empty if all exist.
    """

    cells: tuple[PlannedCell, ...]
    divided: str | None
    unknown_ids: str


def _may_send_ahead(item: pytest.Item) -> bool:
    """Whether the item's marks let it run, so that it will use its reply."""
    return not any(
        mark.name in ("skip", "skipif") or (mark.name == "xfail" and not mark.kwargs.get("run", True))
        for mark in item.iter_markers()
    )


# --- suite files and their items -------------------------------------------------------------------


class SuiteFile(pytest.File):
    """A prompt file; its items are cells."""

    def __init__(self, *, read: Callable[[str], Suite], runner: Runner, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self._read = read
        self._runner = runner

    def collect(self) -> Iterator[pytest.Item]:
        """Yield an item for each of the suite's cells, and for each entry that is left out."""
        runner, parts = self._runner, self._runner.parts
        try:
            suite = self._read(runner.name_of(self.path))
        except (SuiteError, pytest.UsageError) as error:
            raise self.CollectError(printable(str(error))) from None
        lacking = {prompt.id: python.hint() for prompt in suite.prompts if _lacks_python(prompt)}
        left_out = {**suite.left_out, **lacking}
        runner.prompt_ids |= {*left_out}
        for prompt_id, reason in left_out.items() if not parts.settings.prompts else ():
            item = SuiteItem.from_parent(self, name=prompt_id)
            item.add_marker(pytest.mark.skip(reason=printable(reason)))
            yield item
        for cell in runner.cells_of([one for one in suite.prompts if one.id not in left_out]):
            # An id that pytest makes from the name has no separate parameters, which `--lf` compares.
            nodeid = f"{self.nodeid}::{cell.id}"
            yield CellItem.from_parent(self, name=cell.id, nodeid=nodeid, run=parts.run_of(cell, CellRun))


def _lacks_python(prompt: Prompt) -> bool:
    """Whether a prompt's world needs Python, which is not installed; no smaller one takes its place."""
    return prompt.world is not None and prompt.world.python and not python.is_installed()


class SuiteItem(pytest.Item):
    """An entry of a suite that is not asked but skipped with a reason; `CellItem` is asked."""

    def reportinfo(self) -> tuple[os.PathLike[str] | str, int | None, str]:
        """Return where the item is, for pytest's headings; TOML and JSON have no lines."""
        return self.path, 0, self.name

    def runtest(self) -> None:
        """Do nothing, because a mark skips the item."""


class CellItem(SuiteItem):
    """One prompt on one target. Set-up sends and judges; the call only asserts the verdict."""

    def __init__(self, *, run: CellRun, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.run_of_cell = run
        self.add_marker(pytest.mark.openclaw)
        # pytest's own mark, for a cell that its suite expects to fail; a fault is still an error.
        if (known := known_failure_of(run.cell.prompt, run.cell.target)) is not None:
            strict = {} if known.strict is None else {"strict": known.strict}
            self.add_marker(pytest.mark.xfail(reason=printable(known.reason), raises=Missed, **strict))

    def setup(self) -> None:
        """Send the cell and judge its reply; skip or fail here if there is none."""
        self.run_of_cell.set_up(self.nodeid)

    def runtest(self) -> None:
        """Fail with the verdict's reasons unless the reply passed."""
        self.run_of_cell.test(self)


def hint_on_suites(config: pytest.Config) -> str:
    """Return why nothing was collected if a named folder has suites and is not in `openclaw_suites`."""
    for path in options.named_paths(config):
        files = sorted(file.name for file in path.rglob("prompts_*") if options.SUITE_NAME.match(file.name))
        if files and not options.is_below(path, options.suite_dirs(config)):
            name = os.path.relpath(path, options.base_dir(config))
            return f"openclaw: {files[0]} is not collected; set openclaw_suites = {name}, or name the file"
    return ""


# --- the hooks -------------------------------------------------------------------------------------


class ProcessRole:
    """The role of a process, which is our only plugin in it: it runs cells, owns the run, or both."""

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtest_logreport(self, report: pytest.TestReport) -> Generator[None, object, object]:
        """Handle a report before any other plugin does."""
        self.handle(report)
        with self.quiet():
            return (yield)

    def handle(self, report: pytest.TestReport) -> None:
        """Handle a report; each class calls the next one first."""

    def pytest_keyboard_interrupt(self) -> None:
        """Handle an interruption; each class calls the next one first."""

    def quiet(self) -> AbstractContextManager[None]:
        """Show nothing of ours while other plugins write."""
        return nullcontext()


class Runner(ProcessRole):
    """The hooks of a process that runs cells: a plain session, or a worker of xdist.

    Attributes:
        prompt_ids: the ids of all prompts in the session's suites, selected or not.
    """

    def __init__(self, config: pytest.Config, parts: CellParts, providers: Mapping[str, Provider]) -> None:
        self.parts = parts
        self.prompt_ids: set[str] = set()
        self._config = config
        self._endpoints = {name: provider.endpoint for name, provider in providers.items()}
        self._pace = pace_of(parts.settings)
        self._owners: dict[tuple[str, str], str] = {}
        self._divided: str | None = None
        self._nodeids: frozenset[str] = frozenset()  # of cells
        self._running: pytest.Item | None = None
        self._n_repeats: Counter[CellKey] = Counter()
        self._in_call = False
        self._failed_subtest: pytest.CallInfo[None] | None = None

    # --- collecting ---

    @cached_property
    def registry(self) -> Registry:
        """The validators, collected with the first suite, so that nested conftest files are loaded."""
        return validator_registry(self._config)

    @cached_property
    def _named(self) -> tuple[Path, ...]:
        return tuple(options.named_paths(self._config))

    def pytest_collect_file(self, file_path: Path, parent: pytest.Collector) -> pytest.Collector | None:
        """Collect a file that is a suite, and is selected."""
        paths = (file_path, file_path.resolve())  # a link in a folder of suites may lead elsewhere
        in_folder = any(options.is_below(each, self.parts.settings.suite_dirs) for each in paths)
        is_chosen = in_folder or paths[1] in self._named
        if not is_chosen and not options.is_below(paths[1], self._named):
            return None
        read: Callable[[str], Suite] | None = self._config.hook.pytest_openclaw_suite(
            path=file_path, config=self._config
        )
        if read is None and is_chosen and options.SUITE_NAME.match(file_path.name):
            read = partial(self._load, file_path)
        return read and SuiteFile.from_parent(parent, path=file_path, read=read, runner=self)

    def _load(self, path: Path, name: str) -> Suite:
        file = self.parts.settings.catalogue_file
        catalogue = read_catalogue(file) if file else None
        suite = load_suite(path, name=name, registry=self.registry, catalogue=catalogue)
        if suite.named_only and path.resolve() not in options.named_benchmarks(self._config):
            return replace(suite, prompts=())
        return suite

    def name_of(self, path: Path) -> str:
        """Return a suite's name in rows: its path from the root folder, with `/`."""
        root = self._config.rootpath
        return valid_text((path.relative_to(root) if path.is_relative_to(root) else path).as_posix())

    def cells_of(self, prompts: Sequence[Prompt]) -> tuple[Cell, ...]:
        """Return the cells of the selected prompts, one per target and repeat, ordered by target."""
        settings = self.parts.settings
        self.prompt_ids |= {prompt.id for prompt in prompts}
        return build_cells(
            select_prompts(prompts, settings.prompts),
            settings.targets,
            settings.repeat,
            repeats_of=self._pace and self._pace.repeats_of,
            surface=settings.surface,
        )

    def pytest_generate_tests(self, metafunc: pytest.Metafunc) -> None:
        """Make one item per target and repeat from a marked function that takes `reply`."""
        test = metafunc.definition
        marker = test.get_closest_marker("openclaw")
        if marker is None or "reply" not in metafunc.fixturenames:
            return
        prompt = prompt_of(marker, test, self.name_of(test.path), self.registry)
        other = self._owners.setdefault((prompt.suite, prompt.id), test.nodeid)
        if other != test.nodeid:
            raise pytest.Collector.CollectError(
                f"{test.nodeid}: {other} has the id {prompt.id!r} too. Give each a different id."
            )
        if _lacks_python(prompt):
            test.add_marker(pytest.mark.skip(reason=python.hint()))
        elif cells := self.cells_of([prompt]):
            metafunc.parametrize("reply", cells, indirect=True, ids=[cell.label for cell in cells])

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_collection_modifyitems(
        self, config: pytest.Config, items: list[pytest.Item]
    ) -> Generator[None, object, object]:
        """Order cells by endpoint, let an id in `-k` match its prompt only, and keep the shard."""
        for item in items:
            add_cell(item, self.parts)
        _order_cells(self._endpoints, items, self._pace)
        with _exact_ids(config, items):
            result = yield
        if shard := self.parts.settings.shard:
            self._divided = _keep_shard(config, items, parse_shard(shard))
        cells = {item.nodeid: cell for item in items if (cell := cell_of(item)) is not None}
        self._nodeids = frozenset(cells)
        self._n_repeats = Counter(cell.key._replace(repeat=1) for cell in cells.values())
        return result

    def collected(self, session: pytest.Session) -> Collected:
        """Return the cells of the session's items."""
        cells = tuple(
            PlannedCell(token=item.nodeid, cell=cell, is_ahead=_may_send_ahead(item))
            for item in session.items
            if (cell := cell_of(item)) is not None
        )
        return Collected(cells=cells, divided=self._divided, unknown_ids=self._unknown_ids())

    def _unknown_ids(self) -> str:
        """Return the error about selected prompt ids that no suite has; empty if all exist."""
        ids = sorted(self.prompt_ids)
        unknown = unmatched(self.parts.settings.prompts, ids)
        if not unknown or self._config.getoption("lf", False):  # `--lf` skips files, so suites may be missing
            return ""
        hint = closest(unknown[0], ids) or f" There are {', '.join(ids[:20]) or 'no prompts'}."
        return f"--openclaw-prompts: no prompt has the id {', '.join(unknown)}.{hint}"

    # --- running ---

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtest_call(self, item: pytest.Item) -> Generator[None, object, object]:
        """Fail a Python benchmark before its own assertions if the answer is empty or refused."""
        if run := run_of(item):
            run.before_test()
        self._in_call, self._failed_subtest = True, None
        try:
            return (yield)
        finally:
            self._in_call = False

    def pytest_runtest_protocol(self, item: pytest.Item) -> None:
        """Drop the reply of the item before, which has ended with all its reruns, or was skipped."""
        before, self._running = self._running, item
        if before and before is not item and (run := run_of(before)):
            self.parts.done(before.nodeid)
            run.result = None  # pytest keeps every item to the end, and an answer may have megabytes

    def pytest_keyboard_interrupt(self) -> None:
        """Do not judge a reply again whose judging was interrupted: its validator may never end."""
        super().pytest_keyboard_interrupt()
        run = run_of(self._running) if self._running else None
        if self._running and run and run.result and not (run.result.judgment or run.result.fault):
            self.parts.done(self._running.nodeid)

    # --- reporting ---

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_makereport(
        self, item: pytest.Item, call: pytest.CallInfo[None]
    ) -> Generator[None, pytest.TestReport, pytest.TestReport]:
        """Attach the cell's row to its report, which xdist sends to the controller."""
        report = yield
        if self._in_call:  # the report of a subtest
            self._failed_subtest = self._failed_subtest or (call if report.failed else None)
            return report
        # A cell has one row, whichever phase ends it.
        ends = call.when == "call" or (call.when == "setup" and call.excinfo is not None)
        if ends and (run := run_of(item)) is not None:
            if call.when == "call" and call.excinfo is None:
                call = self._failed_subtest or call
            payload = run.payload(call, report)
            if self._config.getoption("xmlpath", None):
                item.user_properties.extend(cell_properties(payload))
            setattr(report, PAYLOAD, payload)
            if call.excinfo is not None and isinstance(call.excinfo.value, run.verdict_errors):
                defer(report, run.cell, self._n_repeats[run.cell.key._replace(repeat=1)])
        return report

    def handle(self, report: pytest.TestReport) -> None:
        """Make a cell's report safe before a worker sends it, and before anything shows it."""
        super().handle(report)
        if report.nodeid in self._nodeids:
            clean_report(report, self.parts.redactor, self._config)

    def pytest_warning_recorded(self, warning_message: warnings.WarningMessage, nodeid: str) -> None:
        """Make a warning printable before a worker sends it and the terminal shows it."""
        if nodeid in self._nodeids:
            clean_warning(warning_message, self.parts.redactor)


def _order_cells(endpoints: Mapping[str, str], collected: list[pytest.Item], pace: Pacing | None) -> None:
    """Sort the cells into the best order for sending; other items keep their places."""
    cells = {item: cell for item in collected if (cell := cell_of(item)) is not None}
    positions = pace.positions_of(cell.prompt for cell in cells.values()) if pace else None
    ordered = iter(spread({item: cell.key for item, cell in cells.items()}, endpoints, positions))
    collected[:] = [next(ordered) if item in cells else item for item in collected]


def _keep_shard(config: pytest.Config, selected: list[pytest.Item], shard: Shard) -> str:
    """Deselect the cells of other shards, and return the digest of all; other tests run in every shard."""
    keys = {item: cell.key for item in selected if (cell := cell_of(item)) is not None}
    if 0 < len(keys) < shard.of:
        raise pytest.UsageError(
            f"--openclaw-shard={shard}: {len(keys)} cells are selected; N can be at most {len(keys)}."
        )
    own = shard_of(keys.values(), shard)
    if others := [item for item, key in keys.items() if key not in own]:
        config.hook.pytest_deselected(items=others)
        selected[:] = [item for item in selected if item not in keys or keys[item] in own]
    return digest_of_cells(keys.values())


@contextmanager
def _exact_ids(config: pytest.Config, collected: list[pytest.Item]) -> Iterator[None]:
    """While pytest evaluates `-k`, let a cell match by its words, and an id P1 not match P10."""
    keyword = config.option.keyword
    if not keyword:
        yield
        return
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
