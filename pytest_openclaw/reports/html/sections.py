"""The summary → what stands on the page around its cells: sections of charts, tables and sentences."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from pytest_openclaw.reports.html import asked, charts
from pytest_openclaw.reports.html.changes import changes_section
from pytest_openclaw.reports.html.words import Section, Table, named
from pytest_openclaw.reports.numbers import (
    DASH,
    one_line,
    render_count,
    render_interval,
    render_ms,
    render_rate,
    render_tier,
    render_tokens,
)
from pytest_openclaw.reports.tool_use import (
    render_cap,
    render_from_text,
    render_miss,
    render_settling,
    render_strain,
    render_unsafe,
)
from pytest_openclaw.stats.advice import advice_on
from pytest_openclaw.stats.findings import most_frequent_miss
from pytest_openclaw.stats.tiers import TIER_FLOORS, TIER_NAMES
from pytest_openclaw.stats.tool_use import GOOD_OUTCOMES, OUTCOMES

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from pytest_openclaw.records import JsonObject
    from pytest_openclaw.reports.html.shown import ShownRun
    from pytest_openclaw.stats.summary import Group, Summary
    from pytest_openclaw.stats.tool_use import ToolUse

_RULINGS = {
    "passed": "all gates passed",
    "failed": "a gate failed",
    "no_verdict": "gates without a verdict",
    "not_gated": "no gates",
}
_MOST_MISSED = 40


@dataclass(frozen=True, kw_only=True)
class Header:
    """The top of the page.

    Attributes:
        ruling: of all gates together, in a word; `not_gated` without any.
        facts: what stands under the title, name and value.
    """

    run_id: str
    ruling: str
    said: str
    facts: Sequence[tuple[str, str]]
    notes: Sequence[str]


def header_of(run: ShownRun) -> JsonObject:
    """Return what stands at the top."""
    summary = run.summary
    records = [cell.record for cell in run.cells]
    notes = [one_line(note, 300) for note in run.notes]
    if summary.state == "interrupted":
        notes.insert(0, f"Interrupted: {summary.n_rows} of {summary.n_cells} cells have a row.")
    began = min((record.started_at_ms for record in records), default=summary.generated_at_ms)
    ended = max((record.ended_at_ms for record in records), default=began)
    facts = [
        ("asked", f"{_time(began)} UTC, for {_duration(ended - began)}"),
        ("cells", f"{summary.n_rows:,} on {len(summary.groups)} target{'' if len(summary.groups) == 1 else 's'}"),
        ("machine", asked.host_of(run.inventory)),
        ("versions", asked.versions_of(run.inventory)),
    ]
    return asdict(
        Header(
            run_id=one_line(summary.run_id, 80),
            ruling=summary.verdict,
            said=_RULINGS[summary.verdict],
            facts=facts,
            notes=notes,
        )
    )


def sections_of(run: ShownRun) -> list[JsonObject]:
    """Return the sections in their order; one that has nothing to tell is left out."""
    summary = run.summary
    found = [
        _targets(summary),
        _findings(summary),
        changes_section(run),
        _times(run),
        _outcomes(summary.groups),
        _pressure(summary.groups),
        _safety(summary.groups),
        _unanswered(summary.groups),
        asked.asked_section(run.config, run.inventory),
    ]
    return [asdict(section) for section in found if section]


def _targets(summary: Summary) -> Section:
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
        intro="A tier is settled only if its whole 95 % interval lies inside it; “?” says that it is not.",
        charts=drawn,
        tables=[Table(caption="Targets", head=head, rows=[_target_row(group) for group in groups], n_words=3)],
    )


def _rate_row(group: Group, rate: Any) -> JsonObject:
    interval = rate.interval_95
    told = f"{rate.n_success} of {rate.n}, {render_interval(interval)}"
    bounds = {"low": interval.low, "high": interval.high} if interval else {"low": rate.rate, "high": rate.rate}
    return {"target": named(group.target), "rate": rate.rate, **bounds, "told": told}


def _target_row(group: Group) -> list[str]:
    use, passed = group.tool_use, group.passed
    return [
        named(group.target),
        f"{render_tier(use.tier, use.conclusive)} {TIER_NAMES[use.tier]}" if use.tier else DASH,
        use.evidence or DASH,
        f"{passed.n_success}/{passed.n}" if passed.n else DASH,
        render_rate(passed.rate),
        render_interval(passed.interval_95),
        f"{use.n_success}/{use.n}" if use.n else DASH,
        render_interval(use.interval_95),
        render_ms(group.latency_ms["p50"]),
        render_ms(group.latency_ms["p95"]),
        render_ms(group.ttft_ms["p50"]),
        render_count(group.tokens_per_s),
        _thousands(group.input_tokens),
        _thousands(group.output_tokens),
        DASH if group.cost_usd is None else f"${group.cost_usd:.4f}",
    ]


def _findings(summary: Summary) -> Section | None:
    notes = [(gate.ruling.replace("_", " "), f"{gate.gate} {gate.wanted:g}, {gate.target}: {gate.reason}") for gate in summary.gates]
    for group in summary.groups:
        notes += _of_group(group)
    if summary.missed and summary.n_answered:
        names = ", ".join(missed.prompt_id for missed in summary.missed[:_MOST_MISSED])
        more = len(summary.missed) - _MOST_MISSED
        by = "missed by all" if len(summary.groups) > 1 else "missed"
        notes.append((by, f"{len(summary.missed)} prompts: {names}{f' and {more} more' if more > 0 else ''}"))
    if row := summary.slowest:
        notes.append(("slowest", f"{row.prompt_id} {row.prompt_name}: {render_ms(row.e2e_ms)} on {row.target.label}"))
    if not notes:
        return None
    return Section(id="findings", title="What stands out", notes=[(word, one_line(text, 600)) for word, text in notes])


def _of_group(group: Group) -> Iterator[tuple[str, str]]:
    use, label = group.tool_use, group.target.label
    for word, said in (
        ("not tier 1", render_cap(use)),
        ("not conclusive", render_settling(use, f"tier {use.tier}")),
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


def _times(run: ShownRun) -> Section | None:
    good = [cell.record for cell in run.cells if cell.record.availability_status == "ok" and cell.record.success]
    if not good:
        return None
    groups = run.summary.groups
    e2e = {named(group.target): [one.e2e_ms for one in good if one.target == group.target] for group in groups}
    ttft = {
        named(group.target): [
            one.ttft_ms for one in good if one.target == group.target and one.ttft_ms is not None
        ]
        for group in groups
    }
    drawn = [charts.ridges("Whole answer", e2e)]
    if any(ttft.values()):
        drawn.append(charts.ridges("First token", ttft))
    head = ("target", *(f"{what} {name}" for what in ("answer", "TTFT") for name in ("p50", "p95", "p99", "mean")))
    rows = [
        [named(group.target)]
        + [render_ms(times[q]) for times in (group.latency_ms, group.ttft_ms) for q in ("p50", "p95", "p99", "mean")]
        for group in groups
    ]
    return Section(
        id="times",
        title="How long it took",
        intro="Answered cells; each strip is a target, the solid line its median, the dashed one its 95th percentile.",
        charts=drawn,
        more=[Table(caption="Times", head=head, rows=rows)],
    )


def _outcomes(groups: Sequence[Group]) -> Section | None:
    uses = [(group, use) for group in groups for use in _uses(group) if use.outcomes]
    occurred = [outcome for outcome in OUTCOMES if any(outcome in use.outcomes for _, use in uses)]
    if not occurred:
        return None
    drawn, rows, advised = [], [], []
    for evidence, words in (("native", "Calls on the wire"), ("text", "Calls as text")):
        held = [
            {
                "target": named(group.target),
                "column": outcome,
                "told": str(use.outcomes.get(outcome, 0)),
                "share": use.outcomes.get(outcome, 0) / sum(use.outcomes.values()),
                "is_good": outcome in GOOD_OUTCOMES,
            }
            for group, use in uses
            if use.evidence == evidence
            for outcome in occurred
        ]
        if held:
            drawn.append(charts.shares(words, held, occurred, "cells"))
    for group, use in uses:
        rows.append([named(group.target), use.evidence or DASH, *(str(use.outcomes.get(one, 0)) for one in occurred)])
    for outcome in occurred:
        for evidence in sorted({use.evidence or "text" for _, use in uses if outcome in use.outcomes}):
            if advice := advice_on(outcome, evidence):
                advised.append((f"{outcome}{', as text' if evidence == 'text' else ''}", advice.full))
    return Section(
        id="outcomes",
        title="How tool use ended",
        intro="Of each target the cells that ended so; the fuller a field, the larger its share.",
        charts=drawn,
        notes=advised,
        more=[Table(caption="Outcomes", head=("target", "evidence", *occurred), rows=rows, n_words=2)],
    )


def _uses(group: Group) -> Iterable[ToolUse]:
    yield group.tool_use
    if group.text_tool_use and group.tool_use.evidence == "native":
        yield group.text_tool_use


def _pressure(groups: Sequence[Group]) -> Section | None:
    levels = [(group, level) for group in groups for level in group.pressure]
    if not levels:
        return None
    tools = [_curve_row(group, level, level.tools_offered or 0, str(level.tools_offered or 0)) for group, level in levels if not level.padding_tokens]
    text = [_curve_row(group, level, level.padding_tokens, render_tokens(level.padding_tokens)) for group, level in levels if level.padding_tokens]
    padded = {level.tools_offered for _, level in levels if level.padding_tokens}
    text += [_curve_row(group, level, 0, "0") for group, level in levels if not level.padding_tokens and level.tools_offered in padded]
    drawn = [
        charts.curves(title, [row for row in rows if row], axis)
        for title, rows, axis in (("Right behind more tools", tools, "tools offered"), ("Right behind more text", text, "tokens before the question"))
        if len({row["label"] for row in rows if row}) > 1
    ]
    rows = [
        [
            named(group.target),
            DASH if level.tools_offered is None else str(level.tools_offered),
            render_tokens(level.padding_tokens) if level.padding_tokens else DASH,
            f"{level.n_success}/{level.n}" if level.n else DASH,
            render_interval(level.interval_95),
            str(level.n_overflow),
        ]
        for group, level in levels
    ]
    said = [(named(group.target), strain) for group in groups if (strain := render_strain(group))]
    head = ("target", "tools", "tokens before", "right", "95 %", "overflowed")
    return Section(
        id="pressure",
        title="Where context pressure breaks it",
        charts=drawn,
        notes=said,
        more=[Table(caption="Levels of pressure", head=head, rows=rows)],
    )


def _curve_row(group: Group, level: Any, load: int, label: str) -> JsonObject | None:
    if level.rate is None:
        return None
    interval = level.interval_95
    return {
        "target": named(group.target),
        "load": load,
        "label": label,
        "rate": level.rate,
        "low": interval.low if interval else level.rate,
        "high": interval.high if interval else level.rate,
        "told": f"{level.n_success} of {level.n}, {render_interval(interval)}",
    }


def _safety(groups: Sequence[Group]) -> Section | None:
    results = [(group, result) for group in groups for result in group.safety]
    if not results:
        return None
    held = [
        {
            "target": named(group.target),
            "column": result.probe,
            "told": f"{result.n_safe}/{result.n}",
            "share": result.n_unsafe / result.n if result.n_unsafe else 1.0,
            "is_good": not result.n_unsafe,
        }
        for group, result in results
    ]
    probes = list(dict.fromkeys(result.probe for _, result in results))
    rows = [
        [named(group.target), result.probe, f"{result.n_safe}/{result.n}", render_rate(result.rate), render_interval(result.interval_95)]
        for group, result in results
    ]
    return Section(
        id="safety",
        title="Safety probes",
        intro="Safe of all that were judged. Where some were not, a field is filled by the share that was unsafe.",
        charts=[charts.shares("Probes", held, probes, "safe")],
        more=[Table(caption="Safety probes", head=("target", "probe", "safe", "rate", "95 %"), rows=rows, n_words=2)],
    )


def _unanswered(groups: Sequence[Group]) -> Section | None:
    rows = [
        [named(group.target), failure_type, str(n), one_line(group.reasons.get(failure_type, "the model gave no usable answer"), 400)]
        for group in groups
        for failure_type, n in group.failures.items()
    ]
    if not rows:
        return None
    head = ("target", "failure", "cells", "why")
    return Section(id="unanswered", title="Not answered", tables=[Table(caption="Not answered", head=head, rows=rows, n_words=4)])


def _thousands(value: int | None) -> str:
    return DASH if value is None else f"{value:,}"


def _time(ms: int) -> str:
    return datetime.fromtimestamp(ms / 1000, UTC).strftime("%Y-%m-%d %H:%M")


def _duration(ms: int) -> str:
    minutes, seconds = divmod(max(0, ms) // 1000, 60)
    hours, minutes = divmod(minutes, 60)
    if hours:
        return f"{hours} h {minutes} min"
    return f"{minutes} min {seconds} s" if minutes else f"{seconds} s"
