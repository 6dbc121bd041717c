"""Every fact of a run, worded once: the answer for each target, the table of targets, and the findings."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from pytest_openclaw.conclusions.summary import (
    Best,
    Group,
    Summary,
    SummaryPart,
    headline,
    leaked_in_words,
    most_frequent_miss,
)
from pytest_openclaw.reports.blocks import Section, SummaryFinding, Table, TargetAnswer
from pytest_openclaw.reports.numbers import (
    DASH,
    render_count,
    render_interval,
    render_ms,
    render_share,
    render_tier,
    render_usd,
)
from pytest_openclaw.stats.intervals import Interval
from pytest_openclaw.stats.tool_use import OUTCOMES, TIER_NAMES
from pytest_openclaw.util.text import counted, first_few
from pytest_openclaw.values.parts import called, parts
from pytest_openclaw.values.requests import OPENCLAW
from pytest_openclaw.values.tool_calls import ToolOutcome

CI = "95% CI"
HEADERS = ("target", "passed", CI, "p50", "p95", "TTFT", "tok/s", "USD", "tier", "tools", CI)
LEFT_OUT_FIRST = ("tok/s", "TTFT", "p95", "USD", "p50", CI)
POSSIBLE, ABLE = "not ruled out", "that may hold the tools"
"""The targets that a run compares, all but unsafe and not trusted ones, and those that `route` compares."""
CHOOSES_WELL = 80
"""The minimum percentage of correct calls with which a model chooses tools well, as for Tier 1."""
MOST_MISSED = 40
RULINGS, CHANGES = 10, 20
"""Ranks of the rulings and of the comparison with a baseline among the findings and sections of a run."""


def answers(summary: Summary) -> list[TargetAnswer]:
    """Return the recommendations for the targets that represent their models."""
    return [_answer(group) for group in headline(summary.groups)]


def _answer(group: Group) -> TargetAnswer:
    found, use = group.recommendation, group.tool_use
    tier = f"Tier {use.tier}, {'' if use.conclusive else 'not '}conclusive" if use.tier else ""
    return TargetAnswer(target=group.target.label, kind=found.kind, sentence=found.sentence, tier=tier)


def state(summary: Summary) -> str:
    """Return the numbers of the run's cells and targets."""
    rows = counted(summary.n_rows, "cell")
    if summary.state == "interrupted":
        rows = f"only {summary.n_rows} of {counted(summary.n_cells, 'cell')}"
    return f"{rows} on {counted(len(summary.groups), 'target')}, run {summary.run_id}"


def ruling_of(summary: Summary) -> tuple[str, str] | None:
    """Return the ruling of the whole run, as a word and in words; None if no part rules."""
    return next((ruling(summary) for ruling in called("ruling")), None)


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
    """Return the figures of each target; a target without an answer has the reason instead.

    The interval is that on which the tier rests; if no target has one, that of the cells that passed.
    """
    costs = any(group.cost_usd for group in groups)
    of_tier = any(group.tool_use.tier_interval for group in groups)
    return Table(
        head=HEADERS,
        words=("tier",),
        drop=LEFT_OUT_FIRST,
        caption="Targets",
        rows=[_row(group, costs=costs, of_tier=of_tier) for group in groups],
    )


def _row(group: Group, *, costs: bool, of_tier: bool) -> list[str]:
    if not group.n_ok:
        return [group.target.label, next(iter(group.reasons.values()), "not asked")]
    figures, passed, use = figures_of(group), group.passed, group.tool_use
    return [
        group.target.label,
        render_share(passed.n_success, passed.n),
        "" if of_tier else render_interval(passed.interval_95),
        *(short(figures[column]) for column in ("p50", "p95", "TTFT", "tok/s")),
        render_usd(group.cost_usd).removesuffix(" USD") if costs else "",
        render_tier(use.tier, use.conclusive),
        f"{use.n_success}/{use.n}" if use.n else "",
        render_interval(use.tier_interval) if use.n else "",
    ]


# --- the findings -----------------------------------------------------------------------------------


def findings(summary: Summary, *, are_misses_shown: bool = False) -> list[SummaryFinding]:
    """Return the findings, the most urgent first; missed cells of a single target may be shown elsewhere."""
    found = [*findings_of_parts(summary), *_of_the_run(summary, are_misses_shown=are_misses_shown)]
    return [finding for _, finding in sorted(found, key=lambda pair: pair[0])]


def findings_of_parts(summary: Summary) -> Iterator[tuple[int, SummaryFinding]]:
    """Yield the findings of parts, each with its rank."""
    for of_part in called("findings"):
        yield from of_part(summary)


def _of_the_run(summary: Summary, *, are_misses_shown: bool) -> Iterator[tuple[int, SummaryFinding]]:
    if summary.state == "interrupted":
        text = f"{summary.n_rows} of {summary.n_cells} cells have a row"
        yield 0, SummaryFinding(label="interrupted", text=text)
    if summary.n_rows and not summary.n_answered:
        yield 0, SummaryFinding(label="no verdict", text="no cell was answered")
    for group in summary.groups:
        for label, text in notes_on(group):
            yield 30, SummaryFinding(label=label, text=text, target=group.target.label)
    joint = {group.tool_use.joint_over for group in summary.groups if group.tool_use.tier_interval}
    if over := "".join(joint):
        yield 25, SummaryFinding(label=CI, text=f"of the calls, for {over} together: wider than for one")
    if summary.best:
        yield 40, SummaryFinding(label="best with tools", text=render_best(summary.best))
    if note := surface_note(summary):
        yield 40, SummaryFinding(label="surface", text=note)
    if summary.missed_by_all and summary.n_answered and (len(summary.groups) > 1 or not are_misses_shown):
        ids = first_few([*{missed.prompt_id: 0 for missed in summary.missed_by_all}], MOST_MISSED)
        text = f"{counted(len(summary.missed_by_all), 'prompt')}: {ids}"
        yield 40, SummaryFinding(label="missed" if len(summary.groups) == 1 else "missed by all", text=text)
    for part in summary.added:
        for target, text in part.findings.items():
            yield 40, SummaryFinding(label=part.name, text=text, target=target)
    if summary.known_failures:
        yield 40, SummaryFinding(label="known failures", text=_known_failures(summary))
    yield from _of_cost(summary)
    yield from _more_prompts(summary)


def _more_prompts(summary: Summary) -> Iterator[tuple[int, SummaryFinding]]:
    lacking: dict[str, list[str]] = {}
    for group in () if summary.is_owing else headline(summary.groups):
        is_tested = group.tool_use.n or group.tool_use.restraint.n
        for suite in {need.suite for need in group.recommendation.needs if need.suite and is_tested}:
            lacking.setdefault(suite, []).append(group.target.label)
    for suite, labels in lacking.items():
        asked = shlex.join([f"benchmarks/prompts_{suite}.toml", f"--openclaw-models={','.join(labels)}"])
        yield 50, SummaryFinding(label="more prompts", text=f"pytest-openclaw init --suite {suite}")
        yield 50, SummaryFinding(label="more prompts", text=f"pytest {asked}")


def _of_cost(summary: Summary) -> Iterator[tuple[int, SummaryFinding]]:
    if budget := summary.budget:
        spent = f"{render_usd(budget.spent_usd)} of {render_usd(budget.budget_usd)} spent by this session"
        n = budget.n_not_asked
        text = f"{spent}; {counted(n, 'cell')} not asked" if n else spent
        yield 0, SummaryFinding(label="budget", text=text)
    if charged := [group for group in summary.groups if group.cost_usd]:
        total = render_usd(sum(group.cost_usd or 0.0 for group in charged))
        whose = charged[0].target.label if len(charged) == 1 else f"{len(charged)} targets"
        yield 40, SummaryFinding(label="cost", text=f"{total}, {whose}")


def notes_on(group: Group) -> list[tuple[str, str]]:
    """Return labels and texts about a target, the most urgent first."""
    found = [*_notes(group), *(note for of_part in called("notes") for note in of_part(group))]
    return [(label, text) for _, label, text in sorted(found, key=lambda note: note[0]) if text]


def _notes(group: Group) -> Iterator[tuple[int, str, str]]:
    use, found = group.tool_use, group.recommendation
    if found.needs and found.kind != "not_enough_evidence":  # else the sentence says it
        yield 10, "to improve it", f"{' and '.join(need.text for need in found.needs)}, without a miss"
    if use.capped_by:
        needless = f"{use.needless.n_success} of {use.restraint.n} cells that forbid tools"
        yield 30, "not tier 1", f"it called needlessly in {needless}, more than a fifth"
    if use.evidence == "text" and use.tier is not None:
        n = group.n_native_unanswered
        unanswered = f"; {counted(n, 'native cell')} had no answer" if n else ""
        text = f"the tier rests on calls found in texts, which OpenClaw does not run{unanswered}"
        yield 40, "text alone", text
    if outcome := most_frequent_miss(use):
        total = use.restraint.n if outcome == "called_needlessly" else use.n
        cells = f"{use.outcomes[outcome]} of {counted(total, 'cell')}"
        advice = (advise(group, outcome) for advise in called("advise"))
        yield 50, outcome, "; ".join([cells, *filter(None, advice)])
    if use.n_leaked:
        chooses = 100 * use.n_leaked_valid >= CHOOSES_WELL * use.n_leaked
        who = "the model chooses tools well; the server" if chooses else "the server"
        leaked = leaked_in_words(use.n_leaked_valid, use.n_leaked)
        yield 70, "written calls", f"{leaked}: {who} does not read its calls"
    if group.effective_models:
        yield 120, "answered by", f"{', '.join(group.effective_models)} instead of it"
    if group.n_ok:
        reasons = {
            failure: group.reasons.get(failure, failure.replace("_", " ")) for failure in group.failures
        }
        lost = (f"{counted(group.failures[one], 'cell')}: {reason}" for one, reason in reasons.items())
        yield 130, "not answered", "; ".join(lost)


def render_best(best: Best, compared: str = POSSIBLE) -> str:
    """Return a sentence on the targets that may be the best, and on the target to choose."""
    *others, last = best.targets
    n_worse = best.n_targets - len(best.targets)
    which = f"other target {compared} is" if n_worse == 1 else f"{n_worse} other targets {compared} are"
    worse = f"; the {which} shown to be worse" if n_worse else ""
    if not others:
        return f"{last}{worse}"
    return f"{', '.join(others)} or {last}: too close to tell{worse}; {best.fastest} is the fastest"


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


# --- sections ---------------------------------------------------------------------------------------


def sections_of(summary: Summary) -> list[Section]:
    """Return the sections in their order, empty ones too."""
    why = [
        SummaryFinding(label="", text=reason.text, target=group.target.label)
        for group in summary.groups
        for reason in group.recommendation.reasons
    ]
    missed = [
        SummaryFinding(label=f"{one.prompt_id} {one.prompt_name}", text=one.violation or "no usable answer")
        for one in summary.missed_by_all
        if summary.n_answered
    ]
    found = [
        (10, Section(id="why", title="Why", blocks=[why])),
        *(pair for sections in called("sections") for pair in sections(summary)),
        *(
            (rank, listing.section(summary.groups))
            for listings in (LISTINGS, *(part.listings for part in parts().values()))
            for rank, listing in listings.items()
        ),
        (90, Section(id="missed", title="Missed by all targets", blocks=[missed], is_in_comment=True)),
        *((100, _added(part)) for part in summary.added),
    ]
    return [section for _, section in sorted(found, key=lambda pair: pair[0])]


def _added(part: SummaryPart) -> Section:
    tables = [Table(head=one.head, rows=one.rows, caption=one.caption) for one in part.tables]
    if not tables:  # a section needs more than its intro
        return Section(id=part.name, title=part.title, blocks=[part.intro])
    return Section(id=part.name, title=part.title, intro=part.intro, blocks=tables)


# --- tables of targets ------------------------------------------------------------------------------


class Listing(NamedTuple):
    """A section with a table, whose first column is the target.

    Attributes:
        entries: the values of a group that have a row each.
        columns: the other columns, each with the text of a value's cell.
        words: names of columns that are aligned on the left.
    """

    id: str
    title: str
    intro: str
    entries: Callable[[Any], Iterable[Any]]
    columns: Mapping[str, Callable[[Any], str]]
    words: Sequence[str] = ()

    def section(self, groups: Sequence[Group]) -> Section:
        """Return the section, without the counts of outcomes that no target has."""
        rows = [(group.target.label, entry) for group in groups for entry in self.entries(group)]
        unseen = set(OUTCOMES).difference(*(group.tool_use.outcomes for group in groups))
        columns = {head: cell for head, cell in self.columns.items() if head not in unseen}
        table = Table(
            head=("target", *columns),
            rows=[[label, *(cell(entry) for cell in columns.values())] for label, entry in rows],
            words=self.words,
            caption=self.title,
        )
        return Section(id=self.id, title=self.title, intro=self.intro, blocks=[table])


def _uses(group: Group) -> list[Any]:
    return [group.tool_use] if group.tool_use.outcomes else []


def _figure(name: str) -> Callable[[Any], str]:
    return lambda figures: full(figures[name])


def _count(outcome: ToolOutcome) -> Callable[[Any], str]:
    return lambda use: str(use.outcomes.get(outcome, 0))


LISTINGS = {
    30: Listing(
        "times",
        "How long it took",
        "Successful cells. A figure is followed by its 95 % interval; ? where there are too few cells.",
        lambda group: [figures_of(group)] if group.latency_ms.get("p50") is not None else [],
        {name: _figure(name) for name in ("p50", "p95", "p99", "TTFT", "tok/s")},
    ),
    50: Listing(
        "tiers",
        "Tiers",
        "A tier with ? is not conclusive: its 95 % interval, for all targets and looks together, does not "
        "lie inside it. Held back: cells that forbid tools and had no call.",
        _uses,
        {
            "evidence": lambda use: use.evidence or DASH,
            "tier": lambda use: render_tier(use.tier, use.conclusive),
            "name": lambda use: TIER_NAMES.get(use.tier, DASH),
            "right": lambda use: render_share(use.n_success, use.n),
            "95 %": lambda use: render_interval(use.tier_interval),
            "held back": lambda use: render_share(use.restraint.n_success, use.restraint.n),
        },
        words=("evidence", "tier", "name"),
    ),
    60: Listing(
        "outcomes",
        "How tool use ended",
        "",
        _uses,
        {
            "evidence": lambda use: use.evidence or DASH,
            **{one: _count(one) for one in OUTCOMES},
        },
        words=("evidence",),
    ),
}
