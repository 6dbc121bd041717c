"""Lines for a terminal: any block, and the end of a run with answers, table of targets and findings."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence

from pytest_openclaw.conclusions.summary import Summary
from pytest_openclaw.providers.prices import Prices, has_list
from pytest_openclaw.reports.blocks import SummaryFinding, Table
from pytest_openclaw.reports.facts import answers, findings, targets_table
from pytest_openclaw.reports.numbers import WIDTH, columns, lines_of, one_line, padded
from pytest_openclaw.util.files import install_command
from pytest_openclaw.util.text import printable

LABEL_WIDTH = 18
LEAST_NAME = 24
"""The width below which names are not shortened while another column can be left out."""
WIDEST_TEXT = 120
LONGEST_COMMAND = 4000
QUESTION = "which model may hold the tools?"
COLORS = {
    "trusted": "green", "trusted_with": "green", "not_enough_evidence": "yellow", "not_trusted": "red",
    "unsafe": "red", "gate FAILED": "red", "gate NO VERDICT": "yellow", "gate passed": "green",
    "no verdict": "yellow", "worse": "red", "better": "green", "interrupted": "yellow",
}  # fmt: skip
"""Colors of recommendations and labels, if pytest uses colors."""


def table_lines(table: Table, width: int) -> Iterator[str]:
    """Yield a table's lines, no wider than `width` if shortening one column is enough."""
    rows = [table.head, *(row for row in table.rows if len(row) == len(table.head))]
    texts = [row for row in table.rows if len(row) < len(table.head)]
    longest = max(columns(row[table.shrinks]) for row in (*rows, *texts))
    kept, drop = table.kept, iter(table.drop)

    def room() -> int:
        others = (max(columns(row[n]) for row in rows) for n in kept if n != table.shrinks)
        return width - sum(1 + other for other in others)

    while room() < min(longest, LEAST_NAME) and (head := next(drop, None)):
        kept = [n for n in kept if table.head[n] != head]
    name_width = max(1, min(longest, room()))
    shown = [
        [one_line(row[n], name_width) if n == table.shrinks else printable(row[n]) for n in kept]
        for row in rows
    ]
    widths = [max(map(columns, column)) for column in zip(*shown, strict=True)]
    if table.shrinks == 0:
        widths[0] = name_width
    gap = "  " if sum(widths) + 2 * (len(widths) - 1) <= width else " "
    for row in shown if len(rows) > 1 else ():
        cells = zip(row, widths, kept, strict=True)
        yield gap.join(padded(cell, size, left=table.is_left(n)) for cell, size, n in cells).rstrip()
    for name, text in texts:
        first, *rest = lines_of(text, width - widths[0] - len(gap))
        yield f"{padded(one_line(name, widths[0]), widths[0], left=True)}{gap}{first}"
        yield from (f"{' ' * widths[0]}{gap}{line}" for line in rest)


def finding_lines(
    found: Iterable[SummaryFinding], width: int, *, names_targets: bool = True
) -> Iterator[str]:
    """Yield the lines of findings, grouped by label."""
    by_label: dict[str, list[str]] = {}
    for finding in found:
        name = f"{finding.target}: " if finding.target and names_targets else ""
        # A command stays on one line, so that it can be copied.
        lines = (
            [one_line(finding.text, LONGEST_COMMAND)]
            if finding.label in ("next", "more prompts")
            else lines_of(f"{name}{finding.text}", width - LABEL_WIDTH)
        )
        by_label.setdefault(finding.label, []).extend(lines)
    for label, lines in by_label.items():
        for n, line in enumerate(lines):
            yield f"{'' if n else printable(label):<{LABEL_WIDTH}}{line}".rstrip()


# --- the end of a run ------------------------------------------------------------------------------------


def title_of(summary: Summary) -> str:
    """Return the title, with the release of OpenClaw if all recommendations are about the same one."""
    releases = {group.recommendation.release for group in summary.groups} - {None}
    named = f" {releases.pop()}" if len(releases) == 1 else ""
    return f"openclaw{named}: {QUESTION}"


def render_terminal(
    summary: Summary,
    where: str,
    resume: str | None = None,
    notes: Iterable[SummaryFinding] = (),
    *,
    width: int = WIDTH,
    are_misses_shown: bool = False,
    paint: Callable[[str, str], str] = lambda text, _: text,
) -> Iterator[str]:
    """Yield the lines under the title: a sentence for each target, the table, the findings.

    Args:
        summary: the run's summary.
        where: the path of `summary.md`, as the user would type it.
        resume: the command that continues the run; shown if some cells have not been asked.
        notes: further findings.
        width: columns of the terminal.
        are_misses_shown: whether the missed cells have been listed above the title.
        paint: `(text, color)`; returns a text in a color.
    """
    text_width = min(width, WIDEST_TEXT)
    for answer in answers(summary):
        for line in lines_of(f"{answer.target}: {answer.sentence}", text_width, "  "):
            yield paint(line, COLORS[answer.kind])
    yield ""
    if summary.groups:
        yield from table_lines(targets_table(summary.groups), width)
    yield ""
    found = [
        *findings(summary, are_misses_shown=are_misses_shown),
        *notes,
        SummaryFinding(label="wrote", text=where),
    ]
    if resume and summary.is_owing:
        found.append(SummaryFinding(label="next", text=resume))
    for line in finding_lines(found, text_width, names_targets=len(summary.groups) > 1):
        label = line[:LABEL_WIDTH].rstrip()
        color = COLORS.get(label)
        yield f"{paint(label, color)}{line.removeprefix(label)}" if color else line


def how_to_price(labels: Sequence[str]) -> str:
    """Say how to get prices that only the list has."""
    return f"the extra `cost` has the list prices of {', '.join(labels)}"


def notes_on_cost(prices: Prices, summary: Summary) -> Iterator[SummaryFinding]:
    """Yield findings on how to get the missing prices."""
    unpriced = [
        group.target.label
        for group in summary.groups
        if group.n_ok and group.cost_usd is None and prices.needs_list(group.target)
    ]
    if unpriced and not has_list():
        yield SummaryFinding(label="cost unknown", text=how_to_price(unpriced))
        yield SummaryFinding(label="next", text=install_command("cost"))
