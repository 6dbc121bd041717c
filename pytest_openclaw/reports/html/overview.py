"""Which model may hold the tools, and what else stands out."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pytest_openclaw.reports.html import charts
from pytest_openclaw.reports.html.words import Section, Table, named
from pytest_openclaw.reports.money import render_usd
from pytest_openclaw.reports.numbers import (
    DASH,
    one_line,
    render_count,
    render_interval,
    render_ms,
    render_rate,
    render_tier,
    render_with_interval,
)
from pytest_openclaw.reports.tool_use import (
    render_cap,
    render_early_stopping,
    render_from_text,
    render_miss,
    render_strain,
    render_unsafe,
)
from pytest_openclaw.stats.advice import advice_on
from pytest_openclaw.stats.findings import most_frequent_miss
from pytest_openclaw.stats.tiers import TIER_FLOORS

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from pytest_openclaw.core.json_types import JsonObject
    from pytest_openclaw.stats.groups import Group
    from pytest_openclaw.stats.intervals import Interval
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
        "Below a time and a speed stands its 95 % interval, or “?” where too few cells tell one.",
        charts=drawn,
        tables=[
            Table(caption="Targets", head=head, rows=[_target_row(group) for group in groups], n_words=3)
        ],
    )


def _rate_row(group: Group, rate: Rate) -> JsonObject:
    interval = rate.interval_95
    told = f"{rate.n_success} of {rate.n}, {render_interval(interval)}"
    bounds = (
        {"low": interval.low, "high": interval.high} if interval else {"low": rate.rate, "high": rate.rate}
    )
    return {"target": named(group.target), "rate": rate.rate, **bounds, "told": told}


def _target_row(group: Group) -> list[str]:
    use, passed = group.tool_use, group.passed
    return [
        named(group.target),
        f"{render_tier(use.tier, use.conclusive)} {_TIERS[use.tier]}" if use.tier else DASH,
        use.evidence or DASH,
        f"{passed.n_success}/{passed.n}" if passed.n else DASH,
        render_rate(passed.rate),
        render_interval(passed.interval_95),
        f"{use.n_success}/{use.n}" if use.n else DASH,
        render_interval(use.interval_95),
        _above_interval(group.latency_ms["p50"], group.latency_intervals_95["p50"], render_ms),
        _above_interval(group.latency_ms["p95"], group.latency_intervals_95["p95"], render_ms),
        _above_interval(group.ttft_ms["p50"], group.ttft_intervals_95["p50"], render_ms),
        _above_interval(group.tokens_per_s, group.tokens_per_s_interval_95, render_count),
        _thousands(group.input_tokens),
        _thousands(group.output_tokens),
        render_usd(group.cost_usd),
    ]


def _above_interval(
    value: float | None, interval: Interval | None, render: Callable[[float | None], str]
) -> str:
    return render_with_interval(value, interval, render).replace(" (", "\n(")


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
        id="findings", title="What stands out", notes=[(word, one_line(text, 600)) for word, text in notes]
    )


def _of_group(group: Group) -> Iterator[tuple[str, str]]:
    use, label = group.tool_use, group.target.label
    for word, said in (
        ("not tier 1", render_cap(use)),
        ("not conclusive", render_early_stopping(use, f"tier {use.tier}")),
        ("text alone", render_from_text(group)),
        ("context", render_strain(group)),
        ("unsafe", render_unsafe(group)),
        ("answered by", ", ".join(group.effective_models)),
    ):
        if said:
            yield word, f"{label}: {said}"
    if outcome := most_frequent_miss(use):
        advice = advice_on(outcome, use.evidence)
        yield outcome, f"{label}: {render_miss(use, outcome)}. {advice.short.capitalize() if advice else ''}"


def _thousands(value: int | None) -> str:
    return DASH if value is None else f"{value:,}"
