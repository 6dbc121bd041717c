"""Typed answers as OpenClaw accepts them, and as they are expected."""

from __future__ import annotations

import json
from typing import Any

import pytest

from pytest_openclaw.judging.openclaw_answers import OpenclawDecision
from pytest_openclaw.values.replies import Reply

ROUTE = {"choice": ["a", "b", "c"], "expected": ["a", "b"]}
SCORE = {"score": 3, "expected": [1, 2]}
SURE = {"boolean": True, "expected": [0.7, 1]}


def _choice(**changes: Any) -> dict[str, Any]:
    return {"type": "choice", "choice": "a", "probabilities": {"a": 0.6, "b": 0.3, "c": 0.1}, **changes}


def _score(**changes: Any) -> dict[str, Any]:
    return {"type": "score", "score": 1.5, "probabilities": [0, 0.5, 0.5], **changes}


def _sure(**changes: Any) -> dict[str, Any]:
    return {"type": "boolean", "probabilityTrue": 0.9, **changes}


def _violation(question: dict[str, Any], given: Any) -> str | None:
    rule = OpenclawDecision(questions={"q": question})
    return rule.check(Reply(text=json.dumps({"q": given}))).violation


@pytest.mark.parametrize(
    ("question", "given"),
    [
        pytest.param(ROUTE, _choice(), id="choice"),
        pytest.param(ROUTE, _choice(choice="b", probabilities={"a": 0.5, "b": 0.5, "c": 0}), id="a-tie"),
        pytest.param(ROUTE, _choice(probabilities={"a": 1, "b": 1, "c": 1}), id="no-sum-of-1"),
        pytest.param(ROUTE, _choice(confidence=0.3), id="more-keys"),
        pytest.param({"choice": ["a", "b", "c"]}, _choice(choice="c", probabilities={"a": 0, "b": 0, "c": 1}), id="any"),
        pytest.param(SCORE, _score(), id="score"),
        pytest.param(SCORE, _score(score=2), id="the-last-level"),
        pytest.param({"score": 3}, _score(score=0), id="the-first-level"),
        pytest.param(SURE, _sure(), id="boolean"),
        pytest.param({"boolean": True}, _sure(probabilityTrue=0), id="never"),
    ],
)  # fmt: skip
def test_an_expected_answer_passes(question: dict[str, Any], given: dict[str, Any]) -> None:
    """OpenClaw accepts it, too."""
    assert _violation(question, given) is None


@pytest.mark.parametrize(
    ("question", "given", "violation"),
    [
        pytest.param(ROUTE, "a", "q: no answer of type choice", id="a-label-alone"),
        pytest.param(ROUTE, _sure(), "q: no answer of type choice", id="another-type"),
        pytest.param(ROUTE, _choice(choice="d"), 'q: the choice is none of "a", "b", "c"', id="no-label"),
        pytest.param(ROUTE, _choice(choice=["a"]), 'q: the choice is none of "a", "b", "c"', id="a-list"),
        pytest.param(ROUTE, _choice(probabilities={"a": 1}), "q: probabilities has not exactly the labels as keys", id="a-label-missing"),
        pytest.param(ROUTE, _choice(probabilities=[1, 0, 0]), "q: probabilities has not exactly the labels as keys", id="a-list-of-them"),
        pytest.param(ROUTE, _choice(probabilities={"a": 1.1, "b": 0, "c": 0}), "q: probabilities are not numbers from 0 to 1, or all 0", id="above-1"),
        pytest.param(ROUTE, _choice(probabilities={"a": "1", "b": 0, "c": 0}), "q: probabilities are not numbers from 0 to 1, or all 0", id="a-text"),
        pytest.param(ROUTE, _choice(probabilities={"a": 0, "b": 0, "c": 0}), "q: probabilities are not numbers from 0 to 1, or all 0", id="all-0"),
        pytest.param(ROUTE, _choice(choice="b"), 'q: "b" is chosen, and another label has a larger probability', id="not-the-likeliest"),
        pytest.param(ROUTE, _choice(choice="c", probabilities={"a": 0, "b": 0, "c": 1}), 'q: "c" is chosen, expected is "a", "b"', id="unexpected"),
        pytest.param(SCORE, _score(probabilities=[0, 1]), "q: probabilities is not a list of 3 numbers from 0 to 1, or all are 0", id="too-few"),
        pytest.param(SCORE, _score(probabilities={"0": 1}), "q: probabilities is not a list of 3 numbers from 0 to 1, or all are 0", id="no-list"),
        pytest.param(SCORE, _score(score=2.1), "q: the score is no number from 0 to 2", id="above-the-last"),
        pytest.param(SCORE, _score(score=True), "q: the score is no number from 0 to 2", id="true-is-no-number"),
        pytest.param(SCORE, _score(score=0.5), "q: score is 0.5, expected is 1 to 2", id="too-low"),
        pytest.param(SURE, _sure(probabilityTrue=90), "q: probabilityTrue is no number from 0 to 1", id="percent"),
        pytest.param(SURE, _sure(probabilityTrue=0.2), "q: probabilityTrue is 0.2, expected is 0.7 to 1", id="unlikely"),
    ],
)  # fmt: skip
def test_any_other_answer_fails(question: dict[str, Any], given: Any, violation: str) -> None:
    """First what OpenClaw would refuse, then what the evidence speaks against."""
    assert _violation(question, given) == violation


@pytest.mark.parametrize(
    ("text", "passed"),
    [
        pytest.param('{"q": ANSWER}', True, id="alone"),
        pytest.param('```json\n{"q": ANSWER}\n```', True, id="in-a-fence"),
        pytest.param('```\n{"q": ANSWER}```', True, id="in-a-bare-fence"),
        pytest.param('Here it is: {"q": ANSWER}', False, id="with-prose"),
        pytest.param('{"q": ANSWER, "r": ANSWER}', False, id="one-more"),
        pytest.param('{"r": ANSWER}', False, id="another-id"),
        pytest.param("[ANSWER]", False, id="a-list"),
        pytest.param("```", False, id="half-a-fence"),
        pytest.param("", False, id="nothing"),
    ],
)
def test_the_whole_reply_is_the_object(text: str, passed: bool) -> None:
    """One fence around it is taken off, as OpenClaw's tool for JSON tasks does."""
    rule = OpenclawDecision(questions={"q": SURE})

    assert rule.check(Reply(text=text.replace("ANSWER", json.dumps(_sure())))).passed is passed


@pytest.mark.parametrize(
    ("question", "message"),
    [
        pytest.param("a", '"q" is the text "a". Write an object', id="no-object"),
        pytest.param({}, 'the question "q" has no type. Write one of "choice", "score", "boolean"', id="no-type"),
        pytest.param({"score": 3, "boolean": True}, 'has "score", "boolean". Write one of', id="two-types"),
        pytest.param({"score": 3, "answer": 1}, 'has "answer". Write score and expected', id="an-unknown-key"),
        pytest.param({"choice": "a"}, '"choice" is the text "a". Write a list', id="labels"),
        pytest.param({"choice": ["a"], "expected": ["b"]}, '"expected" has what is no label', id="no-label"),
        pytest.param({"score": 1}, '"score" is 1. Write the number of levels', id="one-level"),
        pytest.param({"score": "3"}, '"score" is the text "3". Write the number of levels', id="no-number"),
        pytest.param({"score": 3, "expected": [1]}, '"expected" is no pair', id="half-a-pair"),
        pytest.param({"boolean": True, "expected": ["0", 1]}, '"expected" is no pair', id="no-numbers"),
        pytest.param({"boolean": True, "expected": 1}, '"expected" is 1. Write a list', id="no-list"),
    ],
)  # fmt: skip
def test_a_mistake_of_the_suite_is_an_error(question: Any, message: str) -> None:
    """With what to write."""
    with pytest.raises(ValueError, match="validator openclaw_decision") as error:
        OpenclawDecision(questions={"q": question})

    assert message in str(error.value)
