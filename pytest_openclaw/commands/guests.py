"""The validators of a project, its own included, without a session of pytest's."""

from __future__ import annotations

import contextlib
import io
from typing import TYPE_CHECKING

import pytest

from pytest_openclaw.errors import OpenClawError

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from pytest_openclaw.validators.registry import Registry


def project_validators(root: Path, suites: Sequence[Path]) -> Registry:
    """Return the validators that a session over these suites would have.

    pytest loads the project as it always does: its ini file, installed plugins, the `conftest.py` of the
    root folder and of every folder on the way to a suite. Then it is stopped, before anything is
    configured or collected; a hook that a plugin registers in `pytest_configure` is not seen.

    Args:
        root: the project's root folder, which the rows' suites are relative to.
        suites: files that exist.

    Raises:
        OpenClawError: the project cannot be loaded, or a validator type is claimed twice.
    """
    folders = dict.fromkeys(str(path.resolve().parent) for path in suites) or [str(root)]
    # Uncaptured, what a conftest prints comes here and not to the command's own output.
    words = ["-p", "openclaw", "--capture=no", "--rootdir", str(root), *folders]
    # We are imported already, which is an error where a project makes errors of warnings.
    words += ["-W", "ignore::pytest.PytestAssertRewriteWarning"]
    stop = _StopWhenLoaded()
    told = io.StringIO()
    try:
        with contextlib.redirect_stderr(told), contextlib.redirect_stdout(told):
            pytest.main(words, plugins=[stop])
    except SystemExit as error:
        stop.error = pytest.UsageError(f"something there called sys.exit({error.code!r})")
    if stop.registry is None:
        said = str(stop.error or told.getvalue()).strip()
        raise OpenClawError(f"pytest cannot load the project in {root}: {said}")
    return stop.registry


class _StopWhenLoaded:
    """Takes the place of pytest's session."""

    registry: Registry | None = None
    error: pytest.UsageError | None = None

    @pytest.hookimpl(tryfirst=True)
    def pytest_cmdline_main(self, config: pytest.Config) -> int:
        """Ask the hook for validators, and end pytest."""
        from pytest_openclaw.registries import validator_registry

        try:
            if not config.pluginmanager.hasplugin("openclaw"):
                raise pytest.UsageError("the plugin openclaw is switched off there; -p no:openclaw does so")
            self.registry = validator_registry(config)
        except pytest.UsageError as error:
            self.error = error
        return 0
