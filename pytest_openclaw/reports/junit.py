"""What JUnit's XML carries of cells and of the run: properties, which CI systems list and search."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pytest_openclaw.core.text import printable
from pytest_openclaw.types.records import Record

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pytest_openclaw.stats.groups import Group
    from pytest_openclaw.stats.intervals import Interval
    from pytest_openclaw.stats.summary import Summary

CELL_FIELDS = (
    "provider", "model", "thinking_level", "prompt_id", "prompt_name", "suite", "category", "repeat",
    "availability_status", "failure_type", "objective_pass", "violation",
    "e2e_ms", "ttft_ms", "tokens_per_s", "input_tokens", "output_tokens", "cost_usd",
    "attempts", "finish_reason", "effective_model", "tool_calls", "tool_use_success", "tool_outcome",
)  # fmt: skip
"""Fields of a row that are short and that people filter by; the answer itself is in results.jsonl."""


def cell_properties(outcome: Record | object) -> list[tuple[str, str]]:
    """Return a cell's properties, named as the fields of its row; what is null is left out."""
    return [
        (f"openclaw.{name}", _text(value))
        for name in CELL_FIELDS
        if isinstance(outcome, Record) and (value := getattr(outcome, name)) not in (None, ())
    ]


def run_properties(summary: Summary, where: str) -> list[tuple[str, str]]:
    """Return the properties of the run, and of each target under its label.

    Args:
        summary: the run's.
        where: the run directory.
    """
    return [
        ("openclaw.run_id", summary.run_id),
        ("openclaw.run", where),
        ("openclaw.state", summary.state),
        ("openclaw.verdict", summary.verdict),
        *(
            (f"openclaw.{group.target.label}.{name}", _text(value))
            for group in summary.groups
            for name, value in _of_group(group)
            if value is not None
        ),
        *(
            (f"openclaw.gate.{gate.gate}.{gate.target}", _text(f"{gate.ruling}: {gate.reason}"))
            for gate in summary.gates
        ),
    ]


def _of_group(group: Group) -> Iterator[tuple[str, Any]]:
    yield "recommendation", group.recommendation.sentence
    yield "tier", group.tool_use.tier
    yield "tier_conclusive", group.tool_use.conclusive
    yield "passed", group.passed.n_success
    yield "judged", group.passed.n
    yield from _with_ends("pass_rate", group.passed.rate, group.passed.interval_95)
    for name in ("p50", "p95"):
        yield from _with_ends(f"{name}_ms", group.latency_ms[name], group.latency_intervals_95[name])
    yield "cost_usd", group.cost_usd


def _with_ends(
    name: str, value: float | None, interval: Interval | None
) -> Iterator[tuple[str, float | None]]:
    """Yield a figure and the ends of its 95 % interval."""
    yield name, value
    if interval is not None:
        yield f"{name}_low", interval.low
        yield f"{name}_high", interval.high


def _text(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float):
        return f"{value:.6g}"
    return printable(" ".join(value) if isinstance(value, list | tuple) else str(value))
