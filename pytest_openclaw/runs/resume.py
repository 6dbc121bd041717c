"""Rows that a resumed run keeps, cells that it still runs, and changes that prevent resuming.

`values/settings.py` has the rules, key by key. In addition, targets and selected prompts must be equal. A
provider without a kept row may have another address, which `config.json` then records. A run with one repeat
may continue until the tiers are settled. The ini file does not replace recorded settings, so
`--openclaw-resume=last` by itself judges as before.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field, fields, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

from pytest_openclaw.reports.numbers import shorten
from pytest_openclaw.runs.reading import repeats_of
from pytest_openclaw.suites.cells import definitions, stages_of
from pytest_openclaw.values.parts import called
from pytest_openclaw.values.prompts import PROMPTS
from pytest_openclaw.values.requests import target_of
from pytest_openclaw.values.settings import (
    PROVIDERS,
    keys_to,
    setting_rules,
    settings_to_json,
)

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping, Sequence

    from pytest_openclaw.runs.directory import RunDirectory
    from pytest_openclaw.runs.reading import StoredRow, StoredRun
    from pytest_openclaw.suites.cells import Stage
    from pytest_openclaw.util.files import JsonObject
    from pytest_openclaw.values.prompts import Cell
    from pytest_openclaw.values.requests import CellKey, PromptKey, Target
    from pytest_openclaw.values.rows import Record
    from pytest_openclaw.values.settings import Settings

MAX_SHOWN = 10
VIOLATION_WIDTH = 300


# --- the cells of a session -----------------------------------------------------------------------


@dataclass(frozen=True, kw_only=True)
class Plan:
    """The cells of a run.

    Attributes:
        cells: the selected cells.
        targets: the targets with selected cells, in the session's order.
        prompts: the definition of every selected prompt.
        providers: the settings that shape a request, by provider.
        divided: the digest of the cells of all shards; None if this run is not a shard.
        stages: the stage of each cell if the run ends when recommendations are settled, else empty.
    """

    cells: frozenset[CellKey]
    targets: tuple[Target, ...]
    prompts: Mapping[PromptKey, JsonObject]
    providers: Mapping[str, JsonObject]
    divided: str | None = None
    stages: Mapping[CellKey, Stage] = field(default_factory=dict)

    @classmethod
    def of(
        cls,
        cells: Sequence[Cell],
        settings: Settings,
        providers: Mapping[str, JsonObject],
        divided: str | None = None,
    ) -> Plan:
        """Return the plan of a run with these cells."""
        prompts = {(cell.prompt.suite, cell.prompt.id): cell.prompt for cell in cells}
        asked = {cell.target for cell in cells}
        return cls(
            cells=frozenset(cell.key for cell in cells),
            targets=tuple(target for target in settings.targets if target in asked),
            prompts=dict(zip(prompts, definitions(prompts.values()), strict=True)),
            providers=providers,
            divided=divided,
            stages=stages_of(cells) if settings.until_conclusive else {},
        )

    def waiting_stage(self, key: CellKey) -> int:
        """Return the stage before which a cell is not sent; 0 if it is asked in any case."""
        stage = self.stages.get(key)
        return 0 if stage is None or stage.is_always_asked else stage.number

    @cached_property
    def n_selected(self) -> Mapping[Target, int]:
        """The number of cells of each target, in the order of the targets."""
        n_cells = Counter(key.target for key in self.cells)
        return {target: n_cells[target] for target in self.targets}


# --- kept rows ------------------------------------------------------------------------------------


@dataclass(frozen=True, kw_only=True)
class Replay:
    """The verdict of a kept cell, to be reported again without a call.

    Attributes:
        passed: as pytest reported it.
        what: the violation, the server's message, or the failure type; shortened, because under xdist every
            worker receives all replays.
        known_failure: why the failure was expected.
    """

    passed: bool
    what: str = ""
    known_failure: str | None = None

    @classmethod
    def of(cls, record: Record) -> Replay:
        """Return the replay of a cell with a reply."""
        if record.success and record.objective_pass is not False:
            return cls(passed=True)
        what = record.violation or record.fault_message or record.failure_type or ""
        return cls(passed=False, what=shorten(what, VIOLATION_WIDTH), known_failure=record.known_failure)


def answered_rows(run: StoredRun) -> dict[CellKey, StoredRow]:
    """Return the rows that a resumed run keeps: the rows with a reply."""
    return {key: row for key, row in run.rows.items() if row.record.availability_status == "ok"}


# --- the settings of a resumed run ----------------------------------------------------------------


def settings_of(config: JsonObject, settings: Settings, given: Collection[str]) -> Settings:
    """Return the settings of this session, with the settings that a resumed run keeps.

    Args:
        config: the run's `config.json`.
        settings: from options and ini file.
        given: the names of the options on the command line, such as `min-pass-rate`.
    """
    rules = setting_rules()
    own = {field.name for field in fields(settings)}
    others: dict[str, Any] = {
        name: config[name]
        for need in ("equal", "kept")
        for name in keys_to(rules, "resume", need, rules)
        if name in own and config.get(name) is not None and name.replace("_", "-") not in given
    }
    was_conditional = bool(config.get("until_conclusive"))
    if was_conditional or "until-conclusive" not in given:
        others["until_conclusive"] = was_conditional
        if "repeat" not in given:
            others["repeat"] = repeats_of(config)
    for resumed in called("resumed"):
        others |= resumed(config, settings, given)
    return replace(settings, **{**others, "targets": tuple(map(target_of, config["targets"]))})


@dataclass(frozen=True, kw_only=True)
class ResumedRun:
    """The run that this session continues, as earlier sessions left it.

    Attributes:
        settings: of this session, with the settings that the run keeps.
        kept: the kept verdicts, by cell.
        directory: locked until the session ends; None if the session writes nothing.
    """

    earlier: StoredRun
    settings: Settings
    kept: Mapping[CellKey, Replay]
    directory: RunDirectory | None = None

    def refusal(self, plan: Plan, settings: Settings) -> str:
        """Return the error if this session would change the definition of the run, else an empty text."""
        changes = find_changes(self.earlier.config, self.kept, plan, settings)
        if not changes:
            return ""
        more = [f"and {len(changes) - MAX_SHOWN} more"] if len(changes) > MAX_SHOWN else []
        return "\n".join(
            [
                f"--openclaw-resume={self.earlier.run_id}: this differs from the recorded run:",
                *(f"  {change}" for change in [*changes[:MAX_SHOWN], *more]),
                "Undo that, or start a new run without --openclaw-resume. No request was sent.",
            ]
        )


# --- changes ------------------------------------------------------------------------------------


def find_changes(config: JsonObject, kept: Collection[CellKey], plan: Plan, settings: Settings) -> list[str]:
    """Return the changes that prevent resuming, one sentence each; empty if the run can continue.

    Args:
        config: the run's `config.json`.
        kept: the cells that keep their row.
        plan: of this session.
        settings: of this session.
    """
    changes = [*_changed_prompts(config, plan), *_changed_settings(config, settings)]
    changes += _changed_providers(config, plan, {key.target.provider for key in kept})
    lost = (key for key in kept if key not in plan.cells)
    return changes or [f"{key.suite}: {key.name} has a row, and is not selected now" for key in lost]


def _changed_prompts(config: JsonObject, plan: Plan) -> Iterator[str]:
    recorded = {(prompt["suite"], prompt["id"]): prompt for prompt in config.get("prompts", ())}
    checked = keys_to(PROMPTS, "resume", "equal", PROMPTS)
    for key in dict.fromkeys([*recorded, *plan.prompts]):
        suite, prompt_id = key
        name = f"{suite}: prompt {prompt_id}"
        then, now = recorded.get(key), plan.prompts.get(key)
        if then is None:
            yield f"{name} is selected now, and was not in the recorded run"
        elif now is None:
            yield f"{name} is not selected now, or was removed"
        elif keys := [one for one in checked if then.get(one) != now.get(one)]:
            yield f"{name}: its {', '.join(keys)} {'has' if len(keys) == 1 else 'have'} changed"


def _changed_settings(config: JsonObject, settings: Settings) -> Iterator[str]:
    now = settings_to_json(settings)
    rules = setting_rules()
    equal = [name for name in keys_to(rules, "resume", "equal", rules) if name in config]
    once = [name for name in keys_to(rules, "resume", "once", rules) if config.get(name) is not None]
    for name in (*equal, *once):
        if config[name] != now[name]:
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


def _shown(value: Any) -> str:
    if isinstance(value, list):
        return ", ".join(map(str, value))
    if isinstance(value, bool):
        return "on" if value else "off"
    return "not set" if value is None else str(value)
