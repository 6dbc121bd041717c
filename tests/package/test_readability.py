"""Sentences of the pages are short enough to be read once."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

pytestmark = pytest.mark.newest

ROOT = Path(__file__).parents[2]
PAGES = sorted([ROOT / "README.md", *(ROOT / "docs").rglob("*.md")])
MOST_WORDS = 45
_FENCE = re.compile(r"^( *)```.*?^\1``` *$", re.MULTILINE | re.DOTALL)
_COMMENT = re.compile(r"<!--.*?-->", re.DOTALL)
_APART = re.compile(r"\s*(?:[|#!]|$)")  # a line of a table, a heading, a picture, an empty line
_ITEM = re.compile(r"\s*[-*]\s")
_NUMBER = re.compile(r"^( *)\d+\. ", re.MULTILINE)
_END = re.compile(r"(?<=[.!?])[)*\"]*\s+(?=[^a-z]|p\d)")


def sentences(page: str) -> list[str]:
    """The sentences outside of code blocks and tables; code and the address of a link are one word or none."""
    text = _COMMENT.sub("", _FENCE.sub("", page))
    text = re.sub(r"`[^`]*`", "CODE", _NUMBER.sub(r"\1- ", text))
    text = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", text)
    paragraphs = [""]
    for line in text.splitlines():
        is_apart = _APART.match(line)
        if is_apart or _ITEM.match(line):
            paragraphs.append("")
        if not is_apart:
            paragraphs[-1] += f" {line.strip()}"
    return [sentence for paragraph in paragraphs for sentence in _END.split(paragraph.strip()) if sentence]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_no_sentence_is_too_long(page: Path) -> None:
    """Every page, the README too; what has to be longer is a list or a table."""
    long = [one for one in sentences(page.read_text("utf-8")) if len(one.split()) > MOST_WORDS]

    assert not long


@pytest.mark.parametrize(
    ("page", "found"),
    [
        pytest.param("One two.\nThree four. Five", ["One two.", "Three four.", "Five"], id="sentences"),
        pytest.param("One\ntwo `x. Y z` three.", ["One two CODE three."], id="code-is-a-word"),
        pytest.param("See [the page](a.md).", ["See the page."], id="links"),
        pytest.param("- One\n  two\n- Three\n1. Four", ["- One two", "- Three", "- Four"], id="items"),
        pytest.param("# One\nTwo\n\n| a. B |\n| --- |\n\nThree", ["Two", "Three"], id="tables"),
        pytest.param("One\n\n```text\nTwo. Three\n```\n\nFour", ["One", "Four"], id="blocks"),
        pytest.param("Clients (e.g. two) see p. 5.", ["Clients (e.g. two) see p.", "5."], id="numbers"),
    ],
)
def test_what_a_sentence_is(page: str, found: list[str]) -> None:
    """Paragraphs and items are divided at full stops, question marks and exclamation marks."""
    assert sentences(page) == found
