"""The plugin as pytest loads it: options, hooks we offer, and the switch.

Imported by every pytest session in every project. A session without benchmarks gets the options and
nothing else; otherwise `pytest_configure` composes the session and registers the parts that do the work:
`ExecutionHooks` where cells run, `ReportingHooks` where their reports arrive, and in xdist's controller
`Controller`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from pytest_openclaw import hookspecs, options

if TYPE_CHECKING:
    from collections.abc import Generator, Sequence

    from pytest_openclaw.providers import Builtin
    from pytest_openclaw.reports.builtin import Report
    from pytest_openclaw.session.reporting import ReportingHooks
    from pytest_openclaw.values.protocols import Validator
    from pytest_openclaw.values.replies import Reply

REPORTING = "openclaw-reporting"
MARKER = (
    "openclaw(id, prompt, …): a benchmark in Python; its test takes `reply` and runs once for each target."
)


def pytest_addoption(parser: pytest.Parser) -> None:
    """Register our options and ini keys."""
    options.add_options(parser)


def pytest_addhooks(pluginmanager: pytest.PytestPluginManager) -> None:
    """Register the hooks that we offer."""
    pluginmanager.add_hookspecs(hookspecs)


def pytest_openclaw_providers() -> Sequence[Builtin]:
    """Register the built-in providers by the hook that plugins use."""
    from pytest_openclaw.providers import BUILTIN

    return BUILTIN


def pytest_openclaw_validators() -> Sequence[type[Validator]]:
    """Register the built-in validators by the hook that plugins use."""
    from pytest_openclaw.judging.registry import BUILTIN

    return BUILTIN


def pytest_openclaw_reports() -> Sequence[type[Report]]:
    """Register the built-in reports by the hook that plugins use."""
    from pytest_openclaw.reports.builtin import BUILTIN

    return BUILTIN


@pytest.hookimpl(tryfirst=True)
def pytest_cmdline_main(config: pytest.Config) -> None:
    """Have a dry run start no workers, before or after xdist has read what starts them."""
    if options.lookup(config, "dry-run")[0]:
        from pytest_openclaw.session.forecasting import lead_no_workers

        lead_no_workers(config)


@pytest.hookimpl(wrapper=True, tryfirst=True, specname="pytest_cmdline_main")
def pytest_cmdline_main_in_whole_words() -> Generator[None, object, object]:
    """Break what we refuse with between words."""
    try:
        return (yield)
    except pytest.UsageError as error:
        from pytest_openclaw.session.reporting import in_whole_words

        raise in_whole_words(error) from None


@pytest.hookimpl(wrapper=True, tryfirst=True, specname="pytest_load_initial_conftests")
def pytest_load_initial_conftests_in_whole_words() -> Generator[None, None, None]:
    """Break what we refuse with between words; around pytest's capture, which hides the terminal."""
    try:
        return (yield)
    except pytest.UsageError as error:
        from pytest_openclaw.session.reporting import in_whole_words

        raise in_whole_words(error) from None


@pytest.hookimpl(trylast=True)
def pytest_configure(config: pytest.Config) -> None:
    """Check every choice before anything is called, and register what this session needs."""
    config.addinivalue_line("markers", MARKER)
    if misnamed := options.misnamed_suite(config):
        raise pytest.UsageError(misnamed)
    if not options.is_used(config):
        return
    from pytest_openclaw.session.composition import compose
    from pytest_openclaw.session.execution import ExecutionHooks

    session = compose(config)
    if session is None:
        return
    plugins = config.pluginmanager
    plugins.register(ExecutionHooks(session), "openclaw-execution")
    if session.owner is None:
        return
    from pytest_openclaw.session.repeat_threshold import RepeatThreshold
    from pytest_openclaw.session.reporting import ReportingHooks

    if session.settings.diagnose:
        from pytest_openclaw.features.diagnosing import Suspects

        session.owner.suspects = Suspects(session.providers)
    if session.settings.dry_run:
        from pytest_openclaw.session.forecasting import DryRun

        plugins.register(DryRun(session.settings, session.providers), "openclaw-dry-run")
    reporting = ReportingHooks(session, session.owner)
    plugins.register(reporting, REPORTING)
    plugins.register(reporting.failures, "openclaw-failures")
    plugins.register(RepeatThreshold(), "openclaw-repeat-threshold")


@pytest.hookimpl(tryfirst=True)
def pytest_sessionstart(session: pytest.Session) -> None:
    """Lead xdist's workers, if there are any; not sooner, because xdist may be configured after us."""
    plugins = session.config.pluginmanager
    reporting: ReportingHooks | None = plugins.get_plugin(REPORTING)
    if reporting and plugins.hasplugin("dsession"):
        from pytest_openclaw.session.xdist import CONTROLLER, Controller

        controller = Controller(reporting.owner, session.config, reporting.session.settings)
        reporting.take_last = controller.take_last
        plugins.register(controller, CONTROLLER)


@pytest.fixture
def reply(request: pytest.FixtureRequest) -> Reply:
    """What the target answered to `@pytest.mark.openclaw`'s prompt: `.text`, `.tool_names`, times, tokens."""
    from pytest_openclaw.session.python_benchmarks import fetch_reply

    return fetch_reply(request)


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave out Python benchmarks that have no target, so that a plain session starts nothing."""
    idle = [item for item in items if _lacks_target(item)]
    if idle:
        config.hook.pytest_deselected(items=idle)
        items[:] = [item for item in items if not _lacks_target(item)]


def _lacks_target(item: pytest.Item) -> bool:
    if "reply" not in getattr(item, "fixturenames", ()) or item.get_closest_marker("openclaw") is None:
        return False
    callspec = getattr(item, "callspec", None)
    return callspec is None or "reply" not in callspec.params
