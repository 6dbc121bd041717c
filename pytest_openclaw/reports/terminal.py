"""The summary at the end of a run, for a terminal: the answers, the table of targets, the findings."""

from __future__ import annotations

import textwrap
from typing import TYPE_CHECKING, Any, NamedTuple

from pytest_openclaw.providers.prices import has_list
from pytest_openclaw.reports.blocks import LABEL_WIDTH, answer_lines, finding_lines, table_lines
from pytest_openclaw.reports.facts import answers, findings, targets_table
from pytest_openclaw.reports.numbers import WIDTH, labeled, lines_of, listed, one_line, whole_lines_of
from pytest_openclaw.util.installation import install_command
from pytest_openclaw.util.text import printable

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from pytest_openclaw.providers.prices import Prices
    from pytest_openclaw.reports.blocks import Answers
    from pytest_openclaw.stats.groups import Group
    from pytest_openclaw.stats.summary import Summary

QUESTION = "which model may hold the tools?"
NAME_WIDTH = 27
WIDE_TEXT, WIDEST_TEXT = 100, 120
"""Columns of sentences that have room for whole names, and that they take at most."""
ANSWER_LINES = 5
"""Sentences that need more than this have a line of all targets before them."""
IN_SHORT = "in short: "
KINDS = {
    "trusted": ("trusted with tools", "green"), "trusted_with": ("trusted with some tools", "green"),
    "not_enough_evidence": ("not enough evidence", "yellow"), "not_trusted": ("not trusted", "red"),
    "unsafe": ("unsafe", "red"),
}  # fmt: skip
"""Words and colors of recommendations, in the order of the line of all targets."""
COLORS = {
    "gate FAILED": "red", "gate NO VERDICT": "yellow", "gate passed": "green",
    "no verdict": "yellow", "worse": "red", "better": "green", "interrupted": "yellow",
}  # fmt: skip
"""Of labels, where pytest uses colors."""
LONGEST_COMMAND = 4000
LONGEST_COMPLAINT = 600


class Line(NamedTuple):
    """A line: a part that has a color, where the terminal has any, and the rest."""

    text: str
    rest: str = ""
    color: str = ""


def title_of(summary: Summary) -> str:
    """Return the title, with the release of OpenClaw on whose tools and rules all answers rest."""
    releases = {group.recommendation.release for group in summary.groups} - {None}
    named = f" {releases.pop()}" if len(releases) == 1 else ""
    return f"openclaw{named}: {QUESTION}"


def render_terminal(
    summary: Summary, where: str, resume: str | None = None, *, width: int = WIDTH, **shown: Any
) -> list[str]:
    """Return the lines under the title, without colors; see `colored_lines`."""
    return [f"{line.text}{line.rest}" for line in colored_lines(summary, where, resume, width=width, **shown)]


def colored_lines(
    summary: Summary,
    where: str,
    resume: str | None = None,
    notes: Iterable[tuple[str, str]] = (),
    *,
    width: int = WIDTH,
    are_misses_shown: bool = False,
) -> Iterator[Line]:
    """Yield the lines under the title: a sentence for each target, the table, the findings.

    Args:
        summary: the run's.
        where: the path of `summary.md`, as the user would type it.
        resume: the command that continues the run; shown, on one line, if there is something left to ask.
        notes: further findings, each a label and a text; `next` is a command.
        width: columns of the terminal.
        are_misses_shown: whether the missed cells have been listed above the title.
    """
    names, prefix = _names(summary.groups)
    text_width = min(width, WIDEST_TEXT)
    yield from _answer_lines(answers(summary), names, text_width)
    yield Line("")
    if summary.groups:
        yield from map(Line, table_lines(targets_table(summary.groups, prefix), width))
    yield Line("")
    room = NAME_WIDTH if width < WIDE_TEXT else WIDEST_TEXT
    shown = {label: one_line(name, room) for label, name in names.items()} if len(names) > 1 else {}
    found = findings(summary, are_misses_shown=are_misses_shown)
    yield from (_finding_line(*line) for line in finding_lines(found, shown, text_width))
    for label, text in notes:
        # A command is copied from one line.
        texts = [text] if label == "next" else lines_of(text, text_width - LABEL_WIDTH)
        yield from (_finding_line(*line) for line in labeled(label, texts))
    yield _finding_line("wrote", where)
    if resume and summary.is_owing:
        yield _finding_line("next", one_line(resume, LONGEST_COMMAND))


def render_complaints(complaints: Sequence[str], width: int = WIDTH) -> list[str]:
    """Return the lines that say what plugins did wrong, such as a report that broke."""
    return [
        printable(f"{label:<{LABEL_WIDTH}}{line}")
        for text in complaints
        for label, line in labeled(
            "plugin broke", textwrap.wrap(one_line(text, LONGEST_COMPLAINT), width - LABEL_WIDTH)
        )
    ]


def _names(groups: Sequence[Group]) -> tuple[dict[str, str], str]:
    """Return the targets' names by label, and the `provider/` that all of several share and lack there."""
    providers = {group.target.provider for group in groups}
    prefix = f"{providers.pop()}/" if len(groups) > 1 and len(providers) == 1 else ""
    return {group.target.label: group.target.label.removeprefix(prefix) for group in groups}, prefix


def _answer_lines(found: Answers, names: dict[str, str], width: int) -> Iterator[Line]:
    """Yield each recommendation; where they are long, the first line says in short what all of them say."""
    lines = [
        Line(line, color=KINDS[answer.kind][1])
        for answer in found.entries
        for line in answer_lines(answer, width)
    ]
    if len(found.entries) > 1 and len(lines) > ANSWER_LINES:
        of_kind = {
            words: [names[one.target] for one in found.entries if one.kind == kind]
            for kind, (words, _) in KINDS.items()
        }
        of_kind = {words: its for words, its in of_kind.items() if its}
        room = 2 * width // len(of_kind)
        in_short = "; ".join(f"{words}: {listed(its, room - len(words))}" for words, its in of_kind.items())
        yield from (Line(line, color="bold") for line in whole_lines_of(IN_SHORT + in_short, width, "  "))
    yield from lines


def _finding_line(label: str, text: str) -> Line:
    shown = f"{label:<{LABEL_WIDTH}}"
    if label in COLORS:
        return Line(label, f"{shown.removeprefix(label)}{text}", COLORS[label])
    return Line(f"{shown}{text}".rstrip())


def how_to_price(labels: Sequence[str]) -> str:
    """Say how the prices of targets become known that only the list has."""
    return f"the extra `cost` has the list prices of {', '.join(labels)}"


def notes_on_cost(prices: Prices, summary: Summary) -> Iterator[tuple[str, str]]:
    """Yield how to get the prices that are missing, each note a label and a text."""
    unpriced = [
        group.target.label
        for group in summary.groups
        if group.n_ok and group.cost_usd is None and prices.needs_list(group.target)
    ]
    if unpriced and not has_list():
        yield "cost unknown", how_to_price(unpriced)
        yield "next", install_command("cost")
