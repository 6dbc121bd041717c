"""Telegram's API on loopback, in so far as OpenClaw's gateway uses it to send messages."""

import json
import re
import zlib
from contextlib import suppress

from tests.openclaw.loopback import LoopbackServer

TOKEN = "123456:TEST"
ABSENT, DOWN = "@absent", "500"
"""A name without a chat, and a chat for which the server fails."""
NO_CHAT = "Bad Request: chat not found"
FAILS = "Internal Server Error"
_POLL_S = 5.0


def chat_of(target):
    """Return the number of a chat, computed from its name if it has one."""
    name = target.strip().removeprefix("telegram:")
    return name if re.fullmatch(r"-?\d+", name) else str(zlib.crc32(name.removeprefix("@").lower().encode()))


class Telegram(LoopbackServer):
    """The server, while it is entered; `messages` has chat and text of each message that it took."""

    def __init__(self):
        self.messages: list[tuple[str, str]] = []

    def _answer(self, handler, body):
        status, answer = self._answered(handler.path.rpartition("/")[2], json.loads(body or b"{}"))
        said = json.dumps({"ok": status == 200, **answer}).encode()
        with suppress(ConnectionError):  # the gateway may have ended meanwhile
            handler.send(status, "application/json", said)

    def _answered(self, method, given):
        """Return the status, and the rest of the answer."""
        target = str(given.get("chat_id", ""))
        if target == ABSENT:
            return 400, {"error_code": 400, "description": NO_CHAT}
        if target == DOWN:
            return 500, {"error_code": 500, "description": FAILS}
        if method == "getUpdates":
            self._gone.wait(_POLL_S)
            return 200, {"result": []}
        if method == "getMe":
            return 200, {"result": {"id": 123456, "is_bot": True, "first_name": "B", "username": "b_bot"}}
        chat = {"id": int(chat_of(target)) if target else 0, "type": "private", "first_name": target}
        if method == "getChat":
            return 200, {"result": chat}
        if method != "sendMessage":
            return 200, {"result": True}
        self.messages.append((target, given["text"]))
        sent = {"message_id": len(self.messages), "date": 1_795_000_000, "chat": chat, "text": given["text"]}
        return 200, {"result": sent}
