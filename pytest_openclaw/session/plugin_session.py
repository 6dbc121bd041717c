"""What one pytest session holds of us, from `pytest_configure` to `pytest_unconfigure`."""

from __future__ import annotations

import os
from contextlib import ExitStack
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from pytest_openclaw import options
from pytest_openclaw.asking.repeats import Repeats
from pytest_openclaw.core.clock import count_from
from pytest_openclaw.core.signals import interrupted_by_signals
from pytest_openclaw.session.load_settings import load_settings
from pytest_openclaw.session.resuming import Resumption

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from pytest_openclaw.asking.budget import SpentBudget
    from pytest_openclaw.asking.executor import Executor
    from pytest_openclaw.asking.shared_dir import SharedDir
    from pytest_openclaw.asking.shared_limits import Others
    from pytest_openclaw.core.json_types import JsonObject
    from pytest_openclaw.core.redact import Redactor
    from pytest_openclaw.judging.cell_result import CellResult
    from pytest_openclaw.providers import Builtin
    from pytest_openclaw.recording.kept_cells import Replay
    from pytest_openclaw.stats.run_comparison import Measured
    from pytest_openclaw.tools.catalogue import Catalogue
    from pytest_openclaw.types.payloads import ReportPayload
    from pytest_openclaw.types.prompts import Cell, Prompt, Suite
    from pytest_openclaw.types.protocols import Provider
    from pytest_openclaw.types.settings import Settings
    from pytest_openclaw.types.targets import Target
    from pytest_openclaw.validators.registry import Registry

STATE = pytest.StashKey["State"]()
# pytest's options after which no test runs to its end.
LISTING = (
    "collectonly",
    "help",
    "markers",
    "showfixtures",
    "show_fixtures_per_test",
    "cacheshow",
    "setuponly",
    "setupplan",
)


class State:
    """The session's state: what was chosen, who asks, who records.

    In a plain session one process does both. Under xdist the controller records and the workers ask.

    Attributes:
        repeats: which of them may be asked.
        receive_shares: returns, in a worker, the requests that it may have in flight, by provider.
        baseline: the run to compare with, read where the run is recorded.
        in_hand: the cell whose test was under way when the session was interrupted, if it was judged.

    Raises:
        pytest.UsageError: the options cannot be used.
    """

    def __init__(self, config: pytest.Config) -> None:
        self.config = config
        self.handed_over: JsonObject | None = getattr(config, "workerinput", {}).get("openclaw")
        if self.handed_over and "anchor_s" in self.handed_over:  # only where the controller's clock is ours
            count_from(self.handed_over["anchor_s"])
        self.classes = _provider_classes(config)
        self.settings: Settings = load_settings(
            config, self.classes.keys(), self.handed_over["targets"] if self.handed_over else None
        )
        self.resumption = Resumption(
            config,
            self.settings,
            [*self.classes, *(endpoint.name for endpoint in self.settings.endpoints)],
            self.handed_over and self.handed_over.get("resumed"),
        )
        self.settings = self.resumption.settings
        self.repeats = Repeats()
        self.receive_shares: Callable[[], Mapping[str, int]] = dict
        self.baseline: Measured | None = None
        self.in_hand: CellResult | None = None
        self._executor: Executor | None = None
        self._shared: SharedDir | None = None
        self._suites: dict[Path, Suite] = {}
        self._claims: dict[tuple[str, str], str] = {}
        self._open = ExitStack()
        self._logs_are_safe = False
        self._hears_signals = False

    @property
    def is_worker(self) -> bool:
        """Whether an xdist controller records for this process."""
        return self.handed_over is not None

    @property
    def calls_nobody(self) -> bool:
        """Whether this session only lists or explains something."""
        return self.settings.dry_run or any(getattr(self.config.option, name, None) for name in LISTING)

    @cached_property
    def registry(self) -> Registry:
        """The validators, read when the first suite is, so that nested conftest files count."""
        from pytest_openclaw.session.registries import validator_registry

        return validator_registry(self.config)

    @cached_property
    def catalogue(self) -> Catalogue | None:
        """The captured catalogue that was chosen; None for the one that ships."""
        from pytest_openclaw.tools.catalogue import read_catalogue

        file = self.settings.catalogue
        return read_catalogue(Path(file)) if file else None

    @cached_property
    def providers(self) -> dict[str, Provider]:
        """The providers of this run's targets."""
        from pytest_openclaw.session.registries import make_providers

        return make_providers(self.classes, self.settings, self.shared_path)

    def check_providers(self) -> None:
        """Make the providers, so that a wrong address is told before anybody is called.

        Raises:
            pytest.UsageError: an address or an ini line cannot be used.
        """
        self.providers.keys()

    @property
    def shared_path(self) -> Path:
        """The run's folder on this machine: the controller's, or on another machine its workers' own."""
        from pytest_openclaw.asking.shared_dir import SharedDir
        from pytest_openclaw.recording.inventory import machine_id

        if self._shared is not None:
            return self._shared.path
        if self.handed_over is None:
            shared = SharedDir.create()
        elif (machine := machine_id()) != self.handed_over["machine"]:
            shared = SharedDir.join(f"{self.handed_over['run']} {machine}")
        else:
            return Path(self.handed_over["shared_dir"])
        self._shared = self._open.enter_context(shared)
        return self._shared.path

    @cached_property
    def budget(self) -> SpentBudget:
        """What the run has spent, by every process on this machine."""
        from pytest_openclaw.asking.budget import SpentBudget

        return SpentBudget(self.shared_path, self.settings.budget_usd)

    @cached_property
    def redactor(self) -> Redactor:
        """Knows the secrets of this run's providers and of the environment."""
        from pytest_openclaw.core.redact import Redactor

        return Redactor.of_run(self.providers.values(), os.environ)

    def hide_secrets_in_logs(self) -> None:
        """Do so from now on, before anybody is asked."""
        if not self._logs_are_safe:
            self._open.enter_context(self.redactor.over_logs())
            self._logs_are_safe = True

    def interruptible(self) -> None:
        """Let Ctrl-C and SIGTERM end the session from now on, but never in the middle of a step."""
        if not self._hears_signals:
            self._open.enter_context(interrupted_by_signals())
            self._hears_signals = True

    @property
    def executor(self) -> Executor:
        """The side that asks; its child starts when it is first needed."""
        if self._executor is None:
            self._executor = self._make_executor()
        return self._executor

    def _make_executor(self) -> Executor:
        from pytest_openclaw.asking.executor import Executor
        from pytest_openclaw.asking.waits import Wait, Waits

        self.hide_secrets_in_logs()
        self.interruptible()
        others: Others = self.handed_over["others"] if self.handed_over else "none"
        waits = Waits(self.shared_path)
        return Executor(
            self.providers,
            self._own_settings(),
            self.shared_path,
            others=others,
            tell=lambda nodeid, told: waits.add(
                nodeid, Wait(why=self.redactor.text(told.why), seconds=told.seconds)
            ),
            permit=self.repeats.permit,
        )

    def _own_settings(self) -> Settings:
        """The settings with what this process may have in flight: a worker, what it was told."""
        from pytest_openclaw.types.settings import Concurrency

        if self.handed_over is None:
            return self.settings
        shares = {name: share for name, share in self.receive_shares().items() if share}
        return replace(self.settings, concurrency=Concurrency(by_provider=shares))

    def get_ready(self) -> None:
        """Start what takes a moment to start, while pytest goes on collecting."""
        knows_its_share = self.handed_over is None or self.handed_over["shares"] is not None
        if knows_its_share and not self.calls_nobody:
            self.executor.start()

    def is_kept(self, cell: Cell) -> bool:
        """Whether the cell has its row from an earlier session of this run, so that nobody is asked."""
        return self.replay(cell) is not None

    def replay(self, cell: Cell) -> Replay | None:
        """Return the verdict of a cell that is kept; None for one that is to be asked."""
        replays = self.resumption.replays
        return replays.get(cell.key) if replays else None

    def reopen(self) -> None:
        """Take the lock of the run that is to be resumed, if there is one, and read what it keeps.

        Raises:
            pytest.UsageError: it lives in another session, or cannot be read.
        """
        self.resumption.open(self._open)

    @property
    def described(self) -> JsonObject:
        """What shapes a request, by provider; no secrets."""
        return {
            name: {"kind": type(provider).name, **provider.describe()}
            for name, provider in self.providers.items()
        }

    @property
    def suite_files(self) -> dict[str, Path]:
        """The suites that were read, by their names in rows."""
        return {suite.path: path for path, suite in self._suites.items()}

    def load_suite(self, path: Path) -> Suite:
        """Return the suite in a file, read once.

        Raises:
            SuiteError: it cannot be used.
        """
        from pytest_openclaw.suites import load_suite

        if path not in self._suites:
            self._suites[path] = load_suite(
                path,
                name=suite_name(self.config, path),
                registry=self.registry,
                catalogue=self.catalogue,
            )
        return self._suites[path]

    def claim_id(self, prompt: Prompt, nodeid: str) -> str:
        """Return the test that has this prompt's id in its module: this one, unless another came first."""
        return self._claims.setdefault((prompt.suite, prompt.id), nodeid)

    def holds_suite(self, path: Path) -> bool:
        """Whether a prompt file is a suite: it stands in a folder of suites, or is named."""
        # pytest keeps symbolic links in its paths.
        places = {path, path.resolve()}
        return not places.isdisjoint(options.named_benchmarks(self.config)) or any(
            place.is_relative_to(folder) for place in places for folder in self.settings.suite_dirs
        )

    def is_named(self, path: Path) -> bool:
        """Whether the command line names this very file, or a cell in it."""
        return path.resolve() in options.named_benchmarks(self.config)

    def choose_targets(self, targets: tuple[Target, ...]) -> None:
        """Replace the targets by those that the wildcards among them stand for."""
        # The providers' connections belong to the event loop that asked, which has ended.
        for name in ("providers", "redactor"):
            self.__dict__.pop(name, None)
        self.settings = replace(self.settings, targets=targets)

    def redact(self, report: pytest.TestReport) -> None:
        """Take secrets out of what pytest shows and writes of a cell."""
        redactor = self.redactor
        shown = str(report.longrepr) if report.longrepr is not None else ""
        if redactor.text(shown) != shown:
            # A location beside the text stays a location; everything else becomes the text that it shows.
            report.longrepr = (
                redactor.value(report.longrepr)
                if isinstance(report.longrepr, tuple)
                else redactor.text(shown)
            )
        report.sections = [(redactor.text(name), redactor.text(text)) for name, text in report.sections]

    @property
    def n_out(self) -> int:
        """Calls of this process that no report tells of yet."""
        return (self._executor.n_out if self._executor else 0) + (self.in_hand is not None)

    def awaited(self) -> dict[str, str] | None:
        """Return each endpoint's longest awaited item, if this process asks; any thread may call it."""
        return self._executor.awaited() if self._executor else None

    def stop_asking_ahead(self) -> None:
        """Ask nobody any more but for the test that waits; any thread may call it."""
        if self._executor:
            self._executor.is_stopping = True

    def end_asking(self) -> list[ReportPayload]:
        """Stop asking; return, as a report would carry it, what was answered and no report contains."""
        from pytest_openclaw.asking.cell_records import payload_of, record_of
        from pytest_openclaw.judging.cell_result import CellResult

        executor, self._executor = self._executor, None
        if executor is None:
            return []
        results = [self.in_hand] if self.in_hand else []
        for cell, call in executor.close():
            # A Python benchmark is judged by its test alone, so it is asked again in a resumed run.
            if cell.prompt.validator.type != "python":
                results.append(CellResult(cell=cell, call=call).judged_or_broken(self.settings.timeout_s))
        records = (
            record_of(self.settings.run_id, one.cell, one.call, one.judgement, self.redactor)
            for one in results
        )
        return [
            payload_of(replace(record, reported=False), executor.notes, self.redactor) for record in records
        ]

    def discard(self) -> None:
        """Give back what is left; the asking has ended by then."""
        self._open.close()


def suite_name(config: pytest.Config, path: Path) -> str:
    """Return what rows call a suite: its path from the root folder, with `/`."""
    root = config.rootpath
    return path.relative_to(root).as_posix() if path.is_relative_to(root) else path.as_posix()


def _provider_classes(config: pytest.Config) -> dict[str, type[Provider] | Builtin]:
    from pytest_openclaw.session.registries import provider_classes

    return provider_classes(config)
