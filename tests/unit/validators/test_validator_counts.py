"""max_words, max_sentences and exact_bullets."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_openclaw.judging.text import ExactBullets, MaxSentences, MaxWords, count_sentences
from pytest_openclaw.values.replies import Reply


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


@pytest.mark.parametrize(
    ("validator", "text", "passed", "violation"),
    [
        (MaxWords(value=4, at_least=2), "one two", True, None),
        (MaxWords(value=4, at_least=2), "one", False, "1 word, at least 2 needed"),
        (MaxSentences(value=3, at_least=2), "One.", False, "1 sentence, at least 2 needed"),
        (MaxSentences(value=3, at_least=2), "One. Two. Three. Four.", False, "4 sentences, at most 3 allowed"),
        (ExactBullets(value=3, at_least=1), "- a\n- b", True, None),
        (ExactBullets(value=3, at_least=1), "prose", False, "0 bullets, at least 1 needed"),
        (ExactBullets(value=1, at_least=0), "- a\n- b", False, "2 bullets, at most 1 allowed"),
        (ExactBullets(value=2), "- a", False, "1 bullet, exactly 2 allowed"),
        (ExactBullets(value=2), "* a\n* b", False, "0 bullets, exactly 2 allowed"),
        (ExactBullets(value=2, markers=["-", "*"]), "* a\n - b\n**bold**", True, None),
        (ExactBullets(value=2, markers=["*", "\u2022"]), "*\ta\n\u2022 b\n- c", True, None),
    ],
)  # fmt: skip
def test_lower_limits_and_markers(validator, text, passed, violation):
    """`at_least` is a lower limit, and markers other than `-` count before a blank."""
    verdict = validator.check(Reply(text=text))

    assert (verdict.passed, verdict.violation) == (passed, violation)


@pytest.mark.parametrize(
    ("make", "keys", "said"),
    [
        (MaxWords, {"value": 2, "at_least": 3}, '"at_least" is 3, more than "value", 2. Lower it.'),
        (MaxWords, {"value": 2, "at_least": "few"}, '"at_least" is the text "few". Write a whole number'),
        (ExactBullets, {"value": 2, "markers": []}, '"markers" may hold "-", "*", "+"'),
        (ExactBullets, {"value": 2, "markers": ["#"]}, '"markers" may hold "-", "*", "+"'),
    ],
)
def test_what_a_count_may_not_ask(make, keys, said):
    """A limit that no reply can meet, and a marker that is none, are slips."""
    with pytest.raises(ValueError, match="validator") as caught:
        make(**keys)

    assert said in str(caught.value)
