"""Starts a session with benchmarks: checks everything before the first call, and registers the hooks."""

from __future__ import annotations

import asyncio
import json
import os
import sys
from collections.abc import Collection, Mapping
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import psutil
import pytest

from pytest_openclaw.asking.asker import Asker
from pytest_openclaw.asking.sending import close_all
from pytest_openclaw.openclaw.catalog import read_catalogue
from pytest_openclaw.options import SUITE_NAME, named_benchmarks, options_given, suite_dirs
from pytest_openclaw.providers.prices import Prices, has_list
from pytest_openclaw.session import registries
from pytest_openclaw.session.cells import CellParts
from pytest_openclaw.session.registries import Classes
from pytest_openclaw.session.reporting import mask_output
from pytest_openclaw.session.settings import load_settings
from pytest_openclaw.suites.cells import expand, is_wildcard
from pytest_openclaw.util.errors import OpenClawError
from pytest_openclaw.util.files import install_command
from pytest_openclaw.util.redact import Redactor
from pytest_openclaw.util.text import counted, printable
from pytest_openclaw.values.parts import called, parts
from pytest_openclaw.values.protocols import Provider
from pytest_openclaw.values.requests import LISTED, Target
from pytest_openclaw.values.settings import INSTALLED, SAMPLING, Concurrency, Settings
from pytest_openclaw.values.tool_calls import SUBSTITUTE, Surface

if TYPE_CHECKING:
    from pytest_openclaw.runs.session import ResumedRun
    from pytest_openclaw.session.owner import Owner

_LISTING = ("collectonly", "showfixtures", "show_fixtures_per_test", "cacheshow", "setuponly", "setupplan")
"""Options of pytest with which a session runs no tests."""


def start_session(config: pytest.Config) -> None:
    """Register the hooks of a session that has targets.

    Raises:
        pytest.UsageError: a check failed; the message has a hint.
    """
    classes = registries.provider_classes(config)
    stack = ExitStack()
    config.add_cleanup(stack.close)
    if hasattr(config, "workerinput"):
        _start_worker(config, classes, stack)
    elif owner := _start_owner(config, classes, stack):
        for join in called("join"):
            join(owner, config)


def _lists(config: pytest.Config) -> bool:
    return any(getattr(config.option, name, None) for name in _LISTING)


def _start_worker(config: pytest.Config, classes: Classes, stack: ExitStack) -> None:
    from pytest_openclaw.session.xdist import INPUT, Worker, WorkerLink

    if INPUT not in vars(config)["workerinput"]:
        return
    link = WorkerLink(config)
    settings = replace(link.settings, suite_dirs=suite_dirs(config))
    providers = registries.make_providers(classes, settings)
    redactor = Redactor.of_run(providers.values(), os.environ)
    stack.enter_context(redactor.applied())
    parts = CellParts(
        settings=settings,
        ask=link.ask,
        done=link.done,
        redactor=redactor,
        sends=not _lists(config),
        kept=link.kept,
    )
    config.pluginmanager.register(Worker(config, parts, providers, link), "openclaw-worker")


def _start_owner(config: pytest.Config, classes: Classes, stack: ExitStack) -> Owner | None:
    """Start a plain session or xdist's controller; `stack` closes files and connections."""
    from pytest_openclaw.session.owner import PlainSession, Start
    from pytest_openclaw.session.xdist import Controller, has_workers

    for file in named_benchmarks(config):
        if file.suffix in (".toml", ".json") and file.is_file() and not SUITE_NAME.match(file.name):
            raise pytest.UsageError(f"{file.name} is not a suite: rename it to prompts_{file.name}")
    settings = load_settings(config, classes)
    sends = not (_lists(config) or any(hinders(settings) for hinders in called("hinders")))
    resumed, path = None, None
    if settings.resume:
        names = {*classes, *(endpoint.name for endpoint in settings.endpoints)}
        resumed = resume_run(config, settings, names, stack, writes=sends)
        settings, path = resumed.settings, resumed.earlier.path
    if not settings.targets:
        return None
    settings = replace(settings, surface=load_surface(settings, path, may_capture=sends))
    held: dict[str, Any] = {}
    if sends:
        for name, part in parts().items():
            if part.held and (found := part.held(settings, path)) is not None:
                held[name] = found
        if any(map(is_wildcard, settings.targets)):
            # Connections belong to the event loop of this request, so the run gets new providers.
            asked = registries.make_providers(classes, settings)
            settings = replace(settings, targets=served_targets(config, settings, asked))
    providers = registries.make_providers(classes, settings)
    redactor = Redactor.of_run(providers.values(), os.environ)
    mask_output(config, redactor)
    if sends:
        settings = within_open_files(config, settings, providers)
    if not _lists(config):
        registries.validator_registry(config)
        registries.reports_of(config)
        check_budget(settings, providers)
        check_requests(settings, providers, redactor)
    asker = Asker(providers, settings)
    start = Start(
        config=config,
        settings=settings,
        providers=providers,
        redactor=redactor,
        asker=asker,
        ask=asker.ask,
        done=asker.done,
        sends=sends,
        kept=resumed.kept if resumed else {},
        resumed=resumed,
        holdings=held,
    )
    owner = (Controller if has_workers(config) else PlainSession)(start)
    stack.callback(owner.close)
    config.pluginmanager.register(owner, "openclaw-owner")
    return owner


# --- a run that is resumed ------------------------------------------------------------------------


def resume_run(
    config: pytest.Config, settings: Settings, providers: Collection[str], stack: ExitStack, *, writes: bool
) -> ResumedRun:
    """Return the run to resume; if the session writes, the run is locked until `stack` is closed.

    Raises:
        pytest.UsageError: the run does not exist, cannot be read or is active, or the command line selects
            other targets.
    """
    from pytest_openclaw.runs.directory import RunDirectory
    from pytest_openclaw.runs.reading import find_run, load_run
    from pytest_openclaw.runs.session import EarlierVerdict, ResumedRun, answered_rows, settings_of

    given, why = settings.targets, ""
    try:
        path = find_run(settings.runs_dir, settings.resume)
        directory = stack.enter_context(RunDirectory(path)) if writes else None
        earlier = load_run(path, even_active=True)
        settings = replace(settings_of(earlier.config, settings, options_given(config)), run_id=path.name)
    except (OpenClawError, OSError) as error:
        raise pytest.UsageError(f"--openclaw-resume={settings.resume}: {error}.") from None
    recorded = settings.targets
    if given and {*given} != {*recorded} and not any(map(is_wildcard, given)):
        why = f"its targets are {', '.join(target.label for target in recorded)}; leave --openclaw-models out"
    elif gone := [target.label for target in recorded if target.provider not in providers]:
        there_are = ", ".join(sorted(providers))
        why = f"the run asked {gone[0]}, and there is no such provider now; there are {there_are}"
    if why:
        raise pytest.UsageError(f"--openclaw-resume={settings.resume}: {why}. No request was sent.")
    kept = {key: EarlierVerdict.of(row.record) for key, row in answered_rows(earlier).items()}
    return ResumedRun(earlier=earlier, settings=settings, kept=kept, directory=directory)


# --- checks before the first call -----------------------------------------------------------------


def check_requests(settings: Settings, providers: Mapping[str, Provider], redactor: Redactor) -> None:
    """Reject settings that a provider cannot put into a request, and keys that would be stored with them."""
    for name, fields in settings.request_fields.items():
        if redactor.shows_key(json.dumps(fields, ensure_ascii=False)):
            hint = "Name the variable of a key as the last word of a line in openclaw_endpoints."
            raise pytest.UsageError(
                f"openclaw_request_fields: {name}: a value contains a key, and the run would store it. {hint}"
            )
    usual = Settings()
    chosen = {name for name in SAMPLING if getattr(settings, name) != getattr(usual, name)}
    elsewhere = "cannot send that; leave it out, or ask other providers"
    for target in settings.targets:
        provider = providers[target.provider]
        surface = f"--openclaw-surface={target.surface}"
        lacking = chosen - {"request_fields"} - provider.takes if target.surface == LISTED else set()
        if target.provider in settings.request_fields and "fields" not in provider.takes:
            where, why = "openclaw_request_fields", elsewhere
        elif lacking:
            where, why = f"--openclaw-{min(lacking)}", elsewhere
        elif target.surface != LISTED and provider.plays_worlds and not provider.is_openclaw:
            where, why = surface, "runs tools by a request of its own; ask it on listed, in a run of its own"
        elif target.surface != LISTED and not provider.takes_tools:
            where, why = surface, "sends no tools; ask it on listed, in a run of its own"
        else:
            continue
        raise pytest.UsageError(f"{where}: {target.provider} {why}")


FILES_OF_REQUEST, OTHER_FILES = 4, 64
"""The most open files of a request, which is a connection or a program with pipes, and of the session."""


def within_open_files(
    config: pytest.Config, settings: Settings, providers: Mapping[str, Provider]
) -> Settings:
    """Return the settings with a concurrency that fits into the process's limit of open files."""
    if sys.platform == "win32":
        return settings
    import resource

    most, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    room = (most - psutil.Process().num_fds() - OTHER_FILES) // FILES_OF_REQUEST
    limits = {
        name: settings.concurrency.limit(name, is_local=one.is_local) for name, one in providers.items()
    }
    n_asked = sum(limits.values())
    if most == resource.RLIM_INFINITY or n_asked <= room:
        return settings
    fitting = {name: max(1, limit * room // n_asked) for name, limit in limits.items()}
    shown = ", ".join(f"{name}={limit}" for name, limit in fitting.items())
    _warn(
        config, f"openclaw: only {most} files may be open (ulimit -n), so --openclaw-concurrency is {shown}"
    )
    return replace(settings, concurrency=Concurrency(by_provider=fitting))


def _warn(config: pytest.Config, text: str) -> None:
    try:
        config.issue_config_time_warning(pytest.PytestWarning(text), stacklevel=1)
    except pytest.PytestWarning:  # -W error raises warnings
        raise pytest.UsageError(text) from None


def check_budget(settings: Settings, providers: Mapping[str, Provider]) -> None:
    """Reject a budget that cannot be enforced: a target's price must be known before its first call."""
    if settings.budget_usd is None:
        return
    prices = Prices(providers, settings)
    unknown = [one for one in settings.targets if not is_wildcard(one) and not prices.is_known(one)]
    if not unknown:
        return
    if any(map(prices.needs_list, unknown)) and not has_list():
        hint = f"Install the list of prices ({install_command('cost')}), or give"
    else:
        hint = "Name a model as the list of prices names it, or give"
    labels = ", ".join(target.label for target in unknown)
    raise pytest.UsageError(
        f"--openclaw-budget-usd={settings.budget_usd:g}: the price of {labels} is "
        f"not known, so the budget could not be kept. {hint} its price in the ini file, in USD per million "
        f"tokens: openclaw_prices = {unknown[0].label} = INPUT OUTPUT"
    )


def load_surface(settings: Settings, resumed: Path | None, *, may_capture: bool) -> Surface | None:
    """Return the surface `openclaw`, captured if necessary; None if no target is asked on it."""
    if all(target.surface == LISTED for target in settings.targets):
        return None
    from pytest_openclaw.openclaw.catalog import captured_surface, substitute_surface
    from pytest_openclaw.providers.openclaw.capture import installed_catalogue
    from pytest_openclaw.runs.reading import load_surface as load_recorded

    source = settings.catalogue
    try:
        if resumed and (recorded := load_recorded(resumed)):
            return recorded
        if source == SUBSTITUTE:
            return substitute_surface()
        if file := settings.catalogue_file:
            return captured_surface(read_catalogue(file))
        catalogue = installed_catalogue(may_capture=may_capture, required=source == INSTALLED)
        return substitute_surface() if catalogue is None else captured_surface(catalogue)
    except (OpenClawError, OSError, ValueError) as error:
        hint = "--openclaw-catalogue=substitute needs no capture"
        raise pytest.UsageError(f"--openclaw-catalogue={source or INSTALLED}: {error}; {hint}") from None


def served_targets(
    config: pytest.Config, settings: Settings, providers: Mapping[str, Provider]
) -> tuple[Target, ...]:
    """Return the targets, with every `*` replaced by the models that the provider serves.

    A name that contains a key would be part of node ids and names of files, so such a model is left out.
    """
    redactor = Redactor.of_run(providers.values(), os.environ)
    with redactor.applied():
        try:
            targets = asyncio.run(_served(settings, providers))
            plain = [one for one in targets if not redactor.shows_key(one.model)]
            if n := len(targets) - len(plain):
                words = f"openclaw: {counted(n, 'served model')} left out: a key is part of the name"
                if not plain:
                    raise OpenClawError(words)
                _warn(config, words)
            return tuple(plain)
        except OpenClawError as error:
            raise pytest.UsageError(printable(redactor.text(str(error)))) from None


async def _served(settings: Settings, providers: Mapping[str, Provider]) -> dict[Target, None]:
    targets: dict[Target, None] = {}
    try:
        for target in settings.targets:
            found: tuple[Target, ...] = (target,)
            if is_wildcard(target):
                models = await asyncio.wait_for(providers[target.provider].models(), settings.timeout_s)
                found = expand(target, models)
            if not found:
                raise OpenClawError("no model that is served fits")
            targets |= dict.fromkeys(found)
    except (OpenClawError, TimeoutError) as error:
        why = str(error) or f"it has not listed its models within {settings.timeout_s:g} s"
        raise OpenClawError(f"{target.label}: {why.removesuffix('.')}. Name the models.") from None
    finally:
        await close_all(providers.values())
    return targets
