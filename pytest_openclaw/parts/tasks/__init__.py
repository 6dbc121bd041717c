"""Tasks of public suites as cells: folders that a model works on in a scripted world, graded by code."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from pytest_openclaw import options

if TYPE_CHECKING:
    from pytest_openclaw.conclusions.summary import SummaryPart
    from pytest_openclaw.values.prompts import Suite
    from pytest_openclaw.values.rows import Record

_TASK_FILE = "task.toml"


def pytest_configure(config: pytest.Config) -> None:
    """Name the folder of installed tasks, and the target of an oracle."""
    name, given_by = options.lookup(config, "tasks")
    if name and options.is_used(config):
        from pytest_openclaw.parts.tasks.formats import installed_tasks

        folder = installed_tasks(name)
        named = config.getoption("file_or_dir", None) or []
        if folder not in named:
            config.option.file_or_dir = [*named, folder]
            config.args = [*(config.args if named or given_by == "openclaw_tasks" else ()), folder]
    if options.lookup(config, "oracle")[0]:
        from pytest_openclaw.parts.tasks import task

        config.pluginmanager.register(task, "openclaw-oracle")
        if hasattr(config, "workerinput"):
            return
        if options.lookup(config, "models")[1] == "--openclaw-models":
            raise pytest.UsageError("--openclaw-oracle: leave out --openclaw-models; it asks no model.")
        config.option.openclaw_models = ["oracle/solution"]


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Leave the other files of a task, such as its checks, to its grader."""
    is_part = collection_path.name != _TASK_FILE and _is_bench(collection_path.with_name(_TASK_FILE))
    return True if is_part and options.is_used(config) else None


def _is_bench(file: Path) -> bool:
    """Whether a file is a task of claw-bench, complete or not; other programs have files of this name."""
    if file.name != _TASK_FILE or not file.is_file():
        return False
    return any(file.with_name(name).exists() for name in ("instruction.md", "verifier"))


def pytest_openclaw_suite(path: Path, config: pytest.Config) -> Callable[[str], Suite] | None:
    """Read a task as a suite of one prompt."""
    from pytest_openclaw.parts.tasks import formats, task

    if _is_bench(path):
        reader = formats.read_claw_bench
    elif formats.is_scenario(path):
        reader = formats.read_scenario
    elif path.match("task_*.md") and _is_named(path, config):
        reader = formats.read_pinch_bench
    else:
        return None
    pass_at = options.lookup(config, "tasks-pass")[0]
    settings = task.TaskSettings(
        pass_at=float(pass_at) if pass_at else None,
        # A given --openclaw-timeout replaces the tasks' own.
        is_timed=not options.lookup(config, "timeout")[0],
        runs_model_code=bool(options.lookup(config, "run-model-code")[0]),
        is_oracle=bool(options.lookup(config, "oracle")[0]),
    )
    return partial(task.read_suite, reader, path, settings)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Put the tasks of each folder with a manifest into its order; other items keep their places."""
    folders = {item.path.parent for item in items if item.path.match("task_*.md")}
    with_manifest = [folder for folder in folders if (folder / "manifest.yaml").is_file()]
    if not with_manifest:
        return
    from pytest_openclaw.parts.tasks.formats import read_manifest
    from pytest_openclaw.util.errors import OpenClawError

    names = dict[Path, list[str]]()
    for folder in with_manifest:
        with suppress(ValueError, OSError, OpenClawError):  # other programs have files of this name
            names[folder] = read_manifest(folder)[0]
    positions = [n for n, item in enumerate(items) if item.path.stem in names.get(item.path.parent, ())]
    ordered = sorted(positions, key=lambda n: names[items[n].path.parent].index(items[n].path.stem))
    for n, item in zip(positions, [items[n] for n in ordered], strict=True):
        items[n] = item


def _is_named(path: Path, config: pytest.Config) -> bool:
    """Whether the command line names a file or its own folder, or it is in a folder of suites."""
    named = {*options.named_paths(config)}
    real = path.resolve()
    return bool({real, real.parent} & named) or options.is_below(real, options.suite_dirs(config))


def pytest_openclaw_summary(records: Sequence[Record]) -> SummaryPart | None:
    """Add the mean scores of targets and categories."""
    from pytest_openclaw.parts.tasks.scores import scores_of

    return scores_of(records)
