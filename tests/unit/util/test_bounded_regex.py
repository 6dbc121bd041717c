"""Patterns mean what `re` says, and end in bounded time."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_openclaw.util import bounded_regex
from pytest_openclaw.util.bounded_regex import compile_pattern, fullmatches, searches
from pytest_openclaw.util.errors import OpenClawError


@pytest.mark.parametrize(
    ("pattern", "text"),
    [
        pytest.param("x{e}", "x{e}", id="no-fuzzy-matching-yes"),
        pytest.param("x{e}", "zz", id="no-fuzzy-matching-no"),
        pytest.param("(?:abc){i<=1}", "abxc", id="no-fuzzy-insertion"),
        pytest.param("{e<=1}a", "{e<=1}a", id="brace-first"),
        pytest.param('{"a":[0-9]}', '{"a":1}', id="json"),
        pytest.param("a{", "a{", id="open-brace"),
        pytest.param("a{}", "a{}", id="empty-braces"),
        pytest.param("a{2}", "aa", id="repeat"),
        pytest.param("a{2,}", "aaaa", id="repeat-from"),
        pytest.param("a{,2}", "aa", id="repeat-to"),
        pytest.param("a{,}", "aaa", id="repeat-any"),
        pytest.param(r"\N{DIGIT ONE}", "1", id="named-character"),
        pytest.param("(?#{e})a", "a", id="comment"),
        pytest.param("[[:alpha:]]", "a", id="no-posix-class"),
        pytest.param("[[:alpha:]]", ":]", id="posix-class-as-plain-set"),
        pytest.param("[[a]", "[", id="bracket-in-a-set"),
        pytest.param("[]a]+", "]a", id="set-begins-with-bracket"),
        pytest.param("[^]a]+", "bc", id="negated-set-begins-with-bracket"),
        pytest.param(r"[a\]b]+", "a]b", id="escaped-bracket"),
        pytest.param("[a||b]+", "a|b", id="no-set-union"),
        pytest.param("[a&&b]+", "a&b", id="no-set-intersection"),
        pytest.param(r"\s", "\x1c", id="separator-is-space"),
        pytest.param(r"\S", "\x1c", id="separator-is-no-non-space"),
        pytest.param(r"[\s-]+", "-\x1f ", id="separator-in-a-set"),
        pytest.param(r"\w+", "m²½", id="fraction-is-a-word-character"),
        pytest.param(r"\W", "²", id="fraction-is-no-non-word"),
        pytest.param(r"m²\b.*", "m² x", id="word-ends-behind-a-fraction"),
        pytest.param(r"a\bb", "ab", id="no-word-ends-within"),
        pytest.param(r"\w+", "e\u0301", id="combining-mark-is-none"),
        pytest.param(r"[\w.]+", "m².x", id="word-characters-in-a-set"),
        pytest.param(r"(?a)\w+", "é", id="ascii-word"),
        pytest.param(r"(?a:\w+)", "é", id="ascii-group"),
        pytest.param(r"(?a)\s", "\x1c", id="ascii-space"),
        pytest.param(r"\d+", "٣", id="unicode-digit"),
        pytest.param("(?x) a  # half a [ bracket\n b", "ab", id="verbose"),
        pytest.param("a|ab", "ab", id="alternatives"),
        pytest.param("(?i)straße", "STRASSE", id="no-full-case-folding"),
        pytest.param(r"(?P<q>['\"]).*(?P=q)", "'a'", id="back-reference"),
        pytest.param("(a)?(?(1)b|c)", "ab", id="conditional"),
        pytest.param("(?>a+)b", "aab", id="atomic"),
        pytest.param("a++b", "aab", id="possessive"),
        pytest.param("(?<=a)b", "b", id="look-behind"),
        pytest.param(r"a\Z", "a", id="end"),
        pytest.param("(?s-i:.)", "\n", id="scoped-flags"),
    ],
)
@pytest.mark.filterwarnings("ignore::FutureWarning")
def test_same_meaning_as_re(pattern, text):
    """Every pattern decides as it does in Python's `re`."""
    assert fullmatches(pattern, text) is (re.fullmatch(pattern, text) is not None)
    assert searches(pattern, text) is (re.search(pattern, text) is not None)


@given(
    pattern=st.text(alphabet="ab[]{}()|*+?^$.,-\\sSwWd12:=<!ei", max_size=12),
    text=st.text(alphabet="ab []{}-1", max_size=8),
)
@pytest.mark.filterwarnings("ignore::FutureWarning")
def test_whatever_re_accepts_decides_alike(pattern, text):
    """A pattern is refused if `re` refuses it, and else means the same."""
    try:
        expected = re.fullmatch(pattern, text) is not None
    except (re.error, RecursionError, OverflowError):
        with pytest.raises(ValueError, match="is no regular expression"):
            compile_pattern(pattern)
        return
    assert fullmatches(pattern, text) is expected


@pytest.mark.parametrize(
    ("pattern", "why"),
    [
        pytest.param("[0-9", "unterminated character set at position 0", id="set"),
        pytest.param("(", "missing ), unterminated subpattern at position 0", id="group"),
        pytest.param(r"\p{L}", r"bad escape \p at position 0", id="only-in-regex"),
        pytest.param("a{99999999999}", "the repetition number is too large", id="number"),
    ],
)
def test_invalid_pattern(pattern, why):
    """A pattern that `re` refuses is refused with its reason and shown."""
    with pytest.raises(ValueError, match="is no regular expression") as caught:
        compile_pattern(pattern)

    assert str(caught.value) == (
        f'is no regular expression ({why}): "{pattern}". Fix it, or use another validator.'
    )


@pytest.mark.parametrize("decide", [fullmatches, searches])
def test_a_runaway_pattern_is_a_fault(monkeypatch, decide):
    """A pattern without an end stops after its time, and is the harness's fault, not the model's."""
    monkeypatch.setattr(bounded_regex, "PATTERN_TIMEOUT_S", 0.05)

    with pytest.raises(OpenClawError) as caught:
        decide("(?:x+x+)+y", "x" * 5000)

    assert str(caught.value) == (
        'the pattern "(?:x+x+)+y" cannot be decided on a reply of 5000 characters within 0.05 s.'
        " Write it without nested repeats, such as (a+)+."
    )
