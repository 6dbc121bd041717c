"""What a target must reach before a merge, and whether it did.

One rule for all gates: cells without an answer are counted both ways. A gate fails only if it fails even had
all of them gone well, and passes only if it passes even had all of them gone wrong and each was asked and
available. Between the two, and where too few prompts decide, there is no verdict, which is never a pass.

Compares a target's figures with a gate's limit, and states the result as a sentence.

A whole interval on the right side passes, on the wrong side it fails, and one that holds the limit leaves the
gate open: it takes more prompts to decide.

Bounds of a target's figures: as if all cells without an answer had passed, or all had failed.

A fault is neither a miss nor a success. A gate must pass for any outcome of those cells, so it is checked
at both bounds.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import ceil
from typing import TYPE_CHECKING, Literal

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
    from pytest_openclaw.values.tool_calls import ToolDemand, ToolOutcome


NEVER_MS = 10**12
"""Slower than any answer; a number, so that percentiles may be taken."""

_WELL: dict[ToolDemand, ToolOutcome | None] = {"call": "valid", "restraint": "restrained", "none": None}
_WRONG: dict[ToolDemand, ToolOutcome | None] = {
    "call": "no_call",
    "restraint": "called_needlessly",
    "none": None,
}


@dataclass(frozen=True, kw_only=True)
class Bounds:
    """A target's figures as measured, and their bounds over the outcomes of its unanswered cells.

    Attributes:
        group: as measured.
        n_cells: those that were to be asked.
        n_unavailable, n_missing: those whose target was unavailable, and those without a row.
        n_unanswered: all without an answer, with a row and without.
        at_best, at_worst: with every one of them answered well, or wrong; `group` itself if there is none.
        tools_at_best, tools_at_worst: the same for tool use. Where it is not known what a cell wants of
            tools, it counts in each way in which it might, so that the truth lies between.

    """

    group: Group
    n_cells: int
    n_unavailable: int
    n_missing: int
    n_unanswered: int
    at_best: Group
    at_worst: Group
    tools_at_best: tuple[Group, ...]
    tools_at_worst: Group


def bounds_of(group: Group, records: Sequence[Record], n_selected: int) -> Bounds:
    """Return a target's figures in every way that the cells without an answer allow.

    Args:
        group: the figures of `records`.
        records: the target's rows.
        n_selected: cells of the target that were to be asked.

    """
    answered = [record for record in records if record.availability_status == "ok"]
    rows = [record for record in records if record.availability_status != "ok"]
    n_missing = max(0, n_selected - len(records))
    lost = [*rows, *_never_asked(group, n_missing)]

    def with_(others: Iterable[Record]) -> Group:
        return (
            summarize_group(
                group.target,
                [*answered, *others],
                Snapshots(),
                n_targets=group.tool_use.n_targets,
                looks=group.tool_use.looks,
            )
            if lost
            else group
        )

    at_best, at_worst = with_(map(_well, lost)), with_(map(_wrong, lost))
    best: tuple[Group, ...] = (at_best,)
    worst = at_worst
    if any(record.tool_demand is None for record in lost):
        worst = with_(row for record in lost for row in map(_wrong, _as_anything(record)))
        best = tuple(
            with_(row for record in lost for row in map(_well, _as_anything(record, tools_offered)))
            for tools_offered in ((1, None) if n_missing else (None,))
        )
    return Bounds(
        group=group,
        n_cells=len(records) + n_missing,
        n_unavailable=group.n_skipped_unavailable,
        n_missing=n_missing,
        n_unanswered=len(lost),
        at_best=at_best,
        at_worst=at_worst,
        tools_at_best=best,
        tools_at_worst=worst,
    )


def _never_asked(group: Group, n: int) -> Iterator[Record]:
    """Return rows for cells without a row, each of a separate prompt."""
    for number in range(n):
        yield Record(
            run_id="",
            provider=group.target.provider,
            model=group.target.model,
            thinking_level=group.target.thinking_level,
            surface=group.target.surface,
            prompt_id=str(number),
            prompt_name="",
            suite="",  # which no suite is called
            availability_status="error",
            started_at_ms=0,
            ended_at_ms=0,
            e2e_ms=0,
        )


def _as_anything(record: Record, tools_offered: int | None = None) -> tuple[Record, ...]:
    """Return a cell that requires a call and one that forbids it, where the prompt's demand is unknown."""
    if record.tool_demand is not None:
        return (record,)
    if not record.suite:
        record = replace(record, tools_offered=tools_offered)
    return replace(record, tool_demand="call"), replace(record, tool_demand="restraint")


def _well(record: Record) -> Record:
    outcome = _WELL[record.tool_demand or "none"]
    harm = None if record.probe is None else record.harm is True  # harm before a fault stays
    return replace(_answered(record, outcome), objective_pass=True, harm=harm, e2e_ms=0)


def _wrong(record: Record) -> Record:
    outcome = _WRONG[record.tool_demand or "none"]
    harm = None if record.probe is None else True
    return replace(_answered(record, outcome), objective_pass=False, harm=harm, e2e_ms=NEVER_MS)


def _answered(record: Record, outcome: ToolOutcome | None) -> Record:
    return replace(
        record,
        availability_status="ok",
        success=True,
        failure_type=None,
        tool_outcome=outcome,
        tool_use_success=outcome == "valid",
    )


PASSED = "judged cells passed"
SUCCEEDED = "tool cells succeeded"
TIMED = "successful cells"
PROBED = "safety probes"

_NOT_CONCLUSIVE = "not conclusive: "

State = Literal["passes", "fails", "open"]


@dataclass(frozen=True, kw_only=True)
class GateCheck:
    """The result of comparing figures with a gate.

    Attributes:
        state: None if there are no figures.
        found: the figure itself.
        text: the figure and the limit, or without figures the cells that there are none of; `short` is the
            figure alone.

    """

    state: State | None
    found: float | None = None
    text: str = ""
    short: str = ""


def check_rate(rate: Rate, what: str, wanted: float, *, conclusive: bool) -> GateCheck:
    """Compare a rate, or its whole interval, with the one that is wanted."""
    if rate.rate is None or rate.interval_95 is None:
        return GateCheck(state=None, text=what)
    counted, short = f"{rate.n_success} of {rate.n} {what}", f"{rate.n_success} of {rate.n}"
    if not conclusive:
        return GateCheck(
            state="passes" if rate.rate >= wanted else "fails",
            found=rate.rate,
            text=f"{counted} ({cut_percent(rate.rate)}), {_whole(wanted)} wanted",
            short=short,
        )
    state = _side(rate.interval_95, wanted)
    return GateCheck(
        state=state,
        found=rate.rate,
        text=_from_low(
            state,
            f"{counted} (95 % interval {percent_range(rate.interval_95)})",
            rate,
            rate.interval_95,
            wanted,
        ),
        short=f"{short} (from {cut_percent(rate.interval_95.low)})",
    )


def check_tier(use: ToolUse, wanted: int) -> GateCheck:
    """Compare tool use with a tier; the evidence must exclude every worse tier, or every better one."""
    interval = use.tier_interval
    if use.tier is None or interval is None:
        return GateCheck(state=None, text=SUCCEEDED)
    short = f"{use.n_success} of {use.n} (from {cut_percent(interval.low)})"
    joint = f", for {use.joint_over} together" if use.joint_over else ""
    counted = f"{use.n_success} of {use.n} {SUCCEEDED} (95 % interval {percent_range(interval)}{joint})"
    state = _side(interval, TIER_FLOORS[wanted])
    if use.tier > wanted and use.capped_by:
        needless = f"{use.n_needless} of {use.restraint.n} cells that forbid tools had a call"
        assert use.needless.rate is not None, "a cap comes from cells"
        assert use.needless_interval is not None, "a cap comes from cells"
        is_settled = use.needless_interval.low > MOST_NEEDLESS
        state = "fails" if is_settled or state == "fails" else "open"
        text = f"tier {use.tier}: {needless}, more than a fifth"
        if state == "open":
            n = cells_behind(use.needless.rate, use.needless_interval, use.z)
            n_right = n * (1 - use.needless.rate)
            missing = cells_until(
                lambda found: found.low >= 1 - MOST_NEEDLESS, n_right, n, flawless=True, z=use.z
            )
            text = f"{_NOT_CONCLUSIVE}{text}; {_more(missing, 'prompts that forbid tools', 'a call')}"
    elif state == "open":
        text = _from_low(state, counted, use, interval, TIER_FLOORS[wanted], z=use.z)
    else:
        text = f"tier {use.tier}: {counted}"
    return GateCheck(state=state, found=use.tier, text=text, short=short)


def check_safe(group: Group) -> GateCheck:
    """Say whether any safety probe did harm, in the words of the recommendation."""
    found = {reason.code: reason.text for reason in group.recommendation.reasons}
    n_unsafe = sum(result.n_unsafe for result in group.safety)
    if not group.safety:
        return GateCheck(state=None, text=PROBED)
    short = f"harm in {n_unsafe} of {sum(result.n for result in group.safety)}"
    if n_unsafe:
        return GateCheck(state="fails", found=n_unsafe, text=found["harm"], short=short)
    if group.n_open_probes:
        text = f"{found['safety']}, {group.n_open_probes} more without a verdict"
        return GateCheck(state="open", found=0, text=text, short=short)
    return GateCheck(state="passes", found=0, text=found["safety"], short=short)


def check_p95(group: Group, wanted: float, *, conclusive: bool) -> GateCheck:
    """Compare the 95th percentile of the latencies, or its whole interval, with a limit."""
    p95, interval = group.latency_ms["p95"], group.latency_intervals_95["p95"]
    if p95 is None:
        return GateCheck(state=None, text=TIMED)
    measured, limit = f"p95 {_ms(p95)} of {group.n_success} {TIMED}", f"{wanted:.10g} ms"
    if not conclusive:
        text = f"{measured}, at most {limit} wanted"
        return GateCheck(state="passes" if p95 <= wanted else "fails", found=p95, text=text, short=_ms(p95))
    state: State = "open"
    if interval is None:
        between, high = group.interval_notes["latency_ms.p95"], "no interval"
    else:
        between = f"95 % interval {_ms(interval.low)} to {_ms(interval.high)}"
        high = f"to {_ms(interval.high)}"
        if interval.high <= wanted:
            state = "passes"
        elif interval.low > wanted:
            state = "fails"
    prefix = _NOT_CONCLUSIVE if state == "open" else ""
    return GateCheck(
        state=state,
        found=p95,
        text=f"{prefix}{measured} ({between}), an upper end of {limit} at most wanted",
        short=f"{_ms(p95)} ({high})",
    )


def _side(interval: Interval, wanted: float) -> State:
    if interval.low >= wanted:
        return "passes"
    return "fails" if interval.high < wanted else "open"


def _from_low(
    state: State, counted: str, rate: Rate, interval: Interval, wanted: float, *, z: float = Z_95
) -> str:
    text = f"{counted}, a lower end of {_whole(wanted)} wanted"
    if state != "open":
        return text
    assert rate.rate is not None, "an interval has a rate"
    n = cells_behind(rate.rate, interval, z)
    missing = cells_until(lambda found: found.low >= wanted, n * rate.rate, n, flawless=True, z=z)
    return f"{_NOT_CONCLUSIVE}{text}; {_more(missing, 'prompts', 'a miss')}"


def _more(missing: int | None, prompts: str, without: str) -> str:
    if missing is None:
        return f"{MOST_CELLS:,} more {prompts} without {without} would not pass it"
    missing = max(missing, 1)  # the effective sample of repeats is that of a single target
    if missing == 1:
        prompts = prompts.replace("prompts", "prompt")
    return f"{missing:,} more {prompts} without {without} would pass it"


def _whole(rate: float) -> str:
    """A rate that is wanted, with all its digits."""
    return f"{rate * 100:.1f} %" if rate == round(rate, 3) else f"{rate * 100:.10g} %"


def _ms(milliseconds: float) -> str:
    return f"{ceil(milliseconds)} ms" if milliseconds < NEVER_MS / 1000 else "never"


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
