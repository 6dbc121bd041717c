"""One run, from its first cell to its summary, with all of its state."""

from __future__ import annotations

import json
from collections import Counter, deque
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from pytest_openclaw.core.clock import epoch_ms
from pytest_openclaw.core.json_lines import line_of
from pytest_openclaw.core.signals import held_signals
from pytest_openclaw.recording.early_stopping import EarlyStopping
from pytest_openclaw.recording.environment import EnvironmentSnapshots
from pytest_openclaw.recording.plugins import Plugins
from pytest_openclaw.recording.run_directory import CONFIG, SURFACE
from pytest_openclaw.stats.light_records import without_texts
from pytest_openclaw.stats.summarizing import summarize_run
from pytest_openclaw.stats.summary import Budget, Summary, summary_to_json
from pytest_openclaw.tools.catalogue import release_of
from pytest_openclaw.types.faults import BUDGET_SPENT
from pytest_openclaw.types.rows import to_row
from pytest_openclaw.types.run_config import CONFIG_VERSION, settings_to_json
from pytest_openclaw.types.surface import surface_facts, surface_to_json

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from pytest_openclaw.core.json_types import JsonObject
    from pytest_openclaw.recording.early_stopping import Decision
    from pytest_openclaw.recording.kept_cells import Kept
    from pytest_openclaw.recording.run_directory import RunDirectory
    from pytest_openclaw.recording.selection import Plan
    from pytest_openclaw.stats.compared_runs import ComparedRuns
    from pytest_openclaw.stats.run_comparison import Measured
    from pytest_openclaw.types.payloads import LeftOut
    from pytest_openclaw.types.records import Record
    from pytest_openclaw.types.settings import Settings
    from pytest_openclaw.types.targets import Target


@dataclass(frozen=True, kw_only=True)
class EarlierSessions:
    """What earlier sessions of a resumed run have written.

    Attributes:
        config, inventory: the content of its files.
        kept: the rows to keep.
    """

    config: JsonObject
    inventory: JsonObject
    kept: Kept


class RunSession:
    """Collects the rows of a run and writes its directory, in the process where the reports arrive.

    Args:
        directory: of the run, open.
        settings: this session's.
        plan: the cells to run.
        earlier: what earlier sessions have written, if the run is resumed.
        baseline: the run to compare with.
        plugins: their row hooks and reports; without any, the built-in reports are written.

    Attributes:
        records: the rows so far; ten thousand replies of 64 KiB are kept on disk, not in memory.
        decisions: on the targets' repeats, oldest first; the run writer removes those it publishes.

    Raises:
        OSError: on creation, if the directory cannot be written; a resumed run has all its rows then.
    """

    def __init__(
        self,
        directory: RunDirectory,
        settings: Settings,
        plan: Plan,
        earlier: EarlierSessions | None = None,
        baseline: Measured | None = None,
        plugins: Plugins | None = None,
    ) -> None:
        self.directory = directory
        # The definitions of ten thousand prompts take 10 MB: from now on they are in `config.json` alone.
        self.plan = replace(plan, prompts=(), cells=frozenset())
        self.records: list[Record] = []
        self.plugins = plugins or Plugins()
        self._settings = settings
        self._baseline = baseline
        self._n_selected = plan.n_selected
        prompts = {_identity(prompt): prompt for prompt in plan.prompts}
        self._places: dict[str, dict[str, int]] = {}
        for place, (suite, prompt_id) in enumerate(prompts):
            self._places.setdefault(suite, {})[prompt_id] = place
        self._snapshots = EnvironmentSnapshots(
            directory, plan.n_selected, release_of(Path(settings.catalogue) if settings.catalogue else None)
        )
        self._early_stopping = EarlyStopping(
            plan.by_repeat if settings.until_conclusive else {}, settings.looks, plan.fixed
        )
        self._n_open = Counter(plan.n_selected)
        # By the hash of a cell's key, the number of its record; and of those that were run again.
        self._numbers: dict[int, int] = {}
        self._rerun: set[int] = set()
        self.decisions: deque[Decision] = deque()
        if earlier:
            prompts = {_identity(prompt): prompt for prompt in earlier.config.get("prompts", ())} | prompts
            self._take_over(earlier)
        self._fixed_prompts = {key for key, prompt in prompts.items() if prompt.get("repeat")}
        self.decisions += self._early_stopping.begin()
        if (surface := settings.surface) and not surface.missing:
            directory.write_json(SURFACE, surface_to_json(surface))
        self._write_config([*prompts.values()])
        self._snapshots.write()

    @property
    def host(self) -> str:
        """The name of this machine in rows."""
        return self._snapshots.host

    @property
    def suites(self) -> set[str]:
        """The names of the selected cells' suites."""
        return set(self._places)

    def add(self, record: Record) -> bool:
        """Write a row to disk, then take it into the counts.

        Returns:
            False for a later try of a cell, which another plugin has run again: it is kept for the first
            one's `reruns`.
        """
        number = self._numbers.setdefault(hash(record.key), len(self.records))
        if number < len(self.records):
            first = self.records[number]
            reruns = record.reruns or (*first.reruns, record.as_rerun())
            self.records[number] = replace(first, reruns=reruns)
            self._rerun.add(number)
            return False
        record = replace(record, run_id=self.directory.run_id, host=self.host)
        row = to_row(record)
        row |= self.plugins.added_keys(row)
        with held_signals():  # otherwise an interrupt could leave a row out of the summary
            self.directory.append(row)
            self.records.append(without_texts(record))
        self._count_down(record.target)
        self._decide(self._early_stopping.take(record))
        return True

    def take_facts(self, target: Target, facts: JsonObject) -> None:
        """Add new facts about a target, see `Asker.facts`."""
        self._snapshots.take(target, facts)

    def leave_out(self, cell: LeftOut) -> None:
        """Remove a cell that was skipped before it was sent."""
        target = next(target for target in self.plan.n_selected if target.label == cell.target)
        n_selected = {**self.plan.n_selected, target: self.plan.n_selected[target] - 1}
        fixed = Counter(self.plan.fixed)
        if cell.is_fixed:
            fixed[target, cell.repeat] -= 1
        self.plan = replace(self.plan, n_selected=n_selected, fixed=fixed)
        self._count_down(target)
        self._decide(self._early_stopping.leave_out(target, cell.repeat))

    def _count_down(self, target: Target) -> None:
        """Take the snapshot after a target's last cell."""
        self._n_open[target] -= 1
        if self._n_open[target] == 0:
            self._snapshots.end([target])

    def take_diagnosis(self, target: Target, evidence: JsonObject) -> None:
        """Add what the repeats of a target's cell have shown."""
        self._snapshots.take_diagnosis(target, evidence)

    def finish(self, n_unrecorded_calls: int = 0, *, spent_usd: float = 0.0) -> Summary:
        """Write the summary of the rows so far, and return it.

        Args:
            n_unrecorded_calls: calls of workers that may have no row, if cells are missing.
            spent_usd: by this session; part of the summary if there is a budget.
        """
        if self._rerun:
            self.directory.rewrite_rows(self._with_reruns)
        records = self._in_order()
        n_rows = Counter(record.target for record in records)
        ended = self._early_stopping.ended
        # A settled target lacks only fixed repeats, even if its further repeats were never collected.
        n_selected = {
            target: n_rows[target] + self._n_fixed_missing(target) if target in ended else n
            for target, n in self.plan.n_selected.items()
        }
        self._snapshots.end(dict.fromkeys(record.target for record in records))
        summary = summarize_run(
            records,
            n_selected,
            self._settings.gates,
            {target: self._snapshots.snapshots_of(target) for target in n_selected},
            run_id=self.directory.run_id,
            generated_at_ms=epoch_ms(),
            looks=self._settings.looks,
            n_unrecorded_calls=n_unrecorded_calls,
            comparison=self._compared(records, n_selected),
            surface=surface_facts(self._settings.surface),
        )
        if (budget_usd := self._settings.budget_usd) is not None:
            n_not_asked = sum(record.failure_type == BUDGET_SPENT for record in records)
            budget = Budget(budget_usd=budget_usd, spent_usd=spent_usd, n_not_asked=n_not_asked)
            summary = replace(summary, budget=budget)
        self.directory.write_json("summary.json", summary_to_json(summary))
        self.plugins.write_reports(self.directory, summary)
        return summary

    def _with_reruns(self, line_number: int, line: bytes) -> bytes:
        if line_number - 1 not in self._rerun:
            return line
        return line_of({**json.loads(line), "reruns": [*self.records[line_number - 1].reruns]})

    def _n_fixed_missing(self, target: Target) -> int:
        """Count the fixed repeats of a target that have no row yet."""
        fixed = self._fixed_prompts
        n_rows = sum(one.target == target and (one.suite, one.prompt_id) in fixed for one in self.records)
        return max(0, self.plan.n_fixed(target) - n_rows)

    def _compared(self, records: Sequence[Record], n_selected: Mapping[Target, int]) -> ComparedRuns | None:
        if self._baseline is None:
            return None
        from pytest_openclaw.stats.run_comparison import Measured, compare_runs

        now = Measured(
            run_id=self.directory.run_id,
            records=tuple(records),
            config=self._config(self._definitions()),
            inventory=self._snapshots.inventory,
            n_selected=n_selected,
        )
        return compare_runs(self._baseline, now, across=self._settings.across)

    def _take_over(self, earlier: EarlierSessions) -> None:
        """Continue a run: keep its rows on disk, and the known facts of its targets."""
        if not earlier.kept.is_whole:
            self.directory.keep_rows(earlier.kept.lines)
        # They describe rows that may be replaced now.
        self.directory.remove("summary.json", *(report.name for report in self.plugins.reports))
        for record in earlier.kept.records:
            self._numbers[hash(record.key)] = len(self.records)
            self.records.append(record)
            self.decisions += self._early_stopping.take(record)
        self._snapshots.take_over(earlier.inventory)

    def _decide(self, decisions: Iterable[Decision]) -> None:
        made = [*decisions]
        self.decisions += made
        if any(decision.ends for decision in made):
            self._write_config(self._definitions())

    def _in_order(self) -> list[Record]:
        """Return the rows in planned order; workers and resumed runs finish cells in any order."""
        n_prompts = sum(map(len, self._places.values()))
        targets = {target: n for n, target in enumerate(self._n_selected)}

        def place(record: Record) -> tuple[int, int, int, str, str]:
            suite, prompt_id = record.suite, record.prompt_id
            planned = self._places.get(suite, {}).get(prompt_id, n_prompts)
            return (
                targets.get(record.target, len(targets)),
                record.repeat,
                planned,
                suite,
                prompt_id,
            )

        return sorted(self.records, key=place)

    def _write_config(self, prompts: Sequence[JsonObject]) -> None:
        self.directory.write_config(self._config(prompts))

    def _definitions(self) -> Sequence[JsonObject]:
        prompts: list[JsonObject] = json.loads((self.directory.path / CONFIG).read_bytes())["prompts"]
        return prompts

    def _config(self, prompts: Sequence[JsonObject]) -> JsonObject:
        # A settled target lacks no cells, whatever `n_cells` is.
        ended = {target: {"settled_after": repeat} for target, repeat in self._early_stopping.ended.items()}
        return {
            "schema_version": CONFIG_VERSION,
            "run_id": self.directory.run_id,
            "models": list(dict.fromkeys(target.model for target in self._n_selected)),
            "targets": [
                {**asdict(target), "n_cells": n, **ended.get(target, {})}
                for target, n in self._n_selected.items()
            ],
            "providers": dict(self.plan.providers),
            **settings_to_json(self._settings),
            "divided_sha256": self.plan.divided,
            "baseline": self._baseline and self._baseline.run_id,
            "across": sorted(self._settings.across),
            "prompts": prompts,
        }


def _identity(prompt: JsonObject) -> tuple[str, str]:
    return prompt["suite"], prompt["id"]
