"""exact, one_of, regex_fullmatch, contains and noop."""

import pytest

from pytest_openclaw.judging.text import Contains, Exact, Noop, OneOf, RegexFullmatch
from pytest_openclaw.values.replies import Reply, Verdict

FOUR_BLANKS = " \t\r\n"


def test_noop():
    """Noop leaves every reply unjudged."""
    assert Noop().check(Reply(text="anything")) == Verdict(passed=None)


@pytest.mark.parametrize(
    ("text", "passed"),
    [
        pytest.param("HEARTBEAT_OK", True, id="same"),
        pytest.param(f"{FOUR_BLANKS}HEARTBEAT_OK{FOUR_BLANKS}", True, id="four-blanks-around"),
        pytest.param("heartbeat_ok", False, id="other-case"),
        pytest.param("HEARTBEAT_OK.", False, id="period"),
        pytest.param("", False, id="empty"),
        pytest.param("\u00a0HEARTBEAT_OK", False, id="nbsp-is-no-blank"),
        pytest.param("\x0bHEARTBEAT_OK", False, id="vt-is-no-blank"),
        pytest.param("\x0cHEARTBEAT_OK", False, id="ff-is-no-blank"),
        pytest.param("HEARTBEAT_OK\u2028", False, id="line-separator-is-no-blank"),
    ],
)
def test_exact(text, passed):
    """Exact compares the whole answer, including case, without the four kinds of white space around it."""
    assert Exact(value="HEARTBEAT_OK").check(Reply(text=text)).passed is passed


def test_exact_blanks_around_the_value():
    """White space around the value does not count either: a multi-line text in TOML ends with a newline."""
    assert Exact(value="two\nlines\n").check(Reply(text="two\nlines")).passed is True


def test_exact_violation():
    """The violation has the answer, escaped and on one line, and the expected value."""
    verdict = Exact(value="up").check(Reply(text="do\x1b[1mwn\nnow\ud800"))

    assert verdict.violation == r'"do\x1b[1mwn\nnow\ud800" is not "up"'
    assert verdict.parsed == {"text": "do\x1b[1mwn\nnow\ufffd"}


def test_long_answers_are_shortened():
    """A violation shows 80 characters of an answer, from both ends, and parsed_output keeps 1000."""
    verdict = Exact(value="up").check(Reply(text="a" * 1000 + "z" * 1000))

    assert verdict.violation == f'"{"a" * 38}...{"z" * 38}" is not "up"'
    assert verdict.parsed == {"text": "a" * 1000}


@pytest.mark.parametrize(
    ("text", "passed"),
    [
        pytest.param("yes", True, id="first"),
        pytest.param("no\n", True, id="second-and-newline"),
        pytest.param("Yes", False, id="other-case"),
        pytest.param("yes.", False, id="period"),
        pytest.param("yes no", False, id="both"),
        pytest.param("1", False, id="a-number-matches-no-text"),
    ],
)
def test_one_of(text, passed):
    """one_of requires one of its values as the whole answer; a number among them matches nothing."""
    assert OneOf(values=("yes", " no ", 1)).check(Reply(text=text)).passed is passed


@pytest.mark.parametrize(
    ("values", "violation"),
    [
        pytest.param(("yes", "no", 1), '"maybe" is not one of "yes", "no", 1', id="several"),
        pytest.param((), '"maybe" is not one of nothing', id="an-empty-list-matches-nothing"),
    ],
)
def test_one_of_violation(values, violation):
    """The violation lists the allowed values."""
    verdict = OneOf(values=values).check(Reply(text="maybe"))

    assert (verdict.passed, verdict.violation) == (False, violation)


@pytest.mark.parametrize(
    ("pattern", "text", "passed"),
    [
        pytest.param("[0-9]+", "16", True, id="whole"),
        pytest.param("[0-9]+", " 16\n", True, id="blanks-around"),
        pytest.param("[0-9]+", "16G", False, id="part"),
        pytest.param("[0-9]+", "", False, id="empty"),
        pytest.param("a.b", "a\nb", False, id="dot-is-no-newline"),
        pytest.param("(?s)a.b", "a\nb", True, id="inline-flag"),
        pytest.param("(?i)yes|no", "YES", True, id="alternatives"),
    ],
)
def test_regex_fullmatch(pattern, text, passed):
    """regex_fullmatch requires the whole answer to match."""
    assert RegexFullmatch(pattern=pattern).check(Reply(text=text)).passed is passed


def test_regex_fullmatch_violation():
    """The violation shows answer and pattern, the pattern as it was written."""
    verdict = RegexFullmatch(pattern=r"\d+").check(Reply(text="none"))

    assert verdict.violation == r'"none" does not match "\d+"'


@pytest.mark.parametrize(
    ("text", "ignore_case", "passed"),
    [
        pytest.param("restart nginx now", False, True, id="within"),
        pytest.param("restart Nginx now", False, False, id="other-case"),
        pytest.param("restart Nginx now", True, True, id="case-ignored"),
        pytest.param("", True, False, id="empty"),
    ],
)
def test_contains(text, ignore_case, passed):
    """Contains requires its value anywhere in the answer."""
    verdict = Contains(value="nginx", ignore_case=ignore_case).check(Reply(text=text))

    assert verdict.passed is passed
    assert (verdict.violation is None) is passed


def test_contains_violation():
    """The violation shows the answer and the missing value."""
    assert Contains(value="b").check(Reply(text="a")).violation == '"a" does not contain "b"'


@pytest.mark.parametrize(
    ("validator", "text", "passed"),
    [
        (OneOf(values=["yes", "no"]), "Yes.", False),
        (OneOf(values=["yes", "no"], ignore_case=True), "YES", True),
        (OneOf(values=["yes", "no"], ignore_case=True), "Yes.", False),
        (OneOf(values=["yes", "no"], ignore_case=True, ignore_punctuation=True), "**Yes!**", True),
        (OneOf(values=["e.g."], ignore_punctuation=True), "eg", True),
        (OneOf(values=["हिंदी"], ignore_punctuation=True), "**हिंदी।**", True),
        (OneOf(values=["हिंदी"], ignore_punctuation=True), "हंद", False),
        (OneOf(values=["café"], ignore_punctuation=True), "cafe\u0301!", True),
        (OneOf(values=["1"], ignore_punctuation=True), "1\ufe0f\u20e3", True),
        (OneOf(values=[1], ignore_punctuation=True), "1", False),
        (Contains(value="port"), "a report", True),
        (Contains(value="port", whole_words=True), "a report", False),
        (Contains(value="port", whole_words=True), "port_80", False),
        (Contains(value="port", whole_words=True), "the port: 80", True),
        (Contains(value="C++", whole_words=True), "use C++, please", True),
        (Contains(value="day ticket", ignore_punctuation=True), "a day-ticket, or a day. ticket", True),
        (Contains(value="Day Ticket", ignore_case=True, ignore_punctuation=True), "a *day*  ticket", True),
        (Contains(value="don't", ignore_punctuation=True, whole_words=True), "I dont know", True),
    ],
)
def test_what_may_be_ignored(validator, text, passed):
    """Case, punctuation and parts of words count unless a suite says otherwise."""
    assert validator.check(Reply(text=text)).passed is passed


def test_punctuation_alone_is_in_every_reply():
    """A value of which nothing is left is refused."""
    with pytest.raises(ValueError, match='"value" is empty, which every reply contains'):
        Contains(value="?!", ignore_punctuation=True)
