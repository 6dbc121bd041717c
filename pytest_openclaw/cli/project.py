"""Loads validators, reports and row hooks of a project and its plugins without a pytest session."""

from __future__ import annotations

import contextlib
import io
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pytest

from pytest_openclaw.util.errors import OpenClawError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from pytest_openclaw.judging.registry import Registry
    from pytest_openclaw.providers import Builtin
    from pytest_openclaw.runs.report_files import Plugins
    from pytest_openclaw.values.protocols import Provider
    from pytest_openclaw.values.settings import Endpoint


@dataclass(frozen=True, kw_only=True)
class Project:
    """Validators, reports and row hooks of a project and its plugins, with the built-in ones."""

    providers: Mapping[str, type[Provider] | Builtin]
    endpoints: Sequence[Endpoint]
    validators: Registry
    plugins: Plugins


def plugins_of(root: Path) -> tuple[Plugins, list[str]]:
    """Return the plugins of a project, and warnings; if it cannot be loaded, only the built-in ones.

    For commands that work without a project: a folder without one adds nothing.
    """
    from pytest_openclaw.runs.report_files import Plugins

    try:
        return load_project(root.resolve(strict=True), ()).plugins, []
    except OpenClawError as error:
        return Plugins(), [f"reports of your own are not written: {error}"]


def project_or_builtin(root: Path) -> tuple[Project, list[str]]:
    """Return what a project has, and a warning if it cannot be loaded: then it is the built-ins alone."""
    from pytest_openclaw.judging.registry import BUILTIN as VALIDATORS
    from pytest_openclaw.judging.registry import build_registry
    from pytest_openclaw.providers import BUILTIN as PROVIDERS
    from pytest_openclaw.runs.report_files import Plugins

    try:
        return load_project(root.resolve(strict=True), ()), []
    except OpenClawError as error:
        builtin = Project(
            providers={provider.name: provider for provider in PROVIDERS},
            endpoints=(),
            validators=build_registry(("openclaw", validator) for validator in VALIDATORS),
            plugins=Plugins(),
        )
        return builtin, [f"only the built-in ones are listed: {error}"]


def load_project(root: Path, suites: Sequence[Path]) -> Project:
    """Return the validators, reports and row hooks of a session with these suites.

    pytest loads the project as it always does: its ini file, installed plugins, the `conftest.py` of the
    root folder and of every folder down to a suite. It stops before configuration and collection, so hooks
    that a plugin registers in `pytest_configure` are not found.

    Args:
        root: the project's root folder, which the rows' suites are relative to.
        suites: files that exist.

    Raises:
        OpenClawError: the project cannot be loaded, or a name is registered twice.

    """
    folders = dict.fromkeys(str(path.resolve().parent) for path in suites) or [str(root)]
    # Without pytest's capture, redirection keeps a conftest's output out of the command's own.
    words = ["-p", "openclaw", "--capture=no", "--rootdir", str(root), *folders]
    # We are imported already, which pytest warns about, and a project may make warnings errors.
    words += ["-W", "ignore::pytest.PytestAssertRewriteWarning"]
    stop = _StopWhenLoaded()
    output = io.StringIO()
    try:
        with contextlib.redirect_stderr(output), contextlib.redirect_stdout(output):
            pytest.main(words, plugins=[stop])
    except SystemExit as error:
        stop.error = pytest.UsageError(f"something there called sys.exit({error.code!r})")
    except Exception as error:  # of the project's own hooks
        stop.error = pytest.UsageError(f"{type(error).__name__}: {error}")
    if stop.project is None:
        reason = str(stop.error or output.getvalue()).strip()
        raise OpenClawError(f"pytest cannot load the project in {root}: {reason}")
    return stop.project


class _StopWhenLoaded:
    """Takes the place of pytest's session."""

    project: Project | None = None
    error: pytest.UsageError | None = None

    @pytest.hookimpl(tryfirst=True)
    def pytest_cmdline_main(self, config: pytest.Config) -> int:
        """Ask the hooks, and end pytest."""
        from pytest_openclaw.runs.report_files import Plugins
        from pytest_openclaw.session.registries import (
            provider_classes,
            reports_of,
            row_hooks_of,
            validator_registry,
        )
        from pytest_openclaw.session.settings import load_endpoints

        try:
            if not config.pluginmanager.hasplugin("openclaw"):
                raise pytest.UsageError("the plugin openclaw is switched off there; -p no:openclaw does so")
            providers = provider_classes(config)
            self.project = Project(
                providers=providers,
                endpoints=load_endpoints(config, providers),
                validators=validator_registry(config),
                plugins=Plugins(reports=reports_of(config), row_hooks=row_hooks_of(config)),
            )
        except pytest.UsageError as error:
            self.error = error
        return 0
