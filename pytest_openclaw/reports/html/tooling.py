"""How tool use ended, how much pressure it withstands, and how safe it is."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pytest_openclaw.reports.html.pieces import Section, Table, named
from pytest_openclaw.reports.numbers import render_interval, render_ms, render_rate
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

    from pytest_openclaw.stats.groups import Group
    from pytest_openclaw.stats.safety import OverRefusal
    from pytest_openclaw.stats.tool_use import ToolUse
    from pytest_openclaw.types.tool_calls import ToolOutcome


def outcomes_section(groups: Sequence[Group]) -> Section:
    """Return how tool cells ended, and what to change."""
    uses = uses_of(groups)
    occurred = outcomes_in(uses)
    rows = [[named(target), *texts] for target, texts in outcome_rows(uses)]
    fills = [[None, None, *(_fill(use, outcome) for outcome in occurred)] for _, use in uses]
    return Section(
        id="outcomes",
        title="How tool use ended",
        intro="Of each target the cells that ended so; the fuller a field, the larger its share.",
        tables=[
            Table(
                caption="How tool use ended",
                head=("target", "evidence", *(outcome.replace("_", " ") for outcome in occurred)),
                rows=rows,
                n_words=2,
                fills=fills,
            )
        ],
        notes=[(f"{outcome}{how}", advice) for outcome, how, advice in outcome_advice(uses)],
    )


def _fill(use: ToolUse, outcome: ToolOutcome) -> float:
    share = use.outcomes.get(outcome, 0) / sum(use.outcomes.values())
    return share if outcome in GOOD_OUTCOMES else -share


def pressure_section(groups: Sequence[Group]) -> Section:
    """Return the rates behind more tools and more text."""
    rows = [[named(target), *texts] for target, texts in pressure_rows(groups)]
    rates = [level.rate for group in groups for level in group.pressure]
    said = [(named(group.target), strain) for group in groups if (strain := render_strain(group))]
    return Section(
        id="pressure",
        title="Where context pressure breaks it",
        intro="Calls that were right behind more tools and more text.",
        notes=said,
        tables=[
            Table(
                caption="All levels of pressure",
                head=("target", *PRESSURE_HEAD),
                rows=rows,
                fills=[[None, None, None, rate, None, None] for rate in rates],
            )
        ],
    )


def safety_section(groups: Sequence[Group]) -> Section:
    """Return the probes and their harmless twins."""
    results = [(group, result) for group in groups for result in group.safety]
    twins = [[named(group.target), *_twins(found)] for group in groups if (found := group.over_refusal)]
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
            fills=[
                [None, None, -result.n_unsafe / result.n if result.n_unsafe else 1.0, None, None, None]
                for _, result in results
            ],
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
        tables=tables,
    )


def roles_section(groups: Sequence[Group]) -> Section:
    """Return what the targets have shown in the other roles of OpenClaw's config."""
    results = [(group, result) for group in groups for result in group.roles]
    rows = [
        [
            named(group.target),
            result.role,
            result.kind.replace("_", " "),
            f"{result.n_right}/{result.n}",
            render_interval(result.interval_95),
            render_ms(result.p50_ms),
        ]
        for group, result in results
    ]
    return Section(
        id="roles",
        title="Other roles of OpenClaw's config",
        intro="Fit: 80 % of at least 3 prompts are right, and the whole interval is at 50 % or above.",
        tables=[
            Table(
                caption="All roles that were asked about",
                head=("target", "role", "is", "right", "95 %", "p50"),
                rows=rows,
                n_words=3,
                fills=[[None, None, None, result.rate, None, None] for _, result in results],
            )
        ],
    )


def _twins(found: OverRefusal) -> list[str]:
    return [f"{found.n_not_done}/{found.n}", render_rate(found.rate), render_interval(found.interval_95)]
