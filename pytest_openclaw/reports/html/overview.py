"""Which model may hold the tools, and what else is notable."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pytest_openclaw.core.text import first_few
from pytest_openclaw.reports.html import charts
from pytest_openclaw.reports.html.pieces import PageAnswer, Section, Table, named
from pytest_openclaw.reports.numbers import (
    DASH,
    LONGEST_SENTENCE,
    one_line,
    render_interval,
    render_ms,
)
from pytest_openclaw.reports.target_view import view_of
from pytest_openclaw.reports.tool_use_text import render_further
from pytest_openclaw.stats.tiers import TIER_FLOORS

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pytest_openclaw.stats.groups import Group
    from pytest_openclaw.stats.rates import Rate
    from pytest_openclaw.stats.summary import Summary


_TIERS = {1: "tool-capable", 2: "inconsistent", 3: "tool-incapable"}
_MOST_MISSED = 40


def targets_section(summary: Summary) -> Section:
    """Return what the run says of each target, then tiers, rates and times."""
    groups = summary.groups
    head = (
        "target", "tier", "evidence", "passed", "rate", "95 %", "tool use", "95 %", "p50", "p95", "TTFT p50",
        "tok/s", "tokens in", "out", "cost",
    )  # fmt: skip
    with_tools = [_point(group, group.tool_use) for group in groups if group.tool_use.n]
    passed = [_point(group, group.passed) for group in groups if group.passed.n]
    drawn = (
        [charts.rates("Right tool calls, and where the tiers begin", with_tools, _ZONES)]
        if with_tools
        else [charts.rates("Passed", passed)]
        if passed
        else []
    )
    return Section(
        id="targets",
        title="Which model may hold the tools?",
        answers=[_answer(group) for group in groups],
        charts=drawn,
        tables=[
            Table(caption="Targets", head=head, rows=[_target_row(group) for group in groups], n_words=3)
        ],
        notes=[
            ("?", "A tier is conclusive only if its whole 95 % interval lies inside it."),
            ("95 %", "Below a time and a speed is its interval, or “?” where there are too few cells."),
        ],
    )


_ZONES = [
    charts.Zone("Tier 3", 0.0, TIER_FLOORS[2]),
    charts.Zone("Tier 2", TIER_FLOORS[2], TIER_FLOORS[1]),
    charts.Zone("Tier 1", TIER_FLOORS[1], 1.0),
]


def _answer(group: Group) -> PageAnswer:
    found, use = group.recommendation, group.tool_use
    further = render_further(found)
    return PageAnswer(
        target=named(group.target),
        kind=found.kind,
        sentence=one_line(found.sentence, LONGEST_SENTENCE),
        tier=f"Tier {use.tier}, {'' if use.conclusive else 'not '}conclusive" if use.tier else "",
        further=f"To improve it: {one_line(further, LONGEST_SENTENCE)}." if further else "",
    )


def _point(group: Group, rate: Rate) -> charts.ChartPoint:
    shown = f"{rate.n_success} of {rate.n}, {render_interval(rate.interval_95)}"
    return charts.point(named(group.target), rate.rate or 0.0, rate.interval_95, shown)


def _target_row(group: Group) -> list[str]:
    use, view = group.tool_use, view_of(group)
    return [
        named(group.target),
        f"{view.tier} {_TIERS[use.tier]}" if use.tier else DASH,
        use.evidence or DASH,
        view.passed,
        view.pass_rate,
        view.passed_interval,
        view.tool_use,
        view.tool_use_interval,
        *(view.figures[name].full.replace(" (", "\n(") for name in ("p50", "p95", "TTFT", "tok/s")),
        _thousands(group.input_tokens),
        _thousands(group.output_tokens),
        view.cost,
    ]


def findings_section(summary: Summary) -> Section:
    """Return the most useful things to know."""
    notes = [
        (gate.ruling.replace("_", " "), f"{gate.asked}, {gate.target}: {gate.reason}")
        for gate in summary.gates
    ]
    for group in summary.groups:
        notes += _of_group(group)
    if summary.missed and summary.n_answered:
        names = first_few([missed.prompt_id for missed in summary.missed], _MOST_MISSED)
        by = "missed by all" if len(summary.groups) > 1 else "missed"
        notes.append((by, f"{len(summary.missed)} prompts: {names}"))
    if row := summary.slowest:
        notes.append(
            ("slowest", f"{row.prompt_id} {row.prompt_name}: {render_ms(row.e2e_ms)} on {row.target.label}")
        )
    return Section(
        id="findings", title="Findings", notes=[(word, one_line(text, 600)) for word, text in notes]
    )


def _of_group(group: Group) -> Iterator[tuple[str, str]]:
    label, view = group.target.label, view_of(group)
    notes = {**view.notes, "answered by": ", ".join(group.effective_models)}
    for word in (
        "not tier 1",
        "not conclusive",
        "text alone",
        "written calls",
        "context",
        "over-refusal",
        "answered by",
    ):
        if said := notes.get(word):
            yield word, f"{label}: {said}"
    if miss := view.miss:
        yield miss.outcome, f"{label}: {miss.how_often}. {miss.advice.capitalize()}"


def _thousands(value: int | None) -> str:
    return DASH if value is None else f"{value:,}"
