"""One run, from its first cell to its summary: its rows, and the decisions on its repeats."""

from __future__ import annotations

from collections import Counter, deque
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING, Any

from pytest_openclaw.conclusions.recommendation import Evidence, recommend
from pytest_openclaw.conclusions.summary import Budget, Summary, summarize_run
from pytest_openclaw.openclaw.catalog import release_of
from pytest_openclaw.runs.directory import CONFIG, SUMMARY, SURFACE
from pytest_openclaw.runs.environment import Environment
from pytest_openclaw.runs.reading import in_planned_order, without_texts
from pytest_openclaw.runs.resume import answered_rows
from pytest_openclaw.runs.summaries import Plugins, write_summary
from pytest_openclaw.stats.tool_use import always_alike, is_futile, tool_use_of
from pytest_openclaw.util.signals import epoch_ms, held_signals
from pytest_openclaw.util.text import counted
from pytest_openclaw.values.faults import BUDGET_SPENT
from pytest_openclaw.values.parts import parts
from pytest_openclaw.values.requests import CellKey
from pytest_openclaw.values.rows import to_row
from pytest_openclaw.values.run_files import ConfigFile, Measured, Settled, checked, target_entries
from pytest_openclaw.values.settings import CONFIG_VERSION, settings_to_json

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from pytest_openclaw.runs.directory import RunDirectory
    from pytest_openclaw.runs.reading import StoredRun
    from pytest_openclaw.runs.resume import Plan
    from pytest_openclaw.suites.cells import Stage
    from pytest_openclaw.util.files import JsonObject
    from pytest_openclaw.values.requests import Target
    from pytest_openclaw.values.rows import LeftOut, Record
    from pytest_openclaw.values.settings import Settings


# --- early stopping -------------------------------------------------------------------------------


@dataclass(frozen=True, kw_only=True)
class Decision:
    """The decision after a stage whose cells all have rows; see `stages_of`.

    Attributes:
        stage: from 1.
        ends: the reason if the target's later stages are left out; None if they are run.
    """

    target: Target
    stage: int
    ends: str | None


class EarlyStopping:
    """Decides after each target's stages, one after the other, as its rows arrive.

    Args:
        stages: of the selected cells. A decision waits for the rows of all cells of its stage; it is not
            needed if all remaining cells are asked in any case.
        looks: the repeats after which results are examined; the last look is after the last repeat.

    Attributes:
        ended: the targets whose later stages are left out.
    """

    def __init__(self, stages: Mapping[CellKey, Stage], looks: tuple[int, ...]) -> None:
        self.ended: dict[Target, Settled] = {}
        self._looks = looks
        self._stages = stages
        self._n_missing: dict[Target, Counter[int]] = {}
        self._last: Counter[Target] = Counter()
        self._repeats: dict[tuple[Target, int], int | None] = {}
        for key, stage in stages.items():
            self._n_missing.setdefault(key.target, Counter())[stage.number] += 1
            self._repeats[key.target, stage.number] = stage.repeat
            if not stage.is_always_asked:
                self._last[key.target] = max(stage.number, self._last[key.target])
        self._records: dict[Target, list[Record]] = {target: [] for target in self._n_missing}
        self._through: Counter[Target] = Counter()
        self._left_out: set[CellKey] = set()

    def begin(self) -> Iterator[Decision]:
        """Decide after the stages that already have all their rows, or that the session did not select."""
        for target in self._n_missing:
            yield from self._decide(target)

    def take(self, record: Record) -> Iterator[Decision]:
        """Add the row of a cell."""
        if record.key in self._stages:
            self._records[record.target].append(record)
            yield from self._end_cell(record.key)

    def leave_out(self, key: CellKey) -> Iterator[Decision]:
        """Stop waiting for the row of one cell."""
        if key in self._stages:
            self._left_out.add(key)
            yield from self._end_cell(key)

    def n_needed(self, target: Target) -> int:
        """Count a target's cells in the stages so far, and the cells that are asked in any case."""
        through = self._through[target]
        return sum(
            key.target == target and (stage.number <= through or stage.is_always_asked)
            for key, stage in self._stages.items()
            if key not in self._left_out
        )

    def _end_cell(self, key: CellKey) -> Iterator[Decision]:
        self._n_missing[key.target][self._stages[key].number] -= 1
        yield from self._decide(key.target)

    def _decide(self, target: Target) -> Iterator[Decision]:
        while target not in self.ended:
            stage = self._through[target] + 1
            if stage >= self._last[target] or self._n_missing[target][stage] > 0:
                return
            self._through[target] = stage
            # Rows of later stages that arrived early do not count: a decision must not depend on speed.
            records = [record for record in self._records[target] if self._stages[record.key].number <= stage]
            repeat = self._repeats.get((target, stage), stage)
            counted_first = [
                one.number
                for key, one in self._stages.items()
                if key.target == target and key.repeat == 1 and not one.is_always_asked
            ]
            n_asked, n = sum(number <= stage for number in counted_first), len(counted_first)
            after = f"{n_asked} of {n} prompts" if repeat is None else counted(repeat, "repeat")
            n_targets = len(self._n_missing)
            if ends := why_it_ends(records, repeat, self._looks, n_targets=n_targets, after=f"after {after}"):
                self.ended[target] = Settled(repeat=repeat or 1, prompts=n_asked, of=n)
            yield Decision(target=target, stage=stage, ends=ends)


def why_it_ends(
    records: Sequence[Record],
    repeat: int | None,
    looks: tuple[int, ...],
    *,
    n_targets: int = 1,
    after: str = "",
) -> str | None:
    """Return why a target with these rows is settled, or None.

    The repeat is the one that has just ended. Within the first one it is None: only reasons against the
    target count. `after` says when, such as `after 3 repeats`.
    """
    answered = [record for record in records if record.availability_status == "ok"]
    latest = [record for record in records if record.repeat == repeat]
    if latest and not any(record.repeat == repeat for record in answered):
        return f"nothing was answered in repeat {repeat}"
    use = tool_use_of(answered, n_targets, looks) if repeat is None or repeat in looks else None
    if use:
        if repeat and use.conclusive:
            return f"tier {use.tier} is settled {after}"
        found = recommend(Evidence(records=records, use=use))
        if found.kind in ("unsafe", "not_trusted") or (repeat and found.kind == "trusted"):
            return f"settled {after}: {found.sentence}"
    if repeat and always_alike(answered):
        # Rate and effective sample are the same as after the first repeat, so this is not another look.
        return f"all repeats are alike {after}: only new prompts can settle the tier"
    if use and repeat in looks[1:] and is_futile(answered, use):
        return f"more repeats would hardly settle the tier {after}: new prompts can"
    return None


# --- the run --------------------------------------------------------------------------------------


class RunSession:
    """Collects the rows of a run and writes its directory, in the process that receives the reports.

    Attributes:
        records: the rows so far, without texts, which would take too much memory.
        decisions: on the targets' repeats, oldest first; the caller removes the decisions that it publishes.
        environment: receives facts about the targets.

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
        release = release_of(settings.catalogue_file)
        self.environment = Environment(directory, plan.targets, release, earlier.inventory if earlier else {})
        self._early_stopping = EarlyStopping(plan.stages, settings.looks)
        self._n_left_out: Counter[Target] = Counter()
        self._n_open = Counter(plan.n_selected)
        self._recorded: set[CellKey] = set()
        self._shared: dict[Any, Any] = {}
        if earlier:
            self._take_over(earlier)
        self.decisions += self._early_stopping.begin()
        if surface := settings.surface:
            directory.write_json(SURFACE, asdict(surface))
        config = self._config()
        # Before a request: no command could read the run otherwise.
        checked(directory.path / CONFIG, ConfigFile, config)
        self.environment.write()
        directory.write_json(CONFIG, config)  # last: a directory without it is not a run

    def _take_over(self, earlier: StoredRun) -> None:
        """Continue a run: keep the rows on disk that have a reply."""
        rows = [*answered_rows(earlier).values()]
        self.directory.replace_rows(row.line for row in rows)
        # Summary and reports describe rows that may be replaced now.
        self.directory.remove(SUMMARY, *(report.name for _, report in self.plugins.reports))
        for row in rows:
            self._count(row.record)

    def add(self, record: Record) -> None:
        """Write a row to disk, then count it.

        A cell keeps its first row if another plugin, or xdist after a worker's death, runs it again.
        """
        if record.key in self._recorded:
            return
        record = replace(record, run_id=self.directory.run_id, host=self.environment.host)
        row = to_row(record)
        row |= self.plugins.added_keys(row)
        with held_signals():  # otherwise an interrupt could leave a row out of the summary
            self.directory.append(row)
            self._count(record)
        self._end_cell(record.target)

    def _count(self, record: Record) -> None:
        self._recorded.add(record.key)
        self.records.append(without_texts(record, self._shared))
        self._decide(self._early_stopping.take(record))

    def leave_out(self, cell: LeftOut) -> None:
        """Remove a cell that was skipped before it was sent."""
        target = next(target for target in self.plan.targets if target.label == cell.target)
        self._n_left_out[target] += 1
        self._end_cell(target)
        key = CellKey(cell.suite, cell.prompt_id, target, cell.repeat)
        self._decide(self._early_stopping.leave_out(key))

    def _end_cell(self, target: Target) -> None:
        self._n_open[target] -= 1
        if self._n_open[target] == 0:
            self.environment.end([target])

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
        self.environment.end(dict.fromkeys(record.target for record in records))
        measured = Measured(
            run_id=self.directory.run_id,
            records=tuple(records),
            config=config,
            inventory=self.environment.inventory,
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
        """Count the cells of each target that are needed, see `EarlyStopping.n_needed`."""
        n_rows = Counter(record.target for record in self.records)
        stopping = self._early_stopping
        return {
            target: max(n_rows[target], stopping.n_needed(target))
            if target in stopping.ended
            else n - self._n_left_out[target]
            for target, n in self.plan.n_selected.items()
        }

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
            "targets": target_entries(self._n_selected(), self._early_stopping.ended),
            "providers": dict(self.plan.providers),
            **(settings_to_json(self._settings) | recorded),
            "divided_sha256": self.plan.divided,
            "prompts": [*self.plan.prompts.values()],
        }
