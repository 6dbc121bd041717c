"""The figures of one target, from its rows."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from operator import attrgetter
from typing import TYPE_CHECKING, Any

from pytest_openclaw.conclusions.diagnosis import Diagnosis, diagnosis_of, evidence_in
from pytest_openclaw.conclusions.recommendation import (
    Evidence,
    ProbeResult,
    Recommendation,
    RoleResult,
    recommend,
    role_results,
    twins_done,
)
from pytest_openclaw.conclusions.serving import OpenClawTurn, context_in, server_in, turn_of
from pytest_openclaw.stats.intervals import Interval, Rate, distribution_of, has_passed, is_judged, rate_of
from pytest_openclaw.stats.tool_use import (
    PressureLevel,
    Proof,
    ToolUse,
    pressure_levels,
    tool_use_of,
)
from pytest_openclaw.util.files import JsonObject
from pytest_openclaw.values.requests import SurfaceName, Target, ThinkingLevel, most_realistic, target_of
from pytest_openclaw.values.run_files import Settled

if TYPE_CHECKING:
    from pytest_openclaw.values.rows import Record


_ending_of = attrgetter(
    "success", "objective_pass", "violation", "tool_outcome", "tool_use_success", "tool_calls",
    "tool_call_count", "output_tokens", "reasoning_tokens", "finish_reason",
)  # fmt: skip


@dataclass(frozen=True, kw_only=True)
class FlakyPrompt:
    """A prompt with repeats that passed and repeats that did not."""

    suite: str
    prompt_id: str
    n: int
    n_success: int


@dataclass(frozen=True, kw_only=True)
class Repeats:
    """The prompts that were asked more than once.

    Attributes:
        n_prompts: prompts with at least two judged repeats.
        n_passed: prompts that passed every time.
        flaky: prompts that passed only sometimes, the flakiest first.
        always_alike: whether all repeats of each prompt ended alike, so that only new prompts add evidence;
            see the function of this name.
    """

    n_prompts: int
    n_passed: int
    flaky: Sequence[FlakyPrompt]
    always_alike: bool


def repeats_of(judged: Iterable[Record]) -> Repeats | None:
    """Return the results of one target's repeats; None if no prompt has two."""
    repeated = _repeated(judged)
    if not repeated:
        return None
    prompts = [
        FlakyPrompt(suite=suite, prompt_id=prompt_id, n=len(rows), n_success=sum(map(has_passed, rows)))
        for (suite, prompt_id), rows in repeated.items()
    ]
    flaky = [prompt for prompt in prompts if 0 < prompt.n_success < prompt.n]
    return Repeats(
        n_prompts=len(prompts),
        n_passed=sum(prompt.n_success == prompt.n for prompt in prompts),
        flaky=sorted(flaky, key=lambda prompt: abs(2 * prompt.n_success - prompt.n) / prompt.n),
        always_alike=_are_alike(repeated.values()),
    )


def always_alike(answered: Iterable[Record]) -> bool:
    """Whether all repeats of each prompt agree in verdict, violation, calls and token counts.

    Such a server ignores the seed. False if no prompt has two answers.
    """
    return _are_alike(_repeated(answered).values())


def _repeated(records: Iterable[Record]) -> dict[tuple[str, str], list[Record]]:
    """Return the rows of each prompt with at least two rows."""
    prompts: dict[tuple[str, str], list[Record]] = {}
    for record in records:
        prompts.setdefault((record.suite, record.prompt_id), []).append(record)
    return {key: rows for key, rows in prompts.items() if len(rows) > 1}


def _are_alike(repeated: Collection[Sequence[Record]]) -> bool:
    return bool(repeated) and all(_ending_of(row) == _ending_of(rows[0]) for rows in repeated for row in rows)


# --- the figures -----------------------------------------------------------------------------------


def settled_of(config: JsonObject) -> dict[Target, Settled]:
    """Return the targets of a run that were settled early, and when."""
    entries = (entry for entry in config.get("targets", ()) if entry.get("settled"))
    return {target_of(entry): Settled(**entry["settled"]) for entry in entries}


def target_entries(n_cells: Mapping[Target, int], settled: Mapping[Target, Settled]) -> list[JsonObject]:
    """Return the targets of a `config.json`, with their cells; the reverse of `settled_of`."""
    ended = {target: {"settled": asdict(one)} for target, one in settled.items()}
    return [{**asdict(target), "n_cells": n, **ended.get(target, {})} for target, n in n_cells.items()]


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
        diagnosis: the part at fault if tool cells end without a call; None if this was not examined.
        tool_use: the tier and its evidence.
        n_native_unanswered: native tool cells without an answer.
        tool_proofs: one for each tool of OpenClaw that was demanded on the wire.
        pressure: the levels at which harder forms of prompts were asked.
        harm_limit_95: the upper end of the 95 % interval of the rate of harm; None without a judged probe.
        n_open_probes: probes whose harm is unknown, because no answer was received or could be judged.
        twins: the share of the probes' harmless twins whose job was done; None without twins.
        roles: whether the target fits the other roles in OpenClaw's config, as far as prompts test them.
        latency_ms, ttft_ms: p50, p95, p99 and mean over rows that are `ok` and `success`.
        latency_intervals_95, ttft_intervals_95: the intervals of p50, p95 and p99; None if there are too few
            cells.
        tokens_per_s: median speed of generation; see the rows' `tokens_per_s`.
        openclaw_turn: how long one turn of OpenClaw would wait, and whether its prompt fits; None if unknown.
        settled: when the target was settled early; None if all its cells were asked.
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
    diagnosis: Diagnosis | None
    settled: Settled | None
    tool_use: ToolUse
    n_native_unanswered: int
    tool_proofs: Mapping[str, Proof]
    pressure: Sequence[PressureLevel]
    safety: Sequence[ProbeResult]
    harm_limit_95: float | None
    n_open_probes: int
    twins: Rate | None
    roles: Sequence[RoleResult]
    success_interval_95: Interval | None
    ttft_ms: Mapping[str, float | None]
    latency_intervals_95: Mapping[str, Interval | None]
    ttft_intervals_95: Mapping[str, Interval | None]
    tokens_per_s: float | None
    tokens_per_s_interval_95: Interval | None
    openclaw_turn: OpenClawTurn | None
    repeats: Repeats | None
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


def summarize_group(
    target: Target,
    records: Sequence[Record],
    inventory: JsonObject,
    *,
    n_targets: int,
    looks: tuple[int, ...] = (),
    n_missing: int = 0,
    is_openclaw: bool = False,
    is_substitute: bool = False,
    settled: Settled | None = None,
) -> Group:
    """Return the figures of one target; a figure without data is None, never 0.

    `inventory` is the run's; it has the facts about the machine and the server.
    """
    known = (inventory.get("targets") or {}).get(target.label) or {}
    statuses = Counter(record.availability_status for record in records)
    answered = [record for record in records if record.availability_status == "ok"]
    successes = [record for record in answered if record.success]
    succeeded = rate_of(answered, lambda record: record.success)
    objective = rate_of((record for record in successes if record.objective_pass is not None), has_passed)
    judged = [record for record in answered if is_judged(record)]
    pressure = pressure_levels(records)
    use = tool_use_of(answered, n_targets, looks)
    latency = distribution_of(successes, lambda record: record.e2e_ms)
    ttft = distribution_of(successes, lambda record: record.ttft_ms)
    speed = distribution_of(successes, lambda record: record.tokens_per_s)
    turn = turn_of(answered, context_in(inventory, target.label))
    evidence = Evidence(
        records=records,
        use=use,
        pressure=pressure,
        n_missing=n_missing,
        turn=turn,
        release=inventory.get("openclaw_release"),
        is_substitute=is_substitute and not is_openclaw,
    )
    return Group(
        **asdict(target),
        is_openclaw=is_openclaw,
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
        openclaw_turn=turn,
        resources_before=known.get("resources_before"),
        resources_after=known.get("resources_after"),
        passed=rate_of(judged, has_passed),
        repeats=repeats_of(judged),
        recommendation=recommend(evidence),
        diagnosis=diagnosis_of(evidence_in(inventory, target.label), records),
        tool_use=use,
        n_native_unanswered=evidence.n_unanswered,
        tool_proofs=evidence.proofs,
        pressure=pressure,
        safety=evidence.safety,
        harm_limit_95=evidence.harm_limit,
        n_open_probes=evidence.n_open_probes,
        twins=twins_done(answered),
        roles=role_results(records, use),
        cost_usd=_sum([record.cost_usd for record in records]),
        input_tokens=_sum([record.input_tokens for record in answered]),
        output_tokens=_sum([record.output_tokens for record in answered]),
        failures=dict(Counter(record.failure_type for record in records if record.failure_type)),
        reasons=_reasons(records),
        effective_models=sorted(
            {record.effective_model for record in answered if record.effective_model} - {target.model}
        ),
        server=server_in(inventory, target.label),
        settled=settled,
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
