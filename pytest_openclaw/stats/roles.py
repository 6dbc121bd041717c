"""Whether a target fits the other roles of OpenClaw's config: one result for each role that was asked about.

| kind | if |
| --- | --- |
| `not_fit` | of at least 3 distinct prompts, the whole 95 % interval lies below 80 % |
| `fit` | 80 % of at least 3 distinct prompts went right, and the whole interval lies at 50 % or above |
| `not_enough_evidence` | neither |

The first row that applies counts. This is what a single tool must show to be trusted (`recommendation.py`,
`trusted_with`): the same proof by distinct prompts, the same limits, the same joint intervals.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, get_args

from pytest_openclaw.stats.intervals import Cluster, clusters_of, has_passed, is_judged, percent_range
from pytest_openclaw.stats.percentiles import distribution_of
from pytest_openclaw.stats.tiers import TIER_FLOORS, excludes_worse
from pytest_openclaw.stats.tool_use import PROVEN_PROMPTS, cluster_interval, fewest_more, proof_of
from pytest_openclaw.util.text import counted
from pytest_openclaw.values.prompts import ModelRole

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pytest_openclaw.stats.intervals import Interval
    from pytest_openclaw.stats.tool_use import Proof, ToolUse
    from pytest_openclaw.values.rows import Record

Fitness = Literal["not_fit", "fit", "not_enough_evidence"]

_RIGHT = Cluster(1, 1)


@dataclass(frozen=True, kw_only=True)
class RoleResult:
    """What the prompts of one role show of a target.

    Attributes:
        n, n_right: answered cells with a verdict, and those that passed; an empty answer is a miss.
        n_prompts, n_prompts_right: see `proofs.Proof`.
        rate: of the cells.
        interval_95: of it, jointly over targets and looks as the tier's.
        needs: how many further prompts, all of them right, make it fit; 0 unless the evidence is too little.
        p50_ms: the median time of its successful cells.
        sentence: the same in words.

    """

    role: ModelRole
    kind: Fitness
    n: int
    n_right: int
    n_prompts: int
    n_prompts_right: int
    rate: float | None
    interval_95: Interval | None
    needs: int
    p50_ms: float | None
    sentence: str


def role_results(records: Sequence[Record], use: ToolUse) -> list[RoleResult]:
    """Return the result of each role of which the target was asked prompts.

    Args:
        records: the rows of one target.
        use: its tool use, whose joint intervals hold here too.

    """
    asked = {role: [one for one in records if one.role == role] for role in get_args(ModelRole)}
    return [_result(role, found, use) for role, found in asked.items() if found]


def _result(role: ModelRole, records: Sequence[Record], use: ToolUse) -> RoleResult:
    judged = [record for record in records if is_judged(record)]
    proof = proof_of(judged, has_passed)
    clusters = clusters_of(judged, has_passed)
    interval = cluster_interval(clusters, use.z)
    kind = _kind(proof, interval)
    needs = 0
    if kind == "not_enough_evidence":
        for_interval = fewest_more(clusters, _RIGHT, lambda found: excludes_worse(2, found), use.z)
        needs = max(proof.n_missing, for_interval)
    return RoleResult(
        role=role,
        kind=kind,
        n=proof.n,
        n_right=proof.n_right,
        n_prompts=proof.n_prompts,
        n_prompts_right=proof.n_prompts_right,
        rate=proof.n_right / proof.n if proof.n else None,
        interval_95=interval,
        needs=needs,
        p50_ms=distribution_of(
            [record for record in judged if record.success], lambda record: record.e2e_ms
        ).values["p50"],
        sentence=_sentence(kind, proof, interval, needs, use.joint_over),
    )


def _kind(proof: Proof, interval: Interval | None) -> Fitness:
    if interval is not None and interval.high < TIER_FLOORS[1] and proof.n_prompts >= PROVEN_PROMPTS:
        return "not_fit"
    return "fit" if proof.is_enough and excludes_worse(2, interval) else "not_enough_evidence"


def _sentence(kind: Fitness, proof: Proof, interval: Interval | None, needs: int, joint: str) -> str:
    if interval is None:
        return "not enough evidence: no cell was answered"
    jointly = f" for {joint} together" if joint else ""
    right = f"{proof.n_right} of {counted(proof.n, 'cell')} right"
    shown = f"{right} (95 % interval {percent_range(interval)}{jointly})"
    if kind != "not_enough_evidence":
        return f"{kind.replace('_', ' ')}: {shown}"
    return f"not enough evidence: {shown}; {counted(needs, 'more prompt')} without a miss would make it fit"
