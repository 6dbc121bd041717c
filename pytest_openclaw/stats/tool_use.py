"""A target's tool use: the tier, its evidence, and proven tools.

OpenClaw depends on calls on the wire, so a tier rests on them (`native` evidence) if any were asked for,
otherwise on the text detector (`text`). The two are never added.

If several targets are rated or repeats end early, a tier's limits hold for all of them together. The rate
after `r` repeats of `k` prompts has the variance `between / k + within / (k r)`, and its covariance with a
later rate is the variance of the later rate. This is the canonical form of group-sequential tests (Jennison
& Turnbull 2000, "Group Sequential Methods", chapter 3), so their limits hold. They are computed for repeats
that do not resemble each other; the more repeats do, the more looks agree, and the less often any is wrong.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import chain, pairwise
from math import exp, pi, sqrt
from statistics import NormalDist
from typing import TYPE_CHECKING, Literal, get_args

from pytest_openclaw.stats.intervals import (
    Z_95,
    Cluster,
    Interval,
    Rate,
    cluster_interval,
    clusters_of,
    rate_of,
    total_of,
)
from pytest_openclaw.values.prompts import MAIN
from pytest_openclaw.values.settings import SUITE_LOOKS
from pytest_openclaw.values.tool_calls import ToolOutcome

if TYPE_CHECKING:
    from pytest_openclaw.values.rows import Record


# --- tiers ------------------------------------------------------------------------------------------

TIER_NAMES = {1: "Tool-Capable", 2: "Tool-Capable but Inconsistent", 3: "Tool-Incapable"}
TIER_FLOORS = {1: 0.80, 2: 0.50, 3: 0.0}
"""The lowest rate of each tier, from the original schema; rates are not rounded before they are compared."""
MOST_NEEDLESS = 0.20
"""The largest share of needless calls of a Tier 1 target, over the cells that forbid tools."""


def classify_tier(n_success: float, n: float) -> int | None:
    """Return the best tier whose floor a tool-use success rate reaches; None for `n` 0.

    Division rounds correctly, so 4 of 5 is the same number as the floor of 0.80.
    """
    return min(tier for tier, floor in TIER_FLOORS.items() if n_success / n >= floor) if n else None


def is_conclusive(tier: int, interval: Interval) -> bool:
    """Whether the whole interval lies inside the tier."""
    ceiling = TIER_FLOORS.get(tier - 1, float("inf"))
    return interval.low >= TIER_FLOORS[tier] and interval.high < ceiling


def excludes_worse(tier: int, interval: Interval | None) -> bool:
    """Whether there is evidence and it excludes every worse tier."""
    return interval is not None and interval.low >= TIER_FLOORS[tier]


STEPS = 64
"""The steps of Simpson's rule, with which a limit is at most 0.0003 too high."""
BISECTIONS = 14
_NORMAL = NormalDist()
_LOWEST = -8.0


_LARGE_SUITE = 200
"""The number of prompts in the suite for which `joint_z_against` is computed."""


@lru_cache(maxsize=256)
def joint_z(n_targets: int, looks: tuple[int, ...] = ()) -> float:
    """Return the z of joint 95 % intervals over all targets and all looks at the end of repeats.

    Over the targets by Bonferroni's inequality, over the looks by one limit for all of them (Pocock 1977,
    Biometrika 64). A conclusive tier rests on one end of an interval, so a run has a chance of 2.5 % at most
    that any target's conclusive tier is above the true tier, and the same chance that any is below it.
    """
    level = 0.025 / max(1, n_targets)
    single = Z_95 if n_targets <= 1 else _NORMAL.inv_cdf(1 - level)
    if len(looks) <= 1:
        return single
    low, high = single, _NORMAL.inv_cdf(1 - level / len(looks))
    for _ in range(BISECTIONS):
        middle = (low + high) / 2
        low, high = (middle, high) if _ever_above(middle, looks) > level else (low, middle)
    return high


def joint_z_against(n_targets: int, looks: tuple[int, ...] = ()) -> float:
    """Return the z of the ends that speak against a model, with the looks within the first repeat included.

    Claims for a model and claims against it may each be wrong in 2.5 % of runs, so each has its own limit.
    The limit of a large suite also holds for a smaller suite, whose looks are fewer or more alike.
    """
    information = (*SUITE_LOOKS, *(_LARGE_SUITE * look for look in looks))
    return joint_z(n_targets, information if looks else ())


def _ever_above(z: float, looks: Sequence[int]) -> float:
    """Return the chance that the standardized rate exceeds `z` at any look if the true rate is at the limit.

    Integrated look by look: Armitage, McPherson & Rowe (1969, J. Royal Stat. Soc. A 132).
    """
    width = (z - _LOWEST) / STEPS
    points = [_LOWEST + step * width for step in range(STEPS + 1)]
    weights = [width / 3 * (1 if step in (0, STEPS) else 2 + 2 * (step % 2)) for step in range(STEPS + 1)]
    densities = [_NORMAL.pdf(point) for point in points]
    below = _NORMAL.cdf(z)
    for look, following in pairwise(looks):
        kept, new = sqrt(look / following), sqrt(1 - look / following)
        masses = [density * weight for density, weight in zip(densities, weights, strict=True)]
        below = sum(
            mass * _NORMAL.cdf((z - kept * point) / new) for mass, point in zip(masses, points, strict=True)
        )
        densities = [
            sum(
                mass * exp(-(((at - kept * point) / new) ** 2) / 2)
                for mass, point in zip(masses, points, strict=True)
            )
            / (new * sqrt(2 * pi))
            for at in points
        ]
    return 1 - below


# --- tool use --------------------------------------------------------------------------------------

Evidence = Literal["native", "text"]

OUTCOMES: tuple[ToolOutcome, ...] = get_args(ToolOutcome)
GOOD_OUTCOMES = frozenset[ToolOutcome]({"valid", "restrained"})
NO_CALL_PROMPTS = frozenset[ToolOutcome]({"restrained", "called_needlessly"})


@dataclass(frozen=True, kw_only=True)
class ToolUse(Rate):
    """Tool use over the answered tool cells of one kind of evidence, and the tier it earns.

    Attributes:
        evidence: calls on the wire, or findings of the text detector; None without tool cells.
        n_targets: the targets of the run, over which a tier is jointly conclusive.
        looks: the numbers of repeats after which a conclusive tier would end the asking; empty if the number
            of repeats is fixed.
        tier_interval: the interval that the tier rests on, 95 % jointly over targets and looks; with one
            target and a fixed number of repeats it is `interval_95`.
        needless_interval: the same for needless calls; None without cells that forbid calls.
        conclusive: whether the interval excludes every other tier; for a capped tier, whether it excludes
            Tier 3 and needless calls are certainly more than a fifth.
        capped_by: the reason why a target with a Tier 1 rate is not Tier 1.
        restraint: the share without a call, over the answered cells that forbid calls.
        needless: the share with a call, over the same cells.
        outcomes: the number of cells with each `tool_outcome`.
        n_leaked: cells, including probes, whose calls were written as text; they do not count for the tier.
        n_leaked_valid: those of them whose calls would have been right if the server had read them.
    """

    evidence: Evidence | None
    n_targets: int
    looks: tuple[int, ...]
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


def count_native_unanswered(records: Iterable[Record]) -> int:
    """Count the unanswered cells that offered tools on the wire."""
    return sum(
        record.tools_offered is not None and record.strand == MAIN
        for record in records
        if record.availability_status != "ok"
    )


def tool_use_of(answered: Sequence[Record], n_targets: int = 1, looks: tuple[int, ...] = ()) -> ToolUse:
    """Return the tool use that decides the tier: native if a call was asked for, otherwise as text."""
    kinds = [
        _judged(evidence, _tool_cells(answered, evidence), n_targets, looks)
        for evidence in get_args(Evidence)
    ]
    with_calls = (use for use in kinds if use.n)
    with_any = (use for use in kinds if use.outcomes)
    use = next(chain(with_calls, with_any), _judged(None, (), n_targets, looks))
    leaked = [record.leaked_valid for record in answered if record.leaked_valid is not None]
    return replace(use, n_leaked=len(leaked), n_leaked_valid=sum(leaked))


def calls_of(records: Iterable[Record], use: ToolUse) -> list[Record]:
    """Return the answered cells that demand a call, with the kind of evidence that decides the tier."""
    if use.evidence is None:
        return []
    answered = (record for record in records if record.availability_status == "ok")
    return _calling(_tool_cells(answered, use.evidence))


def native_clusters(answered: Iterable[Record]) -> tuple[list[Cluster], list[Cluster]]:
    """Return the right cells among those that demand a call, and the needless calls among the others.

    Both are counted by prompt, over the cells that offered tools on the wire.
    """
    cells = _tool_cells(answered, "native")
    return clusters_of(_calling(cells), did_right), clusters_of(_calling(cells, forbidden=True), _had_a_call)


def joint_interval(
    clusters: Sequence[Cluster], *, low: float, high: float, fewer: float = 0.0
) -> Interval | None:
    """Return an interval with a z for each end, whose lower end is computed with `fewer` successes less."""
    lower, upper = cluster_interval(clusters, low, fewer=fewer), cluster_interval(clusters, high)
    return lower and upper and Interval(low=lower.low, high=upper.high)


def needless_interval(clusters: Sequence[Cluster], n_targets: int, looks: tuple[int, ...]) -> Interval | None:
    """Return the interval of needless calls; None without cells.

    With several looks, its lower end is computed with half a call less, because with few prompts Wilson's
    lower end exceeds a true share of 20 % too often (Newcombe 1998, Statistics in Medicine 17).
    """
    low, high = joint_z_against(n_targets, looks), joint_z(n_targets, looks)
    return joint_interval(clusters, low=low, high=high, fewer=0.5 if len(looks) > 1 else 0.0)


def fewest_more(
    clusters: Sequence[Cluster], added: Cluster, holds: Callable[[Interval | None], bool], z: float
) -> int:
    """Return the fewest further prompts, each with the result `added`, whose interval satisfies `holds`."""

    def settled(more: int) -> bool:
        return holds(cluster_interval([*clusters, *[added] * more], z))

    enough = 1
    while not settled(enough):
        enough *= 2
    return bisect_left(range(enough + 1), True, key=settled)


def did_right(record: Record) -> bool:
    """Whether a tool cell ended right: with the demanded call, or without a call if calls are forbidden."""
    if record.tool_outcome in NO_CALL_PROMPTS:
        return record.success and record.tool_outcome == "restrained"
    return record.tool_use_success


def _tool_cells(answered: Iterable[Record], evidence: Evidence) -> list[Record]:
    return [
        record
        for record in answered
        if record.tool_outcome
        and record.strand == MAIN
        and (record.tools_offered is not None) is (evidence == "native")
    ]


def _calling(cells: Iterable[Record], *, forbidden: bool = False) -> list[Record]:
    return [record for record in cells if (record.tool_outcome in NO_CALL_PROMPTS) is forbidden]


def _judged(
    evidence: Evidence | None, cells: Sequence[Record], n_targets: int, looks: tuple[int, ...]
) -> ToolUse:
    calling, forbidding = _calling(cells), _calling(cells, forbidden=True)
    counts = Counter(record.tool_outcome for record in cells)
    use = ToolUse(
        **vars(rate_of(calling, did_right)),
        needless_interval=needless_interval(clusters_of(forbidding, _had_a_call), n_targets, looks),
        evidence=evidence,
        n_targets=n_targets,
        looks=looks,
        restraint=rate_of(forbidding, did_right),
        needless=rate_of(forbidding, _had_a_call),
        outcomes={outcome: counts[outcome] for outcome in OUTCOMES if counts[outcome]},
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
    if tier == 1 and needless and (use.needless.rate or 0.0) > MOST_NEEDLESS:
        # A capped tier is conclusive when Tier 3 and Tier 1 are both excluded.
        is_sure = excludes_worse(2, interval) and needless.low > MOST_NEEDLESS
        return replace(use, tier_interval=interval, tier=2, conclusive=is_sure, capped_by="restraint")
    return replace(use, tier_interval=interval, tier=tier, conclusive=is_conclusive(tier, interval))


PROVEN_PROMPTS = 3
"""The fewest distinct prompts that must go right; at a true rate of 50 %, three do in 12.5 % of cases."""
PROVEN_PERCENT = 80
"""The smallest share of prompts that must go right, and of a prompt's cells for it to count as right."""


@dataclass(frozen=True, kw_only=True)
class Proof:
    """The answered cells that test one ability, such as calling one tool.

    Attributes:
        n, n_right: the cells, and those that went right.
        n_prompts, n_prompts_right: their distinct prompts, and those that went right in at least
            `PROVEN_PERCENT` of their cells.
    """

    n: int = 0
    n_right: int = 0
    n_prompts: int = 0
    n_prompts_right: int = 0

    @property
    def is_enough(self) -> bool:
        """Whether the cells prove the ability."""
        return self.n_prompts_right >= PROVEN_PROMPTS and _is_most(self.n_prompts_right, self.n_prompts)

    @property
    def n_missing(self) -> int:
        """The number of further prompts that would be enough if all went right; 0 if the proof is enough."""
        # (right + more) / (prompts + more) >= 80 %
        percent_short = PROVEN_PERCENT * self.n_prompts - 100 * self.n_prompts_right
        for_share = -(-percent_short // (100 - PROVEN_PERCENT))
        return max(0, PROVEN_PROMPTS - self.n_prompts_right, for_share)


def proof_of(records: Iterable[Record], is_right: Callable[[Record], bool]) -> Proof:
    """Count the cells and prompts that went right."""
    prompts = clusters_of(records, is_right)
    n_right, n = total_of(prompts)
    return Proof(
        n=n,
        n_right=n_right,
        n_prompts=len(prompts),
        n_prompts_right=sum(_is_most(prompt.n_success, prompt.n) for prompt in prompts),
    )


def tool_proofs(answered: Iterable[Record]) -> dict[str, Proof]:
    """Return the proof for each tool of OpenClaw that was demanded on the wire, by the tool's name."""
    cells: dict[str, list[Record]] = {}
    for record in answered:
        if record.tools_offered is not None and record.tool_outcome and record.strand == MAIN:
            for tool in record.tools_tested:
                cells.setdefault(tool, []).append(record)
    return {tool: proof_of(found, did_right) for tool, found in sorted(cells.items())}


def _is_most(n_right: int, n: int) -> bool:
    return 100 * n_right >= PROVEN_PERCENT * n
