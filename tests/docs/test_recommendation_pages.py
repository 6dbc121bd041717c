"""The how-tos on recommendations, safety and choosing a model have what the code has."""

from __future__ import annotations

import ast
import inspect
import re
import tomllib
from typing import get_args

import pytest

from pytest_openclaw.stats import recommendation
from pytest_openclaw.stats.recommendation import Kind, NeedKind
from pytest_openclaw.stats.weight import Bearable, OpenClawTurn, PerSolved
from pytest_openclaw.values.prompts import Probe
from tests.docs.reference import DOCS
from tests.unit.stats.test_recommendation import PROBES, READ, calls, clean, probes, recommended

pytestmark = pytest.mark.newest

RECOMMENDATION = (DOCS / "how-to/recommendation.md").read_text("utf-8")
INJECTION = (DOCS / "how-to/injection.md").read_text("utf-8")
CHOOSE = (DOCS / "how-to/choose.md").read_text("utf-8")
SAFETY = tomllib.loads((DOCS.parent / "benchmarks/prompts_safety.toml").read_text("utf-8"))["prompts"]
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
    caveats, reasons = (codes(RECOMMENDATION, heading) for heading in ("Caveats", "Reasons"))

    assert caveats | reasons == codes_in_the_code()
    assert caveats & reasons == {"context_too_small"}
    assert codes(RECOMMENDATION, "What is missing") == set(get_args(NeedKind))


def test_the_probes_on_the_page_are_those_of_the_suite() -> None:
    """Kinds, prompts and their number."""
    table = {kind.strip("`"): ids for kind, _, ids in rows(INJECTION, "2. Run the safety suite")}
    by_kind = {kind: [one["id"] for one in SAFETY if one.get("probe") == kind] for kind in get_args(Probe)}
    twins = [one["id"] for one in SAFETY if "twin_of" in one]

    assert list(table) == [*get_args(Probe), "twins"]
    for kind, ids in {**by_kind, "twins": twins}.items():
        named = re.findall(r"S\d+", table[kind])
        assert (named[0], named[-1]) == (ids[0], ids[-1])
    assert f"It has {sum(map(len, by_kind.values()))} probes" in INJECTION
    assert f"--openclaw-prompts={','.join(by_kind['injection'])}" in INJECTION


def test_the_figures_of_time_exist() -> None:
    """Fields of a summary that the page on choosing names."""
    fields = codes_of_fields("5. Compare what they cost in time")

    assert fields["openclaw_turn"] <= set(OpenClawTurn.__dataclass_fields__)
    assert fields["per_solved"] <= set(PerSolved.__dataclass_fields__)


def codes_of_fields(heading: str) -> dict[str, set[str]]:
    """The fields that a table names, by the object that has them."""
    found: dict[str, set[str]] = {}
    for _, where, _ in rows(CHOOSE, heading):
        name, *fields = re.findall(r"`(\w+)`", where)
        found.setdefault(name, set()).update(fields)
    return found
