"""`summary.md`: its layout, and that foreign texts stay texts."""

from __future__ import annotations

import re

import pytest

from pytest_openclaw.reports.facts import HEADERS
from pytest_openclaw.reports.pages import render_markdown
from pytest_openclaw.values.requests import Target
from pytest_openclaw.values.settings import Gates
from tests.unit.reports.summaries import fault, missed, record, summary_of

HOSTILE = "a|b `c` *d* <img src=x> [e](f) #g\n| h |"


def _tables(page: str) -> list[list[str]]:
    """The cells of each line of a table."""
    lines = (line for line in page.splitlines() if line.startswith("|"))
    return [[cell.strip() for cell in re.split(r"(?<!\\)\|", line)[1:-1]] for line in lines]


def test_sections_without_lines_are_left_out() -> None:
    """A run without problems has no empty headings, and one without replies no times."""
    page, silent = render_markdown(summary_of([record()])), render_markdown(summary_of([fault()]))

    titles = [re.findall("^## (.*)", text, re.MULTILINE) for text in (page, silent)]
    assert titles == [
        ["Findings", "Why", "How long it took"],
        ["Findings", "Why"],
    ]
    assert "USD" not in page


def test_foreign_texts_stay_texts() -> None:
    """Models, prompt names, violations and messages can neither break the tables nor be marked up."""
    target = Target(provider="p", model=HOSTILE)
    rows = [
        missed(target, prompt_name=HOSTILE, violation=HOSTILE, effective_model=HOSTILE + "!"),
        fault(target, fault_message=HOSTILE),
    ]

    page = render_markdown(summary_of(rows, gates=Gates(min_pass_rate=1)))

    assert "<img" not in page
    assert not re.search(r"(?<!\\)\]\(", page)
    assert _tables(page)[0] == [head for head in HEADERS if head not in ("USD", "tools")]
    assert len({len(row) for row in _tables(page)[:3]}) == 1


@pytest.mark.parametrize(
    "text", ["see https://evil.example/x", "ask @octocat", "closes #1", "mailto:a@b.example"]
)
def test_what_github_would_link_is_code(text: str) -> None:
    """GitHub links addresses, mentions and issues wherever they are, but not in code."""
    page = render_markdown(summary_of([missed(violation=text)]))

    assert text not in page
    assert "<code>" in page
