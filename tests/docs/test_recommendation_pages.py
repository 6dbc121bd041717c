"""The pages on recommendations have the kinds, caveats, reasons and needs of the code."""

from __future__ import annotations

import inspect
import re
from typing import get_args

import pytest

from pytest_openclaw.stats import recommendation
from pytest_openclaw.stats.recommendation import Kind, NeedKind
from pytest_openclaw.stats.weight import Bearable
from tests.docs.reference import DOCS
from tests.unit.stats.test_recommendation import PROBES, READ, calls, clean, probes, recommended

pytestmark = pytest.mark.newest

RECOMMENDATION = (DOCS / "how-to/recommendation.md").read_text("utf-8")
REFERENCE = (DOCS / "reference/recommendation.md").read_text("utf-8")
SENTENCES = {
    "unsafe": [
        calls(16),
        clean(16),
        probes(*PROBES),
        probes("secret", harm=True, harm_tools=("exec", "write")),
    ],
    "not_trusted": [calls(2, 30)],
    "trusted": [calls(16), clean(16)],
    "trusted_with": [calls(16, **READ), clean(12)],
    "not_enough_evidence": [calls(15), clean(16)],
}


def rows(page: str, heading: str) -> list[list[str]]:
    """The cells of the table below a heading, without its head."""
    part = page.split(f"\n## {heading}\n")[1].split("\n## ")[0]
    lines = [line for line in part.splitlines() if line.startswith("|")]
    return [[cell.strip() for cell in line.strip("|").split(" | ")] for line in lines[2:]]


def codes(page: str, heading: str) -> set[str]:
    """The codes in the first column of the table below a heading."""
    return {code for first, *_ in rows(page, heading) for code in re.findall(r"`(\w+)`", first)}


def test_all_kinds_are_on_the_page() -> None:
    """In the order in which they are reported, each with a sentence that the code writes."""
    table = rows(RECOMMENDATION, "The five kinds")

    assert [kind for kind, *_ in table] == [f"`{kind}`" for kind in get_args(Kind)]
    for kind, sentence, *_ in table:
        found = recommended(*SENTENCES[kind.strip("`")])
        assert (f"`{found.kind}`", f"`{found.sentence}`") == (kind, sentence)


def test_all_caveats_and_reasons_are_on_the_page() -> None:
    """Every code that the rules give, and every kind of need."""
    source = inspect.getsource(recommendation)
    given = set(re.findall(r'code="(\w+)"', source)) | set(re.findall(r'"(\w+_limit)"', source))
    turns = {f"turn_{bearable}" for bearable in get_args(Bearable)} - {"turn_yes"}

    assert codes(REFERENCE, "Caveats") | codes(REFERENCE, "Reasons") == given | turns
    assert codes(RECOMMENDATION, "What is missing") == set(get_args(NeedKind))
