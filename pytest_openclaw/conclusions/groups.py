"""The figures of one target, from its rows."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from pytest_openclaw.conclusions.recommendation import Evidence, Recommendation, recommend
from pytest_openclaw.stats.intervals import Interval, Rate, distribution_of, has_passed, is_judged, rate_of
from pytest_openclaw.stats.tool_use import Proof, ToolUse, tool_use_of
from pytest_openclaw.util.files import JsonObject
from pytest_openclaw.util.text import counted
from pytest_openclaw.values.parts import added_to, whole
from pytest_openclaw.values.requests import SurfaceName, Target, ThinkingLevel, most_realistic
from pytest_openclaw.values.run_files import reported
from pytest_openclaw.values.settings import looks_of, openclaw_providers

if TYPE_CHECKING:
    from pytest_openclaw.values.rows import Record
    from pytest_openclaw.values.run_files import MeasuredRun


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
    realistic = most_realistic(group.target for group in of_run)
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
        config=run.config,
        inventory=inventory,
        n_missing=max(0, run.n_selected.get(target, 0) - len(records)),
        is_openclaw=target.provider in openclaw_providers(run.config),
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
