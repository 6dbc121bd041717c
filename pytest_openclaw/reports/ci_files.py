"""Output for CI systems: annotations on GitHub, and properties in JUnit's XML.

Workflow commands: https://docs.github.com/actions/reference/workflow-commands-for-github-actions
"""

from __future__ import annotations

from itertools import islice
from typing import TYPE_CHECKING, Any

from pytest_openclaw.reports.numbers import one_line
from pytest_openclaw.util.text import printable
from pytest_openclaw.values.parts import called
from pytest_openclaw.values.rows import Record

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pytest_openclaw.conclusions.summary import Summary


MOST = 10
"""Annotations of each kind that GitHub shows for a step."""
LONGEST = 300


def render_annotations(summary: Summary) -> Iterator[str]:
    """Yield workflow commands: an error for each gate not passed, a warning for each missed prompt."""
    refused = (pair for annotations in called("annotations") for pair in annotations(summary))
    for title, text in islice(refused, MOST):
        yield _command("error", title, text)
    missed = list(summary.missed_by_all)
    shown = missed if len(missed) <= MOST else missed[: MOST - 1]
    for one in shown:
        title = f"{one.prompt_id} {one.prompt_name}: missed by all"
        yield _command("warning", title, one.violation or "no usable answer")
    if rest := len(missed) - len(shown):
        yield _command("warning", f"{rest} more prompts missed", "summary.md and report.html list them")


def _command(kind: str, title: str, text: str) -> str:
    return f"::{kind} title={_property(one_line(title, LONGEST))}::{_data(one_line(text, LONGEST))}"


def _data(text: str) -> str:
    return text.replace("%", "%25")  # a line has no line ends


def _property(text: str) -> str:
    return _data(text).replace(":", "%3A").replace(",", "%2C")


CELL_FIELDS = (
    *("availability_status", "failure_type", "objective_pass", "violation", "tool_outcome"),
    *("e2e_ms", "ttft_ms", "cost_usd"),
)
"""Fields of a row that people filter by; the name of the case has prompt and target."""


def cell_properties(outcome: Record | object) -> list[tuple[str, str]]:
    """Return a cell's properties, named as the fields of its row, without null."""
    return [
        (f"openclaw.{name}", _text(value))
        for name in CELL_FIELDS
        if isinstance(outcome, Record) and (value := getattr(outcome, name)) is not None
    ]


def _text(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float):
        return f"{value:.6g}"
    return printable(str(value))
