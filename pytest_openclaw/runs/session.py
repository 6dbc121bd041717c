"""One run, from its first cell to its summary: its plan, its rows, and the decisions on its repeats.

A resumed run keeps rows, runs the other cells, and refuses changes. `values/settings.py` has the rules, key
by key. In addition, targets and selected prompts must be equal. A provider without a kept row may have
another address, which `config.json` then records. A run with one repeat may continue until the tiers are
settled. The ini file does not replace recorded settings, so `--openclaw-resume=last` by itself judges as
before.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields, replace
from functools import cached_property
from typing import Any

from pytest_openclaw.asking.sending import collect_snapshot
from pytest_openclaw.conclusions.summary import Budget, Summary, summarize_run
from pytest_openclaw.openclaw.catalog import release_of
from pytest_openclaw.reports.numbers import shorten
from pytest_openclaw.runs.directory import (
    CONFIG,
    INVENTORY,
    SUMMARY,
    SURFACE,
    RunDirectory,
    collect_inventory,
    file_names,
    write_snapshot,
)
from pytest_openclaw.runs.reading import StoredRow, StoredRun, in_planned_order, repeats_of, without_texts
from pytest_openclaw.runs.summaries import Plugins, write_summary
from pytest_openclaw.suites.cells import definitions
from pytest_openclaw.util.files import JsonObject
from pytest_openclaw.util.signals import epoch_ms, held_signals
from pytest_openclaw.values.faults import BUDGET_SPENT
from pytest_openclaw.values.parts import called, pace_of, parts
from pytest_openclaw.values.prompts import Cell, prompt_rules
from pytest_openclaw.values.requests import CellKey, PromptKey, Target, target_of
from pytest_openclaw.values.rows import LeftOut, Record, to_row
from pytest_openclaw.values.run_files import AFTER, BEFORE, ConfigFile, MeasuredRun, checked, target_entries
from pytest_openclaw.values.settings import (
    CONFIG_VERSION,
    PROVIDERS,
    Settings,
    keys_to,
    setting_rules,
    settings_to_json,
)

MAX_SHOWN = 10
VIOLATION_WIDTH = 300


# --- the cells of a session -----------------------------------------------------------------------


@dataclass(frozen=True, kw_only=True)
class Decision:
    """The decision after a stage whose cells all have rows.

    Attributes:
        stage: from 1.
        ends: the reason if the target's later stages are left out; None if they are run.
    """

    target: Target
    stage: int
    ends: str | None


class Stopping:
    """Decides which cells of a run are left out; this one asks all.

    Attributes:
        ended: the targets whose later stages are left out, with keys for their entries in `config.json`.
    """

    def __init__(self) -> None:
        self.ended: dict[Target, JsonObject] = {}

    def waiting_stage(self, key: CellKey) -> int:  # noqa: ARG002 - for parts
        """Return the stage before which a cell is not sent; 0 if it is asked in any case."""
        return 0

    def begin(self) -> Iterable[Decision]:
        """Decide after the stages that already have all their rows, or that the session did not select."""
        return ()

    def take(self, record: Record) -> Iterable[Decision]:  # noqa: ARG002
        """Add the row of a cell."""
        return ()

    def leave_out(self, key: CellKey) -> Iterable[Decision]:  # noqa: ARG002
        """Stop waiting for the row of one cell."""
        return ()

    def n_needed(self, target: Target) -> int | None:  # noqa: ARG002
        """Count the cells that are asked of a target that has ended; None for another target."""
        return None


@dataclass(frozen=True, kw_only=True)
class Plan:
    """The cells of a run.

    Attributes:
        cells: the selected cells.
        targets: the targets with selected cells, in the session's order.
        prompts: the definition of every selected prompt.
        providers: the settings that shape a request, by provider.
        divided: the digest of the cells of all shards; None if this run is not a shard.
        stopping: decides which cells are left out.
    """

    cells: frozenset[CellKey]
    targets: tuple[Target, ...]
    prompts: Mapping[PromptKey, JsonObject]
    providers: Mapping[str, JsonObject]
    divided: str | None = None
    stopping: Stopping = field(default_factory=Stopping)

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
        pace = pace_of(settings)
        return cls(
            cells=frozenset(cell.key for cell in cells),
            targets=tuple(target for target in settings.targets if target in asked),
            prompts=dict(zip(prompts, definitions(prompts.values()), strict=True)),
            providers=providers,
            divided=divided,
            stopping=pace.stopping(cells) if pace else Stopping(),
        )

    @cached_property
    def n_selected(self) -> Mapping[Target, int]:
        """The number of cells of each target, in the order of the targets."""
        n_cells = Counter(key.target for key in self.cells)
        return {target: n_cells[target] for target in self.targets}


# --- kept rows ------------------------------------------------------------------------------------


@dataclass(frozen=True, kw_only=True)
class EarlierVerdict:
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
    def of(cls, record: Record) -> EarlierVerdict:
        """Return the verdict of a cell with a reply."""
        if record.success and record.objective_pass is not False:
            return cls(passed=True)
        what = record.violation or record.fault_message or record.failure_type or ""
        return cls(passed=False, what=shorten(what, VIOLATION_WIDTH), known_failure=record.known_failure)


def answered_rows(run: StoredRun) -> dict[CellKey, StoredRow]:
    """Return the rows that a resumed run keeps: the rows with a reply, or with harm before a fault."""
    rows = run.rows.items()
    return {key: row for key, row in rows if row.record.availability_status == "ok" or row.record.harm}


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
    kept: Mapping[CellKey, EarlierVerdict]
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
    checked = keys_to(prompt_rules(), "resume", "equal", prompt_rules())
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
    for changes in called("changes"):
        yield from changes(config, settings)


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


# --- the run --------------------------------------------------------------------------------------


class RunSession:
    """Collects the rows of a run and writes its directory, in the process that receives the reports.

    Attributes:
        records: the rows so far, without texts, which would take too much memory.
        decisions: on the targets' repeats, oldest first; the caller removes the decisions that it publishes.
        inventory: the content of `inventory.json`: facts about the machine and the targets.

    Raises:
        OpenClawError: on creation, if a provider's settings or a prompt cannot be read back.
        OSError: on creation, if the directory cannot be written; a resumed run then keeps all its rows.
    """

    def __init__(
        self,
        directory: RunDirectory,
        settings: Settings,
        plan: Plan,
        earlier: StoredRun | None = None,
        held: Mapping[str, Any] | None = None,
        plugins: Plugins | None = None,
    ) -> None:
        self.directory = directory
        self.plan = plan
        self.records: list[Record] = []
        self.plugins = plugins or Plugins()
        self.decisions: deque[Decision] = deque()
        self._settings = settings
        self._held = held or {}
        here, known = collect_inventory(), earlier.inventory if earlier else {}
        self._host: str = here["host"]["name"]
        self._facts: dict[str, JsonObject] = dict(known.get("targets", {}))
        self.inventory = {
            "run_id": directory.run_id,
            "openclaw_release": release_of(settings.catalogue_file),
            **{name: known.get(name, value) for name, value in here.items()},
            "targets": self._facts,
        }
        self._file_names = file_names(plan.targets)
        self._left_out: set[CellKey] = set()
        self._n_open = Counter(plan.n_selected)
        self._recorded: set[CellKey] = set()
        self._shared: dict[Any, Any] = {}
        if earlier:
            kept = [*answered_rows(earlier).values()]
            directory.replace_rows(row.line for row in kept)
            # Summary and reports describe rows that may be replaced now.
            directory.remove(SUMMARY, *(report.name for _, report in self.plugins.reports))
            for row in kept:
                self._count(row.record)
        self.decisions += plan.stopping.begin()
        if surface := settings.surface:
            directory.write_json(SURFACE, asdict(surface))
        config = self._config()
        # Before a request: no command could read the run otherwise.
        checked(directory.path / CONFIG, ConfigFile, config)
        directory.write_json(INVENTORY, self.inventory)
        directory.write_json(CONFIG, config)  # last: a directory without it is not a run

    def add(self, record: Record) -> None:
        """Write a row to disk, then count it.

        A cell keeps its first row if another plugin, or xdist after a worker's death, runs it again.
        """
        if record.key in self._recorded:
            return
        record = replace(record, run_id=self.directory.run_id, host=self._host)
        row = to_row(record)
        row |= self.plugins.added_keys(row)
        with held_signals():  # otherwise an interrupt could leave a row out of the summary
            self.directory.append(row)
            self._count(record)
        self._end_cell(record.target)

    def has_ended(self, key: CellKey) -> bool:
        """Whether a cell has a row, or was skipped."""
        return key in self._recorded or key in self._left_out

    def _count(self, record: Record) -> None:
        self._recorded.add(record.key)
        self.records.append(without_texts(record, self._shared))
        self._decide(self.plan.stopping.take(record))

    def leave_out(self, cell: LeftOut) -> None:
        """Remove a cell that was skipped before it was sent."""
        target = next(target for target in self.plan.targets if target.label == cell.target)
        key = CellKey(cell.suite, cell.prompt_id, target, cell.repeat)
        self._left_out.add(key)
        self._end_cell(target)
        self._decide(self.plan.stopping.leave_out(key))

    def _end_cell(self, target: Target) -> None:
        self._n_open[target] -= 1
        if self._n_open[target] == 0:
            self._end_target(target)

    def _end_target(self, target: Target) -> None:
        known = self._facts.get(target.label, {})
        if BEFORE in known and AFTER not in known:
            self.take_facts(target, {AFTER: collect_snapshot()})

    def take_facts(self, target: Target, facts: JsonObject) -> None:
        """Write new facts about a target (see `Asker.facts`); the first fact of each name counts."""
        known = self._facts.setdefault(target.label, {})
        if BEFORE in facts:
            known.pop(AFTER, None)  # from an earlier session: it would precede cells of this one
        for name, value in facts.items():
            if name not in known:
                known[name] = value
                write_snapshot(self.directory, self._file_names[target], target.label, name, value)
            elif name == "server" and known[name] != value:
                known["server_when_resumed"] = value
        self.directory.write_json(INVENTORY, self.inventory)

    def take_evidence(self, target: Target, name: str, evidence: JsonObject, whole: JsonObject) -> None:
        """Write the evidence of a part, and the whole evidence to a file."""
        self.directory.write_json(f"{name}_{self._file_names[target]}.json", whole)
        self._facts.setdefault(target.label, {})[name] = evidence
        self.directory.write_json(INVENTORY, self.inventory)

    def _decide(self, decisions: Iterable[Decision]) -> None:
        made = [*decisions]
        self.decisions += made
        if any(decision.ends for decision in made):
            self.directory.write_json(CONFIG, self._config())

    def finish(self, *, spent_usd: float = 0.0) -> Summary:
        """Write the summary of the rows so far, and return it."""
        records = in_planned_order(self.records, self.plan.targets, self.plan.prompts)
        config = self._config()  # without cells that were skipped
        self.directory.write_json(CONFIG, config)
        for target in dict.fromkeys(record.target for record in records):
            self._end_target(target)
        measured = MeasuredRun(
            run_id=self.directory.run_id,
            records=records,
            config=config,
            inventory=self.inventory,
            n_selected=self._n_selected(),
            held=self._held,
        )
        settings = self._settings
        summary = summarize_run(measured, epoch_ms())
        if (budget_usd := settings.budget_usd) is not None:
            n_not_asked = sum(record.failure_type == BUDGET_SPENT for record in records)
            budget = Budget(budget_usd=budget_usd, spent_usd=spent_usd, n_not_asked=n_not_asked)
            summary = replace(summary, budget=budget)
        return write_summary(self.directory, summary, records, self.plugins)

    def _n_selected(self) -> dict[Target, int]:
        n_rows = Counter(record.target for record in self.records)
        n_left_out = Counter(key.target for key in self._left_out)
        n_needed: dict[Target, int] = {}
        for target, n in self.plan.n_selected.items():
            n_ended = self.plan.stopping.n_needed(target)
            n_needed[target] = n - n_left_out[target] if n_ended is None else max(n_rows[target], n_ended)
        return n_needed

    def _config(self) -> JsonObject:
        known = parts()
        recorded: JsonObject = {}
        for name, held in self._held.items():
            if record := known[name].recorded:
                recorded |= record(held)
        return {
            "schema_version": CONFIG_VERSION,
            "run_id": self.directory.run_id,
            "models": list(dict.fromkeys(target.model for target in self.plan.targets)),
            "targets": target_entries(self._n_selected(), self.plan.stopping.ended),
            "providers": dict(self.plan.providers),
            **(settings_to_json(self._settings) | recorded),
            "divided_sha256": self.plan.divided,
            "prompts": [*self.plan.prompts.values()],
        }
