"""The other roles of OpenClaw's config: whether a target fits each, as far as prompts test it.

A role is `not_fit` if at least 3 distinct prompts were judged and the whole 95 % interval is below 80 %. It
is `fit` if 80 % of at least 3 distinct prompts went right and the whole interval is at 50 % or above, as for
a single tool; else the result is `not_enough_evidence`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, get_args

from pytest_openclaw.conclusions.recommendation import RIGHT, shown_interval
from pytest_openclaw.conclusions.summary import Group
from pytest_openclaw.stats.intervals import Interval, cluster_interval, clusters_of, has_passed, is_judged
from pytest_openclaw.stats.tool_use import (
    PROVEN_PROMPTS,
    TIER_FLOORS,
    Proof,
    ToolUse,
    excludes_worse,
    fewest_more,
    proof_of,
)
from pytest_openclaw.util.text import counted
from pytest_openclaw.values.parts import Part, PartKey
from pytest_openclaw.values.prompts import PromptEntry
from pytest_openclaw.values.rows import Record

ModelRole = Literal["heartbeat", "title", "utility", "decision", "image"]
"""OpenClaw's tasks for a model in addition to its main work, each with requests of its own shape."""


@dataclass(frozen=True, kw_only=True)
class RoleResult(Proof):
    """The result of one role for a target, over the answered cells with a verdict.

    Attributes:
        rate: over these cells; an empty answer is a miss.
        interval_95: of the rate, jointly over targets and looks, as for the tier.
        needs: the number of further prompts that would make the target fit if all went right; 0 unless there
            is not enough evidence.
        sentence: the result in words.
    """

    role: ModelRole
    kind: Literal["not_fit", "fit", "not_enough_evidence"]
    rate: float | None
    interval_95: Interval | None
    needs: int
    sentence: str


def role_results(records: Sequence[Record], use: ToolUse) -> list[RoleResult]:
    """Return the result of each role for which the target was asked prompts."""
    asked = {role: [one for one in records if one.label("role") == role] for role in get_args(ModelRole)}
    return [_role_result(role, found, use) for role, found in asked.items() if found]


def _role_result(role: ModelRole, records: Sequence[Record], use: ToolUse) -> RoleResult:
    judged = [record for record in records if is_judged(record)]
    proof, clusters = proof_of(judged, has_passed), clusters_of(judged, has_passed)
    interval = cluster_interval(clusters, use.z)
    kind: Literal["not_fit", "fit", "not_enough_evidence"] = "not_enough_evidence"
    needs = 0
    if interval and interval.high < TIER_FLOORS[1] and proof.n_prompts >= PROVEN_PROMPTS:
        kind = "not_fit"
    elif proof.is_enough and excludes_worse(2, interval):
        kind = "fit"
    else:
        n_calls = fewest_more(clusters, RIGHT, lambda found: excludes_worse(2, found), use.z)
        needs = max(proof.n_missing, n_calls)
    result = kind.replace("_", " ")
    seen = f"{proof.n_right} of {counted(proof.n, 'cell')} right"
    if interval is None:
        sentence = f"{result}: no cell was answered"
    elif needs:
        more = f"{counted(needs, 'more prompt')}, without a miss, would make it fit"
        sentence = f"{result} ({seen}, {shown_interval(use, interval)}); {more}"
    else:
        sentence = f"{result}: {seen} ({shown_interval(use, interval)})"
    return RoleResult(
        **vars(proof),
        role=role,
        kind=kind,
        rate=proof.n_right / proof.n if proof.n else None,
        interval_95=interval,
        needs=needs,
        sentence=sentence,
    )


PART = Part(
    keys={
        PromptEntry: {
            "role": PartKey(
                ModelRole | None,
                "The role of OpenClaw's config that it tests; such rows are outside the rates of tool use.",
                example='"title"',
                is_apart=True,
            )
        },
        Group: {
            "roles": PartKey(
                Sequence[RoleResult],
                "whether the target fits the other roles in OpenClaw's config, as far as prompts test them.",
                "tool_proofs",
                lambda evidence: role_results(evidence.records, evidence.use),
            )
        },
    },
    notes=lambda group: ((140, result.role, result.sentence) for result in group.roles),
)
