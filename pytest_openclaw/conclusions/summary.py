"""Computes the figures of a run and of its targets from the rows, for live, merged and rescored runs alike.

They include the prompts that every target missed, and the targets that may be the best with tools.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from itertools import combinations, islice
from typing import Any, Literal

import msgspec

from pytest_openclaw.conclusions.recommendation import Evidence, Recommendation, recommend
from pytest_openclaw.stats.intervals import (
    LEVEL,
    Difference,
    Interval,
    Rate,
    cluster_of,
    distribution_of,
    has_passed,
    is_judged,
    rate_of,
    sign_flip,
)
from pytest_openclaw.stats.tool_use import GOOD_OUTCOMES, Proof, ToolUse, calls_of, did_right, tool_use_of
from pytest_openclaw.util.files import JsonObject
from pytest_openclaw.util.text import counted
from pytest_openclaw.values.parts import added_to, whole
from pytest_openclaw.values.requests import LISTED, SurfaceName, Target, ThinkingLevel, most_realistic
from pytest_openclaw.values.rows import Record
from pytest_openclaw.values.run_files import MeasuredRun, SurfaceEntry, reported
from pytest_openclaw.values.settings import is_openclaw, looks_of
from pytest_openclaw.values.tool_calls import ToolOutcome


@dataclass(frozen=True, kw_only=True)
class Group:
    """The figures of one target.

    Attributes:
        is_openclaw: whether the provider is the installed OpenClaw, which sends the real request.
        n_total: cells that have a row.
        n_ok: cells with an answer.
        n_success: cells whose answer, right or wrong, is not empty, refused or filtered.
        passed: over the answered cells that have a validator; an empty, refused or filtered answer is not a
            pass. `objective_pass_rate`, from the original schema, leaves such answers out.
        tool_use: the tier and its evidence.
        n_native_unanswered: native tool cells without an answer.
        tool_proofs: one for each tool of OpenClaw that was demanded on the wire.
        latency_ms, ttft_ms: p50, p95, p99 and mean over rows that are `ok` and `success`.
        latency_intervals_95, ttft_intervals_95: the intervals of p50, p95 and p99; None if there are too few
            cells.
        tokens_per_s: median speed of generation; see the rows' `tokens_per_s`.
        failures: why cells were not answered or not successful: failure type → count.
        reasons: one message for each failure type of unanswered cells.
        effective_models: the models that answered, as the server reports, other than the target's.
        server: the program that serves the model, such as `ollama`; None if the server does not report it.
        resources_before, resources_after: snapshots of the machine.
    """

    provider: str
    model: str
    thinking_level: ThinkingLevel | None
    surface: SurfaceName
    is_openclaw: bool
    n_total: int
    n_ok: int
    n_success: int
    n_skipped_unavailable: int
    n_auth_error: int
    n_rate_limited: int
    n_error: int
    success_rate_ok: float | None
    objective_pass_rate: float | None
    wall_clock_ms: int | None
    latency_ms: Mapping[str, float | None]
    resources_before: JsonObject | None
    resources_after: JsonObject | None
    passed: Rate
    objective_pass_interval_95: Interval | None
    recommendation: Recommendation
    tool_use: ToolUse
    n_native_unanswered: int
    tool_proofs: Mapping[str, Proof]
    success_interval_95: Interval | None
    ttft_ms: Mapping[str, float | None]
    latency_intervals_95: Mapping[str, Interval | None]
    ttft_intervals_95: Mapping[str, Interval | None]
    tokens_per_s: float | None
    tokens_per_s_interval_95: Interval | None
    cost_usd: float | None
    input_tokens: int | None
    output_tokens: int | None
    failures: Mapping[str, int]
    reasons: Mapping[str, str]
    effective_models: Sequence[str]
    server: str | None

    @property
    def target(self) -> Target:
        """The target that the figures describe."""
        return Target(
            provider=self.provider,
            model=self.model,
            thinking_level=self.thinking_level,
            surface=self.surface,
        )


def headline(groups: Iterable[Group]) -> list[Group]:
    """Return the groups that represent their models: each on its most realistic surface."""
    of_run = [*groups]
    realistic = {*most_realistic(group.target for group in of_run)}
    return [group for group in of_run if group.target in realistic]


def summarize_group(run: MeasuredRun, target: Target) -> Group:
    """Return the figures of a target of a run; a figure without data is None, never 0."""
    records, inventory = run.rows_of.get(target, []), run.inventory
    known = (inventory.get("targets") or {}).get(target.label) or {}
    statuses = Counter(record.availability_status for record in records)
    answered = [record for record in records if record.availability_status == "ok"]
    successes = [record for record in answered if record.success]
    succeeded = rate_of(answered, lambda record: record.success)
    objective = rate_of((record for record in successes if record.objective_pass is not None), has_passed)
    judged = [record for record in answered if is_judged(record)]
    use = tool_use_of(answered, len(run.n_selected), looks_of(run.config))
    latency = distribution_of(successes, lambda record: record.e2e_ms)
    ttft = distribution_of(successes, lambda record: record.ttft_ms)
    speed = distribution_of(successes, lambda record: record.tokens_per_s)
    evidence = Evidence(
        records=records,
        use=use,
        target=target,
        entry=run.entries.get(target, {}),
        config=run.config,
        inventory=inventory,
        n_missing=max(0, run.n_selected.get(target, 0) - len(records)),
        is_openclaw=is_openclaw(run.config, target.provider),
    )
    return whole(Group)(
        **asdict(target),
        is_openclaw=evidence.is_openclaw,
        n_total=len(records),
        n_ok=len(answered),
        n_success=len(successes),
        n_skipped_unavailable=statuses["skipped_unavailable"],
        n_auth_error=statuses["auth_error"],
        n_rate_limited=statuses["rate_limited"],
        n_error=statuses["error"],
        success_rate_ok=succeeded.rate,
        success_interval_95=succeeded.interval_95,
        objective_pass_rate=objective.rate,
        objective_pass_interval_95=objective.interval_95,
        wall_clock_ms=max(row.ended_at_ms for row in records) - min(row.started_at_ms for row in records)
        if records
        else None,
        latency_ms=latency.values,
        latency_intervals_95=latency.intervals,
        ttft_ms=ttft.values,
        ttft_intervals_95=ttft.intervals,
        tokens_per_s=speed.values["p50"],
        tokens_per_s_interval_95=speed.intervals["p50"],
        resources_before=known.get("resources_before"),
        resources_after=known.get("resources_after"),
        passed=rate_of(judged, has_passed),
        recommendation=recommend(evidence),
        tool_use=use,
        n_native_unanswered=evidence.n_unanswered,
        tool_proofs=evidence.proofs,
        cost_usd=_sum([record.cost_usd for record in records]),
        input_tokens=_sum([record.input_tokens for record in answered]),
        output_tokens=_sum([record.output_tokens for record in answered]),
        failures=dict(Counter(record.failure_type for record in records if record.failure_type)),
        reasons=_reasons(records),
        effective_models=sorted(
            {record.effective_model for record in answered if record.effective_model} - {target.model}
        ),
        server=next(iter(reported(inventory, target.label, "server", str)), None),
        **{name: key.of(evidence) for name, key in added_to(Group).items() if key.of},
    )


def _sum(values: Iterable[Any]) -> Any:
    known = [value for value in values if value is not None]
    return sum(known) if known else None


def _reasons(records: Sequence[Record]) -> dict[str, str]:
    reasons: dict[str, str] = {}
    for record in records:
        if record.failure_type and record.fault_message:
            reasons.setdefault(record.failure_type, record.fault_message)
    return reasons


def leaked_in_words(n_valid: int, n: int) -> str:
    """Return in words how many of the calls written as text would have been right."""
    return f"{n_valid} of {counted(n, 'written call')} {'is' if n == 1 else 'are'} right"


# --- the summary of a run ---------------------------------------------------------------------------

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


MOST_COMPARED = 25
"""Comparisons for each target: with all pairs of 20,000 targets, a run from elsewhere would take hours."""


def best_of(groups: Sequence[Group], records: Mapping[Target, Sequence[Record]]) -> Best | None:
    """Compare the tool use of all pairs of targets; None if fewer than two have answered tool cells.

    Unsafe and untrusted targets are not compared: no rate makes them the best. Each target counts on its most
    realistic surface; if any has evidence of calls on the wire, only such targets are compared.

    A target is left out if another target did better in the cells that both answered, and a paired sign-flip
    test over prompts has a one-sided p below 0.05 / (targets - 1). The true best is compared with this number
    of other targets, so it is left out in at most 5 % of runs (Bonferroni). Of more than 51 targets, only
    those with the most right cells are compared with all others.
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
    ranked = sorted(cells, key=lambda target: -sum(map(did_right, cells[target])))
    worse = set()
    for one, other in islice(combinations(ranked, 2), MOST_COMPARED * len(rivals)):
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
