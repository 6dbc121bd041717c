"""The project in which a command runs: pytest's configuration there, its folder of runs, its plugins."""

from __future__ import annotations

import contextlib
import io
import os
import tomllib
from collections.abc import Mapping, Sequence
from configparser import Error, RawConfigParser
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import pytest

from pytest_openclaw.util.errors import OpenClawError

if TYPE_CHECKING:
    from pytest_openclaw.judging.registry import Registry
    from pytest_openclaw.providers import Builtin
    from pytest_openclaw.runs.summaries import Plugins
    from pytest_openclaw.values.protocols import Provider
    from pytest_openclaw.values.settings import Endpoint

NAME = "pytest-openclaw"
RUNS = "runs"
# pytest's files and sections, in its order. It uses its own files even if they lack the section.
OWN = ("pytest.toml", ".pytest.toml", "pytest.ini", ".pytest.ini")
SECTIONS = (
    *((name, "pytest") for name in OWN),
    ("pyproject.toml", "tool.pytest.ini_options"),
    ("pyproject.toml", "tool.pytest"),
    ("tox.ini", "pytest"),
    ("setup.cfg", "tool:pytest"),
)

_MOST_CONFIG_BYTES = 16 << 20


# --- its configuration ----------------------------------------------------------------------------


class IniFile(NamedTuple):
    """A file that configures pytest, with the keys of its section."""

    path: Path
    section: str
    keys: Mapping[str, object]


def config_file(folder: Path) -> IniFile | None:
    """Return the file of a folder that configures pytest, if there is one."""
    for name, section in SECTIONS:
        if (path := folder / name).is_file():
            keys = _section(path, section)
            if keys is not None or name in OWN:
                return IniFile(path, section, keys or {})
    return None


def project_folder(start: Path) -> Path:
    """Return the root folder that pytest would find from `start`, or `start` if there is none."""
    return next((folder for folder in (start, *start.parents) if config_file(folder)), start)


def runs_folder(start: Path) -> Path:
    """Return the folder of a project's runs, relative to a folder in the project."""
    root = project_folder(start)
    found = config_file(root)
    named = found and found.keys.get("openclaw_runs_dir")
    if not isinstance(named, str):
        if root == start or (start / RUNS).is_dir():
            return Path(RUNS)
        named = RUNS
    return Path(os.path.relpath(root / Path(named).expanduser(), start))


def _section(path: Path, section: str) -> Mapping[str, object] | None:
    """Return the keys of a section; None if it is missing or the file is malformed, which pytest reports."""
    try:
        if path.stat().st_size > _MOST_CONFIG_BYTES:
            return None
        text = path.read_text("utf-8")
        if path.suffix == ".toml":
            table: object = tomllib.loads(text)
            for name in section.split("."):
                table = table.get(name) if isinstance(table, dict) else None
            return table if isinstance(table, dict) else None
        parser = RawConfigParser(strict=False, allow_no_value=True)
        parser.read_string(text)
    except (Error, ValueError):
        return None
    return parser[section] if parser.has_section(section) else None


# --- its plugins ----------------------------------------------------------------------------------


class Project:
    """What a project and its plugins have, including the built-in ones; pytest fills it as its plugin.

    Attributes:
        error: why it is not filled; empty if a hook of the project ended pytest.
    """

    providers: Mapping[str, type[Provider] | Builtin]
    endpoints: Sequence[Endpoint]
    validators: Registry
    plugins: Plugins
    error = ""

    @pytest.hookimpl(tryfirst=True)
    def pytest_cmdline_main(self, config: pytest.Config) -> int:
        """Call the hooks in place of a session, and end pytest."""
        from pytest_openclaw.session.registries import plugins_of, provider_classes, validator_registry
        from pytest_openclaw.session.settings import load_endpoints

        try:
            if not config.pluginmanager.hasplugin("openclaw"):
                raise pytest.UsageError("the plugin openclaw is switched off there, as by -p no:openclaw")
            self.providers = provider_classes(config)
            self.endpoints = load_endpoints(config, self.providers)
            self.validators = validator_registry(config)
            self.plugins = plugins_of(config)
        except pytest.UsageError as error:
            self.error = str(error)
        return 0


def plugins_of(root: Path) -> tuple[Plugins, list[str]]:
    """Return the plugins of a project; without plugins, and with a warning, if it cannot be loaded."""
    from pytest_openclaw.runs.summaries import Plugins

    try:
        return load_project(root.resolve(strict=True), ()).plugins, []
    except OpenClawError as error:
        return Plugins(), [f"reports of your own are not written: {error}"]


def load_project(root: Path, suites: Sequence[Path]) -> Project:
    """Return the validators, reports and row hooks of a session with these suites.

    pytest loads the project as it always does: its ini file, installed plugins, the `conftest.py` of the
    root folder and of every folder down to a suite. pytest stops before configuration and collection, so
    hooks that a plugin registers in `pytest_configure` are not found.

    Raises:
        OpenClawError: the project cannot be loaded, or a name is registered twice.
    """
    folders = dict.fromkeys(str(path.resolve().parent) for path in suites) or [str(root)]
    # Without pytest's capture, redirection keeps a conftest's output out of the command's own.
    words = ["-p", "openclaw", "--capture=no", "--rootdir", str(root), *folders]
    # pytest warns that this package is imported already, and a project may turn warnings into errors.
    words += ["-W", "ignore::pytest.PytestAssertRewriteWarning"]
    project, output = Project(), io.StringIO()
    try:
        with contextlib.redirect_stderr(output), contextlib.redirect_stdout(output):
            pytest.main(words, plugins=[project])
    except SystemExit as error:
        project.error = f"its code called sys.exit({error.code!r})"
    except Exception as error:  # of the project's own hooks
        project.error = f"{type(error).__name__}: {error}"
    if not hasattr(project, "plugins"):
        reason = (project.error or output.getvalue()).strip()
        raise OpenClawError(f"pytest cannot load the project in {root}: {reason}")
    return project
