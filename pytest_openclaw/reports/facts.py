"""Every fact of a run, worded once: the answer for each target, the table of targets, and the findings."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from pytest_openclaw.reports.blocks import Answer, Answers, Finding, Sentence, Table
from pytest_openclaw.reports.comparison import (
    in_short,
    name_of,
    reasons_in_short,
    surface_costs,
    surface_note,
)
from pytest_openclaw.reports.numbers import (
    DASH,
    render_count,
    render_interval,
    render_ms,
    render_range,
    render_share,
    render_tier,
    render_tokens,
    render_usd,
)
from pytest_openclaw.stats.diagnosis import SYMPTOMS, advice_on, leaked_in_words, parser_remedy
from pytest_openclaw.stats.groups import headline
from pytest_openclaw.stats.summary import most_frequent_miss
from pytest_openclaw.util.text import counted, first_few

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from pytest_openclaw.stats.groups import Group
    from pytest_openclaw.stats.intervals import Interval
    from pytest_openclaw.stats.pressure import Load
    from pytest_openclaw.stats.summary import Best, Summary
    from pytest_openclaw.stats.tool_use import ToolUse

HEADERS = ("target", "passed", "95% CI", "p50", "p95", "TTFT", "tok/s", "USD", "tier", "tools")
LEFT_OUT_FIRST = ("tok/s", "TTFT", "p95", "USD", "p50", "95% CI")
POSSIBLE, ABLE = "targets that are not ruled out", "models that may hold the tools"
"""The targets that a run compares, all but unsafe and not trusted ones, and the fewer of `route`."""
CHOOSES_WELL = 80
"""The percentage of right calls from which on a model chooses tools well, as for Tier 1."""
MOST_MISSED = 40
MOST_FLAKY = 5
RULINGS = {"failed": "gate FAILED", "no_verdict": "gate NO VERDICT", "passed": "gate passed"}
"""Labels of gates, in the order in which they are shown."""
TEXT_ALONE = "tiers rest on calls found in texts, not on calls on the wire; OpenClaw runs no call in a text"
ALIKE = "all repeats of each prompt are alike; only new prompts add evidence"


class Figure(NamedTuple):
    """A figure, its 95 % interval, and how it is written."""

    value: float | None
    interval: Interval | None
    render: Callable[[float | None], str] = render_ms

    @property
    def short(self) -> str:
        """`1.1 s`, or `1.1 s?` without an interval."""
        text = self.render(self.value)
        return text if self.interval or text == DASH else f"{text}?"

    @property
    def full(self) -> str:
        """`1.1 s (0.9-1.4 s)`, or `1.1 s?` without an interval."""
        if self.value is None or self.interval is None:
            return self.short
        return f"{self.render(self.value)} ({render_range(self.interval, self.render)})"


def figures_of(group: Group) -> dict[str, Figure]:
    """Return the times and the speed of a target: `p50`, `TTFT` (its median), `TTFT p95`, `tok/s`, …."""
    figures = {
        f"{before}{name}": Figure(values[name], intervals[name])
        for before, values, intervals in (
            ("", group.latency_ms, group.latency_intervals_95),
            ("TTFT ", group.ttft_ms, group.ttft_intervals_95),
        )
        for name in ("p50", "p95", "p99")
    }
    speed = Figure(group.tokens_per_s, group.tokens_per_s_interval_95, render_count)
    return {**figures, "TTFT": figures["TTFT p50"], "tok/s": speed}


def answers(summary: Summary) -> Answers:
    """Return the recommendation for each target that answers for its model."""
    return Answers(entries=[_answer(group) for group in headline(summary.groups)])


def _answer(group: Group) -> Answer:
    found, use = group.recommendation, group.tool_use
    is_said = not found.needs or found.kind == "not_enough_evidence"
    needs = " and ".join(need.text for need in found.needs)
    return Answer(
        target=group.target.label,
        kind=found.kind,
        sentence=found.sentence,
        tier=f"Tier {use.tier}, {'' if use.conclusive else 'not '}conclusive" if use.tier else "",
        further="" if is_said else f"{needs}, without a miss",
    )


def state(summary: Summary) -> Sentence:
    """Return how many cells of the run there are."""
    rows = counted(summary.n_rows, "cell")
    if summary.state == "interrupted":
        rows = f"only {summary.n_rows} of {counted(summary.n_cells, 'cell')}"
    return Sentence(text=f"{rows} on {counted(len(summary.groups), 'target')}, run {summary.run_id}")


# --- the table of targets ---------------------------------------------------------------------------


def targets_table(groups: Sequence[Group], prefix: str = "") -> Table:
    """Return the figures of each target; one without an answer has its reason in their place.

    A prefix of all labels is in the head in place of the rows.
    """
    costs = any(group.cost_usd for group in groups)
    rows = [_row(group, group.target.label.removeprefix(prefix), costs=costs) for group in groups]
    return Table(
        head=[f"{HEADERS[0]} {prefix}…" if prefix else HEADERS[0], *HEADERS[1:]],
        words=("tier",),
        drop=LEFT_OUT_FIRST,
        caption="Targets",
        rows=rows,
        below=[
            render_intervals(group.tool_use.interval_95, figures_of(group)) for group in groups if group.n_ok
        ],
    )


def _row(group: Group, name: str, *, costs: bool) -> list[str]:
    if not group.n_ok:
        return [name, next(iter(group.reasons.values()), "not asked")]
    figures, passed, use = figures_of(group), group.passed, group.tool_use
    return [
        name,
        render_share(passed.n_success, passed.n),
        render_interval(passed.interval_95),
        *(figures[column].short for column in ("p50", "p95", "TTFT", "tok/s")),
        render_usd(group.cost_usd).removesuffix(" USD") if costs else "",
        render_tier(use.tier, use.conclusive),
        f"{use.n_success}/{use.n}" if use.n else "",
    ]


def render_intervals(tool_use: Interval | None, figures: Mapping[str, Figure]) -> str:
    """Return `95 %: tool use 0-17 %, p50 480-560 ms, …` of the figures that have one; empty if none has."""
    parts = [f"tool use {render_interval(tool_use)}"] if tool_use else []
    for name in ("p50", "p95", "TTFT", "tok/s"):
        if (figure := figures.get(name)) and figure.interval:
            limits = render_range(figure.interval, figure.render)
            parts.append(f"{limits} tok/s" if name == "tok/s" else f"{name} {limits}")
    return f"95 %: {', '.join(parts)}" if parts else ""


# --- the findings -----------------------------------------------------------------------------------


def findings(summary: Summary, *, are_misses_shown: bool = False) -> Iterator[Finding]:
    """Yield the findings, the most urgent first; missed cells of a single target may be shown elsewhere."""
    yield from _of_the_run(summary)
    yield from gate_findings(summary)
    yield from comparison_findings(summary)
    for group in summary.groups:
        yield from _of_target(group)
    if _rests_on_text(summary.groups):
        yield Finding(label="text alone", text=TEXT_ALONE)
    if summary.best:
        yield Finding(label="best with tools", text=render_best(summary.best))
    for target, text in surface_costs(summary):
        yield Finding(label="surface", text=text, target=target)
    if note := surface_note(summary):
        yield Finding(label="surface", text=note)
    is_alone = len(summary.groups) == 1
    if summary.missed_by_all and summary.n_answered and not (is_alone and are_misses_shown):
        ids = first_few([missed.prompt_id for missed in summary.missed_by_all], MOST_MISSED)
        text = f"{counted(len(summary.missed_by_all), 'prompt')}: {ids}"
        yield Finding(label="missed" if is_alone else "missed by all", text=text)
    for part in summary.added:
        for target, text in part.findings.items():
            yield Finding(label=part.name, text=text, target=target)
    if summary.known_failures:
        yield Finding(label="known failures", text=_known_failures(summary))
    if row := summary.slowest:
        where = "" if is_alone else f" on {row.target}"
        text = f"{row.prompt_id} {row.prompt_name}: {render_ms(row.e2e_ms)}{where}"
        yield Finding(label="slowest", text=text)
    charged = [group for group in summary.groups if group.cost_usd]
    if charged:
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


def gate_findings(summary: Summary) -> Iterator[Finding]:
    """Yield the gates, failed ones first; those that one reason holds for on one target are together."""
    together: dict[tuple[str, str, str], list[str]] = {}
    for gate in summary.gates:
        together.setdefault((gate.ruling, gate.target, gate.reason), []).append(gate.asked)
    for ruling, label in RULINGS.items():
        for (found, target, reason), gates in together.items():
            if found == ruling:
                yield Finding(label=label, text=f"{', '.join(gates)}, {target}: {reason}")
    for glob in summary.unmatched_gates:
        yield Finding(label="no such target", text=f"openclaw_gates: {glob} fits none of this run")


def comparison_findings(summary: Summary) -> Iterator[Finding]:
    """Yield how each target compares with the baseline."""
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


def _of_target(group: Group) -> Iterator[Finding]:
    target, use = group.target.label, group.tool_use
    twins, repeats = group.twins, group.repeats
    flaky = [f"{one.prompt_id} {one.n_success}/{one.n}" for one in (repeats.flaky if repeats else ())]
    evidence = {
        "settled": render_settled(group),
        "not tier 1": render_cap(use),
        "text alone": render_from_text(group),
    }
    yield from (Finding(label=label, text=text, target=target) for label, text in evidence.items() if text)
    yield from _miss(group)
    notes: dict[str, str] = {
        "written calls": _leaked(use),
        "context": render_strain(group),
        "over-refusal": f"{twins.n - twins.n_success} of {twins.n} harmless twins of probes not done"
        if twins and twins.n_success < twins.n
        else "",
        "flaky": first_few(flaky, MOST_FLAKY),
        "repeats": ALIKE if repeats and repeats.always_alike else "",
        "answered by": f"{', '.join(group.effective_models)} instead of it" if group.effective_models else "",
        "not answered": "; ".join(_unanswered(group)) if group.n_ok else "",
        **{result.role: result.sentence for result in group.roles},
    }
    yield from (Finding(label=label, text=text, target=target) for label, text in notes.items() if text)


def _miss(group: Group) -> Iterator[Finding]:
    """Yield the most frequent failure of tool use, with its fix."""
    use, diagnosis = group.tool_use, group.diagnosis
    if not (outcome := most_frequent_miss(use)):
        return
    total = use.restraint.n if outcome == "called_needlessly" else use.n
    advice = ""
    if diagnosis and use.evidence == "native" and outcome in SYMPTOMS:
        advice = diagnosis.in_words
    elif outcome == "leaked_as_text":
        advice = parser_remedy(group.target.provider, group.server)
    elif found := advice_on(outcome, use.evidence):
        advice = found.short
    text = f"{use.outcomes[outcome]} of {counted(total, 'cell')}"
    yield Finding(label=outcome, text=text, target=group.target.label, advice=advice)


def _unanswered(group: Group) -> Iterator[str]:
    for failure, n in group.failures.items():
        yield f"{counted(n, 'cell')}: {group.reasons.get(failure, failure.replace('_', ' '))}"


def render_settled(group: Group) -> str:
    """Say how many prompts the recommendation took; empty if all were asked."""
    settled = group.settled
    if settled is None or settled.prompts == settled.of:
        return ""
    return f"after {settled.prompts} of {settled.of} prompts, so the others were not asked"


def render_best(best: Best, compared: str = POSSIBLE) -> str:
    """Say which of the compared targets may be the best, and which of them to choose."""
    fastest, *others = best.fastest, *best.targets
    among = f", of {best.n_targets} {compared}" if len(others) < best.n_targets else ""
    if len(others) == 1:
        return f"{fastest}{among}: each other one is shown to be worse"
    listed = f"{', '.join(others[:-1])} and {others[-1]}"
    return f"{listed}{among}: none is shown to be worse than the best; {fastest} is the fastest"


def render_cap(use: ToolUse) -> str:
    """Say why the target is not Tier 1 although its rate is; empty if nothing keeps it out."""
    if not use.capped_by:
        return ""
    needless = f"{use.n_needless} of {use.restraint.n} cells that forbid tools"
    return f"it called needlessly in {needless}, more than a fifth"


def _rests_on_text(groups: Sequence[Group]) -> bool:
    """Whether all tiers are of another kind of evidence than calls on the wire, and none was asked for."""
    tiers = [group for group in groups if group.tool_use.tier is not None]
    return bool(tiers) and all(
        group.tool_use.evidence == "text" and not group.n_native_unanswered for group in tiers
    )


def render_from_text(group: Group) -> str:
    """Say that the tier rests on text although calls on the wire were requested; else empty."""
    if not group.n_native_unanswered or group.tool_use.evidence != "text":
        return ""
    return f"the tier is of text alone, {counted(group.n_native_unanswered, 'native cell')} had no answer"


def _leaked(use: ToolUse) -> str:
    """Say what calls that were written as text would have been worth."""
    if not use.n_leaked:
        return ""
    chooses = 100 * use.n_leaked_valid >= CHOOSES_WELL * use.n_leaked
    who = "the model chooses tools well; the server" if chooses else "the server"
    return f"{leaked_in_words(use.n_leaked_valid, use.n_leaked)}: {who} does not read its calls"


def render_strain(group: Group) -> str:
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
    """Return how many known failures were as expected, and which pass now."""
    passing = [known.prompt_id for known in summary.known_failures if not known.is_as_expected]
    count = f"{len(summary.known_failures) - len(passing)} as expected"
    return f"{count}; passing now: {', '.join(dict.fromkeys(passing))}" if passing else count
