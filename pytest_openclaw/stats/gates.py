"""What a target must reach before a merge, and whether it did.

One rule for all gates: cells without an answer are counted both ways. A gate fails only if it fails even had
all of them gone well, and passes only if it passes even had all of them gone wrong and each was asked and
available. Between the two, and where too few prompts decide, there is no verdict, which is never a pass.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import ceil
from typing import TYPE_CHECKING, Literal

from pytest_openclaw.core.text import counted
from pytest_openclaw.stats.bounds import bounds_of
from pytest_openclaw.stats.gate_checks import (
    PASSED,
    SUCCEEDED,
    check_p95,
    check_rate,
    check_safe,
    check_tier,
)
from pytest_openclaw.stats.significance import LEVEL
from pytest_openclaw.types.faults import BUDGET_SPENT

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from pytest_openclaw.stats.bounds import Bounds
    from pytest_openclaw.stats.compared_runs import ComparedRuns
    from pytest_openclaw.stats.gate_checks import GateCheck
    from pytest_openclaw.stats.groups import Group
    from pytest_openclaw.stats.intervals import Interval
    from pytest_openclaw.stats.verdict_changes import VerdictChange
    from pytest_openclaw.types.records import Record
    from pytest_openclaw.types.settings import Gates
    from pytest_openclaw.types.targets import Target

REGRESSION = "fail-on-regression"
LOSS = "fail-on-loss"
SAFE = "require-safe"
Ruling = Literal["passed", "failed", "no_verdict"]


@dataclass(frozen=True, kw_only=True)
class GateResult:
    """One gate on one target; `no_verdict` is never a pass.

    Attributes:
        conclusive: whether the whole 95 % interval had to reach what was wanted.
        found: as measured, over the cells that were answered; of `require-safe` the probes that did harm;
            of `fail-on-regression` the p of the loss, and `wanted` the one under which it fails.
    """

    gate: str
    target: str
    wanted: float
    conclusive: bool
    found: float | None
    ruling: Ruling
    reason: str

    @property
    def asked(self) -> str:
        """The gate and its limit: `min-pass-rate 0.9`; some gates have no limit."""
        return self.gate if self.gate in (REGRESSION, SAFE) else f"{self.gate} {self.wanted:.10g}"


def check_gates(
    gates: Gates,
    groups: Sequence[Group],
    n_selected: Mapping[Target, int],
    records: Mapping[Target, Sequence[Record]],
    comparison: ComparedRuns | None = None,
) -> tuple[GateResult, ...]:
    """Hold every group against every gate that is set for it, in the order of the groups.

    Args:
        gates: what was asked for.
        groups: one for each target that was to be asked.
        n_selected: cells selected, by target; a target that was not asked to the end is no pass.
        records: the rows of each group.
        comparison: with the baseline; without one, no target can be said not to be worse.
    """
    results: list[GateResult] = []
    for group in groups:
        wanted = gates.of_target(group.target.label)
        held = [*_gates(wanted)]
        if not held and not wanted.fail_on:
            continue
        n_cells = n_selected.get(group.target, group.n_total)
        bounds = bounds_of(group, records.get(group.target, ()), n_cells)
        results += [_held(gate, bounds) for gate in held]
        if wanted.fail_on:
            results.append(_baseline_gate(wanted.most_loss, group, comparison, _gap(bounds)))
    return tuple(results)


def overall(results: Sequence[GateResult]) -> Literal["passed", "failed", "no_verdict", "not_gated"]:
    """Return the ruling of all gates together."""
    rulings = {result.ruling for result in results}
    if not rulings:
        return "not_gated"
    if "failed" in rulings:
        return "failed"
    return "no_verdict" if "no_verdict" in rulings else "passed"


def unmatched(gates: Gates, targets: Sequence[Target]) -> tuple[str, ...]:
    """Return the globs that match no target."""
    return tuple(
        line.target for line in gates.by_target if not any(line.fits(target.label) for target in targets)
    )


@dataclass(frozen=True, kw_only=True)
class _Gate:
    """A gate of the settings: its check, and whether that is about tool use."""

    name: str
    wanted: float
    conclusive: bool
    check: Callable[[Group], GateCheck]
    is_of_tools: bool = False


def _gates(gates: Gates) -> Iterator[_Gate]:
    conclusive = gates.conclusive
    if (pass_rate := gates.min_pass_rate) is not None:
        yield _Gate(
            name="min-pass-rate",
            wanted=pass_rate,
            conclusive=conclusive,
            check=lambda group: check_rate(group.passed, PASSED, pass_rate, conclusive=conclusive),
        )
    if (tool_rate := gates.min_tool_rate) is not None:
        yield _Gate(
            name="min-tool-rate",
            wanted=tool_rate,
            conclusive=conclusive,
            check=lambda group: check_rate(group.tool_use, SUCCEEDED, tool_rate, conclusive=conclusive),
            is_of_tools=True,
        )
    if (tier := gates.require_tier) is not None:
        yield _Gate(
            name="require-tier",
            wanted=tier,
            conclusive=True,
            check=lambda group: check_tier(group.tool_use, tier),
            is_of_tools=True,
        )
    if gates.require_safe:
        yield _Gate(name=SAFE, wanted=0, conclusive=False, check=check_safe)
    if (limit := gates.max_p95_ms) is not None:
        yield _Gate(
            name="max-p95-ms",
            wanted=limit,
            conclusive=conclusive,
            check=lambda group: check_p95(group, limit, conclusive=conclusive),
        )


def _held(gate: _Gate, bounds: Bounds) -> GateResult:
    """Check a gate for every possible outcome of a target's unanswered cells."""
    measured = gate.check(bounds.group)
    best = [gate.check(group) for group in (bounds.tools_at_best if gate.is_of_tools else (bounds.at_best,))]
    worst = gate.check(bounds.tools_at_worst if gate.is_of_tools else bounds.at_worst)
    states = {check.state for check in (measured, *best, worst)}
    never_a_pass = _gap(bounds)
    ruling: Ruling = "no_verdict"
    if measured.state is None:
        reason = _nothing(bounds.group, measured.text)
    elif states == {"fails"}:
        ruling, reason = "failed", measured.text + _beside(measured, best[0], bounds, "even with {} for it")
    elif states == {"passes"} and not never_a_pass:
        ruling, reason = "passed", measured.text + _beside(measured, worst, bounds, "with {} against it")
    else:
        reason_against = never_a_pass or _text_alone(gate, bounds.group)
        if not reason_against and bounds.n_unanswered:
            span = f"{worst.short} to {best[0].short}"
            reason_against = f"{bounds.n_unanswered} of {bounds.n_cells} cells have no answer: {span}"
        reason = f"{measured.text}, but {reason_against}" if reason_against else measured.text
    return GateResult(
        gate=gate.name,
        target=bounds.group.target.label,
        wanted=gate.wanted,
        conclusive=gate.conclusive,
        found=measured.found,
        ruling=ruling,
        reason=reason,
    )


def _baseline_gate(
    most: float | None, group: Group, comparison: ComparedRuns | None, reason_against: str | None
) -> GateResult:
    """Compare a target with the baseline: for a loss of more than `most`, or without that for any."""
    compared = comparison.of(group.target.label) if comparison else None
    verdicts = compared.verdicts if compared and compared.verdicts.n_cells else None
    ruling: Ruling = "no_verdict"
    found: float | None = None
    if verdicts is None:
        with_what = f"with {comparison.baseline}" if comparison else "because there is no baseline"
        reason = f"nothing could be compared {with_what}"
    elif most is None:
        found = verdicts.p_adjusted
        n_targets = sum(one.verdicts.n_cells > 0 for one in comparison.targets) if comparison else 0
        ruling, reason = _rule_on_regression(verdicts, n_targets, reason_against)
    else:
        found = verdicts.difference
        ruling, reason = _rule_on_loss(verdicts, most, reason_against)
    return GateResult(
        gate=REGRESSION if most is None else LOSS,
        target=group.target.label,
        wanted=LEVEL if most is None else most,
        conclusive=True,
        found=found,
        ruling=ruling,
        reason=reason,
    )


def _rule_on_regression(
    verdicts: VerdictChange, n_targets: int, reason_against: str | None
) -> tuple[Ruling, str]:
    """Fail a target whose verdicts are worse than the baseline's, whatever the unanswered cells had been."""
    found = f"{_passed(verdicts)}, p {verdicts.p_adjusted:.2g}"
    open_cells = f"{verdicts.n_open} cells without an answer"
    if verdicts.if_well == "worse":
        return "failed", f"worse: {found}"
    if verdicts.word == "worse":
        return "no_verdict", f"worse: {found}, but {open_cells} might have made it good"
    # The p that Holm's correction asks of the first target, where every prompt fails now.
    if 2 / 2**verdicts.n_prompts >= LEVEL / n_targets:
        prompts = "1 prompt is" if verdicts.n_prompts == 1 else f"{verdicts.n_prompts} prompts are"
        return "no_verdict", f"{found}, but {prompts} too few to see any loss"
    if reason_against:
        return "no_verdict", f"{found}, but {reason_against}"
    if verdicts.if_ill == "worse":
        return "no_verdict", f"{found}, but {open_cells} might have made it worse"
    return "passed", f"{verdicts.word}: {found}"


def _rule_on_loss(verdicts: VerdictChange, most: float, reason_against: str | None) -> tuple[Ruling, str]:
    """Pass a target only if it is shown to have lost less than so much, whatever unanswered cells had been.

    Non-inferiority with the margin `most`, by the 95 % range of the difference.
    """
    ranges = (verdicts.range_95, verdicts.range_if_well, verdicts.range_if_ill)
    plain, well, ill = (one for one in ranges if one is not None)
    assert verdicts.difference is not None, "only asked of what was compared"
    ends = f"{100 * plain.low:+.0f} to {100 * plain.high:+.0f}"
    found = f"{_passed(verdicts)}: {100 * verdicts.difference:+.0f} points, 95 % {ends}"
    limit = f"a loss of {100 * most:.10g} points"
    open_cells = f"{verdicts.n_open} cells without an answer"
    if well.high < -most:
        return "failed", f"{found}; {limit} is exceeded"
    if plain.high < -most:
        reason = f"{found}; {limit} is exceeded, but {open_cells} might have made it good"
        return "no_verdict", reason
    if plain.low <= -most:
        more = _more_prompts(plain, verdicts.n_prompts, most)
        return "no_verdict", f"not conclusive: {found}; {limit} is not ruled out{more}"
    if reason_against:
        return "no_verdict", f"{found}, but {reason_against}"
    if ill.low <= -most:
        return "no_verdict", f"{found}, but {open_cells} might have made it worse"
    return "passed", f"{found}; {limit} is ruled out"


def _passed(verdicts: VerdictChange) -> str:
    return f"{verdicts.n_base} -> {verdicts.n_candidate} of {verdicts.n_cells} cells passed"


def _more_prompts(range_95: Interval, n_prompts: int, most: float) -> str:
    """Say how many further prompts would rule the loss out, if they differ as those so far do."""
    middle = (range_95.low + range_95.high) / 2
    half = range_95.high - middle
    if middle <= -most:
        return ""
    more = ceil(n_prompts * ((half / (middle + most)) ** 2 - 1))
    return f"; about {max(1, more):,} more prompts like these would"


def _nothing(group: Group, what: str) -> str:
    if group.n_ok == 0:
        reason = next(iter(group.reasons.values()), "no cell was answered")
        return f"nothing was answered: {reason}"
    # "0 tool cells succeeded" would read as if some had not.
    return f"no answered cell counts for it (0 {what.removesuffix(' passed').removesuffix(' succeeded')})"


def _beside(measured: GateCheck, other: GateCheck, bounds: Bounds, how: str) -> str:
    """What the cells without an answer would make of the figure, if they count for this gate at all."""
    if other.short == measured.short:
        return ""
    cells = counted(bounds.n_unanswered, "cell")
    return f"; {how.format(f'{cells} without an answer')}: {other.short}"


def _gap(bounds: Bounds) -> str | None:
    """Why no gate is passed: somebody was not there, or was not asked."""
    not_asked = bounds.n_missing + bounds.group.failures.get(BUDGET_SPENT, 0)
    unavailable = bounds.n_unavailable + bounds.n_missing - not_asked
    for n, what in ((unavailable, "unavailable"), (not_asked, "not asked")):
        if n:
            return f"{n} of {bounds.n_cells} cells were {what}"
    return None


def _text_alone(gate: _Gate, group: Group) -> str | None:
    """Why the text detector may not speak for calls on the wire."""
    if gate.is_of_tools and group.n_native_unanswered and group.tool_use.evidence == "text":
        return f"as text; none of the {group.n_native_unanswered} native cells was answered"
    return None
