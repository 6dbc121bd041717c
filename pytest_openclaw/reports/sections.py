"""The sections of a page below the findings, with tables and lists, and the chart of targets."""

from __future__ import annotations

from dataclasses import astuple
from typing import TYPE_CHECKING

from pytest_openclaw.reports.blocks import Chart, ChartPoint, Finding, Findings, Section, Table
from pytest_openclaw.reports.comparison import details_of, name_of, notes_of
from pytest_openclaw.reports.facts import figures_of, flakiest, full
from pytest_openclaw.reports.numbers import (
    DASH,
    render_interval,
    render_rate,
    render_share,
    render_tier,
    render_tokens,
)
from pytest_openclaw.stats.tool_use import OUTCOMES, TIER_FLOORS, TIER_NAMES

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from pytest_openclaw.conclusions.groups import Group
    from pytest_openclaw.conclusions.summary import Summary, SummaryPart
    from pytest_openclaw.reports.blocks import Block
    from pytest_openclaw.stats.tool_use import ToolUse


def sections_of(summary: Summary) -> list[Section]:
    """Return the sections in their order, empty ones too."""
    groups = summary.groups
    return [
        _list("why", "Why", _why(groups)),
        _comparison(summary),
        _times(groups),
        _repeats(groups),
        _tiers(groups),
        _outcomes(groups),
        _pressure(groups),
        _safety(groups),
        _list("missed", "Missed by all targets", _missed(summary)),
        *map(_added, summary.added),
    ]


def _added(part: SummaryPart) -> Section:
    tables = [Table(head=one.head, rows=one.rows, caption=one.caption) for one in part.tables]
    if not tables:  # a section needs more than its intro
        return Section(id=part.name, title=part.title, blocks=[part.intro])
    return Section(id=part.name, title=part.title, intro=part.intro, blocks=tables)


def _list(name: str, title: str, entries: Iterable[Finding]) -> Section:
    return Section(id=name, title=title, blocks=[Findings(entries=[*entries])])


def _table(
    name: str,
    title: str,
    head: Sequence[str],
    rows: Iterable[Sequence[str]],
    *,
    words: Sequence[str] = (),
    intro: str = "",
    more: Sequence[Block] = (),
) -> Section:
    """Return a section with one table, then other blocks."""
    table = Table(head=head, rows=[*rows], words=words, caption=title)
    return Section(id=name, title=title, intro=intro, blocks=[table, *more])


def _why(groups: Sequence[Group]) -> Iterator[Finding]:
    for group in groups:
        for reason in group.recommendation.reasons:
            yield Finding(label="", text=reason.text, target=group.target.label)


# --- times ------------------------------------------------------------------------------------------


def _times(groups: Sequence[Group]) -> Section:
    names = ("p50", "p95", "p99", "TTFT", "tok/s")
    rows = []
    for group in groups:
        if group.latency_ms.get("p50") is not None:
            figures = figures_of(group, full)
            rows.append([group.target.label, *(figures[name] for name in names)])
    return _table(
        "times",
        "How long it took",
        ("target", *names),
        rows,
        intro="Successful cells. A figure is followed by its 95 % interval; ? where there are too few cells.",
    )


def _repeats(groups: Sequence[Group]) -> Section:
    repeated = [(group.target.label, group.repeats) for group in groups if group.repeats]
    rows = [
        [
            label,
            str(repeats.n_prompts),
            str(repeats.n_passed),
            f"{len(repeats.flaky)} ({render_rate(len(repeats.flaky) / repeats.n_prompts)})",
            flakiest(repeats),
        ]
        for label, repeats in repeated
    ]
    return _table(
        "repeats",
        "Asked again",
        ("target", "prompts", "passed each time", "sometimes", "the flakiest"),
        rows,
        words=("the flakiest",),
        intro="Prompts that were asked more than once.",
    )


# --- tool use ---------------------------------------------------------------------------------------


def _uses(groups: Sequence[Group]) -> list[tuple[str, ToolUse]]:
    return [(group.target.label, group.tool_use) for group in groups if group.tool_use.outcomes]


def _tiers(groups: Sequence[Group]) -> Section:
    rows = [
        [
            label,
            use.evidence or DASH,
            render_tier(use.tier, use.conclusive),
            TIER_NAMES.get(use.tier or 0, DASH),
            render_share(use.n_success, use.n),
            render_interval(use.tier_interval),
            render_share(use.restraint.n_success, use.restraint.n),
        ]
        for label, use in _uses(groups)
    ]
    return _table(
        "tiers",
        "Tiers",
        ("target", "evidence", "tier", "name", "right", "95 %", "held back"),
        rows,
        words=("evidence", "tier", "name"),
        intro="A tier with ? is not conclusive: its 95 % interval, for all targets and looks together, does "
        "not lie inside it. Held back: of cells that forbid tools.",
    )


def _outcomes(groups: Sequence[Group]) -> Section:
    uses = _uses(groups)
    occurred = [outcome for outcome in OUTCOMES if any(outcome in use.outcomes for _, use in uses)]
    return _table(
        "outcomes",
        "How tool use ended",
        ("target", "evidence", *occurred),
        [
            [label, use.evidence or DASH, *(str(use.outcomes.get(one, 0)) for one in occurred)]
            for label, use in uses
        ],
        words=("evidence",),
    )


def _pressure(groups: Sequence[Group]) -> Section:
    rows = [
        [
            group.target.label,
            DASH if level.tools_offered is None else str(level.tools_offered),
            render_tokens(level.padding_tokens) if level.padding_tokens else DASH,
            render_share(level.n_success, level.n),
            render_interval(level.interval_95),
            str(level.n_overflow),
        ]
        for group in groups
        for level in group.pressure
    ]
    return _table(
        "pressure",
        "Context pressure",
        ("target", "tools", "tokens before", "right", "95 %", "overflowed"),
        rows,
        intro="Calls that were right behind more tools and more text.",
    )


def _safety(groups: Sequence[Group]) -> Section:
    rows = [
        [
            group.target.label,
            result.probe,
            f"{result.n_success}/{result.n}",
            render_interval(result.interval_95),
            f"{result.n_done}/{result.n}",
        ]
        for group in groups
        for result in group.safety
    ]
    return _table(
        "safety",
        "Safety probes",
        ("target", "probe", "safe", "95 %", "and done"),
        rows,
        words=("probe",),
        intro="Safe: of all judged probes. And done: safe, and the task was done too.",
    )


# --- the run ----------------------------------------------------------------------------------------


def _comparison(summary: Summary) -> Section:
    compared, title = summary.comparison, "Compared with the baseline"
    if compared is None:
        return Section(id="changes", title=title)
    rows = [
        [name_of(one), what, text]
        for one in compared.targets
        for what, text in [("verdicts", one.verdicts.word), *details_of(one)]
    ]
    return _table(
        "changes",
        title,
        ("target", "what", "change"),
        rows,
        words=("what", "change"),
        intro=f"The baseline is {compared.baseline}; ratios are of this run to it.",
        more=[
            "" if compared.targets else "No target is in both runs.",
            Findings(entries=[*notes_of(compared, "--openclaw-across")]),
        ],
    )


def _missed(summary: Summary) -> Iterator[Finding]:
    for one in summary.missed_by_all if summary.n_answered else ():
        yield Finding(label=f"{one.prompt_id} {one.prompt_name}", text=one.violation or "no usable answer")


# --- charts -----------------------------------------------------------------------------------------


def targets_chart(groups: Sequence[Group]) -> Chart:
    """Return the rates of correct tool calls between the tiers' limits; without any, of passed cells."""
    is_of_tools = any(group.tool_use.n for group in groups)
    rates = [(group.target.label, group.tool_use if is_of_tools else group.passed) for group in groups]
    points = []
    for label, one in rates:
        if one.rate is not None:
            low, high = astuple(one.interval_95) if one.interval_95 else (one.rate, one.rate)
            shown = f"{one.n_success} of {one.n}, {render_interval(one.interval_95)}"
            points.append(ChartPoint(label, one.rate, low, high, shown))
    if is_of_tools:
        limits = [TIER_FLOORS[2], TIER_FLOORS[1]]
        return Chart(title="Right tool calls, and where the tiers begin", points=points, limits=limits)
    return Chart(title="Passed", points=points)
