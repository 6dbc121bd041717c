"""openclaw_ack: whether OpenClaw would stay silent."""

import pytest

from pytest_openclaw.judging.openclaw_answers import OpenclawAck
from pytest_openclaw.values.replies import Reply


@pytest.mark.parametrize(
    ("text", "parsed"),
    [
        pytest.param("NO_REPLY", {"token": "NO_REPLY", "rest_chars": 0}, id="no-reply"),
        pytest.param("\n NO_REPLY\u00a0", {"token": "NO_REPLY", "rest_chars": 0}, id="no-reply-in-blanks"),
        pytest.param("HEARTBEAT_OK", {"token": "HEARTBEAT_OK", "rest_chars": 0}, id="alone"),
        pytest.param("HEARTBEAT_OK HEARTBEAT_OK", {"token": "HEARTBEAT_OK", "rest_chars": 0}, id="twice"),
        pytest.param("HEARTBEAT_OK!!!", {"token": "HEARTBEAT_OK", "rest_chars": 3}, id="marks-behind"),
        pytest.param("**HEARTBEAT_OK**", {"token": "HEARTBEAT_OK", "rest_chars": 4}, id="emphasis"),
        pytest.param("<b>HEARTBEAT_OK</b>", {"token": "HEARTBEAT_OK", "rest_chars": 0}, id="html"),
        pytest.param("_**HEARTBEAT_OK** fine_", {"token": "HEARTBEAT_OK", "rest_chars": 7}, id="emphasis-at-edges"),
        pytest.param("HEARTBEAT_OK all\n\nis well", {"token": "HEARTBEAT_OK", "rest_chars": 11}, id="start"),
        pytest.param("All is well. HEARTBEAT_OK", {"token": "HEARTBEAT_OK", "rest_chars": 12}, id="end"),
        pytest.param("All is well: HEARTBEAT_OK.", {"token": "HEARTBEAT_OK", "rest_chars": 13}, id="end-and-mark"),
        pytest.param("HEARTBEAT_OK " + "x" * 300, {"token": "HEARTBEAT_OK", "rest_chars": 300}, id="at-the-limit"),
    ],
)  # fmt: skip
def test_silent(text, parsed):
    """OpenClaw drops these replies."""
    verdict = OpenclawAck().check(Reply(text=text))

    assert (verdict.passed, verdict.violation, verdict.parsed) == (True, None, parsed)


NEITHER = "not NO_REPLY alone, and no HEARTBEAT_OK at the start or the end"


@pytest.mark.parametrize(
    ("text", "violation"),
    [
        pytest.param("The disk is full.", NEITHER, id="an-alert"),
        pytest.param("", NEITHER, id="empty"),
        pytest.param("NO_REPLY needed", NEITHER, id="no-reply-with-more"),
        pytest.param("no_reply", NEITHER, id="other-case"),
        pytest.param("I would say HEARTBEAT_OK but no", NEITHER, id="in-the-middle"),
        pytest.param("HEARTBEAT", NEITHER, id="half"),
        pytest.param("HEARTBEAT_OK " + "x" * 301, "301 characters beside HEARTBEAT_OK, at most 300 allowed", id="over-the-limit"),
    ],
)  # fmt: skip
def test_posted(text, violation):
    """OpenClaw posts these replies to the channel."""
    verdict = OpenclawAck().check(Reply(text=text))

    assert (verdict.passed, verdict.violation) == (False, violation)
