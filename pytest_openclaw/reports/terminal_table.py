"""The table of targets, as wide as the terminal: where that is narrow, columns are left out by priority."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from pytest_openclaw.reports.columns import LEAST_NAME, labeled, padded, render_targets
from pytest_openclaw.reports.numbers import DASH, columns, lines_of, one_line
from pytest_openclaw.reports.target_view import render_intervals, view_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from pytest_openclaw.stats.groups import Group

TARGET, COST, TOOLS = "target", "USD", "tools"
HEADERS = (TARGET, "passed", "95% CI", "p50", "p95", "TTFT", "tok/s", COST, "tier", TOOLS)
LEFT_OUT_FIRST = ("tok/s", "TTFT", "p95", COST, "p50", "95% CI")
_TIER = re.compile(r"(?<= )([123])(\?)?(?= *(?:\d+/\d+)?$)")
TIER_COLORS = {"1": "green", "2": "yellow", "3": "red"}


def render_table(groups: Sequence[Group], width: int) -> Iterator[str]:
    """Yield the table's head and, for each target, its line and the intervals of its figures.

    Args:
        groups: of the run.
        width: columns of the terminal; no line is wider, if it has 40 or more.
    """
    prefix = _shared_provider(groups)
    names = short_names(groups)
    head = f"{TARGET} {prefix}…" if prefix else TARGET
    answered = [(name, group) for name, group in zip(names, groups, strict=True) if group.n_ok]
    longest = max((columns(name) for name in (*names, head)), default=0)
    if answered:
        costs = any(group.cost_usd for _, group in answered)
        rows = [[head, *HEADERS[1:]], *([name, *_figures(group, costs=costs)] for name, group in answered)]
        first, *lines = render_targets(rows, ("tier",), LEFT_OUT_FIRST, width, longest=longest)
        yield first
        for line, (_, group) in zip(lines, answered, strict=True):
            yield line
            if intervals := render_intervals(group.tool_use.interval_95, view_of(group).figures, width - 2):
                yield f"  {intervals}"
    for name, group in zip(names, groups, strict=True):
        if not group.n_ok:
            yield from _unanswered(name, group, width, min(longest, max(LEAST_NAME, width // 3)))


def tier_in(line: str) -> tuple[str, str, str, str] | None:
    """Return a target's line before its tier, the tier, the rest and its color; None without a tier."""
    if not (found := _TIER.search(line)):
        return None
    return line[: found.start()], found[0], line[found.end() :], TIER_COLORS[found[1]]


def short_names(groups: Sequence[Group]) -> list[str]:
    """Return the targets' names without the provider, if all of several targets have the same."""
    prefix = _shared_provider(groups)
    return [group.target.label.removeprefix(prefix) for group in groups]


def _shared_provider(groups: Sequence[Group]) -> str:
    """Return `provider/` if all of several targets have it."""
    providers = {group.target.provider for group in groups}
    return f"{providers.pop()}/" if len(groups) > 1 and len(providers) == 1 else ""


def _figures(group: Group, *, costs: bool) -> list[str]:
    view = view_of(group)
    return [
        view.passed,
        view.passed_interval,
        *(view.figures[name].short for name in ("p50", "p95", "TTFT", "tok/s")),
        view.cost.removesuffix(f" {COST}") if costs else "",
        view.tier,
        view.tool_use.strip(DASH),
    ]


def _unanswered(name: str, group: Group, width: int, name_width: int) -> Iterator[str]:
    reason = next(iter(group.reasons.values()), "not asked")
    for label, line in labeled(one_line(name, name_width), lines_of(reason, width - name_width - 1)):
        yield f"{padded(label, name_width, left=True)} {line}"
