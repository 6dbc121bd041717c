"""Find the cells still to run; check that the run is unchanged.

`types/run_config.py` has the rules, key by key. In addition, targets and selected prompts must be equal. A
provider without a kept row may have another address, which `config.json` then records. A run with one repeat
may continue until the tiers are settled. The ini file does not replace recorded settings, so
`--openclaw-resume=last` alone judges as the run did before.
"""

from __future__ import annotations

from dataclasses import fields, replace
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, Any

from pytest_openclaw.core.files import open_file
from pytest_openclaw.recording.kept_cells import Kept, Replay
from pytest_openclaw.stats.light_records import without_texts
from pytest_openclaw.stored.reading import StoredRow, read_rows, repeats_of, target_of
from pytest_openclaw.suites import is_wildcard
from pytest_openclaw.types.run_config import (
    PROMPTS,
    PROVIDERS,
    SETTINGS,
    keys_to,
    settings_to_json,
)
from pytest_openclaw.types.settings import firm_gates, gates_of

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Sequence
    from pathlib import Path

    from pytest_openclaw.core.json_types import JsonObject
    from pytest_openclaw.recording.selection import Plan
    from pytest_openclaw.types.records import Record
    from pytest_openclaw.types.settings import Settings
    from pytest_openclaw.types.targets import CellKey, Target

IS_ANOTHER = "this differs from the recorded run"
MAX_SHOWN = 10


# --- kept rows ----------------------------------------------------------------------------------


def read_kept(results: Path) -> Kept:
    """Return the last row with a reply of each cell.

    Raises:
        OpenClawError: the file cannot be read.
    """
    found: dict[CellKey, tuple[int, Record, Replay]] = {}
    number = 0
    for number, row in enumerate(read_rows(results), 1):
        if isinstance(row, StoredRow) and row.record.availability_status == "ok":
            found[row.record.key] = (number, without_texts(row.record), Replay.of(row.record))
    kept = sorted(found.values(), key=lambda entry: entry[0])
    return Kept(
        records=tuple(record for _, record, _ in kept),
        lines=frozenset(line for line, _, _ in kept),
        replays={record.key: replay for _, record, replay in kept},
        is_whole=len(kept) == number and _ends_whole(results),
    )


def _ends_whole(results: Path) -> bool:
    with open_file(results) as file:
        size = file.seek(0, 2)
        file.seek(max(0, size - 1))
        return file.read() in {b"", b"\n"}


# --- the recorded run ---------------------------------------------------------------------------


def targets_of(config: JsonObject) -> tuple[Target, ...]:
    """Return the targets of a run, in order."""
    return tuple(map(target_of, config["targets"]))


def settings_of(config: JsonObject, settings: Settings, given: Collection[str]) -> Settings:
    """Return the settings of this session, with those that a resumed run keeps.

    Args:
        config: the run's `config.json`.
        settings: from options and ini file.
        given: the names of the options on the command line, such as `min-pass-rate`.
    """
    gates = settings.gates
    if (recorded := config.get("gates")) is not None:
        gates = firm_gates(gates_of(recorded), settings.gates, given)
    own = {field.name for field in fields(settings)}
    others: dict[str, Any] = {
        name: config[name]
        for need in ("equal", "kept")
        for name in keys_to(SETTINGS, "resume", need, SETTINGS)
        if name in own and config.get(name) is not None and name.replace("_", "-") not in given
    }
    was_conditional = bool(config.get("until_conclusive"))
    if was_conditional or "until-conclusive" not in given:
        others["until_conclusive"] = was_conditional
        if "repeat" not in given:
            others["repeat"] = repeats_of(config)
    return replace(settings, **{**others, "targets": targets_of(config), "gates": gates})


def other_targets(config: JsonObject, given: Sequence[Target]) -> list[str]:
    """Return how the targets of the command line differ from the run's; `*` matches any model."""
    recorded = targets_of(config)
    unknown = [target for target in given if not any(_means(target, one) for one in recorded)]
    missing = [one for one in recorded if not any(_means(target, one) for target in given)]
    return [
        *(f"{target.label} is named, which the run does not have" for target in unknown),
        *(f"{target.label} is not named, which the run has" for target in missing),
    ]


def _means(given: Target, target: Target) -> bool:
    if is_wildcard(given):
        return replace(given, model=target.model) == target and fnmatchcase(target.model, given.model)
    return given == target


# --- changes ------------------------------------------------------------------------------------


def find_changes(config: JsonObject, plan: Plan, settings: Settings, kept: Kept) -> list[str]:
    """Return the changes that prevent resuming, a sentence each; empty if the run can continue.

    Args:
        config: the run's `config.json`.
        plan: the cells of this session.
        settings: this session's.
        kept: the rows to keep.
    """
    changes = [*_changed_prompts(config, plan), *_changed_settings(config, settings)]
    changes += _changed_providers(config, plan, {record.provider for record in kept.records})
    return changes or [*_changed_cells(config, plan, kept)]


def changed_keys(recorded: JsonObject, now: JsonObject) -> list[str]:
    """Return the keys in which a prompt's definition differs from the recorded one."""
    checked = keys_to(PROMPTS, "resume", "equal", PROMPTS)
    return [key for key in checked if recorded.get(key) != now.get(key)]


def describe_prompt(definition: JsonObject, what: str) -> str:
    """Return a sentence about a prompt, by its file and its id."""
    return f"{definition['suite']}: prompt {definition['id']}{what}"


def describe_change(definition: JsonObject, keys: Sequence[str]) -> str:
    """Return a sentence with the keys in which a prompt has changed."""
    have = "has" if len(keys) == 1 else "have"
    return describe_prompt(definition, f": its {', '.join(keys)} {have} changed")


def refusal(run_id: str, changes: Sequence[str]) -> str:
    """Return the error for a run that cannot be resumed, with a hint."""
    more = [f"and {len(changes) - MAX_SHOWN} more"] if len(changes) > MAX_SHOWN else []
    return "\n".join(
        [
            f"--openclaw-resume={run_id}: {IS_ANOTHER}:",
            *(f"  {change}" for change in [*changes[:MAX_SHOWN], *more]),
            "Undo that, or start a new run without --openclaw-resume. No request was sent.",
        ]
    )


def _changed_prompts(config: JsonObject, plan: Plan) -> Iterator[str]:
    recorded = {(prompt["suite"], prompt["id"]): prompt for prompt in config.get("prompts", ())}
    now = {(prompt["suite"], prompt["id"]): prompt for prompt in plan.prompts}
    for key, prompt in recorded.items():
        if key in now:
            if keys := changed_keys(prompt, now[key]):
                yield describe_change(prompt, keys)
        else:
            yield describe_prompt(prompt, " is not selected now, or was removed")
    for key, prompt in now.items():
        if key not in recorded:
            yield describe_prompt(prompt, " is selected now, and was not in the recorded run")


def _changed_settings(config: JsonObject, settings: Settings) -> Iterator[str]:
    now = settings_to_json(settings)
    for name in keys_to(SETTINGS, "resume", "equal", SETTINGS):
        if name in config and config[name] != now[name]:
            yield f"config.json: {name} was {_shown(config[name])}, and is {_shown(now[name])}"
    for name in keys_to(SETTINGS, "resume", "once", SETTINGS):
        if config.get(name) is not None and config[name] != now[name]:
            yield f"config.json: {name} was {_shown(config[name])}, and is {_shown(now[name])}"
    recorded = repeats_of(config)
    if settings.repeat < recorded:
        yield f"config.json: repeat was {recorded}, and is {settings.repeat}"
    elif settings.until_conclusive and not config.get("until_conclusive") and recorded > 1:
        yield f"config.json: until_conclusive was off while each prompt was asked {recorded} times, and is on"


def _changed_providers(config: JsonObject, plan: Plan, with_rows: Collection[str]) -> Iterator[str]:
    for name, recorded in config.get("providers", {}).items():
        now = plan.providers.get(name, {})
        for key in keys_to(PROVIDERS, "resume", "equal", dict.fromkeys([*recorded, *now])):
            if name in with_rows and recorded.get(key) != now.get(key):
                was, is_now = _shown(recorded.get(key)), _shown(now.get(key))
                yield f"config.json: provider {name}: its {key} was {was}, and is {is_now}"


def _changed_cells(config: JsonObject, plan: Plan, kept: Kept) -> Iterator[str]:
    for key in kept.replays:
        if key not in plan.cells:
            yield f"{key.suite}: {key.name} has a row, and is not selected now"
    for entry, target in zip(config["targets"], targets_of(config), strict=True):
        n_now = plan.n_up_to(target, repeats_of(config))
        if entry.get("n_cells", n_now) != n_now:
            yield f"{target.label}: {entry['n_cells']} cells were selected when the run began, {n_now} now"


def _shown(value: Any) -> str:
    if isinstance(value, list):
        return ", ".join(map(str, value))
    if isinstance(value, bool):
        return "on" if value else "off"
    return "not set" if value is None else str(value)
