"""Checks before the first call: its requests, baseline and budget, and a `*`'s models."""

from __future__ import annotations

import asyncio
import os
from typing import TYPE_CHECKING

import pytest

from pytest_openclaw.util.errors import OpenClawError, TargetError
from pytest_openclaw.util.redact import Redactor
from pytest_openclaw.util.text import printable
from pytest_openclaw.values.faults import CallFailed
from pytest_openclaw.values.requests import LISTED
from pytest_openclaw.values.settings import INSTALLED, LAST, SAMPLING, Settings
from pytest_openclaw.values.tool_calls import SUBSTITUTE

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from pytest_openclaw.stats.run_comparison import Measured
    from pytest_openclaw.values.protocols import Provider
    from pytest_openclaw.values.requests import Target
    from pytest_openclaw.values.tool_calls import Surface


def check_plugins(config: pytest.Config) -> None:
    """Reject a wrong validator or report of the root conftest or of a plugin; others are read later."""
    from pytest_openclaw.session.registries import reports_of, validator_registry

    validator_registry(config)
    reports_of(config)


def check_requests(settings: Settings, providers: Mapping[str, Provider]) -> None:
    """Reject what was chosen for requests and a provider cannot send."""
    usual = Settings()
    chosen = {name for name in SAMPLING if getattr(settings, name) != getattr(usual, name)}
    for target in settings.targets:
        provider = providers[target.provider]
        lacking = chosen - {"request_fields"} - provider.takes if target.surface == LISTED else set()
        if target.provider in settings.request_fields and "fields" not in provider.takes:
            where, why = "openclaw_request_fields", "cannot send that; leave it out, or ask other providers"
        elif lacking:
            where = f"--openclaw-{min(lacking)}"
            why = "cannot send that; leave it out, or ask other providers"
        elif target.surface != LISTED and provider.plays_worlds and not provider.is_openclaw:
            where = f"--openclaw-surface={target.surface}"
            why = "runs tools by a request of its own; ask it on listed, in a run of its own"
        elif target.surface != LISTED and not provider.takes_tools:
            where = f"--openclaw-surface={target.surface}"
            why = "sends no tools; ask it on listed, in a run of its own"
        else:
            continue
        raise pytest.UsageError(f"{where}: {target.provider} {why}")


def check_budget(settings: Settings, providers: Mapping[str, Provider]) -> None:
    """Reject a budget that cannot be enforced: a target's price must be known before its first call."""
    from pytest_openclaw.providers.prices import Prices, has_list, install_list
    from pytest_openclaw.suites.targets import is_wildcard

    if settings.budget_usd is None:
        return
    prices = Prices(providers, settings)
    named = [target for target in settings.targets if not is_wildcard(target)]
    unknown = [target for target in named if not prices.is_known(target)]
    if not unknown:
        return
    if any(map(prices.needs_list, unknown)) and not has_list():
        hint = f"Install the list of prices ({install_list()}), or give"
    else:
        hint = "Name a model as the list of prices names it, or give"
    labels = ", ".join(target.label for target in unknown)
    raise pytest.UsageError(
        f"--openclaw-budget-usd={settings.budget_usd:g}: what {labels} costs is "
        f"not known, so the budget could not be kept. {hint} its price in the ini file, in USD per million "
        f"tokens: openclaw_prices = {unknown[0].label} = INPUT OUTPUT"
    )


def load_surface(settings: Settings, resumed: Path | None, *, may_capture: bool) -> Surface | None:
    """Return the surface `openclaw`, captured if it has to be; None if no target is asked on it."""
    if all(target.surface == LISTED for target in settings.targets):
        return None
    from pytest_openclaw.openclaw.catalog import read_catalogue
    from pytest_openclaw.openclaw.surfaces import captured_surface, substitute_surface
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
        catalogue = installed_catalogue(os.environ, may_capture=may_capture, required=source == INSTALLED)
        return substitute_surface() if catalogue is None else captured_surface(catalogue)
    except (OpenClawError, OSError, ValueError) as error:
        hint = "--openclaw-catalogue=substitute needs no capture"
        raise pytest.UsageError(f"--openclaw-catalogue={source or INSTALLED}: {error}; {hint}") from None


def load_baseline(settings: Settings, resumed: Path | None) -> Measured | None:
    """Read the run to compare with, before any call; reject a gate that needs one if there is none."""
    from pytest_openclaw.runs.reading import read_baseline

    name = settings.baseline
    compared = [gates.fail_on for gates in settings.gates.all_there_are if gates.fail_on]
    if not name and compared:
        why = f"the run {resumed.name} was started with it; " if resumed else ""
        what = f"{why}name the run to compare with: --openclaw-baseline=RUN"
        raise pytest.UsageError(f"--openclaw-fail-on={compared[0]}: {what}")
    if not name:
        return None
    try:
        return read_baseline(name, settings.runs_dir, besides=resumed)
    except (OpenClawError, OSError) as error:
        first = "--openclaw-baseline=off" + (" --openclaw-fail-on=off" if compared else "")
        hint = f"; a first run is measured with {first}" if name == LAST else ""
        raise pytest.UsageError(f"--openclaw-baseline={name}: {error}{hint}") from None


def resolve_wildcards(settings: Settings, providers: Mapping[str, Provider]) -> tuple[Target, ...]:
    """Return the targets, with the models that the providers serve in place of every `*`.

    The providers' connections belong to the event loop of this call; they cannot be used after it.
    """
    from pytest_openclaw.suites.targets import is_wildcard

    if not any(is_wildcard(target) for target in settings.targets):
        return settings.targets
    redactor = Redactor.of_run(providers.values(), os.environ)
    with redactor.over_logs():
        try:
            targets = asyncio.run(_resolve_all(settings, providers))
        except pytest.UsageError as error:
            raise pytest.UsageError(printable(redactor.text(str(error)))) from None
    return tuple(dict.fromkeys(targets))


async def _resolve_all(settings: Settings, providers: Mapping[str, Provider]) -> list[Target]:
    from pytest_openclaw.asking.attempt import within
    from pytest_openclaw.suites.targets import expand, is_wildcard

    targets: list[Target] = []
    try:
        for target in settings.targets:
            found: tuple[Target, ...] = (target,)
            if is_wildcard(target):
                models = await within(settings.timeout_s, providers[target.provider].models())
                found = expand(target, models)
            if not found:
                raise pytest.UsageError(f"{target.label}: no model that is served fits. Name the models.")
            targets += found
    except CallFailed as failed:
        raise pytest.UsageError(f"{target.label}: {failed} Name the models, or start the server.") from None
    except TimeoutError:
        what = f"it has not listed its models within {settings.timeout_s:g} s. Name the models"
        raise pytest.UsageError(f"{target.label}: {what}.") from None
    except TargetError as error:
        raise pytest.UsageError(str(error)) from None
    finally:
        for provider in providers.values():
            await provider.aclose()
    return targets
