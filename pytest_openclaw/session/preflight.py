"""Checks before the first call: prompt ids, the run's name, the models behind a `*`."""

from __future__ import annotations

import asyncio
import os
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from pytest_openclaw.suites import closest
from pytest_openclaw.util.errors import OpenClawError, SuiteError, TargetError
from pytest_openclaw.util.redact import Redactor
from pytest_openclaw.util.text import printable
from pytest_openclaw.values.faults import CallFailed
from pytest_openclaw.values.requests import LISTED
from pytest_openclaw.values.settings import INSTALLED, SAMPLING, Settings
from pytest_openclaw.values.tool_calls import SUBSTITUTE

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pytest_openclaw.session.items import SuiteFiles
    from pytest_openclaw.stats.run_comparison import Measured
    from pytest_openclaw.values.protocols import Provider
    from pytest_openclaw.values.requests import SurfaceName, Target
    from pytest_openclaw.values.tool_calls import Surface


def check_workers(config: pytest.Config) -> None:
    """Reject a `--tx` that xdist would ignore: the wrong machine would be measured."""
    words = map(str, config.invocation_params.args)
    given = any(word == "--tx" or word.startswith("--tx=") for word in words)
    if given and (config.option.numprocesses or config.option.dist == "no"):
        raise pytest.UsageError(
            "--tx is left aside by xdist here, and this machine would be asked alone; "
            "write `-d --tx=…`, without -n."
        )


def check_run_name(settings: Settings, resumed: Path | None) -> None:
    """Reject a folder that cannot contain runs, and a run id of the user's that exists already."""
    from pytest_openclaw.runs.directory import is_unbegun, taken

    runs_dir = settings.runs_dir
    missing = [folder for folder in (runs_dir, *runs_dir.parents) if not folder.exists()]
    try:
        runs_dir.mkdir(parents=True, exist_ok=True)
        for folder in missing:  # a session without cells leaves no trace
            folder.rmdir()
    except OSError as error:
        raise pytest.UsageError(
            f"--openclaw-runs-dir={runs_dir}: cannot write there ({error.strerror}); give a folder of yours"
        ) from None
    path = runs_dir / settings.run_id
    if settings.run_id_given and not resumed and path.exists() and not is_unbegun(path):
        raise pytest.UsageError(taken(path))


def check_requests(settings: Settings, providers: Mapping[str, Provider]) -> None:
    """Reject what was chosen for requests and a provider cannot send."""
    usual = Settings()
    for target in settings.targets:
        provider = providers[target.provider]
        if why := _why_not_on(target.surface, provider):
            raise pytest.UsageError(f"--openclaw-surface={target.surface}: {target.provider} {why}")
        chosen = {name for name in SAMPLING if getattr(settings, name) != getattr(usual, name)}
        chosen -= {"request_fields"} if target.surface == LISTED else set(SAMPLING)
        if target.provider in settings.request_fields:
            chosen.add("fields")
        if lacking := sorted(chosen - provider.takes):
            where = (
                "openclaw_request_fields"
                if "fields" in lacking
                else f"--openclaw-{lacking[0].replace('_', '-')}"
            )
            raise pytest.UsageError(
                f"{where}: {target.provider} cannot send that; leave it out, or ask other providers"
            )


def _why_not_on(surface: SurfaceName, provider: Provider) -> str:
    """Return why a provider cannot ask on a surface, and what can; empty if it can."""
    if surface == LISTED:
        return ""
    if provider.plays_worlds and not provider.is_openclaw:
        return "runs tools by a request of its own; ask it on listed, in a run of its own"
    return "" if provider.takes_tools else "sends no tools; ask it on listed, in a run of its own"


def load_surface(settings: Settings, resumed: Path | None, *, may_capture: bool) -> Surface | None:
    """Return the surface `openclaw`, captured if it has to be; None if no target is asked on it.

    If it cannot be captured, it is `missing`: other cells are asked, and a resumed run captures again.
    """
    if all(target.surface == LISTED for target in settings.targets):
        return None
    from pytest_openclaw.openclaw.catalog import read_catalogue
    from pytest_openclaw.openclaw.surfaces import captured_surface, substitute_surface
    from pytest_openclaw.providers.openclaw.capture import NotCaptured, installed_catalogue
    from pytest_openclaw.runs.reading import load_surface as load_recorded

    source = settings.catalogue
    try:
        if resumed and (recorded := load_recorded(resumed)):
            return recorded
        if source == SUBSTITUTE:
            return substitute_surface()
        if source not in ("", INSTALLED):
            return captured_surface(read_catalogue(Path(source)))
        catalogue = installed_catalogue(os.environ, may_capture=may_capture, required=source == INSTALLED)
        return substitute_surface() if catalogue is None else captured_surface(catalogue)
    except NotCaptured as error:
        return replace(substitute_surface(), missing=str(error))
    except (OpenClawError, OSError, ValueError) as error:
        raise pytest.UsageError(f"--openclaw-catalogue={source or INSTALLED}: {error}") from None


def load_baseline(settings: Settings, resumed: Path | None) -> Measured | None:
    """Read the run to compare with, before any call; reject a gate that needs one if there is none."""
    name = settings.baseline
    if not name:
        if compared := _compared(settings):
            why = f"the run {resumed.name} was started with it; " if resumed else ""
            what = f"{why}name the run to compare with: --openclaw-baseline=RUN"
            raise pytest.UsageError(f"--openclaw-fail-on={compared[0]}: {what}")
        return None
    from pytest_openclaw.runs.baseline import read_baseline
    from pytest_openclaw.values.settings import LAST

    try:
        return read_baseline(name, settings.runs_dir, besides=resumed, targets=settings.targets)
    except (OpenClawError, OSError) as error:
        first = "--openclaw-baseline=off" + (" --openclaw-fail-on=off" if _compared(settings) else "")
        hint = f"; a first run is measured with {first}" if name.partition(":")[0] == LAST else ""
        raise pytest.UsageError(f"--openclaw-baseline={name}: {error}{hint}") from None


def _compared(settings: Settings) -> list[str]:
    return [gates.fail_on for gates in settings.gates.all_there_are if gates.fail_on]


def check_plugins(config: pytest.Config) -> None:
    """Reject a wrong validator or report of the root conftest or of a plugin; others are read later."""
    from pytest_openclaw.session.registries import reports_of, validator_registry

    validator_registry(config)
    reports_of(config)


def check_prompt_ids(settings: Settings, suites: SuiteFiles) -> None:
    """Reject an id that no suite has.

    Python benchmarks are read only at collection; where there may be some, an unknown id may be theirs.
    """
    from pytest_openclaw.suites import unmatched

    patterns = settings.prompts
    if not patterns or suites.may_include_python:
        return
    ids: list[str] = []
    for path in suites.paths():
        try:
            suite = suites.load(path)
            if suites.is_selected(path, suite):
                ids += [prompt.id for prompt in suite.prompts]
        except SuiteError:
            return  # collection reports the error
    lost = unmatched(patterns, ids)
    if lost:
        hint = closest(lost[0], ids) or f" There are {', '.join(ids[:20]) or 'no prompts'}."
        raise pytest.UsageError(f"--openclaw-prompts: no prompt has the id {', '.join(lost)}.{hint}")


def resolve_wildcards(settings: Settings, providers: Mapping[str, Provider]) -> tuple[Target, ...]:
    """Return the targets, with the models that the providers serve in place of every `*`.

    The providers' connections belong to the event loop of this call; they cannot be used after it.
    """
    from pytest_openclaw.suites import is_wildcard

    if not any(is_wildcard(target) for target in settings.targets):
        return settings.targets
    redactor = Redactor.of_run(providers.values(), os.environ)
    with redactor.over_logs():
        try:
            targets = asyncio.run(_resolve_all(settings, providers))
        except pytest.UsageError as error:
            raise pytest.UsageError(redactor.text(str(error))) from None
    return tuple(dict.fromkeys(targets))


async def _resolve_all(settings: Settings, providers: Mapping[str, Provider]) -> list[Target]:
    try:
        return [
            served
            for target in settings.targets
            for served in await _resolve(target, providers[target.provider], settings.timeout_s)
        ]
    finally:
        for provider in providers.values():
            await provider.aclose()


async def _resolve(target: Target, provider: Provider, timeout_s: float) -> tuple[Target, ...]:
    from pytest_openclaw.asking.attempt import within
    from pytest_openclaw.suites import expand, is_wildcard

    if not is_wildcard(target):
        return (target,)
    try:
        found = expand(target, await within(timeout_s, provider.models()))
    except (CallFailed, TimeoutError) as failed:
        why = str(failed) or f"{target.provider} has not listed its models within {timeout_s:g} s."
        text = f"{target.label}: {why} Name the models, or start the server."
        raise pytest.UsageError(printable(text)) from None
    except TargetError as error:
        raise pytest.UsageError(printable(str(error))) from None
    if not found:
        raise pytest.UsageError(f"{target.label}: no model that is served fits. Name the models.")
    return found
