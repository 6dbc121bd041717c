"""exact, one_of, regex_fullmatch, contains and noop."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_openclaw.judging.text import (
    Contains,
    Exact,
    ExactBullets,
    MaxSentences,
    MaxWords,
    Noop,
    OneOf,
    RegexFullmatch,
    count_sentences,
)
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
        (OneOf(values=[1], ignore_punctuation=True), "1", False),
        (Contains(value="port"), "a report", True),
        (Contains(value="day ticket", ignore_punctuation=True), "a day-ticket, or a day. ticket", True),
        (Contains(value="Day Ticket", ignore_case=True, ignore_punctuation=True), "a *day*  ticket", True),
    ],
)
def test_what_may_be_ignored(validator, text, passed):
    """Case, punctuation and parts of words count unless a suite says otherwise."""
    assert validator.check(Reply(text=text)).passed is passed


@pytest.mark.parametrize(
    ("text", "passed", "violation"),
    [
        pytest.param("is it up", True, None, id="under"),
        pytest.param("is\tit\nup\u00a0now", True, None, id="at-the-limit-any-whitespace"),
        pytest.param("is it up right now", False, "5 words, at most 4 allowed", id="over"),
        pytest.param("", True, None, id="empty"),
        pytest.param("is-it-up? - now !", True, None, id="runs-of-non-space"),
    ],
)
def test_max_words(text, passed, violation):
    """max_words counts runs of non-space characters against `value`."""
    verdict = MaxWords(value=4).check(Reply(text=text))

    assert (verdict.passed, verdict.violation) == (passed, violation)
    assert verdict.parsed == {"words": len(text.split())}


@pytest.mark.parametrize(
    ("text", "sentences"),
    [
        pytest.param("", 0, id="nothing"),
        pytest.param(" \n", 0, id="blanks"),
        pytest.param("All is well.", 1, id="one"),
        pytest.param("All is well", 1, id="no-mark"),
        pytest.param("All is well. Go on.", 2, id="two"),
        pytest.param("Is it? Yes! Good.", 3, id="all-three-marks"),
        pytest.param("One.\nTwo.\u00a0Three.", 3, id="any-white-space"),
        pytest.param("One.Two.Three.", 1, id="no-white-space"),
        pytest.param("RAM 7.6/62 GiB, load 1.05.", 1, id="decimals"),
        pytest.param("one\ntwo\nthree", 1, id="lines-without-marks"),
        pytest.param("Wait... done", 2, id="ellipsis"),
        pytest.param("What?! No!!", 2, id="runs-of-marks"),
        pytest.param("Yes! 🎉", 2, id="text-after-the-last-end"),
        pytest.param("! !", 2, id="marks-alone"),
        pytest.param('He said "Stop." and left.', 1, id="hidden-by-a-quote"),
        pytest.param('"All is well."', 1, id="quoted-whole"),
        pytest.param("It works (mostly.) Then not.", 1, id="hidden-by-a-bracket"),
        pytest.param("**Done.** Next.", 1, id="hidden-by-emphasis"),
        pytest.param("هل يعمل؟ نعم", 2, id="arabic"),
        pytest.param("نعم؟لا", 1, id="arabic-within-a-word"),
        pytest.param("はい。いいえ。", 2, id="cjk-without-white-space"),
        pytest.param("はい。いいえ", 2, id="cjk-text-after"),
        pytest.param("本当！？はい。", 2, id="cjk-run-of-marks"),
        pytest.param("はい。。。」", 1, id="cjk-run-hidden"),
        pytest.param("「はい。」と言った。", 1, id="cjk-hidden-by-a-quote"),
        pytest.param("本当!？ はい", 2, id="cjk-and-ascii-marks"),
        pytest.param("Use less, e.g. 12% of it.", 1, id="e.g."),
        pytest.param("E.g. this.", 1, id="capital-e.g."),
        pytest.param("That is, i.e. this.", 1, id="i.e."),
        pytest.param("It takes approx. 5 min.", 1, id="approx."),
        pytest.param("Dr. Who and Mr. Bean met Prof. X.", 1, id="titles"),
        pytest.param("It took 5 ms. Then it ended.", 2, id="ms-is-no-title"),
        pytest.param("The U.S. server is up.", 1, id="U.S."),
        pytest.param("J. Smith is here.", 2, id="one-initial"),
        pytest.param("At 5p.m. it fell.", 1, id="p.m."),
        pytest.param("TLS vs. plain.", 1, id="vs."),
        pytest.param("See Fig. 3 for it.", 1, id="Fig."),
        pytest.param("CPU, RAM, etc. were fine.", 1, id="etc."),
        pytest.param("CPU, RAM, etc.", 1, id="etc.-at-the-end"),
        pytest.param("Servers No. 1 and No. #2 are up.", 1, id="No.-before-a-numeral"),
        pytest.param("No. It is down.", 2, id="No-as-an-answer"),
        pytest.param("It is in the casino. Go.", 2, id="a-word-ending-in-no"),
        pytest.param("Take plan B. Then wait.", 2, id="one-initial"),
    ],
)
def test_count_sentences(text, sentences):
    """A sentence ends at a mark before white space, or at a CJK mark; abbreviations end nothing."""
    assert count_sentences(text) == sentences


@pytest.mark.parametrize(
    ("value", "passed", "violation"),
    [
        pytest.param(2, True, None, id="at-the-limit"),
        pytest.param(1, False, "2 sentences, at most 1 allowed", id="over"),
    ],
)
def test_max_sentences(value, passed, violation):
    """max_sentences compares the count with `value`."""
    verdict = MaxSentences(value=value).check(Reply(text="One. Two."))

    assert (verdict.passed, verdict.violation, verdict.parsed) == (passed, violation, {"sentences": 2})


@given(texts=st.lists(st.text(alphabet="ab 。.!\n", min_size=1), max_size=5))
def test_sentences_only_grow(texts):
    """A text with more behind it, after white space, never has fewer sentences."""
    counts = [count_sentences(" ".join(texts[:end])) for end in range(len(texts) + 1)]

    assert counts == sorted(counts)


@pytest.mark.parametrize(
    ("text", "bullets"),
    [
        pytest.param("- a\n- b\n- c", 3, id="plain"),
        pytest.param("Here:\n\n- a\n  - nested\n\t-tight\n\nBye - now", 3, id="prose-nesting-and-no-blank"),
        pytest.param("---\n-1\n- a", 3, id="rule-and-number-count"),
        pytest.param("* a\n+ b\n– c\n1. d", 0, id="other-marks-do-not"),
        pytest.param("- a\r\n- b\r- c\u2028- d\x0c- e\x85- f", 6, id="lines-of-splitlines"),
        pytest.param("", 0, id="empty"),
    ],
)
def test_exact_bullets_counts(text, bullets):
    """A bullet is a line that starts with `-` after spaces, at any position."""
    verdict = ExactBullets(value=bullets).check(Reply(text=text))

    assert (verdict.passed, verdict.parsed) == (True, {"bullets": bullets})


@pytest.mark.parametrize(
    ("text", "violation"),
    [
        pytest.param("- a", "1 bullet, exactly 3 allowed", id="too-few"),
        pytest.param("- a\n" * 4, "4 bullets, exactly 3 allowed", id="too-many"),
    ],
)
def test_exact_bullets_violation(text, violation):
    """Fewer and more bullets than `value` fail."""
    verdict = ExactBullets(value=3).check(Reply(text=text))

    assert (verdict.passed, verdict.violation) == (False, violation)
