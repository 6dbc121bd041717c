"""Checks before the first call: prompt ids, the run's name, the models behind a `*`."""

from __future__ import annotations

import asyncio
from difflib import get_close_matches
from typing import TYPE_CHECKING

import pytest

from pytest_openclaw import options
from pytest_openclaw.core.errors import OpenClawError, SuiteError, TargetError
from pytest_openclaw.core.text import printable
from pytest_openclaw.session.spending import check_budget
from pytest_openclaw.types.faults import CallFailed

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from pytest_openclaw.asking.fetching import Fetcher
    from pytest_openclaw.session.plugin_session import State
    from pytest_openclaw.types.settings import Settings
    from pytest_openclaw.types.targets import Target


def check_start(state: State) -> None:
    """Refuse what cannot work, before anybody is called.

    Raises:
        pytest.UsageError: says what is wrong and what to do.
    """
    if state.settings.dry_run:
        check_plugins(state)
        check_prompt_ids(state)
        state.check_providers()
        check_budget(state)
        state.resumption.look()
        return
    check_workers(state)
    check_run_name(state)
    check_plugins(state)
    check_prompt_ids(state)
    state.check_providers()
    state.reopen()
    read_baseline(state)
    resolve_wildcards(state)
    check_budget(state)


def check_workers(state: State) -> None:
    """Refuse a `--tx` that xdist would leave aside: another machine would be measured than the one named."""
    words = map(str, state.config.invocation_params.args)
    given = any(word == "--tx" or word.startswith("--tx=") for word in words)
    option = state.config.option
    if given and (option.numprocesses or option.dist == "no"):
        raise pytest.UsageError(
            "--tx is left aside by xdist here, and this machine would be asked alone; "
            "write `-d --tx=…`, without -n."
        )


def check_run_name(state: State) -> None:
    """Refuse a folder that cannot hold runs, and a run id that the user chose and that is taken."""
    from pytest_openclaw.recording.run_directory import is_unbegun, taken

    runs_dir = state.settings.runs_dir
    missing = [folder for folder in (runs_dir, *runs_dir.parents) if not folder.exists()]
    try:
        runs_dir.mkdir(parents=True, exist_ok=True)
        for folder in missing:  # a session without cells leaves no trace
            folder.rmdir()
    except OSError as error:
        raise pytest.UsageError(
            f"--openclaw-runs-dir={runs_dir}: cannot write there ({error.strerror}); give a folder of yours"
        ) from None
    path = runs_dir / state.settings.run_id
    if state.settings.run_id_given and not state.resumption.path and path.exists() and not is_unbegun(path):
        raise pytest.UsageError(taken(path))


def read_baseline(state: State) -> None:
    """Read the run to compare with, before anybody is called; refuse a gate that has none."""
    from pytest_openclaw.stored.baseline import find_baseline, read_measured
    from pytest_openclaw.types.settings import LAST

    settings = state.settings
    name, began = settings.baseline, state.resumption.path
    if not name:
        if _fails_on_regression(settings):
            why = f"the run {began.name} was begun with it; " if began else ""
            raise pytest.UsageError(
                f"--openclaw-fail-on=regression: {why}name the run to compare with: --openclaw-baseline=RUN"
            )
        return
    try:
        state.baseline = read_measured(find_baseline(name, settings.runs_dir, besides=began))
    except (OpenClawError, OSError) as error:
        first = "--openclaw-baseline=off" + (
            " --openclaw-fail-on=off" if _fails_on_regression(settings) else ""
        )
        hint = f"; a first run is measured with {first}" if name == LAST else ""
        raise pytest.UsageError(f"--openclaw-baseline={name}: {error}{hint}") from None


def _fails_on_regression(settings: Settings) -> bool:
    return any(gates.fail_on for gates in settings.gates.all_there_are)


def check_plugins(state: State) -> None:
    """Refuse a wrong validator or report of the root conftest or of a plugin; others are read later."""
    from pytest_openclaw.session.registries import reports_of, validator_registry

    validator_registry(state.config)
    reports_of(state.config)


def check_prompt_ids(state: State) -> None:
    """Refuse an id that no suite has.

    Python benchmarks are read at collection only; where there may be some, an unknown id is theirs to have.
    """
    from pytest_openclaw.suites import unmatched

    patterns = state.settings.prompts
    if not patterns or _may_hold_python(state):
        return
    ids: list[str] = []
    for path in suite_files(state):
        try:
            suite = state.load_suite(path)
            if not suite.named_only or state.is_named(path):
                ids += [prompt.id for prompt in suite.prompts]
        except SuiteError:
            return  # collection tells what is wrong with it
    lost = unmatched(patterns, ids)
    if lost:
        near = get_close_matches(lost[0], ids, n=1)
        hint = f" Did you mean {near[0]}?" if near else f" There are {', '.join(ids[:20]) or 'no prompts'}."
        raise pytest.UsageError(f"--openclaw-prompts: no prompt has the id {', '.join(lost)}.{hint}")


def suite_files(state: State) -> Iterator[Path]:
    """Yield the suite files that this session may collect."""
    named = options.named_benchmarks(state.config) or state.settings.suite_dirs
    for path in named:
        if path.is_file():
            yield path
        elif path.is_dir():
            yield from sorted(
                file
                for file in path.rglob("prompts_*")
                # Reading a pipe would wait for ever; pytest collects none either.
                if options.SUITE_NAME.match(file.name) and file.is_file()
            )


def _may_hold_python(state: State) -> bool:
    named = options.named_benchmarks(state.config) or state.settings.suite_dirs
    return any(path.suffix == ".py" or (path.is_dir() and any(path.rglob("test_*.py"))) for path in named)


def resolve_wildcards(state: State) -> None:
    """Ask the providers for the models behind every `*`."""
    from pytest_openclaw.suites import is_wildcard

    if not any(is_wildcard(target) for target in state.settings.targets):
        return
    state.hide_secrets_in_logs()
    try:
        targets = asyncio.run(_resolve_all(state))
    except pytest.UsageError as error:
        raise pytest.UsageError(state.redactor.text(str(error))) from None
    state.choose_targets(tuple(dict.fromkeys(targets)))


async def _resolve_all(state: State) -> list[Target]:
    from pytest_openclaw.asking.fetching import Fetcher

    fetcher = Fetcher(state.providers, state.settings, state.shared_path)
    try:
        return [served for target in state.settings.targets for served in await _resolve(fetcher, target)]
    finally:
        await fetcher.aclose()


async def _resolve(fetcher: Fetcher, target: Target) -> tuple[Target, ...]:
    from pytest_openclaw.suites import expand, is_wildcard

    if not is_wildcard(target):
        return (target,)
    try:
        found = expand(target, await fetcher.served(target))
    except CallFailed as failed:
        text = f"{target.label}: {failed} Name the models, or start the server."
        raise pytest.UsageError(printable(text)) from None
    except TargetError as error:
        raise pytest.UsageError(printable(str(error))) from None
    if not found:
        raise pytest.UsageError(f"{target.label}: no model that is served fits. Name the models.")
    return found
