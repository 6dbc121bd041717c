"""Messages of a world: the kept message, and the result for the model, directly and through the bridge."""

import json

import pytest

from pytest_openclaw.openclaw.catalog import load_catalogue
from pytest_openclaw.values.tool_calls import Tool
from pytest_openclaw.values.worlds import ScriptedAnswer, World
from tests.unit.worlds.conftest import Caller

KNOWN = load_catalogue().tools
TOOLS = (KNOWN["message"], KNOWN["conversations_send"], KNOWN["tool_call"])
HELLO = {"action": "send", "channel": "telegram", "target": "@jonas", "message": "Hello."}
NO_CHAT = "Bad Request: chat not found"


def caller(*answers):
    return Caller(World(answers=answers), TOOLS)


def delivered(number, target):
    return {"ok": True, "messageId": str(number), "chatId": target, "receipt": {}}


@pytest.mark.parametrize(
    "given",
    [
        pytest.param({}, id="plain"),
        pytest.param({"channel": None}, id="no-channel"),
        pytest.param({"target": None, "to": "@jonas"}, id="to"),
        pytest.param({"message": None, "text": "Hello."}, id="text"),
        pytest.param({"message": None, "media": "cat.png"}, id="only-media"),
    ],
)  # fmt: skip
def test_a_message_is_taken(given):
    """It has a number, its chat another one, and the call is in the state as it was made."""
    call, made = caller(), {key: value for key, value in (HELLO | given).items() if value is not None}

    assert json.loads(call("message", **made)) == delivered(1, "@jonas")
    assert json.loads(call("message", **made)) == delivered(2, "@jonas")
    assert call.playing.state.sent == ({"tool": "message", **made},) * 2


@pytest.mark.parametrize(
    ("given", "error"),
    [
        pytest.param({"target": None}, "target required", id="no-target"),
        pytest.param({"target": " "}, "target required", id="blank-target"),
        pytest.param({"target": None, "targets": ["@jonas"]}, "target required", id="targets"),
        pytest.param({"target": None, "message": None}, "target required", id="neither"),
        pytest.param({"message": None}, "message required", id="no-text"),
        pytest.param({"message": None, "caption": "A cat."}, "message required", id="only-a-caption"),
        pytest.param({"message": " "}, "message required", id="blank-text"),
        pytest.param({"action": "broadcast"}, "targets required", id="broadcast-without-targets"),
    ],
)  # fmt: skip
@pytest.mark.parametrize(
    "answers", [(), (ScriptedAnswer(tool="message", error=NO_CHAT),)], ids=["played", "scripted"]
)
def test_a_message_is_refused(given, error, answers):
    """The tool looks at target and text before it sends anything, whatever the channel would say."""
    call, made = caller(*answers), {key: value for key, value in (HELLO | given).items() if value is not None}

    assert call.error("message", **made) == error
    assert call.error("tool_call", id="message", args=made) == error
    assert call.playing.state.sent == ()


def test_a_suites_own_tool_may_take_anything():
    """Arguments that the release's schema refuses are read as if they were missing."""
    call = Caller(World(), (Tool(name="message"),))

    for target in (5, None, {"a": 1}, []):
        assert call.error("message", target=target, message="Hi.") == "target required"
    assert call.error("message", target="@jonas", message=5) == "message required"


def test_a_broadcast_is_one_message():
    """It is in the state as it was made."""
    call, made = caller(), {"action": "broadcast", "targets": ["@jonas", "@mira"], "message": "Hello."}

    assert json.loads(call("message", **made))["ok"] is True
    assert call.playing.state.sent == ({"tool": "message", **made},)


def test_a_scripted_result_through_the_bridge_is_as_the_suite_has_it():
    """Also if it looks like the result of a broadcast."""
    for text in ('{"results": [1]}', '{"results": [{"ok": true, "payload": 1}], "n": 1}'):
        call = caller(ScriptedAnswer(tool="message", result=text))

        details = json.loads(call("tool_call", id="message", args=HELLO))["result"]["details"]

        assert {key: details[key] for key in json.loads(text)} == json.loads(text)


def test_a_message_that_the_channel_refuses_is_queued():
    """OpenClaw keeps the message; other tools just fail."""
    call = caller(
        ScriptedAnswer(tool="message", error=NO_CHAT), ScriptedAnswer(tool="conversations_send", error="gone")
    )

    queued = json.loads(call("message", **HELLO))

    assert (queued["status"], queued["delivered"]) == ("delivery_queued", False)
    assert queued["message"].startswith(f"Delivery is pending: OutboundDeliveryError: {NO_CHAT}. ")
    assert json.loads(call("tool_call", id="message", args=HELLO))["result"]["details"] == queued
    assert call.error("conversations_send", conversationRef=f"conv_{'0' * 32}", message="Hi.") == "gone"
    assert call.playing.state.sent == ()
