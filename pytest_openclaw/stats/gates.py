"""What a target must reach before a merge, and whether it did."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from pytest_openclaw.stats.significance import LEVEL
from pytest_openclaw.stats.tiers import TIER_FLOORS, excludes_worse

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from pytest_openclaw.records import Target
    from pytest_openclaw.settings import Gates
    from pytest_openclaw.stats.compare import ComparedRuns
    from pytest_openclaw.stats.rates import Rate
    from pytest_openclaw.stats.summary import Group

PASSED = "judged cells passed"
SUCCEEDED = "tool cells succeeded"

Ruling = Literal["passed", "failed", "no_verdict"]


@dataclass(frozen=True, kw_only=True)
class GateResult:
    """One gate on one target; `no_verdict` is never a pass.

    Attributes:
        wanted, found: the value that must be reached and the one that was; of `fail-on-regression` the p
            under which a loss fails, and the loss's own.
    """

    gate: str
    target: str
    wanted: float
    found: float | None
    ruling: Ruling
    reason: str


def check_gates(
    gates: Gates,
    groups: Sequence[Group],
    n_selected: Mapping[Target, int],
    comparison: ComparedRuns | None = None,
) -> tuple[GateResult, ...]:
    """Hold every group against every gate that is set, in the order of the groups.

    Args:
        gates: what was asked for.
        groups: one for each target that was to be asked.
        n_selected: cells selected, by target; a target that was not asked to the end is no pass.
        comparison: with the baseline; without one, no target can be said not to be worse.
    """
    results: list[GateResult] = []
    for group in groups:
        doubt = _doubt(group, n_selected.get(group.target, group.n_total))
        tool_doubt = doubt or _tool_doubt(group)
        if (wanted := gates.min_pass_rate) is not None:
            results.append(_rate_gate("min-pass-rate", wanted, group, group.passed, PASSED, doubt))
        if (wanted := gates.min_tool_rate) is not None:
            results.append(_rate_gate("min-tool-rate", wanted, group, group.tool_use, SUCCEEDED, tool_doubt))
        if gates.require_tier is not None:
            results.append(_tier_gate(gates.require_tier, group, tool_doubt))
        if gates.fail_on_regression:
            results.append(_regression_gate(group, comparison, doubt))
    return tuple(results)


def overall(results: Sequence[GateResult]) -> Literal["passed", "failed", "no_verdict", "not_gated"]:
    """Return the ruling of all gates together."""
    rulings = {result.ruling for result in results}
    if not rulings:
        return "not_gated"
    if "failed" in rulings:
        return "failed"
    return "no_verdict" if "no_verdict" in rulings else "passed"


def _rate_gate(
    gate: str, wanted: float, group: Group, rate: Rate, what: str, doubt: str | None
) -> GateResult:
    found = rate.rate
    counted = f"{rate.n_success} of {rate.n} {what}"
    ruling: Ruling
    if found is None:
        ruling, reason = "no_verdict", _nothing(group, what)
    elif found < wanted:
        ruling, reason = "failed", f"{counted} ({found:.1%}), {wanted:.1%} wanted"
    elif doubt:
        ruling, reason = "no_verdict", f"{counted}, but {doubt}"
    else:
        ruling, reason = "passed", f"{counted} ({found:.1%}), {wanted:.1%} wanted"
    return GateResult(
        gate=gate, target=group.target.label, wanted=wanted, found=found, ruling=ruling, reason=reason
    )


def _tier_gate(wanted: int, group: Group, doubt: str | None) -> GateResult:
    use = group.tool_use
    ruling: Ruling
    if use.tier is None or use.interval_95 is None:
        ruling, reason = "no_verdict", _nothing(group, SUCCEEDED)
    else:
        low, high = use.interval_95.low, use.interval_95.high
        counted = f"{use.n_success} of {use.n} {SUCCEEDED}, 95 % interval {low:.0%} to {high:.0%}"
        if use.tier > wanted and use.capped_by:
            needless = f"{use.n_needless} of {use.restraint.n} cells that forbid tools had a call"
            ruling, reason = "failed", f"tier {use.tier}: {needless}, more than a fifth"
        elif use.tier > wanted:
            ruling, reason = "failed", f"tier {use.tier}: {counted}"
        elif not excludes_worse(wanted, use.interval_95):
            floor = TIER_FLOORS[wanted]
            ruling, reason = "failed", f"not conclusive: {counted}; the lower end must reach {floor:.0%}"
        elif doubt:
            ruling, reason = "no_verdict", f"{counted}, but {doubt}"
        else:
            ruling, reason = "passed", f"tier {use.tier}: {counted}"
    return GateResult(
        gate="require-tier",
        target=group.target.label,
        wanted=wanted,
        found=use.tier,
        ruling=ruling,
        reason=reason,
    )


def _regression_gate(group: Group, comparison: ComparedRuns | None, doubt: str | None) -> GateResult:
    """Fail a target whose verdicts are worse than the baseline's, whatever the unanswered cells had been."""
    compared = comparison.of(group.target.label) if comparison else None
    verdicts = compared.verdicts if compared else None
    ruling: Ruling = "no_verdict"
    if verdicts is None or not verdicts.n_cells:
        with_what = f"with {comparison.baseline}" if comparison else "because there is no baseline"
        reason = f"nothing could be compared {with_what}"
    else:
        passed = f"{verdicts.n_base} -> {verdicts.n_candidate} of {verdicts.n_cells} cells passed"
        counted = f"{passed}, p {verdicts.p_adjusted:.2g}"
        open_cells = f"{verdicts.n_open} cells without an answer"
        if verdicts.if_well == "worse":
            ruling, reason = "failed", f"worse: {counted}"
        elif verdicts.word == "worse":
            reason = f"worse: {counted}, but {open_cells} might have made it good"
        elif verdicts.could_see is None:
            reason = f"{counted}, but {verdicts.n_prompts} prompts are too few to see any loss"
        elif doubt:
            reason = f"{counted}, but {doubt}"
        elif verdicts.if_ill == "worse":
            reason = f"{counted}, but {open_cells} might have made it worse"
        else:
            ruling, reason = "passed", f"{verdicts.word}: {counted}"
    return GateResult(
        gate="fail-on-regression",
        target=group.target.label,
        wanted=LEVEL,
        found=verdicts.p_adjusted if verdicts and verdicts.n_cells else None,
        ruling=ruling,
        reason=reason,
    )


def _nothing(group: Group, what: str) -> str:
    if group.n_ok == 0:
        reason = next(iter(group.reasons.values()), "no cell was answered")
        return f"nothing was answered: {reason}"
    return f"no answered cell counts for it (0 {what})"


def _doubt(group: Group, n_selected: int) -> str | None:
    """Why the answered cells do not speak for all of them."""
    if group.n_skipped_unavailable:
        return f"{group.n_skipped_unavailable} of {n_selected} cells were unavailable"
    if group.n_total < n_selected:
        return f"{n_selected - group.n_total} of {n_selected} cells were not asked"
    return None


def _tool_doubt(group: Group) -> str | None:
    """Why the text detector may not speak for calls on the wire."""
    if group.n_native_unanswered and group.tool_use.evidence == "text":
        return f"as text; none of the {group.n_native_unanswered} native cells was answered"
    return None
