"""The summary in Markdown: `summary.md`, and `comment.md`, the size of a comment on a pull request.

Untrusted text must not become a link or a mention on GitHub.
"""

from __future__ import annotations

import re
import string
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

from pytest_openclaw.conclusions.summary import Summary
from pytest_openclaw.reports.blocks import Block, Details, Section, Table, TargetAnswer
from pytest_openclaw.reports.facts import (
    RULINGS,
    answers,
    findings,
    findings_of_parts,
    ruling_of,
    sections_of,
    state,
    targets_table,
)
from pytest_openclaw.reports.numbers import DASH, LONGEST_SENTENCE, one_line

MARKER = "<!-- pytest-openclaw -->"
"""The first line, by which a workflow finds the comment to update."""
MOST = 20
"""The maximum lines of a list in the comment."""
LONGEST_COMMENT = 60_000
"""Bytes; GitHub refuses a comment of more than 65,536 characters."""


def render_markdown(summary: Summary) -> str:
    """Return `summary.md`: the answers, the targets, the findings and all details."""
    page = MarkdownPage(f"# OpenClaw benchmark {summary.run_id}")
    page.add(answers(summary), state(summary), targets_table(summary.groups))
    page.add(Section(id="findings", title="Findings", blocks=[findings(summary)]))
    page.add(*sections_of(summary))
    return page.text


def render_comment(summary: Summary) -> str:
    """Return `comment.md`: the answers, rulings, targets and findings; details are folded away."""
    ruling = f": {found[1]}" if (found := ruling_of(summary)) else ""
    page = MarkdownPage(MARKER, f"### OpenClaw benchmark{ruling}", is_comment=True)
    rulings = [finding for rank, finding in findings_of_parts(summary) if rank == RULINGS]
    page.add(
        answers(summary),
        state(summary),
        rulings,
        targets_table(summary.groups),
        [one for one in findings(summary) if one not in rulings],
    )
    for section in sections_of(summary):
        if section.is_in_comment:
            page.add(*(Details(title=section.title, block=block) for block in section.filled))
    return page.text


# --- blocks in Markdown --------------------------------------------------------------------------------

_ROOM_FOR_THE_REST = 100
_CELL_WIDTH = 400
_AS_THEY_ARE = frozenset(string.ascii_letters + string.digits + " ,-()/%+=;")
# Addresses, mentions, issues and commits: GitHub links them in the rendered page, where `\@` is a bare `@`.
# `@low` behind a model's name is not a mention.
_LINKED = re.compile(
    r"://|www\.|mailto:|xmpp:|(?<![a-z0-9_])@[a-z0-9]|@[a-z0-9_-]+\.|#[0-9]|GH-[0-9]|\$"
    r"|\b(?=[a-f]*[0-9])(?=[0-9]*[a-f])[0-9a-f]{7,40}\b|(?<!\w):[a-z0-9_+-]+:(?!\w)|<!--",
    re.IGNORECASE,
)


def markdown_text(text: str, width: int = _CELL_WIDTH) -> str:
    """Make a text harmless in Markdown: one line, no table bar, no HTML, no link, no mention."""
    if not text.strip():
        return DASH
    if _LINKED.search(text):
        return code(text, width)
    line = one_line(text, width).replace("\\", "\\\\").replace("&", "&amp;")
    for character in "|`*_[]#~":
        line = line.replace(character, "\\" + character)
    return line.replace("<", "&lt;").replace(">", "&gt;")


def code(text: str, width: int = _CELL_WIDTH) -> str:
    """Return an untrusted text as code on one line.

    Within `<code>`, GitHub mentions no user and links no issue, commit or address. Every character with a
    meaning in Markdown or HTML, such as a table bar or a tag, becomes a numeric character reference.
    """
    line = one_line(text, width)
    spelled = (
        character if character in _AS_THEY_ARE or not character.isascii() else f"&#{ord(character)};"
        for character in line
    )
    return f"<code>{''.join(spelled)}</code>" if line.strip() else DASH


class MarkdownPage:
    """A page; in a comment, lists and tables are cut to `MOST` lines, and to the size of a comment."""

    def __init__(self, *lines: str, is_comment: bool = False) -> None:
        self._lines = [*lines]
        self._is_comment = is_comment

    def add(self, *blocks: Block | Section) -> None:
        """Add blocks; empty ones are left out."""
        for block in blocks:
            if isinstance(block, Section):
                if filled := block.filled:
                    self._add([f"## {block.title}"])
                    self.add(block.intro, *filled)
            elif isinstance(block, Details):
                head, lines = _markdown_lines(block.block)
                opening = f"<details><summary>{block.title}</summary>"
                self._add(lines, [opening, "", *head], ["", "</details>"])
            elif block:
                head, lines = _markdown_lines(block)
                self._add(lines, head)

    def _add(self, lines: Sequence[str], head: Sequence[str] = (), foot: Sequence[str] = ()) -> None:
        shown = [*lines]
        if self._is_comment:
            del shown[MOST:]
            room = LONGEST_COMMENT - _bytes([*self._lines, *head, *foot]) - _ROOM_FOR_THE_REST
            while shown and _bytes(shown) > room:
                del shown[-1]
        if not shown:
            return
        rest = len(lines) - len(shown)
        more = ["", f"… and {rest} more, in summary.md"] if rest else []
        self._lines += ["", *head, *shown, *more, *foot]

    @property
    def text(self) -> str:
        """The whole page."""
        return "\n".join(self._lines) + "\n"


def _markdown_lines(block: Block) -> tuple[list[str], list[str]]:
    match block:
        case str():
            return [], [_sentence(block)]
        case Table():
            # Imported only when a report is written, to start sessions faster.
            from tabulate import tabulate

            whole = [[*row, *[""] * (len(block.head) - len(row))] for row in (block.head, *block.rows)]
            head, *rows = [[markdown_text(row[n]) if row[n] else "" for n in block.kept] for row in whole]
            aligned = ["left" if block.is_left(n) else "right" for n in block.kept]
            table = tabulate(rows, head, tablefmt="pipe", disable_numparse=True, colalign=aligned)
            lines = table.splitlines()
            return lines[:2], lines[2:]
        case list():
            parts = (
                (one.target, one.sentence)
                if isinstance(one, TargetAnswer)
                else (one.target, one.label, one.text)
                for one in block
            )
            return [], [f"- {': '.join(_sentence(text) for text in its if text)}" for its in parts]
        case Details():
            raise AssertionError("`add` unfolds it")


def _sentence(text: str) -> str:
    return markdown_text(text, LONGEST_SENTENCE)


def _bytes(lines: Sequence[str]) -> int:
    return sum(len(line.encode()) + 1 for line in lines)


# --- reports --------------------------------------------------------------------------------------


class Report(Protocol):
    """A file of the run directory about the whole run; plugins add more by `pytest_openclaw_reports`."""

    @property
    def name(self) -> str:
        """The file's name, such as `tiers.csv`; a class attribute is enough."""
        ...

    def render(self, summary: Summary) -> str:
        """Return the file's text.

        Args:
            summary: the run in figures, as in `summary.json`: a group for each target, gates, findings.
        """
        ...


@dataclass(frozen=True)
class Page:
    """A report that every run has."""

    name: str
    render: Callable[[Summary], str]


BUILTIN: tuple[Report, ...] = (Page("summary.md", render_markdown), Page("comment.md", render_comment))
