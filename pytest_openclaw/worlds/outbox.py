"""Sends messages: a world keeps them, and no message leaves it.

`message` answers as OpenClaw 2026.9.6 does for Telegram, whichever channel a call names. Observed on the
released program, whose gateway reached a server with Telegram's API on loopback.
"""

from __future__ import annotations

import json
import re
import zlib
from typing import TYPE_CHECKING, Any

from pytest_openclaw.worlds.workspace import ToolError, pretty

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from pytest_openclaw.worlds.workspace import Workspace

MESSAGE = "message"
SENDS = frozenset({MESSAGE, "conversations_send", "conversations_turn", "sessions_send"})
"""Tools that send messages."""
_ATTACHED = ("media", "attachments", "buffer")
_TEXTS = ("message", "SendMessage", "content", "text")
"""Names under which `message` takes the text."""
_CHANNEL = "telegram"


class Outbox:
    """The messages that were sent, each as the call that sent it."""

    def __init__(self, workspace: Workspace) -> None:
        self.sent: list[Mapping[str, Any]] = []
        self._workspace = workspace

    def send(self, tool: str, arguments: Mapping[str, Any]) -> str:
        """Send a message unless it is a dry run, and return the result.

        Raises:
            ToolError: there is no target, nothing to send, or no room.
        """
        targets = _targets(arguments) if tool == MESSAGE else ()
        if why := _why_empty(tool, arguments):
            return _refused(arguments, targets, why)
        if tool == "sessions_send" and not (arguments.get("sessionKey") or arguments.get("label")):
            return pretty({"status": "error", "error": "Either sessionKey or label is required"})
        is_dry = arguments.get("dryRun") is True
        if not is_dry:
            self._workspace.take_room(len(json.dumps(arguments)))
            self.sent.append({"tool": tool, **arguments})
        number = len(self.sent)
        if tool == MESSAGE:
            return _delivered(arguments, targets, number, is_dry=is_dry)
        return pretty({"status": "ok", **({"dryRun": True} if is_dry else {"messageId": f"m{number}"})})


def undelivered(arguments: Mapping[str, Any], error: str) -> str:
    """Return the result of `message` if the channel rejects it: OpenClaw keeps the message.

    Raises:
        ToolError: there is no target, or nothing to send.
    """
    targets = _targets(arguments)
    rejected = f"OutboundDeliveryError: {error}"
    if why := _why_empty(MESSAGE, arguments) or (_is_broadcast(arguments) and rejected):
        return _refused(arguments, targets, why)
    pending = (
        f"Delivery is pending: {rejected}. The gateway owns retry or reconciliation;"
        " delivery is not yet confirmed. Do not resend it."
    )
    return pretty({"status": "delivery_queued", "delivered": False, "message": pending})


def chat_of(target: str) -> str:
    """Return Telegram's number of a chat; the number for a name is made from the name."""
    name = target.strip().removeprefix(f"{_CHANNEL}:")
    is_number = re.fullmatch(r"-?\d+", name)
    return name if is_number else str(zlib.crc32(name.removeprefix("@").lower().encode()))


def _is_broadcast(arguments: Mapping[str, Any]) -> bool:
    return arguments.get("action") == "broadcast"


def _targets(arguments: Mapping[str, Any]) -> tuple[str, ...]:
    is_broadcast = _is_broadcast(arguments)
    listed = arguments.get("targets") if is_broadcast else [arguments.get("target"), arguments.get("to")]
    named = [one for one in listed if isinstance(one, str)] if isinstance(listed, list) else []
    targets = tuple(filter(None, map(str.strip, named)))
    if not targets:
        raise ToolError("targets required" if is_broadcast else "Action send requires a target.")
    return targets if is_broadcast else targets[:1]


def _why_empty(tool: str, arguments: Mapping[str, Any]) -> str:
    """Return why a call has nothing to send; empty if it has something."""
    if any(map(arguments.get, _ATTACHED)):
        return ""
    if tool != MESSAGE:
        return "" if arguments.get("message") else "message required"
    texts = [text for key in _TEXTS if isinstance(text := arguments.get(key), str)]
    if any(map(str.strip, texts)):
        return ""
    is_blank = isinstance(arguments.get("message"), str)
    return "send requires text or media or location" if is_blank else "message required"


def _refused(arguments: Mapping[str, Any], targets: Sequence[str], why: str) -> str:
    if not targets or not _is_broadcast(arguments):
        raise ToolError(why)
    channel = _channel(arguments)
    return pretty({"results": [{"channel": channel, "to": to, "ok": False, "error": why} for to in targets]})


def _delivered(arguments: Mapping[str, Any], targets: Sequence[str], number: int, *, is_dry: bool) -> str:
    channel = _channel(arguments)
    # The targets of a broadcast share one key against repetition, so that all get the result of the first.
    sent = {"ok": True, "messageId": str(number), "chatId": chat_of(targets[0]), "receipt": {}}
    results: list[dict[str, Any]] = []
    for target in targets:
        to = f"{channel}:{target.removeprefix(f'{channel}:')}"
        dry = {"channel": channel, "to": to, "via": "direct", "mediaUrl": None, "dryRun": True}
        part = {"payload": dry, "result": dry} if is_dry else {"payload": sent}
        results.append({"channel": channel, "to": to, "ok": True, **part})
    return pretty({"results": results} if _is_broadcast(arguments) else results[0]["payload"])


def _channel(arguments: Mapping[str, Any]) -> str:
    return str(arguments.get("channel") or _CHANNEL).strip().lower()
