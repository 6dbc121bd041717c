"""The summary as `summary.md`, and as `comment.md`: the size of a comment on a pull request."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pytest_openclaw.reports.blocks import (
    LONGEST_COMMENT,
    Answers,
    Details,
    Finding,
    Findings,
    MarkdownPage,
    Section,
)
from pytest_openclaw.reports.facts import answers, findings, gate_findings, state, targets_table
from pytest_openclaw.reports.sections import sections_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pytest_openclaw.reports.blocks import Block
    from pytest_openclaw.stats.summary import Summary

MARKER = "<!-- pytest-openclaw -->"
"""The first line, by which a workflow finds the comment that it is to change."""
TITLES = {
    "passed": "gates passed",
    "failed": "gates failed",
    "no_verdict": "no verdict",
    "not_gated": "no gate was set",
}
MOST = 12
"""Lines of a list of the comment that are not folded away."""


def render_markdown(summary: Summary) -> str:
    """Return `summary.md`: the answers, the targets, the findings and all details."""
    page = MarkdownPage(f"# OpenClaw benchmark {summary.run_id}")
    found = answers(summary)
    further = [
        Finding(label="to improve it", text=one.further, target=one.target)
        for one in found.entries
        if one.further
    ]
    page.add(found, Findings(entries=further), state(summary), targets_table(summary.groups))
    page.add(Section(id="findings", title="Findings", blocks=[Findings(entries=[*findings(summary)])]))
    page.add(*sections_of(summary))
    return page.text


def render_comment(summary: Summary) -> str:
    """Return `comment.md`: the answers, gates, targets and findings; what is longer is folded away."""
    page = MarkdownPage(MARKER, f"### OpenClaw benchmark: {TITLES[summary.verdict]}", limit=LONGEST_COMMENT)
    recommended = answers(summary).entries
    gates = [*gate_findings(summary)]
    others = [one for one in findings(summary) if one not in gates]
    page.add(
        Answers(entries=recommended[:MOST]),
        Details(
            title=f"{len(recommended) - MOST} more recommendations", block=Answers(entries=recommended[MOST:])
        ),
        state(summary),
        *_folded(gates, "gates"),
        targets_table(summary.groups),
        *_folded(others, "findings"),
    )
    details = {section.id: section for section in sections_of(summary)}
    for name in ("changes", "missed", "violations"):
        page.add(*(Details(title=details[name].title, block=block) for block in details[name].filled))
    return page.text


def _folded(entries: list[Finding], what: str) -> Iterator[Block]:
    yield Findings(entries=entries[:MOST])
    yield Details(title=f"{len(entries) - MOST} more {what}", block=Findings(entries=entries[MOST:]))
