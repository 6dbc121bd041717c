"""The summary as `summary.md`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tabulate import tabulate

from pytest_openclaw.reports.numbers import (
    DASH,
    one_line,
    render_count,
    render_interval,
    render_ms,
    render_rate,
    render_tier,
)
from pytest_openclaw.stats.tiers import TIER_NAMES, cells_to_settle

if TYPE_CHECKING:
    from collections.abc import Iterable

    from pytest_openclaw.stats.summary import Group, Summary

HEADERS = (
    "Provider", "Model", "Thinking", "n", "answered", "passed", "95 %", "p50", "p95", "p99", "TTFT", "tok/s",
    "Tier", "tool use", "95 %",
)  # fmt: skip


def render_markdown(summary: Summary) -> str:
    """Return the whole page."""
    parts = [
        f"# OpenClaw benchmark {summary.run_id}",
        _state(summary),
        tabulate(
            [_row(group) for group in summary.groups], HEADERS, tablefmt="github", disable_numparse=True
        ),
        *_section("Tiers", (_tier(group) for group in summary.groups)),
        *_section("Gates", (_gates(summary))),
        *_section("Not answered", (line for group in summary.groups for line in _unanswered(group))),
        *_section(
            "Answered by another model", (line for group in summary.groups for line in _other_model(group))
        ),
        *_section(
            "Most frequent violations", (line for group in summary.groups for line in _violations(group))
        ),
        *_section(
            "Missed by all targets",
            (
                f"- {_cell(f'{missed.prompt_id} {missed.prompt_name}')}: {_cell(missed.violation or '')}"
                for missed in summary.missed
            ),
        ),
    ]
    return "\n\n".join(part for part in parts if part) + "\n"


def _state(summary: Summary) -> str:
    if summary.state == "interrupted":
        return f"**Interrupted**: {summary.n_rows} of {summary.n_cells} cells have a row."
    return f"{summary.n_rows} cells."


def _section(title: str, lines: Iterable[str]) -> list[str]:
    text = "\n".join(lines)
    return [f"## {title}", text] if text else []


def _row(group: Group) -> list[str]:
    use = group.tool_use
    return [
        _cell(group.target.provider),
        _cell(group.target.model),
        group.target.thinking_level or "",
        str(group.n_total),
        str(group.n_ok),
        f"{group.passed.n_success}/{group.passed.n} ({render_rate(group.passed.rate)})"
        if group.passed.n
        else DASH,
        render_interval(group.passed.interval_95),
        render_ms(group.latency_ms["p50"]),
        render_ms(group.latency_ms["p95"]),
        render_ms(group.latency_ms["p99"]),
        render_ms(group.ttft_ms["p50"]),
        render_count(group.tokens_per_s),
        render_tier(use.tier, use.conclusive),
        f"{use.n_success}/{use.n}" if use.n else DASH,
        render_interval(use.interval_95),
    ]


def _tier(group: Group) -> str:
    use = group.tool_use
    if use.tier is None:
        return f"- {_cell(group.target.label)}: no tier, because no tool cell was answered."
    settled = "conclusive" if use.conclusive else "not conclusive"
    line = (
        f"- {_cell(group.target.label)}: **Tier {use.tier}** ({TIER_NAMES[use.tier]}), {settled}: "
        f"{use.n_success} of {use.n} tool cells succeeded, 95 % interval {render_interval(use.interval_95)}."
    )
    if use.tier == 1 and not use.conclusive and (more := cells_to_settle(use.n_success, use.n)):
        line += f" {more} more tool cells without a miss would settle it."
    if use.restraint.n:
        line += f" It held back in {use.restraint.n_success} of {use.restraint.n} cells that forbid tools."
    return line


def _gates(summary: Summary) -> Iterable[str]:
    for gate in summary.gates:
        yield f"- {gate.ruling.replace('_', ' ')}: {gate.gate}, {_cell(gate.target)}: {_cell(gate.reason)}"


def _unanswered(group: Group) -> Iterable[str]:
    for failure_type, n in group.failures.items():
        reason = group.reasons.get(failure_type, "the model gave no usable answer")
        yield f"- {_cell(group.target.label)}: {n} × `{failure_type}`: {_cell(reason)}"


def _other_model(group: Group) -> Iterable[str]:
    if group.effective_models:
        names = ", ".join(_cell(name) for name in group.effective_models)
        yield f"- {_cell(group.target.label)} was answered by {names}."


def _violations(group: Group) -> Iterable[str]:
    for violation, n in group.violations:
        yield f"- {_cell(group.target.label)}: {n} × {_cell(violation)}"


def _cell(text: str) -> str:
    """Make a foreign text harmless in Markdown: one line, no table bar, no HTML."""
    line = one_line(text, 200).replace("\\", "\\\\")
    for character in "|`*_[]#":
        line = line.replace(character, "\\" + character)
    return line.replace("<", "&lt;").replace(">", "&gt;")
