"""What GitHub shows of a run beside its log: annotations at the prompts that were missed, and at the gates.

Workflow commands: https://docs.github.com/actions/reference/workflow-commands-for-github-actions
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pytest_openclaw.reports.numbers import one_line

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from pytest_openclaw.stats.summary import Summary

MOST = 10
"""Annotations of each kind that GitHub shows for a step."""
LONGEST = 300


def render_annotations(summary: Summary, places: Mapping[tuple[str, str], tuple[str, int]]) -> Iterator[str]:
    """Yield workflow commands: an error for each gate that is not passed, a warning for each missed prompt.

    Args:
        summary: the run's.
        places: file and line of prompts, by suite and id, as far as they are known.
    """
    refused = [gate for gate in summary.gates if gate.ruling != "passed"]
    for gate in refused[:MOST]:
        ruling = "failed" if gate.ruling == "failed" else "no verdict"
        yield _command("error", f"{gate.gate}, {gate.target}: {ruling}", gate.reason)
    missed = list(summary.missed)
    shown_text = missed if len(missed) <= MOST else missed[: MOST - 1]
    for one in shown_text:
        title = f"{one.prompt_id} {one.prompt_name}: missed by all"
        place = places.get((one.suite, one.prompt_id))
        yield _command("warning", title, one.violation or "no usable answer", place)
    if rest := len(missed) - len(shown_text):
        yield _command("warning", f"{rest} more prompts missed", "summary.md and report.html list them")


def _command(kind: str, title: str, text: str, place: tuple[str, int] | None = None) -> str:
    where = f"file={_property(place[0])},line={place[1]}," if place else ""
    return f"::{kind} {where}title={_property(one_line(title, LONGEST))}::{_data(one_line(text, LONGEST))}"


def _data(text: str) -> str:
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _property(text: str) -> str:
    return _data(text).replace(":", "%3A").replace(",", "%2C")
