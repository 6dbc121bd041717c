"""The plugin as pytest loads it: our options, our hooks, and the start of a session with benchmarks.

Every pytest session in every project imports this. A session without benchmarks gets only the options;
otherwise `session/start.py` checks all settings and registers the hooks that do the work:
`PlainSession` in an ordinary session, and under xdist `Controller` and `Worker`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import pytest

from pytest_openclaw import hookspecs, options, parts

if TYPE_CHECKING:
    from pathlib import Path

    from pytest_openclaw.providers import Builtin
    from pytest_openclaw.reports.pages import Report
    from pytest_openclaw.values.protocols import Validator
    from pytest_openclaw.values.replies import Reply

MARKER = (
    "openclaw(id, prompt, …): a benchmark in Python; its test takes `reply` and runs once for each target."
)


def pytest_addoption(parser: pytest.Parser) -> None:
    """Register our options and ini keys."""
    options.add_options(parser)


def pytest_addhooks(pluginmanager: pytest.PytestPluginManager) -> None:
    """Register the hooks that we offer, and the parts that use them."""
    pluginmanager.add_hookspecs(hookspecs)
    parts.register(pluginmanager)


def pytest_openclaw_providers() -> Sequence[Builtin]:
    """Register the built-in providers through the hook that plugins use."""
    from pytest_openclaw.providers import BUILTIN

    return BUILTIN


def pytest_openclaw_validators() -> Sequence[type[Validator]]:
    """Register the built-in validators through the hook that plugins use."""
    from pytest_openclaw.judging.registry import BUILTIN

    return BUILTIN


def pytest_openclaw_reports() -> Sequence[Report]:
    """Register the built-in reports through the hook that plugins use."""
    from pytest_openclaw.reports.pages import BUILTIN

    return BUILTIN


def pytest_cmdline_main(config: pytest.Config) -> None:
    """Start no workers with an option that needs none, whether or not xdist has read its options yet."""
    option = config.option
    alone = (one.name for one in options.all_options() if one.without_workers)
    if hasattr(option, "numprocesses") and any(options.lookup(config, name)[0] for name in alone):
        option.numprocesses, option.distload, option.dist, option.tx = 0, False, "no", []


def pytest_configure(config: pytest.Config) -> None:
    """Name our marker."""
    config.addinivalue_line("markers", MARKER)


def pytest_sessionstart(session: pytest.Session) -> None:
    """Check all settings before any call, and register the hooks that this session needs.

    All plugins are configured now, and xdist, whose hook comes last, has not started its workers.
    """
    config = session.config
    if not options.is_used(config):
        return
    from pytest_openclaw.session.start import start_session

    # asyncio filters its own warning while it starts a process (`unix_events.py` of Python 3.12 and 3.13).
    # All threads share the filters, so a test can remove this one.
    config.addinivalue_line("filterwarnings", "ignore:'get_child_watcher' is deprecated:DeprecationWarning")
    start_session(config)


@pytest.fixture
def reply(request: pytest.FixtureRequest) -> Reply:
    """The target's answer to the prompt of `@pytest.mark.openclaw`: `.text`, `.tool_names`, times, tokens."""
    from pytest_openclaw.session.cells import fetch_reply

    return fetch_reply(request)


def pytest_ignore_collect(collection_path: Path) -> bool | None:
    """Collect nothing from the folder of a run, which may be from elsewhere and have a `conftest.py`."""
    return all((collection_path / name).is_file() for name in ("config.json", "results.jsonl")) or None


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Deselect Python benchmarks without a target, so that a plain session sends nothing."""
    idle = [item for item in items if _lacks_target(item)]
    if idle:
        config.hook.pytest_deselected(items=idle)
        items[:] = [item for item in items if not _lacks_target(item)]


def _lacks_target(item: pytest.Item) -> bool:
    if "reply" not in getattr(item, "fixturenames", ()) or item.get_closest_marker("openclaw") is None:
        return False
    callspec = getattr(item, "callspec", None)
    return callspec is None or "reply" not in callspec.params
