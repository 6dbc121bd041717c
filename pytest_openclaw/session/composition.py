"""Makes the parts of a session, each from what it needs; checks all options before the first call.

The parts of a pytest session with benchmarks, made by `composition.compose`.
"""

from __future__ import annotations

import os
import tempfile
from contextlib import ExitStack
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from pytest_openclaw import options
from pytest_openclaw.session import preflight
from pytest_openclaw.session.cell_runs import CellParts
from pytest_openclaw.session.items import SuiteFiles
from pytest_openclaw.session.owner import find_resumed, hold_resumed, read_resumed
from pytest_openclaw.session.registries import make_providers, provider_classes
from pytest_openclaw.session.settings import load_settings
from pytest_openclaw.session.spending import check_budget
from pytest_openclaw.util.redact import Redactor
from pytest_openclaw.util.signals import interrupted_by_signals

if TYPE_CHECKING:
    from collections.abc import Mapping

    import pytest

    from pytest_openclaw.providers import Builtin
    from pytest_openclaw.runs.resume import Replay
    from pytest_openclaw.session.owner import Owner
    from pytest_openclaw.values.protocols import Provider
    from pytest_openclaw.values.requests import CellKey
    from pytest_openclaw.values.settings import Settings


@dataclass(frozen=True, kw_only=True)
class PluginSession:
    """The parts from which the hooks are made; no part refers back to it.

    Attributes:
        config: pytest's.
        settings: with resolved wildcards, and with the recorded settings of a resumed run.
        sends: False in a session that only lists or forecasts cells.
        suites: read as they are collected.
        providers: of the targets, by name.
        cell_parts: what cells share, with the link to the owner of the run.
        kept: the verdicts that a resumed run keeps.
        owner: sends requests and records the run; None in an xdist worker.

    """

    config: pytest.Config
    settings: Settings
    sends: bool
    suites: SuiteFiles
    providers: Mapping[str, Provider]
    cell_parts: CellParts
    kept: Mapping[CellKey, Replay]
    owner: Owner | None


_LISTING = (
    *("collectonly", "help", "markers", "showfixtures", "show_fixtures_per_test", "cacheshow"),
    *("setuponly", "setupplan"),
)
"""Options of pytest with which no test is run."""


def lists_only(config: pytest.Config) -> bool:
    """Whether the session runs no test."""
    return bool(options.lookup(config, "dry-run")[0]) or any(
        getattr(config.option, name, None) for name in _LISTING
    )


def compose(config: pytest.Config) -> PluginSession | None:
    """Return the session's parts; None if it has no target.

    Files and connections are closed when pytest is unconfigured.

    Raises:
        pytest.UsageError: a check failed; the message has a hint.

    """
    classes = provider_classes(config)
    if hasattr(config, "workerinput"):
        return _worker(config, classes)
    return _owner(config, classes)


def _worker(config: pytest.Config, classes: Mapping[str, type[Provider] | Builtin]) -> PluginSession | None:
    """Return the parts of an xdist worker; its controller has checked everything."""
    from pytest_openclaw.session.xdist import INPUT, WorkerLink

    if INPUT not in vars(config)["workerinput"]:
        return None
    link = WorkerLink(config)
    given = link.input
    settings = load_settings(config, classes, given.targets)
    settings = replace(settings, **given.settings, surface=given.surface)
    providers = make_providers(classes, settings, Path())
    redactor = Redactor.of_run(providers.values(), os.environ)
    stack = ExitStack()
    config.add_cleanup(stack.close)
    stack.enter_context(redactor.over_logs())
    return PluginSession(
        config=config,
        settings=settings,
        sends=True,
        suites=SuiteFiles(config, settings),
        providers=providers,
        cell_parts=CellParts(settings=settings, link=link, redactor=redactor, sends=True),
        kept=given.kept,
        owner=None,
    )


def _owner(config: pytest.Config, classes: Mapping[str, type[Provider] | Builtin]) -> PluginSession | None:
    """Return the parts of a plain session or of xdist's controller."""
    from pytest_openclaw.asking.asker import Asker
    from pytest_openclaw.session.cell_runs import OwnLink
    from pytest_openclaw.session.owner import Owner
    from pytest_openclaw.session.progress import ProgressDisplay

    settings = load_settings(config, classes)
    path = None
    if settings.resume:
        names = [*classes, *(endpoint.name for endpoint in settings.endpoints)]
        path, settings = find_resumed(config, settings, names)
    if not settings.targets:
        return None
    stack = ExitStack()
    config.add_cleanup(stack.close)
    sends = not lists_only(config)
    settings = replace(settings, surface=preflight.load_surface(settings, path, may_capture=sends))
    scratch_dir = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="openclaw-run-")))
    make = partial(make_providers, classes, scratch_dir=scratch_dir)
    suites = SuiteFiles(config, settings)
    providers = make(settings)
    resumed = baseline = None
    if sends or settings.dry_run:
        if sends:
            preflight.check_workers(config)
            preflight.check_run_name(settings, path)
        preflight.check_plugins(config)
        preflight.check_prompt_ids(settings, suites)
        if path:
            resumed = hold_resumed(path, stack) if sends else read_resumed(path)
        if sends:
            baseline = preflight.load_baseline(settings, path)
            targets = preflight.resolve_wildcards(settings, providers)
            if targets != settings.targets:
                # Connections that the checks opened belong to an event loop that is closed.
                settings = replace(settings, targets=targets)
                providers = make(settings)
        check_budget(settings, providers)
        preflight.check_requests(settings, providers)
    redactor = Redactor.of_run(providers.values(), os.environ)

    def on_wait(token: str, why: str, seconds: float) -> None:
        display.note_wait(token, why, seconds)

    def on_start() -> None:
        stack.enter_context(redactor.over_logs())
        stack.enter_context(interrupted_by_signals())

    asker = Asker(providers, settings, on_wait)
    display = ProgressDisplay(config, providers, asker.awaited)
    owner = Owner(
        config,
        settings,
        providers=providers,
        asker=asker,
        resumed=resumed,
        baseline=baseline,
        redactor=redactor,
        display=display,
        on_start=on_start,
    )
    stack.callback(owner.close)
    parts = CellParts(settings=settings, link=OwnLink(asker), redactor=redactor, sends=sends)
    return PluginSession(
        config=config,
        settings=settings,
        sends=sends,
        suites=suites,
        providers=providers,
        cell_parts=parts,
        kept=resumed.kept if resumed else {},
        owner=owner,
    )
