"""The summary as lines of 80 columns."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tabulate import tabulate

from pytest_openclaw.reports.numbers import (
    DASH,
    one_line,
    render_count,
    render_interval,
    render_ms,
    render_tier,
    shorten,
)
from pytest_openclaw.stats.tiers import cells_to_settle

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pytest_openclaw.stats.summary import Group, Summary

TITLE = "openclaw: which model may hold the tools?"
WIDTH = 80
TARGET_WIDTH = 27
LABEL_WIDTH = 18
HEADERS = ("target", "pass", "", "p50", "p95", "TTFT", "tok/s", "tier", "")


def render_terminal(summary: Summary, where: str) -> list[str]:
    """Return the lines under the title.

    Args:
        summary: the run's.
        where: the path of `summary.md`, as the user would type it.
    """
    lines = [*_table(summary)]
    findings = [*_findings(summary, where)]
    return [*lines, "", *(f"{label:<{LABEL_WIDTH}}{text}".rstrip() for label, text in findings)]


def _table(summary: Summary) -> Iterator[str]:
    answered = [group for group in summary.groups if group.n_ok]
    if answered:
        table = tabulate(
            [_row(group) for group in answered],
            HEADERS,
            tablefmt="plain",
            disable_numparse=True,
            colalign=("left", "right", "right", "right", "right", "right", "right", "left", "right"),
        )
        yield from (line.rstrip() for line in table.splitlines())
    for group in summary.groups:
        if not group.n_ok:
            reason = next(iter(group.reasons.values()), "not asked")
            label = shorten(group.target.label, TARGET_WIDTH)
            yield f"{label:<{TARGET_WIDTH}} {one_line(reason, WIDTH - TARGET_WIDTH - 1)}"


def _row(group: Group) -> list[str]:
    use = group.tool_use
    return [
        one_line(group.target.label, TARGET_WIDTH),
        f"{group.passed.n_success}/{group.passed.n}" if group.passed.n else DASH,
        render_interval(group.passed.interval_95),
        render_ms(group.latency_ms["p50"]),
        render_ms(group.latency_ms["p95"]),
        render_ms(group.ttft_ms["p50"]),
        render_count(group.tokens_per_s),
        render_tier(use.tier, use.conclusive),
        f"{use.n_success}/{use.n}" if use.n else "",
    ]


def _findings(summary: Summary, where: str) -> Iterator[tuple[str, str]]:
    width = WIDTH - LABEL_WIDTH
    if summary.state == "interrupted":
        yield "interrupted", f"{summary.n_rows} of {summary.n_cells} cells have a row"
    if summary.n_rows and not summary.n_answered:
        yield "no verdict", "no cell was answered"
    for gate in summary.gates:
        ruling = {"passed": "gate passed", "failed": "gate FAILED", "no_verdict": "gate NO VERDICT"}[
            gate.ruling
        ]
        yield ruling, f"{gate.gate} {gate.wanted:g}, {gate.target}: {gate.reason}"
    for group in summary.groups:
        yield from _of_group(group, width)
    if summary.missed and summary.n_answered:
        names = ", ".join(missed.prompt_id for missed in summary.missed)
        yield "missed by all" if len(summary.groups) > 1 else "missed", one_line(names, width)
    if summary.slowest:
        row = summary.slowest
        yield "slowest", f"{row.prompt_id} {row.prompt_name}: {render_ms(row.e2e_ms)} on {row.target.label}"
    yield "wrote", where


def _of_group(group: Group, width: int) -> Iterator[tuple[str, str]]:
    label = group.target.label
    use = group.tool_use
    if use.tier == 1 and not use.conclusive and (more := cells_to_settle(use.n_success, use.n)):
        yield "not conclusive", f"{label}: {more} more tool cells without a miss would settle tier 1"
    if group.effective_models:
        yield "answered by", one_line(f"{', '.join(group.effective_models)} instead of {label}", width)
    unanswered = group.n_total - group.n_ok
    if unanswered and group.n_ok:
        reason = next(iter(group.reasons.values()), "")
        yield "not answered", one_line(f"{unanswered} cells of {label}: {reason}", width)
