"""`-k` with prompt ids, judged by pytest's own evaluation."""

from __future__ import annotations

import pytest
from _pytest.mark import expression as pytest_expression
from _pytest.mark.expression import Expression
from hypothesis import example, given
from hypothesis import strategies as st

from pytest_openclaw.suites.cells import keyword_token, rewrite_keyword

IDS = ("P0", "P1", "P10", "p2-b", "a.b[c", "Ärger")


def selected(expression, ids=IDS):
    """Return the ids that pytest would select, names and substrings compared without case as it does."""
    compiled = Expression.compile(rewrite_keyword(expression, ids).lstrip())

    def matches(one):
        keywords = (f"{one}[ollama_openai/m]".lower(), keyword_token(one).lower())
        return compiled.evaluate(lambda word: any(word.lower() in keyword for keyword in keywords))

    return [one for one in ids if matches(one)]


def is_accepted(expression):
    """Whether pytest can evaluate an expression; older versions raise their own error for that."""
    try:
        Expression.compile(expression.lstrip())
    except (SyntaxError, getattr(pytest_expression, "ParseError", SyntaxError)):
        return False
    return True


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
def test_what_k_selects(expression, expected):
    """An id means its prompt alone; anything else keeps pytest's substrings."""
    assert selected(expression) == expected


@pytest.mark.parametrize(
    "expression",
    [
        pytest.param("", id="empty"),
        pytest.param("router and not slow", id="no-id"),
        pytest.param("P1 P0", id="no-operator"),
        pytest.param("P1 and", id="no-operand"),
        pytest.param("(P1", id="open"),
        pytest.param("P1)", id="closed"),
        pytest.param("P1) or (P0", id="closed-before-it-is-opened"),
        pytest.param("P1 and 'P1'", id="quotes"),
        pytest.param("P1(x=1)", id="call"),
        pytest.param("P1 & P0", id="another-language"),
        pytest.param("P1\nor P0", id="line-break"),
        pytest.param("P100 or xP1", id="longer-words"),
    ],
)
def test_what_stays_byte_for_byte(expression):
    """Expressions without ids, and those that pytest refuses, are unchanged."""
    assert rewrite_keyword(expression, IDS) == expression


def test_only_the_ids_change():
    """Spaces, operators and other words around an id stay unchanged."""
    assert rewrite_keyword("  ( p1  or\tNOT) ", ["P1", "not"]) == (
        f"  ( {keyword_token('P1')}  or\t{keyword_token('not')}) "
    )


any_id = st.text(min_size=1, max_size=6)


@given(one=any_id, other=any_id)
@example(one="İ", other="i̇")
def test_no_token_is_part_of_another(one, other):
    """A token is found in another one only if both ids are the same to `-k`."""
    assert (keyword_token(one) in keyword_token(other)) is (one.lower() == other.lower())


@given(prompt_id=any_id, typed=st.text("abcdefghijklmnopqrstuvwxyz0123456789_.:/+-[]\\", min_size=1))
def test_a_token_passes_through_pytest(prompt_id, typed):
    """A token is one identifier to pytest, survives lower-casing, and contains nothing that users type."""
    token = keyword_token(prompt_id)

    assert token.lower() == token
    assert Expression.compile(f"not ({token})").evaluate(lambda word: word != token)
    assert typed not in token


words = st.sampled_from(
    [*IDS, "p1", "P", "router", "and", "or", "not", "(", ")", " ", "\t", "'", "=", ",", "&"]
)


@given(parts=st.lists(words, max_size=9), ids=st.lists(st.sampled_from(IDS), unique=True))
def test_pytest_takes_the_new_expression_as_it_took_the_old(parts, ids):
    """An expression that pytest refuses is unchanged, an accepted one stays accepted; twice equals once."""
    expression = "".join(parts)

    rewritten = rewrite_keyword(expression, ids)

    assert is_accepted(rewritten) is is_accepted(expression)
    assert is_accepted(expression) or rewritten == expression
    assert rewrite_keyword(rewritten, ids) == rewritten


@given(
    ids=st.lists(
        st.from_regex(r"[A-Za-z0-9_.+-]{1,4}", fullmatch=True), unique_by=str.lower, min_size=1, max_size=6
    ),
    data=st.data(),
)
def test_an_id_selects_its_prompt_alone(ids, data):
    """For any ids, `-k ID` is that prompt and `-k "not ID"` are all others."""
    chosen = data.draw(st.sampled_from([one for one in ids if one not in ("and", "or", "not")] or ["zzzzz"]))

    expected = [one for one in ids if one == chosen]
    assert (
        selected(chosen.swapcase() if chosen.swapcase() not in ("and", "or", "not") else chosen, ids)
        == expected
    )
    assert selected(f"not {chosen}", ids) == [one for one in ids if one != chosen]
