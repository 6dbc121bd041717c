"""Find the cells still to run; check that the run is unchanged.

`types/run_config.py` has the rules, key by key. In addition, targets and selected prompts must be equal. A
provider without a kept row may have another address, which `config.json` then records. A run with one repeat
may continue until the tiers are settled. The ini file does not replace recorded settings, so
`--openclaw-resume=last` alone judges as the run did before.

The plan of a run: the cells that a session has selected.

The cells that a resumed run keeps: their rows, and their verdicts.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field, fields, replace
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, Any

from pytest_openclaw.openclaw.thinking import strip_thinking
from pytest_openclaw.reports.numbers import shorten
from pytest_openclaw.runs.reading import StoredRow, read_rows, repeats_of, target_of, without_texts
from pytest_openclaw.suites import is_wildcard
from pytest_openclaw.util.files import open_file
from pytest_openclaw.values.settings import (
    PROMPTS,
    PROVIDERS,
    SETTINGS,
    firm_gates,
    gates_of,
    keys_to,
    settings_to_json,
)

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping, Sequence
    from pathlib import Path

    from pytest_openclaw.util.json_types import JsonObject
    from pytest_openclaw.values.prompts import Cell
    from pytest_openclaw.values.requests import CellKey, Target
    from pytest_openclaw.values.rows import Record
    from pytest_openclaw.values.settings import Settings


@dataclass(frozen=True, kw_only=True)
class Plan:
    """The cells of a run.

    Attributes:
        n_selected: cells by target, targets in their order.
        prompts: the definition of every selected prompt.
        providers: what shapes a request, by provider.
        cells: the selected ones.
        by_repeat: cells by target and repeat; empty if each is its prompt's only one.
        divided: the digest of the cells of all shards; None if this run is not a shard.
        fixed: those among `by_repeat` whose prompt sets its own number of repeats.

    """

    n_selected: Mapping[Target, int]
    prompts: tuple[JsonObject, ...]
    providers: Mapping[str, JsonObject]
    cells: frozenset[CellKey] = frozenset()
    by_repeat: Mapping[tuple[Target, int], int] = field(default_factory=dict)
    divided: str | None = None
    fixed: Mapping[tuple[Target, int], int] = field(default_factory=dict)

    @classmethod
    def of(
        cls,
        cells: Sequence[Cell],
        targets: Sequence[Target],
        providers: Mapping[str, JsonObject],
        divided: str | None = None,
    ) -> Plan:
        """Return the plan of a run with these cells.

        Args:
            cells: the selected ones.
            targets: the session's, in their order.
            providers: see above.
            divided: see above.

        """
        from pytest_openclaw.suites import definitions

        prompts = {(cell.prompt.suite, cell.prompt.id): cell.prompt for cell in cells}
        n_selected = Counter(cell.target for cell in cells)
        return cls(
            n_selected={target: n_selected[target] for target in targets if target in n_selected},
            prompts=tuple(definitions(prompts.values())),
            providers=providers,
            cells=frozenset(cell.key for cell in cells),
            by_repeat=Counter((cell.target, cell.repeat) for cell in cells),
            divided=divided,
            fixed=Counter((cell.target, cell.repeat) for cell in cells if cell.prompt.repeat),
        )

    @property
    def n_cells(self) -> int:
        """Cells selected in all."""
        return sum(self.n_selected.values())

    def n_up_to(self, target: Target, repeat: int) -> int:
        """Count a target's cells up to a repeat, and all of its fixed repeats.

        Args:
            target: a target of the run.
            repeat: the last repeat that counts.

        """
        if not self.by_repeat:
            return self.n_selected.get(target, 0)
        return sum(
            n if of <= repeat else self.fixed.get((one, of), 0)
            for (one, of), n in self.by_repeat.items()
            if one == target
        )

    def n_fixed(self, target: Target) -> int:
        """Count the fixed repeats of a target, which are run whatever its tier is."""
        return sum(n for (one, _), n in self.fixed.items() if one == target)


KEPT_CELLS_MAX_SHOWN = 10
REPLY_WIDTH = 400
WHAT_WIDTH = 300


@dataclass(frozen=True, kw_only=True)
class Replay:
    """The verdict of a kept cell, to be reported again without a call.

    Texts are shortened, because under xdist every worker receives all replays.

    Attributes:
        passed: as pytest reported it.
        what: the violation, or the server's message; None if only `failure_type` is known.
        reply: the answer, shortened in the middle.
        known_failure: why it was expected.

    """

    passed: bool
    what: str | None = None
    failure_type: str | None = None
    reply: str = ""
    finish_reason: str | None = None
    tool_names: tuple[str, ...] = ()
    e2e_ms: int = 0
    ttft_ms: int | None = None
    known_failure: str | None = None

    @classmethod
    def of(cls, record: Record) -> Replay:
        """Return the replay of a cell with a reply."""
        if record.success and record.objective_pass is not False:
            return cls(passed=True)
        what = record.violation or record.fault_message
        return cls(
            passed=False,
            what=what and shorten(what, WHAT_WIDTH),
            failure_type=record.failure_type,
            reply=shorten(_answer(record), REPLY_WIDTH),
            finish_reason=record.finish_reason,
            tool_names=record.tool_calls[:KEPT_CELLS_MAX_SHOWN],
            e2e_ms=record.e2e_ms,
            ttft_ms=record.ttft_ms,
            known_failure=record.known_failure,
        )


def _answer(record: Record) -> str:
    """The answer without thinking; of a scripted exchange the last text."""
    text = str(record.turns[-1]["text"]) if record.turns else record.raw_output
    return strip_thinking(text).strip()


@dataclass(frozen=True, kw_only=True)
class Kept:
    """The rows that a resumed run keeps.

    Attributes:
        records: in the order of the file, without the models' replies.
        lines: their lines in `results.jsonl`, from 1.
        replays: by cell.
        is_whole: whether the file has these rows and nothing else.

    """

    records: tuple[Record, ...]
    lines: frozenset[int]
    replays: Mapping[CellKey, Replay]
    is_whole: bool


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
