"""Messages: delivered, refused by the tool or by the channel."""

from pytest_openclaw.values.worlds import ScriptedAnswer
from tests.openclaw.agreement.cases import DONE, call, own_case
from tests.openclaw.telegram import ABSENT, DOWN, FAILS, NO_CHAT

JONAS = {"action": "send", "channel": "telegram", "target": "@jonas"}
MADE = (
    {**JONAS, "message": "Hello."},
    {"action": "send", "target": "4242", "message": "No channel."},
    {"action": "send", "to": "@jonas", "text": "Other names."},
    {"action": "send", "channel": "telegram", "message": "To whom?"},
    {"action": "send", "targets": ["@jonas"], "message": "To whom?"},
    JONAS,
    {**JONAS, "message": " "},
    {**JONAS, "caption": "A caption alone."},
    {"channel": "telegram", "target": "@jonas", "message": "No action."},
    {**JONAS, "target": ABSENT, "message": "Hello."},
    {**JONAS, "target": DOWN, "message": "Hello."},
)
_LOST = f"Telegram recipient {ABSENT} could not be resolved to a numeric chat ID (Call to 'getChat' failed! (400: {NO_CHAT}))"
_ANSWERS = (
    ScriptedAnswer(tool="message", matching={"properties": {"target": {"const": DOWN}}, "required": ["target"]}, error=f"Call to 'sendMessage' failed! (500: {FAILS})"),
    ScriptedAnswer(tool="message", matching={"properties": {"target": {"const": ABSENT}}, "required": ["target"]}, error=_LOST),
)  # fmt: skip
_WANTS = {
    "calls": [{"name": "message"}],
    "sent": [{"tool": "message", "contains": [text]} for text in ("Hello.", "No channel.", "Other names.")],
}


def messages():
    yield own_case(
        "messages-direct",
        "messages that are delivered, refused by the tool, refused by the channel",
        *([call("message", **given)] for given in MADE),
        DONE,
        tools=("message",),
        files={},
        answers=_ANSWERS,
        steps=len(MADE) + 1,
        wants=_WANTS,
    )
