"""The pages on recommendations have the kinds, caveats, reasons and needs of the code."""

from __future__ import annotations

import ast
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


def codes_in_the_code() -> set[str]:
    """The codes of all reasons and caveats: constants, and the ones that are put together."""
    tree = ast.parse(inspect.getsource(recommendation))
    given = [
        word.value
        for call in ast.walk(tree)
        if isinstance(call, ast.Call) and isinstance(call.func, ast.Name) and call.func.id == "Point"
        for word in call.keywords
        if word.arg == "code"
    ]
    constant = {str(code.value) for code in given if isinstance(code, ast.Constant)}
    limits = set(re.findall(r'"(\w+_limit)"', inspect.getsource(recommendation)))
    turns = {f"turn_{bearable}" for bearable in get_args(Bearable)} - {"turn_yes"}
    assert len([code for code in given if not isinstance(code, ast.Constant)]) == len(("limits", "turns"))
    return constant | limits | turns


def test_all_kinds_are_on_the_page() -> None:
    """In the order in which they are reported, each with a sentence that the code writes."""
    table = rows(RECOMMENDATION, "The five kinds")

    assert [kind for kind, *_ in table] == [f"`{kind}`" for kind in get_args(Kind)]
    for kind, sentence, *_ in table:
        found = recommended(*SENTENCES[kind.strip("`")])
        assert (f"`{found.kind}`", f"`{found.sentence}`") == (kind, sentence)


def test_all_caveats_and_reasons_are_on_the_page() -> None:
    """Every code, and none that does not exist."""
    caveats, reasons = (codes(REFERENCE, heading) for heading in ("Caveats", "Reasons"))

    assert caveats | reasons == codes_in_the_code()
    assert caveats & reasons == {"context_too_small"}
    assert codes(RECOMMENDATION, "What is missing") == set(get_args(NeedKind))
