"""Computes the figures of a run from its rows, for live, merged and rescored runs alike.

They include the prompts that every target missed, and the targets that may be the best with tools.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import combinations
from typing import TYPE_CHECKING, Literal

import msgspec

from pytest_openclaw.conclusions.groups import Group, headline, summarize_group
from pytest_openclaw.stats.intervals import LEVEL, cluster_of, sign_flip
from pytest_openclaw.stats.tool_use import GOOD_OUTCOMES, calls_of, did_right
from pytest_openclaw.util.files import JsonObject
from pytest_openclaw.values.parts import added_to, whole
from pytest_openclaw.values.requests import LISTED
from pytest_openclaw.values.run_files import SurfaceEntry

if TYPE_CHECKING:
    from pytest_openclaw.stats.intervals import Difference
    from pytest_openclaw.stats.tool_use import ToolUse
    from pytest_openclaw.values.requests import Target
    from pytest_openclaw.values.rows import Record
    from pytest_openclaw.values.run_files import MeasuredRun
    from pytest_openclaw.values.tool_calls import ToolOutcome


SUMMARY_VERSION: Literal[1] = 1


@dataclass(frozen=True, kw_only=True)
class Budget:
    """Budget and spending of one session.

    Attributes:
        spent_usd: may exceed the budget by the cost of the requests in flight when the budget was reached.
        n_not_asked: cells that were not asked, or whose exchange was ended, because the budget was spent.
    """

    budget_usd: float
    spent_usd: float
    n_not_asked: int


@dataclass(frozen=True, kw_only=True)
class AddedTable:
    """A table of a plugin; the first column names its rows."""

    caption: str
    head: Sequence[str]
    rows: Sequence[Sequence[str]]


@dataclass(frozen=True, kw_only=True)
class SummaryPart:
    """A plugin's part of the summary of a run.

    Attributes:
        name: the part's name in `added` of `summary.json`, and the label of its findings.
        value: the figures, any JSON object.
        title, intro, tables: a section of `summary.md` and of the HTML page.
        findings: one sentence for the terminal by the label of a target.
    """

    name: str
    value: JsonObject = field(default_factory=dict)
    title: str = ""
    intro: str = ""
    tables: Sequence[AddedTable] = ()
    findings: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class Summary:
    """A run in figures: one group per target, and the keys of parts.

    Attributes:
        state: `interrupted` if some selected cells have no row.
        n_cells: cells selected.
        n_rows: rows in `results.jsonl`.
        missed_by_all: prompts that no target passed, although some target was expected to pass.
        known_failures: prompts that a target was expected to miss.
        budget: budget and spending of the last session; None without a budget.
        best: the targets that may be the best with tools; None if fewer than two can be compared.
        surface: the surface `openclaw` as in `config.json`; None if no target was asked on it.
        added: the parts of plugins.
    """

    schema_version: Literal[1] = SUMMARY_VERSION
    run_id: str
    state: Literal["finished", "interrupted"]
    generated_at_ms: int
    n_cells: int
    n_rows: int
    groups: Sequence[Group]
    budget: Budget | None = None
    missed_by_all: Sequence[MissedPrompt] = ()
    known_failures: Sequence[ExpectedMiss] = ()
    best: Best | None = None
    surface: SurfaceEntry | None = None
    added: Sequence[SummaryPart] = ()

    @property
    def n_answered(self) -> int:
        """Cells that a model answered."""
        return sum(group.n_ok for group in self.groups)

    @property
    def is_owing(self) -> bool:
        """Whether some cells have no answer yet, so that a resumed run would ask them."""
        return self.n_answered < self.n_cells


def to_json(value: Summary | Group) -> JsonObject:
    """Return figures as in `summary.json`."""
    plain: JsonObject = msgspec.to_builtins(value)
    return plain


@dataclass(frozen=True, kw_only=True)
class MissedPrompt:
    """A prompt that no target passed, with the first violation."""

    suite: str
    prompt_id: str
    prompt_name: str
    violation: str | None


def missed_by_all(records: Iterable[Record], targets: Iterable[Target] = ()) -> tuple[MissedPrompt, ...]:
    """Return the prompts that were judged on some target and passed on none, in order of their rows.

    Prompts that were missed only as expected are left out, and prompts without a row of one of these targets
    on any surface, which might pass.
    """
    models = {target.on(LISTED) for target in targets}
    judged: dict[tuple[str, str], list[Record]] = {}
    asked: dict[tuple[str, str], set[Target]] = {}
    for record in records:
        key = record.suite, record.prompt_id
        asked.setdefault(key, set()).add(record.target.on(LISTED))
        if record.objective_pass is not None:
            judged.setdefault(key, []).append(record)
    return tuple(
        MissedPrompt(
            suite=first.suite,
            prompt_id=first.prompt_id,
            prompt_name=first.prompt_name,
            violation=first.violation,
        )
        for key, rows in judged.items()
        if models <= asked[key]
        and not any(row.objective_pass for row in rows)
        and (first := next((row for row in rows if row.known_failure is None), None))
    )


@dataclass(frozen=True, kw_only=True)
class ExpectedMiss:
    """A prompt that a target was expected to miss, and the result.

    Attributes:
        target: its label.
        reason: why the miss was expected.
        n: answered cells; more than one under repeats.
        n_missed: missed cells, and cells without a usable answer.
    """

    suite: str
    prompt_id: str
    target: str
    reason: str
    n: int
    n_missed: int

    @property
    def is_as_expected(self) -> bool:
        """Whether any of the cells was missed."""
        return self.n_missed > 0


def known_failures(records: Iterable[Record]) -> tuple[ExpectedMiss, ...]:
    """Return the known failures that were answered, in order of their rows."""
    known: dict[tuple[str, str, str], list[Record]] = {}
    for record in records:
        if record.known_failure is not None and record.availability_status == "ok":
            known.setdefault((record.suite, record.prompt_id, record.target.label), []).append(record)
    return tuple(
        ExpectedMiss(
            suite=suite,
            prompt_id=prompt_id,
            target=target,
            reason=rows[0].known_failure or "",
            n=len(rows),
            n_missed=sum(not row.success or row.objective_pass is False for row in rows),
        )
        for (suite, prompt_id, target), rows in known.items()
    )


def most_frequent_miss(use: ToolUse) -> ToolOutcome | None:
    """Return the most frequent bad outcome of tool cells; None if no tool cell went wrong."""
    misses = [outcome for outcome in use.outcomes if outcome not in GOOD_OUTCOMES]
    return max(misses, key=lambda outcome: use.outcomes[outcome], default=None)


@dataclass(frozen=True, kw_only=True)
class Best:
    """The targets not shown to be worse than another; in 95 % of runs, the true best is among them.

    Attributes:
        n_targets: the number of compared targets.
        targets: the labels of these targets, fastest first.
    """

    n_targets: int
    targets: Sequence[str]

    @property
    def fastest(self) -> str:
        """The target with the lowest median latency."""
        return self.targets[0]


def best_of(groups: Sequence[Group], records: Mapping[Target, Sequence[Record]]) -> Best | None:
    """Compare the tool use of all pairs of targets; None if fewer than two have answered tool cells.

    Unsafe and untrusted targets are not compared: no rate makes them the best. Each target counts on its most
    realistic surface; if any has evidence of calls on the wire, only such targets are compared.

    A target is left out if another target did better in the cells that both answered, and a paired sign-flip
    test over prompts has a one-sided p below 0.05 / (targets - 1). The true best is compared with this number
    of other targets, so it is left out in at most 5 % of runs (Bonferroni).
    """
    groups = headline(groups)
    evidence = "native" if any(one.tool_use.evidence == "native" for one in groups) else "text"
    rivals = [
        group
        for group in groups
        if group.tool_use.n
        and group.tool_use.evidence == evidence
        and group.recommendation.kind not in ("unsafe", "not_trusted")
    ]
    if len(rivals) < 2:
        return None
    cells = {one.target: calls_of(records.get(one.target, ()), one.tool_use) for one in rivals}
    worse = set()
    for one, other in combinations(cells, 2):
        found = _compared(cells[one], cells[other])
        if found.sign and found.p / 2 < LEVEL / (len(rivals) - 1):
            worse.add(other if found.sign > 0 else one)
    kept = [group for group in rivals if group.target not in worse]
    kept.sort(key=lambda group: (group.latency_ms.get("p50") or float("inf"), group.target.label))
    return Best(n_targets=len(rivals), targets=[group.target.label for group in kept])


def _compared(ours: Iterable[Record], others: Iterable[Record]) -> Difference:
    """Test whether `ours` did better; if they are swapped, only the sign changes."""
    theirs = {(cell.suite, cell.prompt_id, cell.repeat): did_right(cell) for cell in others}
    totals: Counter[tuple[str, str]] = Counter()
    for cell in ours:
        if (key := (cell.suite, cell.prompt_id, cell.repeat)) in theirs:
            totals[cluster_of(cell)] += did_right(cell) - theirs[key]
    return sign_flip([*totals.values()])


def summarize_run(run: MeasuredRun, generated_at_ms: int) -> Summary:
    """Return the figures of a run; a target without rows also has a group. The rows may lack texts."""
    groups = tuple(summarize_group(run, target) for target in run.n_selected)
    n_cells = sum(run.n_selected.values())
    summary = whole(Summary)(
        run_id=run.run_id,
        state="finished" if len(run.records) >= n_cells else "interrupted",
        generated_at_ms=generated_at_ms,
        n_cells=n_cells,
        n_rows=len(run.records),
        groups=groups,
        missed_by_all=missed_by_all(run.records, run.n_selected),
        known_failures=known_failures(run.records),
        best=best_of(groups, run.rows_of),
        surface=run.config.get("surface"),
    )
    for name, key in added_to(Summary).items():
        if key.of:
            summary = replace(summary, **{name: key.of(summary, run)})
    return summary
