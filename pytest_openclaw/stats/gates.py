"""What a target must reach before a merge, and whether it did.

One rule for all gates: cells without an answer are counted both ways, because a fault is neither a miss nor a
success. A gate fails only if it fails even had all of them gone well, and passes only if it passes even had
all of them gone wrong and each was asked and available. Between the two, and where too few prompts decide,
there is no verdict, which is never a pass.

Where a whole interval has to reach a limit, one on the right side passes, one on the wrong side fails, and
one that holds the limit leaves the gate open: it takes more prompts to decide.
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
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from pytest_openclaw.stats.comparison import ComparedRuns, VerdictChange
    from pytest_openclaw.stats.intervals import Interval, Rate
    from pytest_openclaw.stats.tool_use import ToolUse
    from pytest_openclaw.values.requests import Target
    from pytest_openclaw.values.settings import Gates
    from pytest_openclaw.values.tool_calls import ToolOutcome

REGRESSION = "fail-on-regression"
LOSS = "fail-on-loss"
SAFE = "require-safe"
NEVER_MS = 10**12
"""Slower than any answer; a number, so that percentiles may be taken."""
NOT_CONCLUSIVE = "not conclusive: "
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
        found: the figure.
        text: the figure and the limit; without figures the kind of cells that there are none of.
        short: the figure.
    """

    state: State | None
    found: float | None = None
    text: str = ""
    short: str = ""


class _Gate(NamedTuple):
    """A gate of the settings."""

    name: str
    wanted: float
    conclusive: bool
    check: Callable[[Group], _Check]
    is_of_tools: bool = False


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
            lambda group: _check_rate(group.tool_use, "tool cells succeeded", tool_rate, conclusive=sure),
            is_of_tools=True,
        )
    if (tier := gates.require_tier) is not None:
        yield _Gate(
            "require-tier", tier, True, lambda group: check_tier(group.tool_use, tier), is_of_tools=True
        )
    if gates.require_safe:
        yield _Gate(SAFE, 0, False, _check_safe)
    if (limit := gates.max_p95_ms) is not None:
        yield _Gate("max-p95-ms", limit, sure, lambda group: _check_p95(group, limit, conclusive=sure))


# --- a target's figures, for every outcome of its cells without an answer ---------------------------


class _Bounds:
    """A target's figures as measured, and their bounds over the outcomes of its unanswered cells.

    Where it is not known what a cell demands of tools, it counts in each way in which it might.

    Attributes:
        best, worst: with every such cell answered well, or wrong; `group` itself if there is none.
        tools_best, tools_worst: the same for tool use.
    """

    def __init__(self, group: Group, records: Sequence[Record], n_selected: int) -> None:
        self.group = group
        self._answered = [record for record in records if record.availability_status == "ok"]
        self.n_missing = max(0, n_selected - len(records))
        self.n_cells = len(records) + self.n_missing
        lost = [record for record in records if record.availability_status != "ok"]
        lost += _never_asked(group.target, self.n_missing)
        self.n_unanswered = len(lost)
        self.best, self.worst = [self._with(map(_well, lost))], self._with(map(_wrong, lost))
        self.tools_best, self.tools_worst = self.best, self.worst
        if any(record.tool_demand is None for record in lost):
            self.tools_worst = self._with(row for record in lost for row in map(_wrong, _any_demand(record)))
            self.tools_best = [
                self._with(row for record in lost for row in map(_well, _any_demand(record, tools_offered)))
                for tools_offered in ((1, None) if self.n_missing else (None,))
            ]

    def _with(self, others: Iterable[Record]) -> Group:
        if not self.n_unanswered:
            return self.group
        use = self.group.tool_use
        return summarize_group(
            self.group.target,
            [*self._answered, *others],
            Snapshots(),
            n_targets=use.n_targets,
            looks=use.looks,
        )

    @property
    def gap(self) -> str | None:
        """Why no gate is passed: cells whose target was unavailable, or that were not asked."""
        n_budget = self.group.failures.get(BUDGET_SPENT, 0)
        unavailable = self.group.n_skipped_unavailable - n_budget
        for n, what in ((unavailable, "unavailable"), (self.n_missing + n_budget, "not asked")):
            if n:
                return f"{n} of {self.n_cells} cells were {what}"
        return None


def _never_asked(target: Target, n: int) -> list[Record]:
    """Return rows for cells without a row, each of a separate prompt of a suite without a name."""
    return [
        Record(
            run_id="",
            provider=target.provider,
            model=target.model,
            thinking_level=target.thinking_level,
            surface=target.surface,
            prompt_id=str(number),
            prompt_name="",
            suite="",
            availability_status="error",
            started_at_ms=0,
            ended_at_ms=0,
            e2e_ms=0,
        )
        for number in range(n)
    ]


def _any_demand(record: Record, tools_offered: int | None = None) -> tuple[Record, ...]:
    """Return a cell that requires a call and one that forbids it, where the prompt's demand is unknown."""
    if record.tool_demand is not None:
        return (record,)
    if not record.suite:
        record = replace(record, tools_offered=tools_offered)
    return replace(record, tool_demand="call"), replace(record, tool_demand="restraint")


def _well(record: Record) -> Record:
    outcomes: dict[str, ToolOutcome] = {"call": "valid", "restraint": "restrained"}
    harm = None if record.probe is None else record.harm is True  # harm before a fault stays
    return _answered(record, outcomes.get(record.tool_demand or ""), passed=True, harm=harm, e2e_ms=0)


def _wrong(record: Record) -> Record:
    outcomes: dict[str, ToolOutcome] = {"call": "no_call", "restraint": "called_needlessly"}
    harm = None if record.probe is None else True
    return _answered(record, outcomes.get(record.tool_demand or ""), passed=False, harm=harm, e2e_ms=NEVER_MS)


def _answered(
    record: Record, outcome: ToolOutcome | None, *, passed: bool, harm: bool | None, e2e_ms: int
) -> Record:
    return replace(
        record,
        availability_status="ok",
        success=True,
        failure_type=None,
        tool_outcome=outcome,
        tool_use_success=outcome == "valid",
        objective_pass=passed,
        harm=harm,
        e2e_ms=e2e_ms,
    )


# --- figures and limits -----------------------------------------------------------------------------


def _rule(gate: _Gate, bounds: _Bounds) -> GateResult:
    """Check a gate for every possible outcome of a target's unanswered cells."""
    measured = gate.check(bounds.group)
    best = [*map(gate.check, bounds.tools_best if gate.is_of_tools else bounds.best)]
    worst = gate.check(bounds.tools_worst if gate.is_of_tools else bounds.worst)
    states = {check.state for check in (measured, *best, worst)}
    ruling: Ruling = "no_verdict"
    if measured.state is None:
        reason = _nothing(bounds.group, measured.text)
    elif states == {"fails"}:
        ruling, reason = "failed", measured.text + _beside(measured, best[0], bounds, "even with {} for it")
    elif states == {"passes"} and not bounds.gap:
        ruling, reason = "passed", measured.text + _beside(measured, worst, bounds, "with {} against it")
    else:
        against = bounds.gap or (_text_alone(bounds.group) if gate.is_of_tools else None)
        if not against and bounds.n_unanswered:
            span = f"{worst.short} to {best[0].short}"
            against = f"{bounds.n_unanswered} of {bounds.n_cells} cells have no answer: {span}"
        reason = f"{measured.text}, but {against}" if against else measured.text
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


def _beside(measured: _Check, other: _Check, bounds: _Bounds, how: str) -> str:
    """Say how the cells without an answer would change the figure, if they count for this gate at all."""
    if other.short == measured.short:
        return ""
    cells = f"{counted(bounds.n_unanswered, 'cell')} without an answer"
    return f"; {how.format(cells)}: {other.short}"


def _text_alone(group: Group) -> str | None:
    """Say that the text detector may not speak for calls on the wire."""
    if group.n_native_unanswered and group.tool_use.evidence == "text":
        return f"as text; none of the {group.n_native_unanswered} native cells was answered"
    return None


def _check_rate(rate: Rate, what: str, wanted: float, *, conclusive: bool) -> _Check:
    """Compare a rate, or its whole interval, with the one that is wanted."""
    interval = rate.interval_95
    if rate.rate is None or interval is None:
        return _Check(None, text=what)
    short = f"{rate.n_success} of {rate.n}"
    if not conclusive:
        text = f"{short} {what} ({cut_percent(rate.rate)}), {_whole(wanted)} wanted"
        return _Check("passes" if rate.rate >= wanted else "fails", rate.rate, text, short)
    shown = f"{short} {what} (95 % interval {percent_range(interval)})"
    state = _side(interval, wanted)
    return _Check(
        state,
        rate.rate,
        _from_low(state, shown, rate, interval, wanted),
        f"{short} (from {cut_percent(interval.low)})",
    )


def check_tier(use: ToolUse, wanted: int) -> _Check:
    """Compare tool use with a tier; the evidence must exclude every worse tier, or every better one."""
    interval, what = use.tier_interval, "tool cells succeeded"
    if use.tier is None or interval is None:
        return _Check(None, text=what)
    joint = f", for {use.joint_over} together" if use.joint_over else ""
    shown = f"{use.n_success} of {use.n} {what} (95 % interval {percent_range(interval)}{joint})"
    state = _side(interval, TIER_FLOORS[wanted])
    text = f"tier {use.tier}: {shown}"
    if use.tier > wanted and use.capped_by:
        assert use.needless.rate is not None, "a cap comes from cells"
        assert use.needless_interval is not None, "a cap comes from cells"
        state = "fails" if use.needless_interval.low > MOST_NEEDLESS or state == "fails" else "open"
        needless = f"{use.n_needless} of {use.restraint.n} cells that forbid tools had a call"
        text = f"tier {use.tier}: {needless}, more than a fifth"
        if state == "open":
            n = cells_behind(use.needless.rate, use.needless_interval, use.z)
            more = cells_until(
                lambda found: found.low >= 1 - MOST_NEEDLESS,
                n * (1 - use.needless.rate),
                n,
                flawless=True,
                z=use.z,
            )
            text = f"{NOT_CONCLUSIVE}{text}; {_more(more, 'prompts that forbid tools', 'a call')}"
    elif state == "open":
        text = _from_low(state, shown, use, interval, TIER_FLOORS[wanted], z=use.z)
    short = f"{use.n_success} of {use.n} (from {cut_percent(interval.low)})"
    return _Check(state, use.tier, text, short)


def _check_safe(group: Group) -> _Check:
    """Say whether any safety probe did harm, in the words of the recommendation."""
    if not group.safety:
        return _Check(None, text="safety probes")
    reasons = {reason.code: reason.text for reason in group.recommendation.reasons}
    n_unsafe = sum(result.n_unsafe for result in group.safety)
    short = f"harm in {n_unsafe} of {sum(result.n for result in group.safety)}"
    if n_unsafe:
        return _Check("fails", n_unsafe, reasons["harm"], short)
    if group.n_open_probes:
        text = f"{reasons['safety']}, {group.n_open_probes} more without a verdict"
        return _Check("open", 0, text, short)
    return _Check("passes", 0, reasons["safety"], short)


def _check_p95(group: Group, wanted: float, *, conclusive: bool) -> _Check:
    """Compare the 95th percentile of the latencies, or its whole interval, with a limit."""
    p95, interval = group.latency_ms["p95"], group.latency_intervals_95["p95"]
    if p95 is None:
        return _Check(None, text="successful cells")
    measured, limit = f"p95 {_ms(p95)} of {group.n_success} successful cells", f"{wanted:.10g} ms"
    if not conclusive:
        text = f"{measured}, at most {limit} wanted"
        return _Check("passes" if p95 <= wanted else "fails", p95, text, _ms(p95))
    state: State = "open"
    between, high = group.interval_notes.get("latency_ms.p95", ""), "no interval"
    if interval is not None:
        between, high = (
            f"95 % interval {_ms(interval.low)} to {_ms(interval.high)}",
            f"to {_ms(interval.high)}",
        )
        state = "passes" if interval.high <= wanted else "fails" if interval.low > wanted else "open"
    prefix = NOT_CONCLUSIVE if state == "open" else ""
    text = f"{prefix}{measured} ({between}), an upper end of {limit} at most wanted"
    return _Check(state, p95, text, f"{_ms(p95)} ({high})")


def _side(interval: Interval, wanted: float) -> State:
    if interval.low >= wanted:
        return "passes"
    return "fails" if interval.high < wanted else "open"


def _from_low(
    state: State, shown: str, rate: Rate, interval: Interval, wanted: float, *, z: float = Z_95
) -> str:
    text = f"{shown}, a lower end of {_whole(wanted)} wanted"
    if state != "open":
        return text
    assert rate.rate is not None, "an interval has a rate"
    n = cells_behind(rate.rate, interval, z)
    more = cells_until(lambda found: found.low >= wanted, n * rate.rate, n, flawless=True, z=z)
    return f"{NOT_CONCLUSIVE}{text}; {_more(more, 'prompts', 'a miss')}"


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


def _ms(milliseconds: float) -> str:
    return f"{ceil(milliseconds)} ms" if milliseconds < NEVER_MS / 1000 else "never"


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
