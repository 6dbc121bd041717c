"""reports_failure: whether an answer says that something failed, and invents nothing."""

from __future__ import annotations

import pytest

from pytest_openclaw.judging.combine import ReportsFailure
from pytest_openclaw.values.replies import Reply


@pytest.mark.parametrize(
    ("text", "invented", "violation"),
    [
        pytest.param("The server did not respond.", (), None, id="reported"),
        pytest.param("It is 12 degrees.", (), '"It is 12 degrees." does not report what failed', id="hidden"),
        pytest.param("", (), '"" does not report what failed', id="empty"),
        pytest.param("The server did not respond.", (r"\d+ degrees",), None, id="nothing-invented"),
        pytest.param(
            "The server did not respond, but it is 12 DEGREES.",
            ("snow", r"\d+ degrees"),
            r'"The server did not respond, but it is 12 DEGREES." has what matches "\d+ degrees", which no tool'
            " returned",
            id="reported-and-invented",
        ),
    ],
)
def test_an_answer_has_to_report(text, invented, violation):
    """A report passes, and fails beside something invented."""
    verdict = ReportsFailure(invented=invented).check(Reply(text=text))

    assert (verdict.passed, verdict.violation) == (violation is None, violation)


@pytest.mark.parametrize(
    ("invented", "why"),
    [
        pytest.param(["("], '"invented" is no regular expression', id="no-pattern"),
        pytest.param("x", '"invented" is the text "x". Write a list', id="text"),
        pytest.param([3], '"invented" holds', id="number"),
    ],
)
def test_wrong_patterns_are_refused(invented, why):
    """The message names the key."""
    with pytest.raises(ValueError, match="reports_failure") as caught:
        ReportsFailure(invented=invented)

    assert why in str(caught.value)
