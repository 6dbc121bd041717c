"""How tool use ended, how much pressure it withstands, and how safe it is."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pytest_openclaw.reports.html import charts
from pytest_openclaw.reports.html.pieces import Section, Table, named
from pytest_openclaw.reports.numbers import render_interval, render_rate, render_tokens
from pytest_openclaw.reports.tool_use_text import (
    PRESSURE_HEAD,
    outcome_advice,
    outcome_rows,
    outcomes_in,
    pressure_rows,
    render_strain,
    uses_of,
)
from pytest_openclaw.stats.tool_use import GOOD_OUTCOMES

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pytest_openclaw.core.json_types import JsonObject
    from pytest_openclaw.stats.groups import Group
    from pytest_openclaw.stats.pressure import PressureLevel
    from pytest_openclaw.stats.safety import OverRefusal


def outcomes_section(groups: Sequence[Group]) -> Section | None:
    """Return how tool cells ended, and what to change; None without tool cells."""
    uses = uses_of(groups)
    if not (occurred := outcomes_in(uses)):
        return None
    drawn = []
    for evidence, words in (("native", "Calls on the wire"), ("text", "Calls as text")):
        held = [
            {
                "target": named(target),
                "column": outcome,
                "shown": str(use.outcomes.get(outcome, 0)),
                "share": use.outcomes.get(outcome, 0) / sum(use.outcomes.values()),
                "is_good": outcome in GOOD_OUTCOMES,
            }
            for target, use in uses
            if use.evidence == evidence
            for outcome in occurred
        ]
        if held:
            drawn.append(charts.shares(words, held, occurred, "cells"))
    rows = [[named(target), *texts] for target, texts in outcome_rows(uses)]
    return Section(
        id="outcomes",
        title="How tool use ended",
        intro="Of each target the cells that ended so; the fuller a field, the larger its share.",
        charts=drawn,
        notes=[(f"{outcome}{how}", advice) for outcome, how, advice in outcome_advice(uses)],
        more=[Table(caption="All outcomes", head=("target", "evidence", *occurred), rows=rows, n_words=2)],
    )


def pressure_section(groups: Sequence[Group]) -> Section | None:
    """Return the rates behind more tools and more text; None if nothing was made harder."""
    levels = [(group, level) for group in groups for level in group.pressure]
    if not levels:
        return None
    tools = [
        _curve_row(group, level, level.tools_offered or 0, str(level.tools_offered or 0))
        for group, level in levels
        if not level.padding_tokens
    ]
    text = [
        _curve_row(group, level, level.padding_tokens, render_tokens(level.padding_tokens))
        for group, level in levels
        if level.padding_tokens
    ]
    padded = {level.tools_offered for _, level in levels if level.padding_tokens}
    text += [
        _curve_row(group, level, 0, "0")
        for group, level in levels
        if not level.padding_tokens and level.tools_offered in padded
    ]
    drawn = [
        charts.curves(title, [row for row in rows if row], axis)
        for title, rows, axis in (
            ("Right behind more tools", tools, "tools offered"),
            ("Right behind more text", text, "tokens before the question"),
        )
        if len({row["label"] for row in rows if row}) > 1
    ]
    rows = [[named(target), *texts] for target, texts in pressure_rows(groups)]
    said = [(named(group.target), strain) for group in groups if (strain := render_strain(group))]
    return Section(
        id="pressure",
        title="Where context pressure breaks it",
        charts=drawn,
        notes=said,
        more=[Table(caption="All levels of pressure", head=("target", *PRESSURE_HEAD), rows=rows)],
    )


def _curve_row(group: Group, level: PressureLevel, load: int, label: str) -> JsonObject | None:
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
        "shown": f"{level.n_success} of {level.n}, {render_interval(interval)}",
    }


def safety_section(groups: Sequence[Group]) -> Section | None:
    """Return the probes; None without any."""
    results = [(group, result) for group in groups for result in group.safety]
    twins = [[named(group.target), *_twins(found)] for group in groups if (found := group.over_refusal)]
    if not results and not twins:
        return None
    held = [
        {
            "target": named(group.target),
            "column": result.probe,
            "shown": f"{result.n_safe}/{result.n}",
            "share": result.n_unsafe / result.n if result.n_unsafe else 1.0,
            "is_good": not result.n_unsafe,
        }
        for group, result in results
    ]
    probes = list(dict.fromkeys(result.probe for _, result in results))
    rows = [
        [
            named(group.target),
            result.probe,
            f"{result.n_safe}/{result.n}",
            render_rate(result.rate),
            render_interval(result.interval_95),
            f"{result.n_done}/{result.n}",
        ]
        for group, result in results
    ]
    tables = [
        Table(
            caption="All probes",
            head=("target", "probe", "safe", "rate", "95 %", "and done"),
            rows=rows,
            n_words=2,
        ),
        Table(
            caption="Over-refusal: harmless twins of the probes",
            head=("target", "not done", "rate", "95 %"),
            rows=twins,
        ),
    ]
    return Section(
        id="safety",
        title="Safety probes",
        intro="Safe of all that were judged. Where some were not, the fill is the share that was unsafe.",
        charts=[charts.shares("Probes", held, probes, "safe")] if held else [],
        more=[table for table in tables if table.rows],
    )


def _twins(found: OverRefusal) -> list[str]:
    return [f"{found.n_not_done}/{found.n}", render_rate(found.rate), render_interval(found.interval_95)]
