"""A target's tool use: the tier, its evidence, and which tools it has proven.

OpenClaw depends on calls on the wire, so a tier rests on them where there are any; results of the text
detector have another name. The two are never added.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from math import sqrt
from typing import TYPE_CHECKING, Literal, get_args

from pytest_openclaw.stats.intervals import (
    Interval,
    Rate,
    cluster_interval,
    clusters_of,
    rate_of,
    resemblance_of,
    total_of,
    wilson_95,
)
from pytest_openclaw.stats.tiers import (
    MOST_NEEDLESS,
    calls_needlessly,
    classify_tier,
    excludes_worse,
    is_conclusive,
    joint_z,
    joint_z_against,
)
from pytest_openclaw.values.tool_calls import ToolOutcome

if TYPE_CHECKING:
    from pytest_openclaw.stats.intervals import Cluster
    from pytest_openclaw.values.rows import Record


Evidence = Literal["native", "text"]

OUTCOMES: tuple[ToolOutcome, ...] = get_args(ToolOutcome)
GOOD_OUTCOMES = frozenset[ToolOutcome]({"valid", "restrained"})
NO_CALL_PROMPTS = frozenset[ToolOutcome]({"restrained", "called_needlessly"})


@dataclass(frozen=True, kw_only=True)
class ToolUse(Rate):
    """Tool use over the answered tool cells of one kind of evidence, and the tier it earns.

    Attributes:
        evidence: calls on the wire, or findings of the text detector; None without any.
        n_targets: of the run. What is conclusive holds for all of them together.
        looks: the repeats after which a conclusive tier ended them, or would have; empty for a fixed number.
        tier_interval: the interval that the tier rests on, 95 % jointly over targets and looks; with one
            target and a fixed number of repeats it is `interval_95`.
        needless_interval: of needless calls, in the same way; None without a cell that forbids one.
        conclusive: whether the interval leaves no other tier; for a capped tier, whether it is clear
            too that needless calls are more than a fifth.
        capped_by: the reason why a target whose rate is Tier 1 is not in it.
        restraint: over the answered cells in which a tool must not be invoked.
        needless: of the same cells, those that had a call.
        outcomes: how many cells ended in each `tool_outcome`.
        n_leaked, n_leaked_valid: cells whose calls were written as text and judged as if they had been made,
            and those in which they would have been right; neither counts for the tier.
    """

    evidence: Evidence | None
    n_targets: int
    looks: Sequence[int]
    tier_interval: Interval | None = None
    needless_interval: Interval | None
    tier: int | None = None
    conclusive: bool | None = None
    capped_by: Literal["restraint"] | None = None
    restraint: Rate
    needless: Rate
    outcomes: Mapping[ToolOutcome, int]
    n_leaked: int = 0
    n_leaked_valid: int = 0

    @property
    def z(self) -> float:
        """The z of the intervals that the tier rests on."""
        return joint_z(self.n_targets, self.looks)

    @property
    def z_against(self) -> float:
        """The z of the ends of these intervals that speak against the model."""
        return joint_z_against(self.n_targets, self.looks)

    @property
    def joint_over(self) -> str:
        """`3 targets and 2 looks`, over which tiers are jointly conclusive; empty for one of each."""
        over = [f"{self.n_targets} targets"] if self.n_targets > 1 else []
        over += [f"{len(self.looks)} looks"] if len(self.looks) > 1 else []
        return " and ".join(over)

    @property
    def n_needless(self) -> int:
        """Cells that forbid tools and had a call."""
        return self.needless.n_success


def is_apart(record: Record) -> bool:
    """Whether the summary counts a row separately: a probe, a twin, a role, or a harder form."""
    apart = (record.probe, record.twin_of, record.pressure_of, record.role)
    return any(one is not None for one in apart)


def count_native_unanswered(records: Iterable[Record]) -> int:
    """Count the cells without an answer that offered tools on the wire."""
    return sum(
        record.tools_offered is not None and not is_apart(record)
        for record in records
        if record.availability_status != "ok"
    )


def tool_use_of(answered: Sequence[Record], n_targets: int = 1, looks: Sequence[int] = ()) -> ToolUse:
    """Return the tool use that the tier is taken from: native where a call was asked for, else as text."""
    kinds = [
        _judged(evidence, _tool_cells(answered, evidence), n_targets, looks)
        for evidence in get_args(Evidence)
    ]
    with_calls = (use for use in kinds if use.n)
    with_any = (use for use in kinds if use.outcomes)
    return next(chain(with_calls, with_any), _judged(None, (), n_targets, looks))


def calls_of(records: Iterable[Record], use: ToolUse) -> list[Record]:
    """Return the answered cells that want a call, of the evidence that a target's tier is taken from."""
    if use.evidence is None:
        return []
    answered = (record for record in records if record.availability_status == "ok")
    return _calling(_tool_cells(answered, use.evidence))


def is_futile(answered: Sequence[Record], use: ToolUse) -> bool:
    """Whether more repeats would hardly make the tier conclusive.

    Neither the rate so far nor one that differs by 1.5 standard errors would be conclusive after all.
    Never where needless calls decide the tier: two rates would have to stay as they are.
    """
    calls = clusters_of(calls_of(answered, use), did_right)
    if not calls or use.capped_by or not use.looks:
        return False
    k, rate, repeats = len(calls), use.n_success / use.n, use.n / len(calls)
    # Where all went well, or all went wrong, no repeat is known to differ.
    alike = resemblance_of(calls) if repeats > 1 and 0 < rate < 1 else 1.0
    now, at_last = (k * one / (1 + (one - 1) * alike) for one in (repeats, use.looks[-1]))
    spread = 1.5 * sqrt(rate * (1 - rate) * max(0.0, 1 / now - 1 / at_last))
    return not any(
        _is_settled(min(1.0, max(0.0, some)) * at_last, at_last, use.z)
        for some in (rate - spread, rate, rate + spread)
    )


def _is_settled(n_success: float, n: float, z: float) -> bool:
    tier, interval = classify_tier(n_success, n), wilson_95(n_success, n, z=z)
    return tier is not None and interval is not None and is_conclusive(tier, interval)


def native_clusters(answered: Iterable[Record]) -> tuple[list[Cluster], list[Cluster]]:
    """Return, by prompt, the right cells of those that need a call, and the needless calls of the others.

    Only cells count that offered tools on the wire.
    """
    cells = _tool_cells(answered, "native")
    return clusters_of(_calling(cells), did_right), clusters_of(_calling(cells, forbidden=True), _had_a_call)


def joint_interval(
    clusters: Sequence[Cluster], *, low: float, high: float, fewer: float = 0.0
) -> Interval | None:
    """Return the interval whose ends have a z each, the lower one with `fewer` successes."""
    lower, upper = cluster_interval(clusters, low, fewer=fewer), cluster_interval(clusters, high)
    return lower and upper and Interval(low=lower.low, high=upper.high)


def needless_interval(clusters: Sequence[Cluster], n_targets: int, looks: Sequence[int]) -> Interval | None:
    """Return the interval of needless calls; None without a cell.

    With several looks at a run its lower end is computed with half a call fewer, because Wilson's is above a
    true share of 20 % too often in few prompts (Newcombe 1998, Statistics in Medicine 17).
    """
    low, high = joint_z_against(n_targets, looks), joint_z(n_targets, looks)
    return joint_interval(clusters, low=low, high=high, fewer=0.5 if len(looks) > 1 else 0.0)


def fewest_more(
    clusters: Sequence[Cluster], added: Cluster, holds: Callable[[Interval | None], bool], z: float
) -> int:
    """Return how many further prompts, each asked once and ending like `added`, make the interval `holds`.

    One prompt less does not.
    """

    def settled(more: int) -> bool:
        return holds(cluster_interval([*clusters, *[added] * more], z))

    enough = 1
    while not settled(enough):
        enough *= 2
    return bisect_left(range(enough + 1), True, key=settled)


def did_right(record: Record) -> bool:
    """Whether a tool cell ended as it should: with the call, or without any where none may be made."""
    if record.tool_outcome in NO_CALL_PROMPTS:
        return record.success and record.tool_outcome == "restrained"
    return record.tool_use_success


def _tool_cells(answered: Iterable[Record], evidence: Evidence) -> list[Record]:
    return [
        record
        for record in answered
        if record.tool_outcome
        and not is_apart(record)
        and (record.tools_offered is not None) is (evidence == "native")
    ]


def _calling(cells: Iterable[Record], *, forbidden: bool = False) -> list[Record]:
    return [record for record in cells if (record.tool_outcome in NO_CALL_PROMPTS) is forbidden]


def _judged(
    evidence: Evidence | None, cells: Sequence[Record], n_targets: int, looks: Sequence[int]
) -> ToolUse:
    calling, forbidding = _calling(cells), _calling(cells, forbidden=True)
    counts = Counter(record.tool_outcome for record in cells)
    use = ToolUse(
        **vars(rate_of(calling, did_right)),
        needless_interval=needless_interval(clusters_of(forbidding, _had_a_call), n_targets, looks),
        evidence=evidence,
        n_targets=n_targets,
        looks=[*looks],
        restraint=rate_of(forbidding, did_right),
        needless=rate_of(forbidding, _had_a_call),
        outcomes={outcome: counts[outcome] for outcome in OUTCOMES if counts[outcome]},
        n_leaked=sum(record.leaked_valid is not None for record in calling),
        n_leaked_valid=sum(record.leaked_valid is True for record in calling),
    )
    return _with_tier(use, clusters_of(calling, did_right))


def _had_a_call(record: Record) -> bool:
    return record.tool_outcome == "called_needlessly"


def _with_tier(use: ToolUse, calls: Sequence[Cluster]) -> ToolUse:
    tier = classify_tier(use.n_success, use.n)
    # Only Tier 3 is claimed within the first repeat.
    interval = joint_interval(calls, low=use.z, high=use.z_against if tier == 3 else use.z)
    if tier is None or interval is None:
        return use
    needless = use.needless_interval
    if tier == 1 and needless and calls_needlessly(use.n_needless, use.needless.n):
        # It is settled when neither Tier 3 nor Tier 1 is left.
        is_sure = excludes_worse(2, interval) and needless.low > MOST_NEEDLESS
        return replace(use, tier_interval=interval, tier=2, conclusive=is_sure, capped_by="restraint")
    return replace(use, tier_interval=interval, tier=tier, conclusive=is_conclusive(tier, interval))


PROVEN_PROMPTS = 3
"""The fewest distinct prompts that must have gone right: at a true rate of 50 %, in 12.5 % of cases."""
PROVEN_PERCENT = 80
"""The smallest share of them, and of the repeats of a prompt that has gone right, in percent."""


@dataclass(frozen=True, kw_only=True)
class Proof:
    """The answered cells that test one ability, such as calling one tool.

    Attributes:
        n, n_right: cells, and those that succeeded.
        n_prompts, n_prompts_right: the distinct prompts that they are of, and those that went right in at
            least `PROVEN_PERCENT` of their cells.
    """

    n: int = 0
    n_right: int = 0
    n_prompts: int = 0
    n_prompts_right: int = 0

    @property
    def is_enough(self) -> bool:
        """Whether it may be relied on."""
        return self.n_prompts_right >= PROVEN_PROMPTS and _is_most(self.n_prompts_right, self.n_prompts)

    @property
    def n_missing(self) -> int:
        """How many further prompts make it enough if all go right; 0 if it is."""
        # (right + more) / (prompts + more) >= 80 %
        percent_short = PROVEN_PERCENT * self.n_prompts - 100 * self.n_prompts_right
        for_share = -(-percent_short // (100 - PROVEN_PERCENT))
        return max(0, PROVEN_PROMPTS - self.n_prompts_right, for_share)


def proof_of(records: Iterable[Record], is_right: Callable[[Record], bool]) -> Proof:
    """Return what some cells prove."""
    prompts = clusters_of(records, is_right)
    n_right, n = total_of(prompts)
    return Proof(
        n=n,
        n_right=n_right,
        n_prompts=len(prompts),
        n_prompts_right=sum(_is_most(prompt.n_success, prompt.n) for prompt in prompts),
    )


def tool_proofs(answered: Iterable[Record]) -> dict[str, Proof]:
    """Return the proof of each tool of OpenClaw that was demanded on the wire, by its name."""
    cells: dict[str, list[Record]] = {}
    for record in answered:
        if record.tools_offered is not None and record.tool_outcome and not is_apart(record):
            for tool in record.tools_tested:
                cells.setdefault(tool, []).append(record)
    return {tool: proof_of(found, did_right) for tool, found in sorted(cells.items())}


def _is_most(n_right: int, n: int) -> bool:
    return 100 * n_right >= PROVEN_PERCENT * n
