"""Starts a session with benchmarks: checks all options before the first call, and registers the hooks."""

from __future__ import annotations

import os
import tempfile
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from pytest_openclaw.options import suite_dirs
from pytest_openclaw.session import preflight
from pytest_openclaw.session.cells import CellParts
from pytest_openclaw.session.execution import ExecutionHooks
from pytest_openclaw.session.registries import make_providers, provider_classes
from pytest_openclaw.session.settings import load_settings
from pytest_openclaw.util.redact import Redactor

if TYPE_CHECKING:
    from collections.abc import Mapping

    import pytest

    from pytest_openclaw.providers import Builtin
    from pytest_openclaw.session.owner import Owner
    from pytest_openclaw.values.protocols import Provider
    from pytest_openclaw.values.settings import Settings

_LISTING = (
    *("collectonly", "help", "markers", "showfixtures", "show_fixtures_per_test", "cacheshow"),
    *("setuponly", "setupplan"),
)
"""Options of pytest with which no test is run."""


def start_session(config: pytest.Config) -> Owner | None:
    """Register the hooks of a session that has targets.

    Returns:
        The owner of the run; None in an xdist worker, and in a session without targets.

    Raises:
        pytest.UsageError: a check failed; the message has a hint.
    """
    classes = provider_classes(config)
    if hasattr(config, "workerinput"):
        _start_worker(config, classes)
        return None
    return _start_owner(config, classes)


def _start_worker(config: pytest.Config, classes: Mapping[str, type[Provider] | Builtin]) -> None:
    """Start an xdist worker; its controller has checked everything."""
    from pytest_openclaw.session.xdist import INPUT, Worker

    if INPUT not in vars(config)["workerinput"]:
        return
    worker = Worker(config)
    given = worker.input
    settings = replace(given.settings, suite_dirs=suite_dirs(config))
    providers = make_providers(classes, settings, Path())
    redactor = Redactor.of_run(providers.values(), os.environ)
    stack = ExitStack()
    config.add_cleanup(stack.close)
    stack.enter_context(redactor.over_logs())
    parts = CellParts(settings=settings, link=worker, redactor=redactor, sends=True, kept=given.kept)
    config.pluginmanager.register(worker, "openclaw-worker")
    config.pluginmanager.register(ExecutionHooks(config, parts, providers), "openclaw-execution")


def _start_owner(config: pytest.Config, classes: Mapping[str, type[Provider] | Builtin]) -> Owner | None:
    """Start a plain session or xdist's controller; files and connections are closed with the session."""
    from pytest_openclaw.session.owner import Owner
    from pytest_openclaw.session.repeat_threshold import RepeatThreshold
    from pytest_openclaw.session.resuming import resume_run

    settings = load_settings(config, classes)
    stack = ExitStack()
    config.add_cleanup(stack.close)
    lists = any(getattr(config.option, name, None) for name in _LISTING)
    sends = not (lists or settings.dry_run)
    resumed, path = None, None
    if settings.resume:
        names = [*classes, *(endpoint.name for endpoint in settings.endpoints)]
        resumed = resume_run(config, settings, names, stack, writes=sends)
        settings, path = resumed.settings, resumed.earlier.path
    if not settings.targets:
        return None
    scratch_dir = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="openclaw-run-")))
    settings = replace(settings, surface=preflight.load_surface(settings, path, may_capture=sends))
    providers: Mapping[str, Provider] = make_providers(classes, settings, scratch_dir)
    baseline = None
    if sends:
        baseline = preflight.load_baseline(settings, path)
        settings, providers = _with_served_models(settings, providers, classes, scratch_dir)
    if sends or settings.dry_run:
        preflight.check_plugins(config)
        preflight.check_budget(settings, providers)
        preflight.check_requests(settings, providers)
    redactor = Redactor.of_run(providers.values(), os.environ)
    owner = Owner(config, settings, providers, redactor, resumed=resumed, baseline=baseline, sends=sends)
    stack.callback(owner.close)
    kept = resumed.kept if resumed else {}
    parts = CellParts(settings=settings, link=owner.asker, redactor=redactor, sends=sends, kept=kept)
    config.pluginmanager.register(ExecutionHooks(config, parts, providers), "openclaw-execution")
    if config.pluginmanager.hasplugin("xdist"):
        from pytest_openclaw.session.xdist import Controller

        # Before the owner: its last rows are recorded before the summary is written.
        config.pluginmanager.register(Controller(owner, config), "openclaw-controller")
    config.pluginmanager.register(owner, "openclaw-owner")
    config.pluginmanager.register(RepeatThreshold(), "openclaw-repeat-threshold")
    return owner


def _with_served_models(
    settings: Settings,
    providers: Mapping[str, Provider],
    classes: Mapping[str, type[Provider] | Builtin],
    scratch_dir: Path,
) -> tuple[Settings, Mapping[str, Provider]]:
    """Put the models that providers serve in place of every `*`."""
    targets = preflight.resolve_wildcards(settings, providers)
    if targets == settings.targets:
        return settings, providers
    settings = replace(settings, targets=targets)
    # Connections that the question opened belong to an event loop that is closed.
    return settings, make_providers(classes, settings, scratch_dir)
