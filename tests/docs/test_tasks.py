"""What people come for is found within two clicks of the first page, and is in the menu."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.docs.reference import DOCS

pytestmark = pytest.mark.newest

# Task → the page that begins to answer it, and words of the link or the menu that lead there.
TASKS = {
    "choose a model for OpenClaw": ("how-to/choose.md", "choose"),
    "understand what a run recommends": ("how-to/recommendation.md", "recommendation"),
    "test whether a model obeys injected orders": ("how-to/injection.md", "injection"),
    "ask several models every night": ("how-to/nightly.md", "night"),
    "stop a merge that makes it worse": ("how-to/ci.md", "workflow|CI"),
    "write a suite": ("reference/suites.md", "suite"),
    "test a conversation of several turns": ("how-to/conversations.md", "conversation"),
    "show pictures to a model": ("how-to/images.md", "picture"),
    "know the cost beforehand": ("how-to/cost.md", "cost"),
    "give the models to OpenClaw's config": ("how-to/route.md", "OpenClaw"),
    "share a result": ("how-to/share.md", "share"),
    "divide a long run": ("how-to/shards.md", "jobs|shard"),
    "ask Ollama": ("how-to/ollama.md", "Ollama"),
    "ask as OpenClaw does": ("how-to/surface.md", "OpenClaw"),
    "find out why a model calls no tool": ("how-to/diagnose.md", "fault|diagnose"),
}


def links(page: Path) -> list[tuple[str, Path]]:
    """Words and pages of a page's links to other pages."""
    found = re.findall(r"\[([^\]]+)\]\(([^)#:\s]+\.md)(?:#[^)]*)?\)", page.read_text("utf-8"))
    places = [(words, (page.parent / place).resolve()) for words, place in found]
    return [(words, place) for words, place in places if place.exists()]


@pytest.mark.parametrize(("page", "words"), TASKS.values(), ids=TASKS)
def test_a_task_is_two_clicks_away(page: str, words: str) -> None:
    """By a link on the first page, or on a page that the first page links, whose words name the task."""
    first = links(DOCS / "index.md")
    second = [link for _, place in first for link in links(place)]

    named = [label for label, place in first + second if place == DOCS / page]
    assert any(re.search(words, label, re.IGNORECASE) for label in named), named


@pytest.mark.parametrize(("page", "words"), TASKS.values(), ids=TASKS)
def test_a_task_is_in_the_menu(page: str, words: str) -> None:
    """Under a title that names it."""
    menu = (DOCS.parent / "mkdocs.yml").read_text("utf-8").split("\nnav:\n")[1]
    titles = re.findall(rf"- \"?([^\"\n]+)\"?: {re.escape(page)}$", menu, re.MULTILINE)

    assert [title for title in titles if re.search(words, title, re.IGNORECASE)]
