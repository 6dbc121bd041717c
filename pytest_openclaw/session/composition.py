"""Makes the parts of a session, each from what it needs; checks all options before the first call."""

from __future__ import annotations

import json
import os
from contextlib import ExitStack
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from pytest_openclaw.asking.asker_connection import AskerConnection
from pytest_openclaw.asking.budget import SpentBudget
from pytest_openclaw.asking.links import runs_in_process
from pytest_openclaw.asking.shared_dir import SharedDir
from pytest_openclaw.core.clock import count_from
from pytest_openclaw.core.redact import Redactor
from pytest_openclaw.core.signals import interrupted_by_signals
from pytest_openclaw.session import preflight
from pytest_openclaw.session.cell_runs import CellParts
from pytest_openclaw.session.early_start import lists_only
from pytest_openclaw.session.load_settings import load_settings
from pytest_openclaw.session.plugin_session import PluginSession
from pytest_openclaw.session.progress_display import ProgressDisplay
from pytest_openclaw.session.registries import describe, make_providers, provider_classes
from pytest_openclaw.session.resuming import find_resumed, hold_resumed, read_resumed
from pytest_openclaw.session.run_writer import RunWriter
from pytest_openclaw.session.spending import check_budget
from pytest_openclaw.session.suite_files import SuiteFiles
from pytest_openclaw.types.surface import surface_from_json

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping

    import pytest

    from pytest_openclaw.asking.client import AskingClient
    from pytest_openclaw.asking.messages import Waiting
    from pytest_openclaw.core.json_types import JsonObject
    from pytest_openclaw.recording.kept_cells import Replay
    from pytest_openclaw.session.coordinator import Coordinator, WorkerInput
    from pytest_openclaw.session.early_start import EarlyStart
    from pytest_openclaw.session.resuming import ResumedRun
    from pytest_openclaw.stats.run_comparison import Measured
    from pytest_openclaw.types.protocols import Provider
    from pytest_openclaw.types.settings import Settings
    from pytest_openclaw.types.targets import CellKey

    MakeProviders = Callable[[Settings, Path], Mapping[str, Provider]]


@dataclass(frozen=True, kw_only=True)
class _Checked:
    """The results of the checks."""

    settings: Settings
    suites: SuiteFiles
    shared_dir: Path
    providers: Mapping[str, Provider]
    resumed: ResumedRun | None = None
    baseline: Measured | None = None


def compose(
    config: pytest.Config, coordinator: Coordinator, early: EarlyStart | None
) -> PluginSession | None:
    """Return the session's parts; None if it has no target.

    Args:
        config: pytest's.
        coordinator: gives this process its items.
        early: what has been started; None in an xdist worker.

    Files and connections are closed when pytest is unconfigured.

    Raises:
        pytest.UsageError: a check failed; the message has a hint.
    """
    given = coordinator.given
    if given and given.anchor_s is not None:
        count_from(given.anchor_s)
    classes = provider_classes(config)
    settings, path = _settings(config, given, classes)
    if not settings.targets:
        return None
    stack = ExitStack()
    config.add_cleanup(stack.close)
    sends = not lists_only(config)
    if given is None:
        settings = replace(settings, surface=preflight.load_surface(settings, path, may_capture=sends))

    def make(settings: Settings, shared_dir: Path) -> Mapping[str, Provider]:
        return make_providers(classes, settings, shared_dir)

    if given or not (sends or settings.dry_run):
        shared_dir = _shared_dir(given, early, stack)
        checked = _Checked(
            settings=settings,
            suites=SuiteFiles(config, settings),
            shared_dir=shared_dir,
            providers=make(settings, shared_dir),
        )
    else:
        assert early, "a worker is given its settings"
        checked = _check(config, settings, path, make, early.shared_dir, stack, sends=sends)
    return _assemble(config, coordinator, checked, early, stack, sends=sends)


def _settings(
    config: pytest.Config, given: WorkerInput | None, classes: Collection[str]
) -> tuple[Settings, Path | None]:
    """Return the settings, and the directory of the run to resume."""
    settings = load_settings(config, classes, given.targets if given else None)
    if given:
        surface = surface_from_json(json.loads(given.surface)) if given.surface else None
        return replace(settings, **given.settings, surface=surface), None
    if not settings.resume or hasattr(config, "workerinput"):
        return settings, None
    path, settings = find_resumed(config, settings, [*classes, *(one.name for one in settings.endpoints)])
    return settings, path


def _check(
    config: pytest.Config,
    settings: Settings,
    path: Path | None,
    make: MakeProviders,
    shared_dir: Path,
    stack: ExitStack,
    *,
    sends: bool,
) -> _Checked:
    """Check a run, or the forecast of one, which calls no server and writes nothing."""
    suites = SuiteFiles(config, settings)
    if sends:
        preflight.check_workers(config)
        preflight.check_run_name(settings, path)
    preflight.check_plugins(config)
    preflight.check_prompt_ids(settings, suites)
    providers = make(settings, shared_dir)
    resumed = baseline = None
    if path:
        resumed = hold_resumed(path, stack) if sends else read_resumed(path)
    if sends:
        baseline = preflight.load_baseline(settings, path)
        targets = preflight.resolve_wildcards(settings, providers)
        if targets != settings.targets:
            # Connections that the checks opened belong to an event loop that is closed.
            settings = replace(settings, targets=targets)
            providers = make(settings, shared_dir)
    check_budget(settings, providers)
    preflight.check_requests(settings, providers)
    return _Checked(
        settings=settings,
        suites=suites,
        shared_dir=shared_dir,
        providers=providers,
        resumed=resumed,
        baseline=baseline,
    )


def _assemble(
    config: pytest.Config,
    coordinator: Coordinator,
    checked: _Checked,
    early: EarlyStart | None,
    stack: ExitStack,
    *,
    sends: bool,
) -> PluginSession:
    settings, providers, given = checked.settings, checked.providers, coordinator.given
    if early and not any(map(runs_in_process, providers.values())):
        early.end_asker()
    redactor = Redactor.of_run(providers.values(), os.environ)
    budget = SpentBudget(settings.budget_usd)
    interruptible = cache(lambda: stack.enter_context(interrupted_by_signals()))

    def connect() -> AskingClient:
        stack.enter_context(redactor.over_logs())
        interruptible()
        return _client(checked, coordinator, early, on_wait)

    connection = AskerConnection(connect)
    display = ProgressDisplay(config, providers, connection.awaited)

    def on_wait(waiting: Waiting) -> None:
        why = redactor.text(waiting.why)
        display.note_wait(waiting.token, why, waiting.seconds)
        coordinator.publish_wait(waiting.token, why, waiting.seconds)

    def decide(decision: JsonObject) -> None:
        from pytest_openclaw.asking.messages import RepeatDecision

        connection.client.decide(RepeatDecision(**decision))

    writer = RunWriter(
        config,
        settings,
        described=describe(providers),
        resumed=checked.resumed,
        baseline=checked.baseline,
        redactor=redactor,
        budget=budget,
        display=display,
        on_decision=decide,
        on_start=interruptible,
    )

    def close() -> None:
        connection.close()
        writer.close()
        connection.let_go()

    config.add_cleanup(close)
    kept = _kept(given) if given else checked.resumed.kept if checked.resumed else {}
    return PluginSession(
        config=config,
        settings=settings,
        sends=sends,
        suites=checked.suites,
        providers=providers,
        cell_parts=CellParts(settings=settings, connection=connection, redactor=redactor, sends=sends),
        kept=kept,
        resumed=checked.resumed,
        shared_dir=checked.shared_dir,
        budget=budget,
        coordinator=coordinator,
        writer=writer,
    )


def _shared_dir(given: WorkerInput | None, early: EarlyStart | None, stack: ExitStack) -> Path:
    """Return the run's shared folder: the controller's, or one of the workers of another machine."""
    from pytest_openclaw.recording.inventory import machine_id

    if early:
        return early.shared_dir
    assert given, "a worker is given a folder"
    if (machine := machine_id()) != given.machine:
        return stack.enter_context(SharedDir.join(f"{given.run} {machine}")).path
    return Path(given.shared_dir)


def _kept(given: WorkerInput) -> Mapping[CellKey, Replay]:
    from pytest_openclaw.stored.resume import from_wire

    return from_wire(given.kept) if given.kept else {}


def _client(
    checked: _Checked,
    coordinator: Coordinator,
    early: EarlyStart | None,
    on_wait: Callable[[Waiting], None],
) -> AskingClient:
    from pytest_openclaw.asking.client import AskingClient

    return AskingClient(
        checked.providers,
        checked.settings,
        checked.shared_dir,
        coordinator.membership(checked.providers),
        early=early.asker if early else None,
        on_wait=on_wait,
    )
