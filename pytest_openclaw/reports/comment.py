"""The summary as `comment.md`: the size of a comment on a pull request."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pytest_openclaw.reports.comparison import details_of, in_short, name_of, set_aside_in_words
from pytest_openclaw.reports.markdown import Page, code
from pytest_openclaw.reports.numbers import DASH, LONGEST_SENTENCE
from pytest_openclaw.reports.targets import unanswered, view_of
from pytest_openclaw.stats.groups import headline
from pytest_openclaw.util.text import counted

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pytest_openclaw.stats.gates import GateResult
    from pytest_openclaw.stats.groups import Group
    from pytest_openclaw.stats.summary import Summary

MARKER = "<!-- pytest-openclaw -->"
"""The first line, by which a workflow finds the comment that it is to change."""
TITLES = {
    "passed": "gates passed",
    "failed": "gates failed",
    "no_verdict": "no verdict",
    "not_gated": "no gate was set",
}
SIGNS = {"passed": "✅ passed", "failed": "❌ **failed**", "no_verdict": "⚠️ **no verdict**"}
MOST_GATES = 12
MOST_TARGETS = 12
MOST_FINDINGS = 12
LABEL_WIDTH = 80
HEADERS = ("target", "passed", "95 %", "p50", "p95", "TTFT", "tok/s", "tier", "tool use", "cost")


def render_comment(summary: Summary) -> str:
    """Return the page: gates, targets, comparison, findings, and folded away what is longer."""
    page = Page(MARKER, f"### OpenClaw benchmark: {TITLES[summary.verdict]}")
    recommended = [
        f"- {_label(group)}: {code(group.recommendation.sentence, LONGEST_SENTENCE)}"
        for group in headline(summary.groups)
    ]
    page.add(recommended[:MOST_TARGETS])
    page.fold(f"{len(recommended) - MOST_TARGETS} more recommendations", recommended[MOST_TARGETS:])
    page.add([_measured(summary)])
    gates = sorted(summary.gates, key=lambda gate: ["failed", "no_verdict", "passed"].index(gate.ruling))
    page.table(("gate", "target", "ruling", "why"), [_gate(gate) for gate in gates], MOST_GATES, "gates")
    page.add([f"- No target of this run fits {code(glob)}." for glob in summary.unmatched_gates])
    page.table(HEADERS, [_target(group) for group in summary.groups], MOST_TARGETS, "targets")
    _add_comparison(page, summary)
    findings = [*_findings(summary)]
    page.add(findings[:MOST_FINDINGS], head=["Worth knowing:", ""])
    page.fold(f"{len(findings) - MOST_FINDINGS} more findings", findings[MOST_FINDINGS:])
    missed = [f"- {code(one.prompt_id)} {code(one.violation or '')}" for one in summary.missed]
    if summary.n_answered:
        page.fold(f"Prompts missed by all targets: {len(missed)}", missed)
    violations = [
        f"- {_label(group)}: {n} × {code(text)}" for group in summary.groups for text, n in group.violations
    ]
    page.fold("Most frequent violations", violations)
    return page.text


def _measured(summary: Summary) -> str:
    targets = counted(len(summary.groups), "target")
    n_rows, n_cells = summary.n_rows, summary.n_cells
    asked = counted(n_cells, "cell") if n_rows == n_cells else f"only {n_rows} of {counted(n_cells, 'cell')}"
    return f"{asked} on {targets}, run {code(summary.run_id)}"


def _gate(gate: GateResult) -> list[str]:
    return [gate.asked, code(gate.target, LABEL_WIDTH), SIGNS[gate.ruling], code(gate.reason, 300)]


def _target(group: Group) -> list[str]:
    view = view_of(group)
    return [
        _label(group),
        view.passed_with_rate,
        view.passed_interval,
        *(view.figures[name].full for name in ("p50", "p95", "TTFT", "tok/s")),
        view.tier,
        DASH if view.tool_use == DASH else f"{view.tool_use} ({view.tool_use_interval})",
        view.cost,
    ]


def _label(group: Group) -> str:
    return code(group.target.label, LABEL_WIDTH)


def _add_comparison(page: Page, summary: Summary) -> None:
    compared = summary.comparison
    if compared is None:
        return
    head = [f"Compared with {code(compared.baseline, LABEL_WIDTH)}:", ""]
    lines = [
        f"- {code(name_of(one), LABEL_WIDTH)}: **{one.verdicts.word}**; {in_short(one)}"
        for one in compared.targets
    ]
    page.add(lines or ["- No target is in both runs."], head=head)
    details = [
        f"- {code(name_of(one), LABEL_WIDTH)}, {title}: {code(text)}"
        for one in compared.targets
        for title, text in details_of(one)
    ]
    aside = [f"- set aside: {code(set_aside_in_words(one, '--across'), 400)}" for one in compared.set_aside]
    notes = [f"- {code(note)}" for note in compared.notes]
    page.fold("The comparison in full", [*details, *aside, *notes])


def _findings(summary: Summary) -> Iterator[str]:
    """What is most useful to know, the worst first."""
    if (budget := summary.budget) is not None and budget.n_not_asked:
        yield f"- {counted(budget.n_not_asked, 'cell')} not asked: the budget was spent"
    for group in summary.groups:
        for failure_type, n, reason in unanswered(group):
            yield f"- {_label(group)}: {n} × {code(failure_type)}: {code(reason)}"
        if group.effective_models:
            yield f"- {_label(group)} was answered by {code(', '.join(group.effective_models))}"
    if passing := dict.fromkeys(
        known.prompt_id for known in summary.known_failures if not known.is_as_expected
    ):
        yield f"- known failures that pass now: {code(', '.join(passing))}"
    for group in summary.groups:
        yield from (f"- {_label(group)}: {text}" for text in _of_tool_use(group))


def _of_tool_use(group: Group) -> Iterator[str]:
    view = view_of(group)
    if miss := view.miss:
        yield f"{code(miss.outcome)}, {miss.how_often}{f'; {miss.advice}' if miss.advice else ''}"
    for label in ("not tier 1", "not conclusive", "written calls", "context", "over-refusal"):
        if text := view.notes.get(label):
            yield code(text)
    if flaky := view.notes.get("flaky"):
        yield f"flaky: {code(flaky)}"
