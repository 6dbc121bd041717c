"""The rules by which a stored run is rescored: the current ones from its suite files."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from pytest_openclaw.core.errors import OpenClawError
from pytest_openclaw.stored.parts import is_python
from pytest_openclaw.suites import definition as definition_of
from pytest_openclaw.suites import load_suite
from pytest_openclaw.suites.offered import catalogue_of
from pytest_openclaw.suites.prompt import read_prompt

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from pytest_openclaw.core.json_types import JsonObject
    from pytest_openclaw.stored.parts import Part, PromptKey
    from pytest_openclaw.tools.catalogue import Catalogue
    from pytest_openclaw.types.prompts import Prompt, Suite
    from pytest_openclaw.validators.registry import Registry


@dataclass(frozen=True, kw_only=True)
class Rules:
    """The rules for a run's prompts.

    Attributes:
        prompts: by suite and id; those of Python benchmarks are missing.
        notes: on prompts that are judged by the recorded definition.
    """

    prompts: Mapping[PromptKey, Prompt]
    notes: tuple[str, ...]


def suite_files(part: Part, root: Path) -> list[Path]:
    """Return the suite files of a run that are still in the project.

    pytest loads the `conftest.py` beside each of them. A foreign run can name any file, so only the project's
    own files count: none outside `root`, and none below the folder of runs.

    Args:
        part: the run.
        root: the project's resolved root folder, which the suites are relative to.
    """
    suites = dict.fromkeys(suite for (suite, _), entry in part.prompts.items() if not is_python(entry))
    foreign = _folder_of_runs(part.run.path.resolve(), root)
    return [
        path
        for suite in suites
        if (path := root / suite).is_file()
        and (real := path.resolve()).is_relative_to(root)
        and not real.is_relative_to(foreign)
    ]


def _folder_of_runs(run: Path, root: Path) -> Path:
    """Return the folder with the run and other runs, or the run itself if the project is in it."""
    return run if root.is_relative_to(run.parent) else run.parent


def todays_rules(part: Part, root: Path, registry: Registry) -> Rules:
    """Return the current rules in the suites below `root`.

    For a suite or prompt that was removed or asks something else now, the definition in `config.json` is
    used, read with the current validators.

    Raises:
        OpenClawError: a suite is malformed, or the current validators cannot read an old definition.
    """
    files = suite_files(part, root)
    suites: dict[str, Suite] = {}
    prompts: dict[PromptKey, Prompt] = {}
    old: dict[str, list[str]] = {}
    for (name, prompt_id), definition in part.prompts.items():
        if is_python(definition):
            continue
        if name not in suites and (path := root / name) in files:
            catalogue = _catalogue_of(part, name)
            suites[name] = load_suite(path, name=name, registry=registry, catalogue=catalogue)
        found = _todays(suites.get(name), definition)
        if isinstance(found, str):
            old.setdefault(f"{name} {found}", []).append(prompt_id)
            found = _as_defined_then(part, definition, registry)
        prompts[name, prompt_id] = found
    notes = tuple(
        f"{what}: {', '.join(prompt_ids)}; judged as config.json defines" for what, prompt_ids in old.items()
    )
    return Rules(prompts=prompts, notes=notes)


def _catalogue_of(part: Part, suite: str) -> Catalogue | None:
    """Return the captured catalog of a suite's tools, found through any of its prompts with tools."""
    offered = (one.get("tools") for (name, _), one in part.prompts.items() if name == suite)
    try:
        return catalogue_of(next((tools for tools in offered if tools is not None), None))
    except ValueError as error:
        raise OpenClawError(f"{part.name}: its tools {error} Bring that file back.") from None


def _todays(suite: Suite | None, definition: JsonObject) -> Prompt | str:
    """Return the current prompt; or why it cannot judge the recorded reply."""
    if suite is None:
        return "is not there any more"
    now = next((prompt for prompt in suite.prompts if prompt.id == definition["id"]), None)
    if now is None:
        return "has some prompts no longer"
    # A reply to another question cannot be judged by this rule.
    today = definition_of(now)
    if any(today.get(key) != definition.get(key) for key in ("prompt", "system", "messages", "turns")):
        return "asks some prompts in other words now"
    if today.get("images_sha256") != definition.get("images_sha256"):
        return "shows other pictures with some prompts now"
    # Calls are played again, which requires the same world and the same tools.
    if any(today.get(key) != definition.get(key) for key in ("tools_sha256", "world")):
        return "gives some prompts other tools or another world now"
    return now


def _as_defined_then(part: Part, definition: JsonObject, registry: Registry) -> Prompt:
    raw = {key: value for key, value in definition.items() if key not in ("suite", "extra")}
    prompt, complaints = read_prompt(raw, definition["id"], suite=definition["suite"], registry=registry)
    if prompt is None:
        where = f"{part.run.path / 'config.json'}: prompt {definition['id']}"
        raise OpenClawError("\n".join(f"{where}: {complaint}" for complaint in complaints))
    return prompt
