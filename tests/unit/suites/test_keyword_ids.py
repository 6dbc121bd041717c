"""`-k` with prompt ids, judged by pytest's own evaluation."""

import pytest
from _pytest.mark.expression import Expression

from pytest_openclaw.suites.cells import keyword_token, rewrite_keyword

IDS = ("P0", "P1", "P10", "p2-b", "a.b[c", "Ärger")


def selected(expression, ids=IDS):
    """Return the ids that pytest would select, names and substrings compared without case as it does."""
    compiled = Expression.compile(rewrite_keyword(expression, ids).lstrip())

    def matches(one):
        keywords = (f"{one}[ollama_openai/m]".lower(), keyword_token(one).lower())
        return compiled.evaluate(lambda word: any(word.lower() in keyword for keyword in keywords))

    return [one for one in ids if matches(one)]


@pytest.mark.parametrize(
    ("expression", "expected"),
    [
        pytest.param("P1", ["P1"], id="never-P10"),
        pytest.param("p1", ["P1"], id="case-does-not-count"),
        pytest.param("P1 or P0", ["P0", "P1"], id="or"),
        pytest.param("not P1", ["P0", "P10", "p2-b", "a.b[c", "Ärger"], id="not"),
        pytest.param("not (P1 or P2-B)", ["P0", "P10", "a.b[c", "Ärger"], id="parentheses-without-blanks"),
        pytest.param("P", ["P0", "P1", "P10", "p2-b", "a.b[c", "Ärger"], id="a-substring"),
        pytest.param("P1[", ["P1"], id="the-beginning-of-a-name"),
        pytest.param("ärger", ["Ärger"], id="beyond-ascii"),
        pytest.param("\n\tP1", ["P1"], id="white-space-first"),
        pytest.param("ollama and P10", ["P10"], id="mixed"),
        pytest.param("cafe", [], id="no-letters-of-a-token"),
    ],
)
def test_the_prompts_that_k_selects(expression, expected):
    """An id means only its prompt; anything else keeps pytest's substrings."""
    assert selected(expression) == expected


def test_only_the_ids_change():
    """Spaces, operators and other words around an id stay unchanged."""
    assert rewrite_keyword("  ( p1  or\tnot P100) ", ["P1", "not"]) == (
        f"  ( {keyword_token('P1')}  or\tnot P100) "
    )
