"""Which model may hold the tools, and what else is notable."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pytest_openclaw.reports.html import charts
from pytest_openclaw.reports.html.pieces import Section, Table, named
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

    from pytest_openclaw.core.json_types import JsonObject
    from pytest_openclaw.stats.groups import Group
    from pytest_openclaw.stats.rates import Rate
    from pytest_openclaw.stats.summary import Summary


_TIERS = {1: "tool-capable", 2: "inconsistent", 3: "tool-incapable"}
_MOST_MISSED = 40


def targets_section(summary: Summary) -> Section:
    """Return tiers, rates and times of each target."""
    groups = summary.groups
    head = (
        "target", "tier", "evidence", "passed", "rate", "95 %", "tool use", "95 %", "p50", "p95", "TTFT p50",
        "tok/s", "tokens in", "out", "cost",
    )  # fmt: skip
    drawn = [
        charts.rates(title, rows, marks=marks)
        for title, rows, marks in (
            ("Passed", [_rate_row(group, group.passed) for group in groups if group.passed.n], ()),
            (
                "Tool use, with the floors of tier 2 and tier 1",
                [_rate_row(group, group.tool_use) for group in groups if group.tool_use.n],
                (TIER_FLOORS[2], TIER_FLOORS[1]),
            ),
        )
        if rows
    ]
    return Section(
        id="targets",
        title="Which model may hold the tools?",
        intro="A tier is settled only if its whole 95 % interval lies inside it; “?” says that it is not. "
        "Below a time and a speed is its 95 % interval, or “?” where there are too few cells.",
        notes=[note for group in groups for note in _recommended(group)],
        charts=drawn,
        tables=[
            Table(caption="Targets", head=head, rows=[_target_row(group) for group in groups], n_words=3)
        ],
    )


def _recommended(group: Group) -> Iterator[tuple[str, str]]:
    yield named(group.target), one_line(group.recommendation.sentence, LONGEST_SENTENCE)
    if further := render_further(group.recommendation):
        yield named(group.target), f"To improve it: {one_line(further, LONGEST_SENTENCE)}."


def _rate_row(group: Group, rate: Rate) -> JsonObject:
    interval = rate.interval_95
    shown_text = f"{rate.n_success} of {rate.n}, {render_interval(interval)}"
    bounds = (
        {"low": interval.low, "high": interval.high} if interval else {"low": rate.rate, "high": rate.rate}
    )
    return {"target": named(group.target), "rate": rate.rate, **bounds, "shown": shown_text}


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


def findings_section(summary: Summary) -> Section | None:
    """Return the most useful things to know; None without any."""
    notes = [
        (gate.ruling.replace("_", " "), f"{gate.asked}, {gate.target}: {gate.reason}")
        for gate in summary.gates
    ]
    for group in summary.groups:
        notes += _of_group(group)
    if summary.missed and summary.n_answered:
        names = ", ".join(missed.prompt_id for missed in summary.missed[:_MOST_MISSED])
        more = len(summary.missed) - _MOST_MISSED
        by = "missed by all" if len(summary.groups) > 1 else "missed"
        notes.append((by, f"{len(summary.missed)} prompts: {names}{f' and {more} more' if more > 0 else ''}"))
    if row := summary.slowest:
        notes.append(
            ("slowest", f"{row.prompt_id} {row.prompt_name}: {render_ms(row.e2e_ms)} on {row.target.label}")
        )
    if not notes:
        return None
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
