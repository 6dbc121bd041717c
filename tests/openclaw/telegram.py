"""Telegram's API on loopback, in so far as OpenClaw's gateway uses it to send messages."""

import re
import zlib

from tests.providers.servers.misbehaving import MisbehavingServer, Pause, Script

TOKEN = "123456:TEST"
ABSENT, DOWN = "@absent", "500"
"""A name without a chat, and a chat for which the server fails."""
NO_CHAT = "Bad Request: chat not found"
FAILS = "Internal Server Error"
_POLL_S = 5.0


def chat_of(target):
    name = target.strip().removeprefix("telegram:")
    return name if re.fullmatch(r"-?\d+", name) else str(zlib.crc32(name.removeprefix("@").lower().encode()))


class Telegram(MisbehavingServer):
    """The server, while it is entered; `messages` has chat and text of each message that it took."""

    def __init__(self):
        super().__init__()
        self.messages = []
        self.on("*", self._serve_method)

    def _serve_method(self, request):
        method = request.path.rpartition("/")[2]
        status, answer = self._answered(method, request.json if request.body else {})
        wait = [Pause(_POLL_S)] if method == "getUpdates" else []
        return Script((*wait, *Script.answer({"ok": status == 200, **answer}, status=status).steps))

    def _answered(self, method, given):
        """Return the status, and the rest of the answer."""
        target = str(given.get("chat_id", ""))
        if target == ABSENT:
            return 400, {"error_code": 400, "description": NO_CHAT}
        if target == DOWN:
            return 500, {"error_code": 500, "description": FAILS}
        if method == "getUpdates":
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
