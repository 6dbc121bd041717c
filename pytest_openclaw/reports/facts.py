"""Every fact of a run, worded once: the answer for each target, the table of targets, and the findings."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from pytest_openclaw.conclusions.diagnosis import SYMPTOMS, advice_on, leaked_in_words, parser_remedy
from pytest_openclaw.conclusions.groups import headline
from pytest_openclaw.conclusions.summary import most_frequent_miss
from pytest_openclaw.reports.blocks import Answer, Answers, Finding, Table
from pytest_openclaw.reports.numbers import (
    one_line,
    render_count,
    render_interval,
    render_ms,
    render_share,
    render_tier,
    render_tokens,
    render_usd,
    words,
)
from pytest_openclaw.stats.comparison import NO_DIFFERENCE
from pytest_openclaw.util.text import counted, first_few
from pytest_openclaw.values.requests import OPENCLAW

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from pytest_openclaw.conclusions.groups import Group, Repeats
    from pytest_openclaw.conclusions.summary import Best, Summary
    from pytest_openclaw.stats.comparison import ComparedRuns, Comparison, Reason, SetAside, VerdictChange
    from pytest_openclaw.stats.intervals import Interval
    from pytest_openclaw.stats.tool_use import Load
    from pytest_openclaw.values.tool_calls import ToolOutcome

HEADERS = ("target", "passed", "95% CI", "p50", "p95", "TTFT", "tok/s", "USD", "tier", "tools")
LEFT_OUT_FIRST = ("tok/s", "TTFT", "p95", "USD", "p50", "95% CI")
POSSIBLE, ABLE = "targets that are not ruled out", "models that may hold the tools"
"""The targets that a run compares, all but unsafe and not trusted ones, and those that `route` compares."""
CHOOSES_WELL = 80
"""The minimum percentage of correct calls with which a model chooses tools well, as for Tier 1."""
MOST_MISSED = 40
MOST_FLAKY = 5
RULINGS = {"failed": "gate FAILED", "no_verdict": "gate NO VERDICT", "passed": "gate passed"}
"""Labels of gates, in the order in which they are shown."""
ALIKE = "all repeats of each prompt are alike; only new prompts add evidence"


def answers(summary: Summary) -> Answers:
    """Return the recommendations for the targets that represent their models."""
    return Answers(entries=[_answer(group) for group in headline(summary.groups)])


def _answer(group: Group) -> Answer:
    found, use = group.recommendation, group.tool_use
    tier = f"Tier {use.tier}, {'' if use.conclusive else 'not '}conclusive" if use.tier else ""
    return Answer(target=group.target.label, kind=found.kind, sentence=found.sentence, tier=tier)


def state(summary: Summary) -> str:
    """Return the numbers of the run's cells and targets."""
    rows = counted(summary.n_rows, "cell")
    if summary.state == "interrupted":
        rows = f"only {summary.n_rows} of {counted(summary.n_cells, 'cell')}"
    return f"{rows} on {counted(len(summary.groups), 'target')}, run {summary.run_id}"


# --- the table of targets ---------------------------------------------------------------------------


Figure = tuple[float | None, "Interval | None", "Callable[[float | None], str]"]
"""A measurement, its interval and how the number is rendered."""


def figures_of(group: Group) -> dict[str, Figure]:
    """Return the times and the speed of a target, for `short` and `full`."""
    latency, intervals = group.latency_ms, group.latency_intervals_95
    return {
        **{name: (latency.get(name), intervals.get(name), render_ms) for name in ("p50", "p95", "p99")},
        "TTFT": (group.ttft_ms.get("p50"), group.ttft_intervals_95.get("p50"), render_ms),
        "tok/s": (group.tokens_per_s, group.tokens_per_s_interval_95, render_count),
    }


def short(figure: Figure) -> str:
    """Return `1.1 s`, or `1.1 s?` without an interval."""
    value, interval, render = figure
    return f"{render(value)}{'?' if value is not None and interval is None else ''}"


def full(figure: Figure) -> str:
    """Return `1.1 s (900 ms to 1.4 s)`, or `1.1 s?` without an interval."""
    _, interval, render = figure
    limits = f" ({render(interval.low)} to {render(interval.high)})" if interval else ""
    return f"{short(figure)}{limits}"


def targets_table(groups: Sequence[Group]) -> Table:
    """Return the figures of each target; a target without an answer has the reason instead."""
    costs = any(group.cost_usd for group in groups)
    return Table(
        head=HEADERS,
        words=("tier",),
        drop=LEFT_OUT_FIRST,
        caption="Targets",
        rows=[_row(group, costs=costs) for group in groups],
    )


def _row(group: Group, *, costs: bool) -> list[str]:
    if not group.n_ok:
        return [group.target.label, next(iter(group.reasons.values()), "not asked")]
    figures, passed, use = figures_of(group), group.passed, group.tool_use
    return [
        group.target.label,
        render_share(passed.n_success, passed.n),
        render_interval(passed.interval_95),
        *(short(figures[column]) for column in ("p50", "p95", "TTFT", "tok/s")),
        render_usd(group.cost_usd).removesuffix(" USD") if costs else "",
        render_tier(use.tier, use.conclusive),
        f"{use.n_success}/{use.n}" if use.n else "",
    ]


# --- the findings -----------------------------------------------------------------------------------


def findings(summary: Summary, *, are_misses_shown: bool = False) -> Iterator[Finding]:
    """Yield the findings, the most urgent first; missed cells of a single target may be shown elsewhere."""
    yield from _of_the_run(summary)
    yield from gate_findings(summary)
    yield from comparison_findings(summary)
    for group in summary.groups:
        for label, text in _notes(group):
            if text:
                yield Finding(label=label, text=text, target=group.target.label)
    if summary.best:
        yield Finding(label="best with tools", text=render_best(summary.best))
    if note := surface_note(summary):
        yield Finding(label="surface", text=note)
    if len(summary.groups) > 1 or not are_misses_shown:
        yield from _missed(summary)
    for part in summary.added:
        for target, text in part.findings.items():
            yield Finding(label=part.name, text=text, target=target)
    if summary.known_failures:
        yield Finding(label="known failures", text=_known_failures(summary))
    if charged := [group for group in summary.groups if group.cost_usd]:
        total = render_usd(sum(group.cost_usd or 0.0 for group in charged))
        whose = charged[0].target.label if len(charged) == 1 else f"{len(charged)} targets"
        yield Finding(label="cost", text=f"{total}, {whose}")


def _of_the_run(summary: Summary) -> Iterator[Finding]:
    if summary.state == "interrupted":
        yield Finding(label="interrupted", text=f"{summary.n_rows} of {summary.n_cells} cells have a row")
    if summary.n_rows and not summary.n_answered:
        yield Finding(label="no verdict", text="no cell was answered")
    if budget := summary.budget:
        spent = f"{render_usd(budget.spent_usd)} of {render_usd(budget.budget_usd)} spent by this session"
        n = budget.n_not_asked
        yield Finding(label="budget", text=f"{spent}; {counted(n, 'cell')} not asked" if n else spent)


def _missed(summary: Summary) -> Iterator[Finding]:
    if summary.missed_by_all and summary.n_answered:
        ids = first_few([missed.prompt_id for missed in summary.missed_by_all], MOST_MISSED)
        text = f"{counted(len(summary.missed_by_all), 'prompt')}: {ids}"
        yield Finding(label="missed" if len(summary.groups) == 1 else "missed by all", text=text)


def gate_findings(summary: Summary) -> Iterator[Finding]:
    """Yield the gates, failed ones first, grouped by target and reason."""
    together: dict[tuple[str, str, str], list[str]] = {}
    for gate in summary.gates:
        together.setdefault((gate.ruling, gate.target, gate.reason), []).append(gate.asked)
    for ruling, label in RULINGS.items():
        for (found, target, reason), gates in together.items():
            if found == ruling:
                yield Finding(label=label, text=f"{', '.join(gates)}, {target}: {reason}")
    for glob in summary.unmatched_gates:
        yield Finding(label="no such target", text=f"openclaw_gates: {glob} fits none of this run")


def _notes(group: Group) -> Iterator[tuple[str, str]]:
    """Yield labels and texts; an empty text is not shown."""
    use, found, repeats, twins = group.tool_use, group.recommendation, group.repeats, group.twins
    if found.needs and found.kind != "not_enough_evidence":  # else the sentence says it
        yield "to improve it", f"{' and '.join(need.text for need in found.needs)}, without a miss"
    if (settled := group.settled) and settled.prompts < settled.of:
        yield "settled", f"after {settled.prompts} of {settled.of} prompts, so the others were not asked"
    if use.capped_by:
        needless = f"{use.needless.n_success} of {use.restraint.n} cells that forbid tools"
        yield "not tier 1", f"it called needlessly in {needless}, more than a fifth"
    if use.evidence == "text" and use.tier is not None:
        n = group.n_native_unanswered
        unanswered = f"; {counted(n, 'native cell')} had no answer" if n else ""
        yield "text alone", f"the tier rests on calls found in texts, which OpenClaw does not run{unanswered}"
    if outcome := most_frequent_miss(use):
        total = use.restraint.n if outcome == "called_needlessly" else use.n
        advice = _advice(group, outcome)
        yield outcome, f"{use.outcomes[outcome]} of {counted(total, 'cell')}{'; ' if advice else ''}{advice}"
    if fault := group.diagnosis:
        yield "part at fault", f"{fault.cause or 'unknown'}, by {fault.prompt_id}: {fault.in_words}"
    if use.n_leaked:
        chooses = 100 * use.n_leaked_valid >= CHOOSES_WELL * use.n_leaked
        who = "the model chooses tools well; the server" if chooses else "the server"
        leaked = leaked_in_words(use.n_leaked_valid, use.n_leaked)
        yield "written calls", f"{leaked}: {who} does not read its calls"
    yield "context", _strain(group)
    if twins and twins.n_success < twins.n:
        label = "twins" if use.n_leaked else "over-refusal"
        yield label, f"{twins.n - twins.n_success} of {twins.n} harmless twins of probes not done"
    if repeats:
        yield "flaky", flakiest(repeats)
        yield "repeats", ALIKE if repeats.always_alike else ""
    if group.effective_models:
        yield "answered by", f"{', '.join(group.effective_models)} instead of it"
    if group.n_ok:
        reasons = {
            failure: group.reasons.get(failure, failure.replace("_", " ")) for failure in group.failures
        }
        lost = (f"{counted(group.failures[one], 'cell')}: {reason}" for one, reason in reasons.items())
        yield "not answered", "; ".join(lost)
    yield from ((result.role, result.sentence) for result in group.roles)


def flakiest(repeats: Repeats) -> str:
    """Return the prompts that passed only sometimes; empty if no prompt did."""
    return first_few([f"{one.prompt_id} {one.n_success}/{one.n}" for one in repeats.flaky], MOST_FLAKY)


def _advice(group: Group, outcome: ToolOutcome) -> str:
    use = group.tool_use
    if group.diagnosis and use.evidence == "native" and outcome in SYMPTOMS:
        return ""  # the diagnosis says it
    if outcome == "leaked_as_text":
        return parser_remedy(group.target.provider, group.server)
    return advice_on(outcome, use.evidence)


def render_best(best: Best, compared: str = POSSIBLE) -> str:
    """Return a sentence on the targets that may be the best, and on the target to choose."""
    fastest, *others = best.fastest, *best.targets
    among = f", of {best.n_targets} {compared}" if len(others) < best.n_targets else ""
    if len(others) == 1:
        return f"{fastest}{among}: each other one is shown to be worse"
    listed = f"{', '.join(others[:-1])} and {others[-1]}"
    return f"{listed}{among}: no one is shown to be worse than the best; {fastest} is the fastest"


def _strain(group: Group) -> str:
    """Return the pressure that a target withstands and where it breaks; empty without harder forms."""
    is_answered = any(level.n or level.n_overflow for level in group.pressure)
    found = group.recommendation
    if found.holds_to is None or found.breaks_at is None or not is_answered:
        return ""
    holds, breaks = _load(found.holds_to), _load(found.breaks_at)
    if not holds and not breaks:
        lightest = group.pressure[0]
        return f"calls right in {lightest.n_success} of {counted(lightest.n, 'cell')} without any pressure"
    held = f"calls right up to {holds}" if holds else ""
    broken = f"breaks at {breaks}" if breaks else ""
    return "; ".join(part for part in (held, broken) if part)


def _load(load: Load) -> str:
    tools = [] if load.tools_offered is None else [counted(load.tools_offered, "tool")]
    text = [] if load.padding_tokens is None else [f"{render_tokens(load.padding_tokens)} tokens"]
    return " and ".join([*tools, *text])


def _known_failures(summary: Summary) -> str:
    passing = [known.prompt_id for known in summary.known_failures if not known.is_as_expected]
    count = f"{len(summary.known_failures) - len(passing)} as expected"
    return f"{count}; passing now: {', '.join(dict.fromkeys(passing))}" if passing else count


def surface_note(summary: Summary) -> str:
    """Return a sentence on the request behind the tiers on `openclaw`; empty if OpenClaw itself sent it."""
    groups = [group for group in summary.groups if group.surface == OPENCLAW and not group.is_openclaw]
    if summary.surface is None or not groups:
        return ""
    captured = summary.surface["source"] == "captured"
    source = "captured from the installed OpenClaw" if captured else "a substitute in our own words"
    return f"openclaw is the request of {summary.surface['release']}, {source}"


# --- a comparison with a baseline ---------------------------------------------------------------------

TITLES = {"latency": "latency", "ttft": "TTFT", "output_tokens": "output tokens", "cost": "cost"}
NOT_COMPARED = "no judged cell could be compared"
MOST_PROMPTS = 8
LONGEST_NOTE = 100


def comparison_findings(summary: Summary) -> Iterator[Finding]:
    """Yield the verdict on each target compared with the baseline, and the cells that were not compared."""
    compared = summary.comparison
    if compared is None:
        return
    yield Finding(label="compared with", text=compared.baseline)
    for one in compared.targets:
        label = one.verdicts.word.removesuffix(" seen")
        notes = "".join(f"; but {note}" for note in one.notes)
        yield Finding(label=label, text=f"{name_of(one)}: {in_short(one)}{notes}")
    if not compared.targets:
        yield Finding(label="not compared", text="no target is in both runs")
    if apart := reasons_in_short(compared):
        yield Finding(label="set aside", text=apart)
    yield from (Finding(label="note", text=note) for note in compared.notes)


def name_of(comparison: Comparison) -> str:
    """Return the name of a comparison: one target, or a pair of targets."""
    if comparison.base_target == comparison.target:
        return comparison.target
    return f"{comparison.base_target} -> {comparison.target}"


def in_short(comparison: Comparison) -> str:
    """Return the verdicts and the other differences: `31/36 -> 24/36, p 0.02; latency 1.40x (slower)`."""
    verdicts = comparison.verdicts
    passed = f"{_passed(verdicts)}, p {verdicts.p:.2g}" if verdicts.n_cells else NOT_COMPARED
    ratios = [
        f"{TITLES[name]} {ratio.ratio:.2f}x ({ratio.word})"
        for name, ratio in comparison.ratios.items()
        if ratio.word != NO_DIFFERENCE
    ]
    return "; ".join([passed, *ratios])


def notes_of(compared: ComparedRuns, option: str) -> Iterator[Finding]:
    """Yield why cells are set aside, and the notes; `option` is the option that compares such cells."""
    for cells in compared.set_aside:
        yield Finding(label="set aside", text=_set_aside(cells, option))
    yield from (Finding(label="note", text=note) for note in compared.notes)


def _set_aside(cells: SetAside, option: str) -> str:
    detail = f" ({cells.detail})" if cells.detail else ""
    word = words("across").get(cells.reason)
    across = f"; {option}={word} compares them" if word else ""
    named = first_few(cells.prompts, MOST_PROMPTS)
    how_many = counted(cells.n_cells, "cell")
    return f"{how_many} of {cells.target}: {words('set_aside')[cells.reason]}{detail}: {named}{across}"


def reasons_in_short(compared: ComparedRuns) -> str:
    """Return how many cells are set aside for each reason; empty if all are compared."""
    counts: Counter[Reason] = Counter()
    for cells in compared.set_aside:
        counts[cells.reason] += cells.n_cells
    reasons = words("set_aside")
    return ", ".join(f"{counted(n, 'cell')} {reasons[reason]}" for reason, n in counts.items())


def details_of(comparison: Comparison) -> Iterator[tuple[str, str]]:
    """Yield title and text of each change, with its interval and its p-value."""
    verdicts = comparison.verdicts
    if verdicts.n_cells and verdicts.difference is not None:
        change = f"{_points(verdicts.difference, verdicts.interval_95)}; p {verdicts.p:.2g}"
        yield "passed", f"{_passed(verdicts)}: {change}"
        yield "prompts", f"{verdicts.n_prompts}: {verdicts.n_better} better, {verdicts.n_worse} worse"
    else:
        yield "passed", NOT_COMPARED
    for name, ratio in comparison.ratios.items():
        interval = ratio.interval_95
        limits = f" (95 % {interval.low:.2f}x to {interval.high:.2f}x)" if interval else ""
        counts = f"{counted(ratio.n_prompts, 'prompt')}, p {ratio.p:.2g}"
        yield TITLES[name], f"{ratio.ratio:.2f}x{limits}, {ratio.word}; {counts}"
    if comparison.outcomes:
        changes = (f"{one.outcome} {one.n_base} -> {one.n_candidate}" for one in comparison.outcomes)
        yield "tool use", ", ".join(changes)
    yield from (("note", one_line(note, LONGEST_NOTE)) for note in comparison.notes)


def _passed(verdicts: VerdictChange) -> str:
    return f"{verdicts.n_base}/{verdicts.n_cells} -> {verdicts.n_candidate}/{verdicts.n_cells}"


def _points(difference: float, interval: Interval | None) -> str:
    limits = f", 95 % {100 * interval.low:+.0f} to {100 * interval.high:+.0f}" if interval else ""
    return f"{100 * difference:+.0f} points{limits}"
