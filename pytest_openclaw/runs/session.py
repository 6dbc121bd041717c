"""One run, from its first cell to its summary, with all of its state.

Decides after each repeat of a target whether further repeats can be left out.
"""

from __future__ import annotations

import json
from collections import Counter, deque
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING

from pytest_openclaw.openclaw.catalog import release_of
from pytest_openclaw.runs.directory import CONFIG, SURFACE
from pytest_openclaw.runs.environment import EnvironmentSnapshots
from pytest_openclaw.runs.reading import without_texts
from pytest_openclaw.runs.report_files import Plugins
from pytest_openclaw.stats.repeats import always_alike
from pytest_openclaw.stats.summary import Budget, Summary, summarize_run, summary_to_json
from pytest_openclaw.stats.tool_use import is_futile, tool_use_of
from pytest_openclaw.util.json_text import line_of
from pytest_openclaw.util.signals import epoch_ms, held_signals
from pytest_openclaw.util.text import counted
from pytest_openclaw.values.faults import BUDGET_SPENT
from pytest_openclaw.values.rows import to_row
from pytest_openclaw.values.settings import CONFIG_VERSION, settings_to_json
from pytest_openclaw.values.tool_calls import surface_facts, surface_to_json

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from pytest_openclaw.runs.directory import RunDirectory
    from pytest_openclaw.runs.resume import Kept, Plan
    from pytest_openclaw.stats.comparison import ComparedRuns
    from pytest_openclaw.stats.run_comparison import Measured
    from pytest_openclaw.util.json_types import JsonObject
    from pytest_openclaw.values.requests import CellKey, Target
    from pytest_openclaw.values.rows import LeftOut, Record
    from pytest_openclaw.values.settings import Settings


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

    @property
    def plain(self) -> JsonObject:
        """The decision as plain values, which xdist can send."""
        return {"target": self.target.label, "repeat": self.repeat, "ends": self.ends}


class EarlyStopping:
    """Decides on each target's repeats, one after the other, as its rows arrive.

    Args:
        n_selected: cells by target and repeat.
        looks: the repeats after which the tier is looked at; the last of them is the last repeat of all.
        fixed: those among them that are run in any case. A decision waits for their rows as for all rows
            of its repeat, but a repeat of fixed cells alone needs no decision.

    """

    def __init__(
        self,
        n_selected: Mapping[tuple[Target, int], int],
        looks: tuple[int, ...],
        fixed: Mapping[tuple[Target, int], int] | None = None,
    ) -> None:
        self._looks = looks
        self._n_missing: dict[Target, Counter[int]] = {}
        self._last: dict[Target, int] = {}
        for (target, repeat), n in n_selected.items():
            self._n_missing.setdefault(target, Counter())[repeat] += n
            if n > (fixed or {}).get((target, repeat), 0):
                self._last[target] = max(repeat, self._last.get(target, 0))
        self._records: dict[Target, list[Record]] = {}
        self._known: set[CellKey] = set()
        self._through: Counter[Target] = Counter()
        self._ended: dict[Target, int] = {}

    @property
    def ended(self) -> Mapping[Target, int]:
        """The targets whose further repeats are left out, each with its last repeat."""
        return self._ended

    def begin(self) -> Iterator[Decision]:
        """Decide on the repeats that have all their rows already, or that the session did not select."""
        for target in self._n_missing:
            yield from self._decide(target)

    def take(self, record: Record) -> Iterator[Decision]:
        """Add a row. A second row of a cell, as from a plugin that reruns tests, changes nothing."""
        target = record.target
        if target in self._n_missing and record.key not in self._known:
            self._known.add(record.key)
            self._records.setdefault(target, []).append(record)
            yield from self.leave_out(target, record.repeat)

    def leave_out(self, target: Target, repeat: int) -> Iterator[Decision]:
        """Stop waiting for the row of one cell."""
        if target in self._n_missing:
            self._n_missing[target][repeat] -= 1
            yield from self._decide(target)

    def _decide(self, target: Target) -> Iterator[Decision]:
        n_missing = self._n_missing[target]
        last = self._last.get(target, 0)
        while target not in self._ended:
            repeat = self._through[target] + 1
            if repeat >= last or n_missing[repeat] > 0:
                return
            self._through[target] = repeat
            ends = self._end(target, repeat)
            if ends:
                self._ended[target] = repeat
            yield Decision(target=target, repeat=repeat, ends=ends)

    def _end(self, target: Target, repeat: int) -> str | None:
        # Rows of later repeats that arrived early are not counted: a decision must not depend on speed.
        records = [record for record in self._records.get(target, ()) if record.repeat <= repeat]
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
            directory, plan.n_selected, release_of(settings.catalogue_file)
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
