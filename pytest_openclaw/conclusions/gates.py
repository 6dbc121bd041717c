"""Gates: the limits that a target must reach before a merge.

Cells without an answer are counted both ways, because a fault is neither a miss nor a success. A gate fails
only if it would also fail with all of them right. It passes only if it would also pass with all of them
wrong, and if each cell was asked and available. Otherwise, and if too few prompts decide, the gate has no
verdict, which is never a pass. The gate on a baseline fails if the cells that were answered in both runs are
worse.

If a whole interval has to reach a limit, an interval that contains the limit leaves the gate open.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from pytest_openclaw.conclusions.groups import Group, summarize_group
from pytest_openclaw.stats.comparison import LEVEL
from pytest_openclaw.stats.intervals import cut_percent, percent_range
from pytest_openclaw.stats.tool_use import MOST_NEEDLESS, TIER_FLOORS
from pytest_openclaw.util.text import counted
from pytest_openclaw.values.faults import BUDGET_SPENT
from pytest_openclaw.values.prompts import Labels
from pytest_openclaw.values.settings import GATE_OPTIONS, SAFE_LIMIT

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pytest_openclaw.stats.comparison import ComparedRuns
    from pytest_openclaw.stats.intervals import Interval, Rate
    from pytest_openclaw.values.requests import Target
    from pytest_openclaw.values.rows import Record
    from pytest_openclaw.values.settings import Gates
    from pytest_openclaw.values.tool_calls import ToolDemand, ToolOutcome

REGRESSION = "fail-on-regression"
SAFE = "require-safe"
OF_TOOLS = frozenset({"min_tool_rate", "require_tier"})
NEVER_MS = 10**12
"""Slower than any answer; a number, so that percentiles may be taken."""
NOT_CONCLUSIVE = "not conclusive: "
TOOL_CELLS = "tool cells succeeded"
State = Literal["passes", "fails", "open"]
Ruling = Literal["passed", "failed", "no_verdict"]


@dataclass(frozen=True, kw_only=True)
class GateResult:
    """One gate on one target; `no_verdict` is never a pass.

    Attributes:
        found: as measured, over the cells that were answered; for `require-safe` the probes that did harm,
            for `fail-on-regression` the p of the loss, which fails if it is below `wanted`.
    """

    gate: str
    target: str
    wanted: float
    found: float | None
    ruling: Ruling
    reason: str

    @property
    def asked(self) -> str:
        """The gate and its limit: `min-pass-rate 0.9`; some gates have no limit."""
        is_usual = self.gate == REGRESSION or (self.gate, self.wanted) == (SAFE, SAFE_LIMIT)
        return self.gate if is_usual else f"{self.gate} {self.wanted:.10g}"


class _Check(NamedTuple):
    """Figures compared with a limit.

    Attributes:
        state: None if there are no figures.
        text: the figure and the limit; without figures, the kind of cells that are missing.
        found: the figure.
    """

    state: State | None
    text: str
    found: float | None = None


def check_gates(
    gates: Gates,
    groups: Sequence[Group],
    n_selected: Mapping[Target, int],
    records: Mapping[Target, Sequence[Record]],
    comparison: ComparedRuns | None = None,
) -> tuple[GateResult, ...]:
    """Compare every group with every gate that is set for it, in the order of the groups.

    A target does not pass unless all its `n_selected` cells were asked; `fail-on-regression` also needs a
    `comparison`.
    """
    results: list[GateResult] = []
    for group in groups:
        target = group.target.label
        wanted = gates.of_target(target)
        rows = records.get(group.target, ())
        n_missing = max(0, n_selected.get(group.target, 0) - len(rows))
        lost = sum(row.availability_status != "ok" for row in rows) + n_missing
        gap = _gap(group, len(rows), n_missing)
        against = gap or (f"{lost} of {len(rows) + n_missing} cells have no answer" if lost else None)
        # Every figure, and the figures as if all unanswered cells were right, or wrong.
        cases = [group, *(_as_if(group, rows, n_missing, well=well) for well in (True, False) if lost)]
        for name, check in CHECKS.items():
            if (limit := getattr(wanted, name)) is None:
                continue
            found, *extremes = (check(case, limit, wanted.conclusive) for case in cases)
            states = {found.state, *(extreme.state for extreme in extremes)}
            ruling: Ruling = "no_verdict"
            reason = found.text
            if found.state is None:
                reason = _nothing(group, found.text)
            # A cell without a row may demand a call, restraint or neither.
            elif states == {"fails"} and not (n_missing and name in OF_TOOLS):
                ruling = "failed"
            elif states == {"passes"} and not gap:
                ruling = "passed"
            elif against:
                reason += f", but {against}"
            results.append(_result(GATE_OPTIONS[name], target, limit, found.found, ruling, reason))
        if wanted.fail_on:
            results.append(_check_regression(target, comparison, gap))
    return tuple(results)


def _result(
    gate: str, target: str, wanted: float, found: float | None, ruling: Ruling, reason: str
) -> GateResult:
    return GateResult(gate=gate, target=target, wanted=wanted, found=found, ruling=ruling, reason=reason)


def overall(results: Sequence[GateResult]) -> Literal["passed", "failed", "no_verdict", "not_gated"]:
    """Return the ruling of all gates together."""
    rulings = {result.ruling for result in results}
    ordered: tuple[Ruling, ...] = ("failed", "no_verdict", "passed")
    return next((ruling for ruling in ordered if ruling in rulings), "not_gated")


def unmatched(gates: Gates, targets: Sequence[Target]) -> tuple[str, ...]:
    """Return the globs that match no target."""
    return tuple(
        line.target for line in gates.by_target if not any(line.fits(target.label) for target in targets)
    )


# --- cells without an answer ------------------------------------------------------------------------


def _gap(group: Group, n_rows: int, n_missing: int) -> str | None:
    """Return the reason why no gate can pass: cells whose target was unavailable, or that were not asked."""
    n_budget = group.failures.get(BUDGET_SPENT, 0)
    unavailable = group.n_skipped_unavailable - n_budget
    for n, what in ((unavailable, "unavailable"), (n_missing + n_budget, "not asked")):
        if n:
            return f"{n} of {n_rows + n_missing} cells were {what}"
    return None


def _as_if(group: Group, rows: Sequence[Record], n_missing: int, *, well: bool) -> Group:
    """Return the figures as if each unanswered cell had a right answer, or a wrong one."""
    known = [row if row.availability_status == "ok" else _answered(row, well) for row in rows]
    if rows:  # a cell without a row is of a separate prompt, and demands nothing of tools
        plain = replace(rows[0], suite="", **asdict(Labels()), tool_demand=None, tools_offered=None)
        known += [replace(_answered(plain, well), prompt_id=str(number)) for number in range(n_missing)]
    use = group.tool_use
    return summarize_group(group.target, known, {}, n_targets=use.n_targets, looks=use.looks)


_WELL: Mapping[ToolDemand | None, ToolOutcome] = {"call": "valid", "restraint": "restrained"}
_WRONG: Mapping[ToolDemand | None, ToolOutcome] = {"call": "no_call", "restraint": "called_needlessly"}


def _answered(record: Record, well: bool) -> Record:
    outcome = (_WELL if well else _WRONG).get(record.tool_demand)
    return replace(
        record,
        availability_status="ok",
        success=True,
        failure_type=None,
        tool_outcome=outcome,
        tool_use_success=outcome == "valid",
        objective_pass=well,
        # Harm that was done before a fault remains.
        harm=None if record.probe is None else not well or record.harm is True,
        e2e_ms=0 if well else NEVER_MS,
    )


def _nothing(group: Group, what: str) -> str:
    if group.n_ok == 0:
        reason = next(iter(group.reasons.values()), "no cell was answered")
        return f"nothing was answered: {reason}"
    # "0 tool cells succeeded" would read as if some had not.
    return f"no answered cell counts for it (0 {what.removesuffix(' passed').removesuffix(' succeeded')})"


# --- figures and limits -----------------------------------------------------------------------------


def _check_rate(group: Group, wanted: float, sure: bool, *, of: str, what: str) -> _Check:
    """Compare a rate, or its whole interval, with a limit."""
    rate: Rate = getattr(group, of)
    if rate.rate is None or rate.interval_95 is None:
        return _Check(None, what)
    if sure:
        return _check_interval(rate, rate.interval_95, what, wanted)
    text = f"{rate.n_success} of {rate.n} {what} ({cut_percent(rate.rate)}), {_whole(wanted)} wanted"
    return _Check("passes" if rate.rate >= wanted else "fails", text, rate.rate)


def _check_interval(rate: Rate, interval: Interval, what: str, wanted: float, joint: str = "") -> _Check:
    """Compare the interval of a rate with a limit."""
    found = f"{rate.n_success} of {rate.n} {what} (95 % interval {percent_range(interval)}{joint})"
    text = f"{found}, a lower end of {_whole(wanted)} wanted"
    if interval.low >= wanted:
        return _Check("passes", text, rate.rate)
    if interval.high < wanted:
        return _Check("fails", text, rate.rate)
    return _Check("open", f"{NOT_CONCLUSIVE}{text}", rate.rate)


def _check_tier(group: Group, wanted: int, _sure: bool) -> _Check:
    """Compare tool use with a tier; the evidence must exclude every worse tier, or every better one."""
    use = group.tool_use
    if use.tier is None or use.tier_interval is None:
        return _Check(None, TOOL_CELLS)
    joint = f", for {use.joint_over} together" if use.joint_over else ""
    state, text, _ = _check_interval(use, use.tier_interval, TOOL_CELLS, TIER_FLOORS[wanted], joint)
    if use.tier > wanted and use.capped_by and use.needless_interval:
        # Needless calls keep the target out of the tier that its rate would earn.
        needless = f"{use.needless.n_success} of {use.restraint.n} cells that forbid tools had a call"
        text = f"tier {use.tier}: {needless}, more than a fifth"
        if state != "fails" and use.needless_interval.low <= MOST_NEEDLESS:
            return _Check("open", f"{NOT_CONCLUSIVE}{text}", use.tier)
        return _Check("fails", text, use.tier)
    return _Check(state, text if state == "open" else f"tier {use.tier}: {text}", use.tier)


def _check_safe(group: Group, wanted: float, _sure: bool) -> _Check:
    """Check that no safety probe did harm, and the limit, in the words of the recommendation."""
    if not group.safety:
        return _Check(None, "safety probes")
    reasons = {reason.code: reason.text for reason in group.recommendation.reasons}
    if n_unsafe := sum(result.n_unsafe for result in group.safety):
        return _Check("fails", reasons["harm"], n_unsafe)
    if group.n_open_probes:
        text = f"{reasons['safety']}, {group.n_open_probes} more without a verdict"
        return _Check("open", text, 0)
    if not any(result.n_acted for result in group.safety):
        return _Check("open", reasons["safety"], 0)
    if group.harm_limit_95 is None or group.harm_limit_95 > wanted:
        return _Check("open", f"{NOT_CONCLUSIVE}{reasons['safety']}, at most {_whole(wanted)} wanted", 0)
    return _Check("passes", reasons["safety"], 0)


def _check_p95(group: Group, wanted: float, _sure: bool) -> _Check:
    """Compare the 95th percentile of the latencies with a limit."""
    if (p95 := group.latency_ms.get("p95")) is None:
        return _Check(None, "successful cells")
    # Rounded as everywhere, unless it would seem to meet a limit that it misses.
    shown = f"{p95:.1f}" if round(p95) <= wanted < p95 else f"{p95:.0f}"
    text = f"p95 {shown} ms of {group.n_success} successful cells, at most {wanted:.10g} ms wanted"
    return _Check("passes" if p95 <= wanted else "fails", text, p95)


def _whole(rate: float) -> str:
    """Return a wanted rate with all its digits."""
    return f"{rate * 100:.1f} %" if rate == round(rate, 3) else f"{rate * 100:.10g} %"


CHECKS: Mapping[str, Callable[[Group, Any, bool], _Check]] = {
    "min_pass_rate": partial(_check_rate, of="passed", what="judged cells passed"),
    "min_tool_rate": partial(_check_rate, of="tool_use", what=TOOL_CELLS),
    "require_tier": _check_tier,
    "require_safe": _check_safe,
    "max_p95_ms": _check_p95,
}
"""By field of `Gates`: the check of a group against a limit, by the whole interval if that is demanded."""


# --- the gate on a baseline -------------------------------------------------------------------------


def _check_regression(target: str, comparison: ComparedRuns | None, gap: str | None) -> GateResult:
    """Fail a target that is worse in the cells that both runs have answered."""
    compared = comparison.of(target) if comparison else None
    if comparison is None or compared is None or not (verdicts := compared.verdicts).n_cells:
        with_what = f"with {comparison.baseline}" if comparison else "because there is no baseline"
        reason = f"nothing could be compared {with_what}"
        return _result(REGRESSION, target, LEVEL, None, "no_verdict", reason)
    n_targets = sum(one.verdicts.n_cells > 0 for one in comparison.targets)
    passed = f"{verdicts.n_base} -> {verdicts.n_candidate} of {verdicts.n_cells} cells passed"
    found = f"{passed}, p {verdicts.p:.2g}"
    ruling: Ruling = "no_verdict"
    if verdicts.word == "worse":
        ruling, reason = "failed", f"worse: {found}"
    # Even if every prompt failed now, p would not be below the limit that Holm sets for the first target.
    elif 2 / 2**verdicts.n_prompts >= LEVEL / n_targets:
        prompts = f"{counted(verdicts.n_prompts, 'prompt')} {'is' if verdicts.n_prompts == 1 else 'are'}"
        reason = f"{found}, but {prompts} too few to see any loss"
    elif gap:
        reason = f"{found}, but {gap}"
    elif verdicts.if_failed == "worse":
        cells = counted(verdicts.n_open, "cell")
        reason = f"{found}, but {cells} without an answer might have made it worse"
    else:
        ruling, reason = "passed", f"{verdicts.word}: {found}"
    return _result(REGRESSION, target, LEVEL, verdicts.p, ruling, reason)
