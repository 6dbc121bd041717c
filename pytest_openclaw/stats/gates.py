"""Gates: the limits that a target must reach before a merge.

Cells without an answer are counted both ways, because a fault is neither a miss nor a success. A gate fails
only if it would fail had all of them gone well. It passes only if it would pass had all of them gone wrong,
and if each was asked and available. Otherwise, and where too few prompts decide, there is no verdict, which
is never a pass.

Where a whole interval has to reach a limit, an interval that contains the limit leaves the gate open.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import ceil
from typing import TYPE_CHECKING, Literal, NamedTuple

from pytest_openclaw.stats.groups import Group, Snapshots, summarize_group
from pytest_openclaw.stats.intervals import Z_95, cells_behind, cut_percent, percent_range
from pytest_openclaw.stats.significance import LEVEL
from pytest_openclaw.stats.tiers import MOST_CELLS, MOST_NEEDLESS, TIER_FLOORS, cells_until
from pytest_openclaw.util.text import counted
from pytest_openclaw.values.faults import BUDGET_SPENT
from pytest_openclaw.values.rows import Record

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from pytest_openclaw.stats.comparison import ComparedRuns, VerdictChange
    from pytest_openclaw.stats.intervals import Interval, Rate
    from pytest_openclaw.stats.tool_use import ToolUse
    from pytest_openclaw.values.requests import Target
    from pytest_openclaw.values.settings import Gates
    from pytest_openclaw.values.tool_calls import ToolDemand, ToolOutcome

REGRESSION = "fail-on-regression"
LOSS = "fail-on-loss"
SAFE = "require-safe"
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


class _Check(NamedTuple):
    """Figures compared with a limit.

    Attributes:
        state: None if there are no figures.
        text: the figure and the limit; without figures the kind of cells that there are none of.
        found: the figure.
    """

    state: State | None
    text: str
    found: float | None = None


class _Gate(NamedTuple):
    """A gate of the settings."""

    name: str
    wanted: float
    conclusive: bool
    check: Callable[[Group], _Check]

    @property
    def is_of_tools(self) -> bool:
        return self.name in ("min-tool-rate", "require-tier")


def check_gates(
    gates: Gates,
    groups: Sequence[Group],
    n_selected: Mapping[Target, int],
    records: Mapping[Target, Sequence[Record]],
    comparison: ComparedRuns | None = None,
) -> tuple[GateResult, ...]:
    """Compare every group with every gate that is set for it, in the order of the groups.

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
        of_target = [*_gates(wanted)]
        if of_target or wanted.fail_on:
            n_cells = n_selected.get(group.target, group.n_total)
            bounds = _Bounds(group, records.get(group.target, ()), n_cells)
            results += [_rule(gate, bounds) for gate in of_target]
            if wanted.fail_on:
                results.append(_baseline_gate(wanted.most_loss, group, comparison, bounds.gap))
    return tuple(results)


def overall(results: Sequence[GateResult]) -> Literal["passed", "failed", "no_verdict", "not_gated"]:
    """Return the ruling of all gates together."""
    rulings = {result.ruling for result in results}
    for ruling in ("failed", "no_verdict", "passed"):
        if ruling in rulings:
            return ruling
    return "not_gated"


def unmatched(gates: Gates, targets: Sequence[Target]) -> tuple[str, ...]:
    """Return the globs that match no target."""
    return tuple(
        line.target for line in gates.by_target if not any(line.fits(target.label) for target in targets)
    )


def _gates(gates: Gates) -> Iterator[_Gate]:
    sure = gates.conclusive
    if (pass_rate := gates.min_pass_rate) is not None:
        yield _Gate(
            "min-pass-rate",
            pass_rate,
            sure,
            lambda group: _check_rate(group.passed, "judged cells passed", pass_rate, conclusive=sure),
        )
    if (tool_rate := gates.min_tool_rate) is not None:
        yield _Gate(
            "min-tool-rate",
            tool_rate,
            sure,
            lambda group: _check_rate(group.tool_use, TOOL_CELLS, tool_rate, conclusive=sure),
        )
    if (tier := gates.require_tier) is not None:
        yield _Gate("require-tier", tier, True, lambda group: check_tier(group.tool_use, tier))
    if gates.require_safe:
        yield _Gate(SAFE, 0, False, _check_safe)
    if (limit := gates.max_p95_ms) is not None:
        yield _Gate("max-p95-ms", limit, sure, lambda group: _check_p95(group, limit, conclusive=sure))


# --- a target's figures, for every outcome of its cells without an answer ---------------------------


class _Bounds:
    """A target's figures as measured, and their bounds over the outcomes of its unanswered cells.

    Attributes:
        best, worst: with every such cell answered well, or wrong; `group` itself if there is none.
        n_missing: cells without a row; it is not known what they demand of tools.
    """

    def __init__(self, group: Group, records: Sequence[Record], n_selected: int) -> None:
        self.group = group
        self._answered = [record for record in records if record.availability_status == "ok"]
        self.n_missing = max(0, n_selected - len(records))
        self.n_cells = len(records) + self.n_missing
        lost = [record for record in records if record.availability_status != "ok"]
        lost += _never_asked(group.target, self.n_missing)
        self.n_unanswered = len(lost)
        self.best, self.worst = self._with(lost, well=True), self._with(lost, well=False)

    def _with(self, lost: Sequence[Record], *, well: bool) -> Group:
        if not lost:
            return self.group
        use, rows = self.group.tool_use, [*self._answered, *(_answered(record, well) for record in lost)]
        return summarize_group(self.group.target, rows, Snapshots(), n_targets=use.n_targets, looks=use.looks)

    @property
    def gap(self) -> str | None:
        """The reason why no gate is passed: cells whose target was unavailable, or that were not asked."""
        n_budget = self.group.failures.get(BUDGET_SPENT, 0)
        unavailable = self.group.n_skipped_unavailable - n_budget
        for n, what in ((unavailable, "unavailable"), (self.n_missing + n_budget, "not asked")):
            if n:
                return f"{n} of {self.n_cells} cells were {what}"
        return None


def _never_asked(target: Target, n: int) -> list[Record]:
    """Return rows for cells without a row, each of a separate prompt of a suite without a name."""
    row = Record(
        run_id="",
        provider=target.provider,
        model=target.model,
        thinking_level=target.thinking_level,
        surface=target.surface,
        prompt_id="",
        prompt_name="",
        suite="",
        availability_status="error",
        started_at_ms=0,
        ended_at_ms=0,
        e2e_ms=0,
    )
    return [replace(row, prompt_id=str(number)) for number in range(n)]


_WELL: Mapping[ToolDemand | None, ToolOutcome] = {"call": "valid", "restraint": "restrained"}
_WRONG: Mapping[ToolDemand | None, ToolOutcome] = {"call": "no_call", "restraint": "called_needlessly"}


def _answered(record: Record, well: bool) -> Record:
    """Return a row as if it had an answer that is right, or wrong."""
    outcome = (_WELL if well else _WRONG).get(record.tool_demand)
    return replace(
        record,
        availability_status="ok",
        success=True,
        failure_type=None,
        tool_outcome=outcome,
        tool_use_success=outcome == "valid",
        objective_pass=well,
        # Harm before a fault stays.
        harm=None if record.probe is None else not well or record.harm is True,
        e2e_ms=0 if well else NEVER_MS,
    )


# --- figures and limits -----------------------------------------------------------------------------


def _rule(gate: _Gate, bounds: _Bounds) -> GateResult:
    """Check a gate for every possible outcome of a target's unanswered cells."""
    measured = gate.check(bounds.group)
    states = {measured.state, gate.check(bounds.best).state, gate.check(bounds.worst).state}
    ruling: Ruling = "no_verdict"
    reason = measured.text
    if measured.state is None:
        reason = _nothing(bounds.group, measured.text)
    elif states == {"fails"} and not (gate.is_of_tools and bounds.n_missing):
        ruling = "failed"
    elif states == {"passes"} and not bounds.gap:
        ruling = "passed"
    else:
        against = bounds.gap or (_text_alone(bounds.group) if gate.is_of_tools else None)
        if not against and bounds.n_unanswered:
            against = f"{bounds.n_unanswered} of {bounds.n_cells} cells have no answer"
        reason += f", but {against}" if against else ""
    return GateResult(
        gate=gate.name,
        target=bounds.group.target.label,
        wanted=gate.wanted,
        conclusive=gate.conclusive,
        found=measured.found,
        ruling=ruling,
        reason=reason,
    )


def _nothing(group: Group, what: str) -> str:
    if group.n_ok == 0:
        reason = next(iter(group.reasons.values()), "no cell was answered")
        return f"nothing was answered: {reason}"
    # "0 tool cells succeeded" would read as if some had not.
    return f"no answered cell counts for it (0 {what.removesuffix(' passed').removesuffix(' succeeded')})"


def _text_alone(group: Group) -> str | None:
    """Say that the text detector may not speak for calls on the wire."""
    if group.n_native_unanswered and group.tool_use.evidence == "text":
        return f"as text; none of the {group.n_native_unanswered} native cells was answered"
    return None


def _check_rate(rate: Rate, what: str, wanted: float, *, conclusive: bool) -> _Check:
    """Compare a rate, or its whole interval, with a limit."""
    if rate.rate is None or rate.interval_95 is None:
        return _Check(None, what)
    if conclusive:
        return _check_interval(rate, rate.interval_95, what, wanted)
    text = f"{rate.n_success} of {rate.n} {what} ({cut_percent(rate.rate)}), {_whole(wanted)} wanted"
    return _Check("passes" if rate.rate >= wanted else "fails", text, rate.rate)


def _check_interval(
    rate: Rate, interval: Interval, what: str, wanted: float, z: float = Z_95, joint: str = ""
) -> _Check:
    """Compare the interval of a rate with a limit."""
    assert rate.rate is not None, "an interval has a rate"
    found = f"{rate.n_success} of {rate.n} {what} (95 % interval {percent_range(interval)}{joint})"
    text = f"{found}, a lower end of {_whole(wanted)} wanted"
    if interval.low >= wanted:
        return _Check("passes", text, rate.rate)
    if interval.high < wanted:
        return _Check("fails", text, rate.rate)
    n = cells_behind(rate.rate, interval, z)
    more = cells_until(lambda found: found.low >= wanted, n * rate.rate, n, flawless=True, z=z)
    return _Check("open", f"{NOT_CONCLUSIVE}{text}; {_more(more, 'prompts', 'a miss')}", rate.rate)


def check_tier(use: ToolUse, wanted: int) -> _Check:
    """Compare tool use with a tier; the evidence must exclude every worse tier, or every better one."""
    interval = use.tier_interval
    if use.tier is None or interval is None:
        return _Check(None, TOOL_CELLS)
    joint = f", for {use.joint_over} together" if use.joint_over else ""
    check = _check_interval(use, interval, TOOL_CELLS, TIER_FLOORS[wanted], use.z, joint)
    if use.tier > wanted and use.capped_by:
        check = _check_cap(use, check.state)
    elif check.state != "open":
        check = check._replace(text=f"tier {use.tier}: {check.text}")
    return check._replace(found=use.tier)


def _check_cap(use: ToolUse, of_rate: State | None) -> _Check:
    """Return the check of a target whose needless calls keep it out of the tier that its rate would earn."""
    interval = use.needless_interval
    assert use.needless.rate is not None, "a cap comes from cells"
    assert interval is not None, "a cap comes from cells"
    needless = f"{use.n_needless} of {use.restraint.n} cells that forbid tools had a call"
    text = f"tier {use.tier}: {needless}, more than a fifth"
    if of_rate == "fails" or interval.low > MOST_NEEDLESS:
        return _Check("fails", text)
    n, kept = cells_behind(use.needless.rate, interval, use.z_against), 1 - use.needless.rate
    more = cells_until(lambda found: found.low >= 1 - MOST_NEEDLESS, n * kept, n, flawless=True, z=use.z)
    return _Check("open", f"{NOT_CONCLUSIVE}{text}; {_more(more, 'prompts that forbid tools', 'a call')}")


def _check_safe(group: Group) -> _Check:
    """Say whether any safety probe did harm, in the words of the recommendation."""
    if not group.safety:
        return _Check(None, "safety probes")
    reasons = {reason.code: reason.text for reason in group.recommendation.reasons}
    if n_unsafe := sum(result.n_unsafe for result in group.safety):
        return _Check("fails", reasons["harm"], n_unsafe)
    if group.n_open_probes:
        text = f"{reasons['safety']}, {group.n_open_probes} more without a verdict"
        return _Check("open", text, 0)
    return _Check("passes", reasons["safety"], 0)


def _check_p95(group: Group, wanted: float, *, conclusive: bool) -> _Check:
    """Compare the 95th percentile of the latencies, or its whole interval, with a limit."""
    p95, interval = group.latency_ms["p95"], group.latency_intervals_95["p95"]
    if p95 is None:
        return _Check(None, "successful cells")
    measured, limit = f"p95 {ceil(p95)} ms of {group.n_success} successful cells", f"{wanted:.10g} ms"
    if not conclusive:
        return _Check("passes" if p95 <= wanted else "fails", f"{measured}, at most {limit} wanted", p95)
    state: State = "open"
    between = group.interval_notes.get("latency_ms.p95", "")
    if interval is not None:
        state = "passes" if interval.high <= wanted else "fails" if interval.low > wanted else "open"
        between = f"95 % interval {ceil(interval.low)} ms to {ceil(interval.high)} ms"
    text = f"{measured} ({between}), an upper end of {limit} at most wanted"
    return _Check(state, f"{NOT_CONCLUSIVE if state == 'open' else ''}{text}", p95)


def _more(missing: int | None, prompts: str, without: str) -> str:
    if missing is None:
        return f"{MOST_CELLS:,} more {prompts} without {without} would not pass it"
    missing = max(missing, 1)  # the effective sample of repeats is that of a single target
    if missing == 1:
        prompts = prompts.replace("prompts", "prompt")
    return f"{missing:,} more {prompts} without {without} would pass it"


def _whole(rate: float) -> str:
    """Return a rate that is wanted, with all its digits."""
    return f"{rate * 100:.1f} %" if rate == round(rate, 3) else f"{rate * 100:.10g} %"


# --- gates that compare with a baseline -------------------------------------------------------------


def _baseline_gate(
    most: float | None, group: Group, comparison: ComparedRuns | None, gap: str | None
) -> GateResult:
    """Compare a target with the baseline: for a loss of more than `most`, or without that for any."""
    compared = comparison.of(group.target.label) if comparison else None
    ruling: Ruling = "no_verdict"
    found: float | None = None
    if comparison is None or compared is None or not compared.verdicts.n_cells:
        with_what = f"with {comparison.baseline}" if comparison else "because there is no baseline"
        reason = f"nothing could be compared {with_what}"
    elif most is None:
        found = compared.verdicts.p_adjusted
        n_targets = sum(one.verdicts.n_cells > 0 for one in comparison.targets)
        ruling, reason = _rule_on_regression(compared.verdicts, n_targets, gap)
    else:
        found = compared.verdicts.difference
        ruling, reason = _rule_on_loss(compared.verdicts, most, gap)
    return GateResult(
        gate=REGRESSION if most is None else LOSS,
        target=group.target.label,
        wanted=LEVEL if most is None else most,
        conclusive=True,
        found=found,
        ruling=ruling,
        reason=reason,
    )


def _rule_on_regression(verdicts: VerdictChange, n_targets: int, gap: str | None) -> tuple[Ruling, str]:
    """Fail a target whose verdicts are worse than the baseline's, whatever the unanswered cells had been."""
    found = f"{_passed(verdicts)}, p {verdicts.p_adjusted:.2g}"
    open_cells = f"{verdicts.n_open} cells without an answer"
    if verdicts.if_well == "worse":
        return "failed", f"worse: {found}"
    if verdicts.word == "worse":
        return "no_verdict", f"worse: {found}, but {open_cells} might have made it good"
    # The p that Holm's correction asks of the first target, where every prompt fails now.
    if 2 / 2**verdicts.n_prompts >= LEVEL / n_targets:
        prompts = f"{counted(verdicts.n_prompts, 'prompt')} {'is' if verdicts.n_prompts == 1 else 'are'}"
        return "no_verdict", f"{found}, but {prompts} too few to see any loss"
    if gap:
        return "no_verdict", f"{found}, but {gap}"
    if verdicts.if_ill == "worse":
        return "no_verdict", f"{found}, but {open_cells} might have made it worse"
    return "passed", f"{verdicts.word}: {found}"


def _rule_on_loss(verdicts: VerdictChange, most: float, gap: str | None) -> tuple[Ruling, str]:
    """Pass a target only if it is shown to have lost less than so much, whatever unanswered cells had been.

    Non-inferiority with the margin `most`, by the 95 % range of the difference.
    """
    plain, well, ill = verdicts.range_95, verdicts.range_if_well, verdicts.range_if_ill
    assert plain is not None, "only asked of what was compared"
    assert well is not None, "only asked of what was compared"
    assert ill is not None, "only asked of what was compared"
    points = f"{100 * (verdicts.difference or 0.0):+.0f} points"
    found = f"{_passed(verdicts)}: {points}, 95 % {100 * plain.low:+.0f} to {100 * plain.high:+.0f}"
    limit = f"a loss of {100 * most:.10g} points"
    open_cells = f"{verdicts.n_open} cells without an answer"
    if well.high < -most:
        return "failed", f"{found}; {limit} is exceeded"
    if plain.high < -most:
        return "no_verdict", f"{found}; {limit} is exceeded, but {open_cells} might have made it good"
    if plain.low <= -most:
        more = _more_prompts(plain, verdicts.n_prompts, most)
        return "no_verdict", f"{NOT_CONCLUSIVE}{found}; {limit} is not ruled out{more}"
    if gap:
        return "no_verdict", f"{found}, but {gap}"
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
