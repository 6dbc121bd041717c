"""Messages that are delivered or refused; and long results of files, commands and web pages."""

from pytest_openclaw.values.worlds import ScriptedAnswer, ScriptedCommand
from tests.openclaw.agreement.cases import DONE, call, own_case, read
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


#: as long as an address on loopback, because it is part of a result that is cut
SITE = "http://council.example"
_CHINESE = "".join(chr(0x4E00 + n % 2000) for n in range(20_000))
_FILES = {
    "wide.txt": "".join(f"{n} {'x' * 100}\n" for n in range(1, 1001)),
    "one.txt": f"{'y' * 60_000}\nend\n",
    "report.txt": "".join(f"{n} {'r' * 100}\n" for n in range(1, 501)) + "Total: 500 lines\n",
    "chinese.txt": "".join(f"{n} {_CHINESE[n : n + 60]}\n" for n in range(400)),
}
_PAGES = {
    f"{SITE}/minutes": "".join(f"Item {n}: {'w' * 70}\n" for n in range(800)),
    f"{SITE}/chinese": _CHINESE,
}


def long_results():
    yield own_case(
        "long-read",
        "files over the limits, in lines, in one line and in Chinese, and how each continues",
        *([read(name)] for name in _FILES),
        [read("wide.txt", offset=300), read("wide.txt", limit=900)],
        [read("one.txt", offset=1, cursor=31_000)],
        DONE,
        files=_FILES,
    )
    huge = "".join(f"{n} {'h' * 90}\n" for n in range(2600)) + "All done: 2600\n"
    commands = (*(f"cat {name}" for name in _FILES), "cat one.txt; exit 3", "make")
    yield own_case(
        "long-exec",
        "output over the limits, with and without an outcome, in Chinese, and of more than 200,000 characters",
        *([call("exec", command=command)] for command in commands),
        DONE,
        tools=("exec", "read"),
        files=_FILES,
        commands=(ScriptedCommand(pattern="make", output=huge),),
    )
    minutes = f"{SITE}/minutes"
    yield own_case(
        "long-fetch",
        "pages over the limit, whole and in part",
        [call("web_fetch", url=f"{SITE}/chinese")],
        *([call("web_fetch", url=minutes, maxChars=most)] for most in (100, 900, 5000)),
        [call("web_fetch", url=minutes)],
        [call("web_fetch", url=minutes, maxChars=6000)],
        DONE,
        tools=("web_fetch", "read"),
        files={},
        pages=_PAGES,
    )
