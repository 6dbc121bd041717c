"""One run, from its first cell to its summary: its rows, and the decisions on its repeats."""

from __future__ import annotations

import json
from collections import Counter, deque
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING, Any

from pytest_openclaw.openclaw.catalog import release_of
from pytest_openclaw.runs.directory import RESULTS, SUMMARY, SURFACE
from pytest_openclaw.runs.environment import Environment
from pytest_openclaw.runs.reading import in_planned_order, without_texts
from pytest_openclaw.runs.report_files import Plugins
from pytest_openclaw.runs.resume import answered_rows
from pytest_openclaw.stats.groups import snapshots_in
from pytest_openclaw.stats.repeats import always_alike
from pytest_openclaw.stats.run_comparison import Measured, compare_runs
from pytest_openclaw.stats.summary import Budget, Summary, summarize_run, summary_to_json
from pytest_openclaw.stats.tool_use import is_futile, tool_use_of
from pytest_openclaw.util.files import read_lines
from pytest_openclaw.util.json_text import line_of
from pytest_openclaw.util.signals import epoch_ms, held_signals
from pytest_openclaw.util.text import counted
from pytest_openclaw.values.faults import BUDGET_SPENT
from pytest_openclaw.values.rows import to_row
from pytest_openclaw.values.settings import CONFIG_VERSION, settings_to_json
from pytest_openclaw.values.tool_calls import surface_facts, surface_to_json

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from pytest_openclaw.runs.directory import RunDirectory
    from pytest_openclaw.runs.reading import StoredRun
    from pytest_openclaw.runs.resume import Plan
    from pytest_openclaw.util.json_types import JsonObject
    from pytest_openclaw.values.requests import CellKey, Target
    from pytest_openclaw.values.rows import LeftOut, Record
    from pytest_openclaw.values.settings import Settings


# --- early stopping -------------------------------------------------------------------------------


@dataclass(frozen=True, kw_only=True)
class Decision:
    """The decision after a repeat whose cells all have rows.

    Attributes:
        repeat: the repeat, from 1.
        ends: why the target's further repeats are left out; None if they are run.
    """

    target: Target
    repeat: int
    ends: str | None


class EarlyStopping:
    """Decides on each target's repeats, one after the other, as its rows arrive.

    Args:
        cells: the selected ones; True if a cell is run in any case. A decision waits for its row as for all
            rows of its repeat, but a repeat that has only such cells needs no decision.
        looks: the repeats after which the tier is looked at; the last of them is the last repeat of all.

    Attributes:
        ended: the targets whose further repeats are left out, each with its last repeat.
    """

    def __init__(self, cells: Mapping[CellKey, bool], looks: tuple[int, ...]) -> None:
        self.ended: dict[Target, int] = {}
        self._looks = looks
        self._n_missing: dict[Target, Counter[int]] = {}
        self._last: Counter[Target] = Counter()
        for key, is_fixed in cells.items():
            self._n_missing.setdefault(key.target, Counter())[key.repeat] += 1
            if not is_fixed:
                self._last[key.target] = max(key.repeat, self._last[key.target])
        self._records: dict[Target, list[Record]] = {target: [] for target in self._n_missing}
        self._through: Counter[Target] = Counter()

    def begin(self) -> Iterator[Decision]:
        """Decide on the repeats that have all their rows already, or that the session did not select."""
        for target in self._n_missing:
            yield from self._decide(target)

    def take(self, record: Record) -> Iterator[Decision]:
        """Add the row of a cell."""
        if record.target in self._n_missing:
            self._records[record.target].append(record)
            yield from self.leave_out(record.target, record.repeat)

    def leave_out(self, target: Target, repeat: int) -> Iterator[Decision]:
        """Stop waiting for the row of one cell."""
        if target in self._n_missing:
            self._n_missing[target][repeat] -= 1
            yield from self._decide(target)

    def _decide(self, target: Target) -> Iterator[Decision]:
        while target not in self.ended:
            repeat = self._through[target] + 1
            if repeat >= self._last[target] or self._n_missing[target][repeat] > 0:
                return
            self._through[target] = repeat
            ends = self._end(target, repeat)
            if ends:
                self.ended[target] = repeat
            yield Decision(target=target, repeat=repeat, ends=ends)

    def _end(self, target: Target, repeat: int) -> str | None:
        # Rows of later repeats that arrived early are not counted: a decision must not depend on speed.
        records = [record for record in self._records[target] if record.repeat <= repeat]
        answered = [record for record in records if record.availability_status == "ok"]
        latest = [record for record in records if record.repeat == repeat]
        if latest and not any(record.repeat == repeat for record in answered):
            return f"nothing was answered in repeat {repeat}"
        use = tool_use_of(answered, len(self._n_missing), self._looks)
        after = f"after {counted(repeat, 'repeat')}"
        if repeat in self._looks and use.conclusive:
            return f"tier {use.tier} is settled {after}"
        if always_alike(answered):
            # The rate is that of the first repeat, and so is the effective sample: this is no further look.
            return f"all repeats are alike {after}: only new prompts can settle the tier"
        if repeat in self._looks[1:] and is_futile(answered, use):
            return f"more repeats would hardly settle the tier {after}: new prompts can"
        return None


# --- the run --------------------------------------------------------------------------------------


class RunSession:
    """Collects the rows of a run and writes its directory, in the process where the reports arrive.

    Attributes:
        records: the rows so far; ten thousand replies of 64 KiB are kept on disk, not in memory.
        decisions: on the targets' repeats, oldest first; the caller removes those it publishes.

    Raises:
        OSError: on creation, if the directory cannot be written; a resumed run has all its rows then.
    """

    def __init__(
        self,
        directory: RunDirectory,
        settings: Settings,
        plan: Plan,
        earlier: StoredRun | None = None,
        baseline: Measured | None = None,
        plugins: Plugins | None = None,
    ) -> None:
        self.directory = directory
        self.plan = plan
        self.records: list[Record] = []
        self.plugins = plugins or Plugins()
        self.decisions: deque[Decision] = deque()
        self._settings = settings
        self._baseline = baseline
        release = release_of(settings.catalogue_file)
        self._environment = Environment(
            directory, plan.targets, release, earlier.inventory if earlier else None
        )
        self._early_stopping = EarlyStopping(plan.cells if settings.until_conclusive else {}, settings.looks)
        self._left_out: Counter[tuple[Target, bool]] = Counter()
        self._n_open = Counter(plan.n_selected)
        self._numbers: dict[CellKey, int] = {}
        self._rerun: set[int] = set()
        self._shared: dict[Any, Any] = {}
        if earlier:
            self._take_over(earlier)
        self.decisions += self._early_stopping.begin()
        if (surface := settings.surface) and not surface.missing:
            directory.write_json(SURFACE, surface_to_json(surface))
        directory.write_config(self._config())
        self._environment.write()

    def _take_over(self, earlier: StoredRun) -> None:
        """Continue a run: keep its rows on disk that have a reply."""
        rows = [*answered_rows(earlier).values()]

        def lines() -> Iterator[bytes]:
            yield from (row.line for row in rows)
            for row in earlier.rows.values():
                row.release()

        self.directory.replace_rows(lines())
        # They describe rows that may be replaced now.
        self.directory.remove(SUMMARY, *(report.name for report in self.plugins.reports))
        for row in rows:
            self._count(row.record)

    @property
    def suites(self) -> set[str]:
        """The names of the selected cells' suites."""
        return {key.suite for key in self.plan.cells}

    def add(self, record: Record) -> bool:
        """Write a row to disk, then take it into the counts.

        Returns:
            False for a later try of a cell, which another plugin has run again: it is kept for the first
            one's `reruns`.
        """
        if (number := self._numbers.get(record.key)) is not None:
            first = self.records[number]
            reruns = record.reruns or (*first.reruns, record.as_rerun())
            self.records[number] = replace(first, reruns=reruns)
            self._rerun.add(number)
            return False
        record = replace(record, run_id=self.directory.run_id, host=self._environment.host)
        row = to_row(record)
        row |= self.plugins.added_keys(row)
        with held_signals():  # otherwise an interrupt could leave a row out of the summary
            self.directory.append(row)
            self._count(record)
        self._end_cell(record.target)
        return True

    def _count(self, record: Record) -> None:
        self._numbers[record.key] = len(self.records)
        self.records.append(without_texts(record, self._shared))
        self._decide(self._early_stopping.take(record))

    def leave_out(self, cell: LeftOut) -> None:
        """Remove a cell that was skipped before it was sent."""
        target = next(target for target in self.plan.targets if target.label == cell.target)
        self._left_out[target, cell.is_fixed] += 1
        self._end_cell(target)
        self._decide(self._early_stopping.leave_out(target, cell.repeat))

    def take_facts(self, target: Target, facts: JsonObject) -> None:
        """Add new facts about a target, see `Asker.facts`."""
        self._environment.take(target, facts)

    def take_diagnosis(self, target: Target, evidence: JsonObject) -> None:
        """Add what the repeats of a target's cell have shown."""
        self._environment.take_diagnosis(target, evidence)

    def _end_cell(self, target: Target) -> None:
        """Take the snapshot after a target's last cell."""
        self._n_open[target] -= 1
        if self._n_open[target] == 0:
            self._environment.end([target])

    def _decide(self, decisions: Iterable[Decision]) -> None:
        made = [*decisions]
        self.decisions += made
        if any(decision.ends for decision in made):
            self.directory.write_config(self._config())

    def finish(self, n_unrecorded_calls: int = 0, *, spent_usd: float = 0.0) -> Summary:
        """Write the summary of the rows so far, and return it."""
        if self._rerun:
            self.directory.replace_rows(self._lines_with_reruns())
        records = in_planned_order(self.records, self.plan.targets, self.plan.prompts)
        n_selected = self._n_selected()
        self._environment.end(dict.fromkeys(record.target for record in records))
        inventory = self._environment.inventory
        measured = Measured(
            run_id=self.directory.run_id,
            records=tuple(records),
            config=self._config(),
            inventory=inventory,
            n_selected=n_selected,
        )
        across, baseline = self._settings.across, self._baseline
        summary = summarize_run(
            records,
            n_selected,
            self._settings.gates,
            snapshots_in(inventory, n_selected),
            run_id=self.directory.run_id,
            generated_at_ms=epoch_ms(),
            looks=self._settings.looks,
            n_unrecorded_calls=n_unrecorded_calls,
            comparison=compare_runs(baseline, measured, across=across) if baseline else None,
            surface=surface_facts(self._settings.surface),
        )
        if (budget_usd := self._settings.budget_usd) is not None:
            n_not_asked = sum(record.failure_type == BUDGET_SPENT for record in records)
            budget = Budget(budget_usd=budget_usd, spent_usd=spent_usd, n_not_asked=n_not_asked)
            summary = replace(summary, budget=budget)
        self.directory.write_json(SUMMARY, summary_to_json(summary))
        self.plugins.write_reports(self.directory, summary)
        return summary

    def _lines_with_reruns(self) -> Iterator[bytes]:
        for number, line in enumerate(read_lines(self.directory.path / RESULTS)):
            reruns = self.records[number].reruns
            yield line_of({**json.loads(line), "reruns": [*reruns]}) if number in self._rerun else line

    def _n_selected(self) -> dict[Target, int]:
        """Count the cells of each target that are needed; a settled target lacks only fixed repeats."""
        ended, cells = self._early_stopping.ended, self.plan.cells
        n_rows = Counter(record.target for record in self.records)
        n_fixed = Counter(key.target for key, fixed in cells.items() if fixed and key not in self._numbers)
        left_out = self._left_out
        return {
            target: n_rows[target] + max(0, n_fixed[target] - left_out[target, True])
            if target in ended
            else n - left_out[target, True] - left_out[target, False]
            for target, n in self.plan.n_selected.items()
        }

    def _config(self) -> JsonObject:
        needed = self._n_selected()
        targets = [{**asdict(target), "n_cells": n} for target, n in self.plan.n_selected.items()]
        for entry, target in zip(targets, self.plan.targets, strict=True):
            if target in self._early_stopping.ended:
                entry |= {"n_cells": needed[target], "settled_after": self._early_stopping.ended[target]}
        return {
            "schema_version": CONFIG_VERSION,
            "run_id": self.directory.run_id,
            "models": list(dict.fromkeys(target.model for target in self.plan.targets)),
            "targets": targets,
            "providers": dict(self.plan.providers),
            **settings_to_json(self._settings),
            "divided_sha256": self.plan.divided,
            "baseline": self._baseline and self._baseline.run_id,
            "across": sorted(self._settings.across),
            "prompts": [*self.plan.prompts.values()],
        }
