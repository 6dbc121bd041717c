"""openclaw_ack: whether OpenClaw would stay silent."""

from __future__ import annotations

import json
from typing import Any

import pytest

from pytest_openclaw.judging.openclaw_answers import OpenclawAck, OpenclawText
from pytest_openclaw.values.replies import Reply
from tests.unit.judging.conftest import build


@pytest.mark.parametrize(
    ("text", "parsed"),
    [
        pytest.param("NO_REPLY", {"token": "NO_REPLY", "rest_chars": 0}, id="no-reply"),
        pytest.param("\n NO_REPLY\u00a0", {"token": "NO_REPLY", "rest_chars": 0}, id="no-reply-in-blanks"),
        pytest.param("HEARTBEAT_OK", {"token": "HEARTBEAT_OK", "rest_chars": 0}, id="alone"),
        pytest.param("HEARTBEAT_OK HEARTBEAT_OK", {"token": "HEARTBEAT_OK", "rest_chars": 0}, id="twice"),
        pytest.param("HEARTBEAT_OK!!!", {"token": "HEARTBEAT_OK", "rest_chars": 3}, id="marks-behind"),
        pytest.param("**HEARTBEAT_OK**", {"token": "HEARTBEAT_OK", "rest_chars": 2}, id="emphasis"),
        pytest.param("<b>HEARTBEAT_OK</b>", {"token": "HEARTBEAT_OK", "rest_chars": 0}, id="html"),
        pytest.param("_**HEARTBEAT_OK** fine_", {"token": "HEARTBEAT_OK", "rest_chars": 7}, id="emphasis-at-edges"),
        pytest.param("HEARTBEAT_OK all\n\nis well", {"token": "HEARTBEAT_OK", "rest_chars": 11}, id="start"),
        pytest.param("All is well. HEARTBEAT_OK", {"token": "HEARTBEAT_OK", "rest_chars": 12}, id="end"),
        pytest.param("All is well: HEARTBEAT_OK.", {"token": "HEARTBEAT_OK", "rest_chars": 12}, id="end-and-mark"),
        pytest.param("HEARTBEAT_OK " + "x" * 300, {"token": "HEARTBEAT_OK", "rest_chars": 300}, id="at-the-limit"),
    ],
)  # fmt: skip
def test_silent(text, parsed):
    """OpenClaw drops these replies."""
    verdict = OpenclawAck().check(Reply(text=text))

    assert (verdict.passed, verdict.violation, verdict.parsed) == (True, None, parsed)


NEITHER = "not only NO_REPLY, and no HEARTBEAT_OK at the start or the end"


@pytest.mark.parametrize(
    ("text", "violation"),
    [
        pytest.param("The disk is full.", NEITHER, id="an-alert"),
        pytest.param("", NEITHER, id="empty"),
        pytest.param("NO_REPLY needed", NEITHER, id="no-reply-with-more"),
        pytest.param("no_reply", NEITHER, id="other-case"),
        pytest.param("I would say HEARTBEAT_OK but no", NEITHER, id="in-the-middle"),
        pytest.param("HEARTBEAT", NEITHER, id="half"),
        pytest.param("HEARTBEAT_OK " + "x" * 301, "301 characters in addition to HEARTBEAT_OK, at most 300 allowed", id="over-the-limit"),
    ],
)  # fmt: skip
def test_posted(text, violation):
    """OpenClaw posts these replies to the channel."""
    verdict = OpenclawAck().check(Reply(text=text))

    assert (verdict.passed, verdict.violation) == (False, violation)


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
    rule = build("openclaw_decision", questions={"q": question})
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
        pytest.param(ROUTE, "a", 'it is "a", not a table', id="a-label-alone"),
        pytest.param(ROUTE, _sure(), 'type is "boolean", not one of choice', id="another-type"),
        pytest.param(ROUTE, _choice(choice="d"), 'the choice is not one of "a", "b", "c"', id="no-label"),
        pytest.param(ROUTE, _choice(probabilities={"a": 1}), "are not exactly the labels", id="a-label-missing"),
        pytest.param(ROUTE, _choice(probabilities=[1, 0, 0]), "not a table", id="a-list-of-them"),
        pytest.param(ROUTE, _choice(probabilities={"a": 1.1, "b": 0, "c": 0}), "not a number <= 1", id="above-1"),
        pytest.param(ROUTE, _choice(probabilities={"a": 0, "b": 0, "c": 0}), "or all values are 0", id="all-0"),
        pytest.param(ROUTE, _choice(choice="b"), "another label has a larger probability", id="not-the-likeliest"),
        pytest.param(ROUTE, _choice(choice="c", probabilities={"a": 0, "b": 0, "c": 1}), '"c" is chosen, expected is "a", "b"', id="unexpected"),
        pytest.param(SCORE, _score(probabilities=[0, 1]), "not a list of 3 numbers", id="too-few"),
        pytest.param(SCORE, _score(score=2.1), "the score is not a number from 0 to 2", id="above-the-last"),
        pytest.param(SCORE, _score(score=True), "score is true, not a number", id="true-is-no-number"),
        pytest.param(SCORE, _score(score=0.5), "score is 0.5, expected is 1 to 2", id="too-low"),
        pytest.param(SURE, _sure(probabilityTrue=90), "probabilityTrue is 90, not a number <= 1", id="percent"),
        pytest.param(SURE, _sure(probabilityTrue=0.2), "probabilityTrue is 0.2, expected is 0.7 to 1", id="unlikely"),
    ],
)  # fmt: skip
def test_any_other_answer_fails(question: dict[str, Any], given: Any, violation: str) -> None:
    """First the errors that OpenClaw refuses, then answers that the evidence contradicts."""
    assert violation in (_violation(question, given) or "")


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
    rule = build("openclaw_decision", questions={"q": SURE})

    assert rule.check(Reply(text=text.replace("ANSWER", json.dumps(_sure())))).passed is passed


LONG = "word " * 11 + "words"


@pytest.mark.parametrize(
    ("form", "text", "shown"),
    [
        pytest.param("title", "  Broken router ", "Broken router", id="plain"),
        pytest.param("title", "Title:  “Broken router”", "“Broken router”", id="only-straight-quotes-go"),
        pytest.param("title", 'title : "Broken `router`"', "Broken `router", id="prefix-and-quotes"),
        pytest.param("title", "```text\r\nBroken\trouter\n```", "Broken router", id="a-fence"),
        pytest.param("title", "\n\nBroken router\nIt is about wifi.", "Broken router", id="the-first-line"),
        pytest.param("title", LONG, LONG, id="sixty-characters"),
        pytest.param("recap", " All\n\n is  done. ", "All is done.", id="one-line"),
        pytest.param("recap", '"Quoted."', '"Quoted."', id="a-recap-keeps-quotes"),
        pytest.param("status", "“Reading\nmail.”", "Reading mail.", id="a-status-loses-all-quotes"),
        pytest.param("recap", "x" * 450, "x" * 450, id="the-longest-recap"),
        pytest.param("status", "x" * 280, "x" * 280, id="the-longest-status"),
    ],
)
def test_a_whole_text_passes(form: str, text: str, shown: str) -> None:
    """It is kept as OpenClaw shows it."""
    verdict = OpenclawText(form=form).check(Reply(text=text))

    assert (verdict.passed, verdict.parsed) == (True, {"text": shown})


@pytest.mark.parametrize(
    ("form", "text", "violation"),
    [
        pytest.param("title", "```\n```", "no text is left for a title", id="a-fence-alone"),
        pytest.param("title", 'Title: ""', "no text is left for a title", id="quotes-alone"),
        pytest.param("recap", "", "no text is left for a recap", id="nothing"),
        pytest.param("title", LONG + "!", "is all that OpenClaw shows", id="sixty-one"),
        pytest.param("title", f"Title: {LONG}", "is all that OpenClaw shows", id="the-prefix-counts"),
        pytest.param("title", "🦞" * 31, "is all that OpenClaw shows", id="two-units-each"),
        pytest.param("recap", "x" * 451, "is all that OpenClaw shows", id="a-long-recap"),
        pytest.param("status", "x" * 281, "is all that OpenClaw shows", id="a-long-status"),
    ],
)
def test_what_is_cut_off_or_empty_fails(form: str, text: str, violation: str) -> None:
    """The limits are from OpenClaw 2026.9.6, in units of UTF-16."""
    verdict = OpenclawText(form=form).check(Reply(text=text))

    assert verdict.passed is False
    assert violation in str(verdict.violation)


def test_a_line_beyond_the_limit_is_never_read() -> None:
    """A long preface pushes the title out; the first line of the rest is shown."""
    verdict = OpenclawText(form="title").check(Reply(text="Sure, here it is:\n" + LONG))

    assert (verdict.passed, verdict.parsed) == (True, {"text": "Sure, here it is:"})


@pytest.mark.parametrize(
    ("text", "violation"),
    [
        pytest.param("Der ROUTER streikt", None, id="any-case"),
        pytest.param("Netz streikt", None, id="an-alternative"),
        pytest.param("Der Router ist alt", '"Der Router ist alt" has none of "streik", "defekt"', id="the-second-list"),
        pytest.param("WLAN streikt", '"WLAN streikt" has none of "router", "netz"', id="the-first-list"),
        pytest.param("Router streikt, sorry", '"Router streikt, sorry" has "Sorry"', id="never"),
    ],
)  # fmt: skip
def test_words_are_looked_for(text: str, violation: str | None) -> None:
    """One of each list, and none of `never`."""
    rule = OpenclawText(form="title", about=(("router", "netz"), ("streik", "defekt")), never=("Sorry",))

    assert rule.check(Reply(text=text)).violation == violation
