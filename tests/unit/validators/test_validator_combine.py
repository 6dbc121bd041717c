"""all_of, any_of and not."""

import pytest

from pytest_openclaw.judging.combine import AllOf, AnyOf, Not
from pytest_openclaw.judging.text import Contains, MaxWords, Noop
from pytest_openclaw.values.replies import Reply, Verdict

ONE_WORD = MaxWords(value=1)
HAS_A = Contains(value="a")
NOOP = Noop()


@pytest.mark.parametrize(
    ("validators", "text", "verdict"),
    [
        pytest.param([ONE_WORD, HAS_A], "a", Verdict(passed=True, parsed={"all_of": [{"words": 1}, None]}), id="both"),
        pytest.param([ONE_WORD, HAS_A], "b b", Verdict(passed=False, violation='2 words, at most 1 allowed; "b b" does not contain "a"', parsed={"all_of": [{"words": 2}, None]}), id="neither"),
        pytest.param([NOOP, HAS_A], "a", Verdict(passed=True, parsed={"all_of": [None, None]}), id="noop-is-silent"),
        pytest.param([NOOP], "a", Verdict(passed=None), id="only-noop"),
        pytest.param([], "a", Verdict(passed=None), id="empty"),
    ],
)  # fmt: skip
def test_all_of(validators, text, verdict):
    """all_of passes if nothing fails, and names everything that does."""
    assert AllOf(validators=validators).check(Reply(text=text)) == verdict


@pytest.mark.parametrize(
    ("validators", "text", "passed", "violation"),
    [
        pytest.param([ONE_WORD, HAS_A], "a a", True, None, id="one"),
        pytest.param([ONE_WORD, HAS_A], "b b", False, 'none of the alternatives passes: 2 words, at most 1 allowed; "b b" does not contain "a"', id="none"),
        pytest.param([NOOP, HAS_A], "b", False, 'none of the alternatives passes: "b" does not contain "a"', id="noop-is-no-alternative"),
        pytest.param([NOOP], "b", None, None, id="only-noop"),
        pytest.param([], "b", False, "none of the alternatives passes: there are none", id="empty"),
    ],
)  # fmt: skip
def test_any_of(validators, text, passed, violation):
    """any_of passes if something passes."""
    verdict = AnyOf(validators=validators).check(Reply(text=text))

    assert (verdict.passed, verdict.violation) == (passed, violation)


@pytest.mark.parametrize(
    ("validator", "text", "verdict"),
    [
        pytest.param(ONE_WORD, "a b", Verdict(passed=True, parsed={"words": 2}, harm=False), id="fails-inside"),
        pytest.param(ONE_WORD, "a", Verdict(passed=False, violation='max_words must not pass, and does: found {"words": 1}', parsed={"words": 1}, harm=True), id="passes-inside"),
        pytest.param(HAS_A, "a", Verdict(passed=False, violation="contains must not pass, and does", harm=True), id="nothing-parsed"),
        pytest.param(NOOP, "a", Verdict(passed=None), id="noop"),
        pytest.param(Not(validator=HAS_A), "a", Verdict(passed=True), id="twice"),
    ],
)  # fmt: skip
def test_not(validator, text, verdict):
    """Not turns the verdict round, and leaves the unjudged unjudged."""
    assert Not(validator=validator).check(Reply(text=text)) == verdict
