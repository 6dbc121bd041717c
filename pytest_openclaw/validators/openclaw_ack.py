"""Would OpenClaw stay silent on this heartbeat reply, instead of posting it to a channel?"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import ClassVar

from pytest_openclaw.types.replies import Reply, Verdict
from pytest_openclaw.validators.answer import judged

SILENT = "NO_REPLY"
ACK = "HEARTBEAT_OK"
MAX_REST_CHARS = 300
"""Fixed in OpenClaw: the characters allowed beside HEARTBEAT_OK in a reply that is dropped."""

_TAG = re.compile(r"<[^<>]*>|&nbsp;", re.IGNORECASE)
_MARKUP = "*`~_"
_MAX_PUNCTUATION = 4


@dataclass(frozen=True, kw_only=True)
class OpenclawAck:
    """The reply is one that OpenClaw drops: `NO_REPLY` alone, or `HEARTBEAT_OK` at its start or end.

    Beside `HEARTBEAT_OK` at most 300 characters are allowed. HTML tags and Markdown emphasis around the
    reply do not count, nor up to four marks such as `.` or `!` behind the token. For the exact
    contract use `exact`.
    """

    type: ClassVar[str] = "openclaw_ack"

    def check(self, reply: Reply) -> Verdict:
        """Judge as OpenClaw's gateway does before it delivers a heartbeat reply."""
        text = reply.text.strip()
        if text == SILENT:
            return Verdict(passed=True, parsed={"token": SILENT, "rest_chars": 0})
        rest = _beside_token(text)
        if not rest:
            rest = _beside_token(_TAG.sub(" ", text).strip(_MARKUP).strip())
        if rest is None:
            return judged(False, f"not {SILENT} alone, and no {ACK} at the start or the end")
        violation = f"{len(rest)} characters beside {ACK}, at most {MAX_REST_CHARS} allowed"
        return judged(len(rest) <= MAX_REST_CHARS, violation, {"token": ACK, "rest_chars": len(rest)})


def _beside_token(text: str) -> str | None:
    """Return what is left once the token is gone from both ends, blanks collapsed; None without it."""
    start, end = 0, _end_of_token(text)
    punctuation = text[end:] if end != len(text) else ""
    while text.startswith(ACK, start, end):
        start = _skip_blanks(text, start + len(ACK))
    while end - len(ACK) >= start and text.endswith(ACK, start, end):
        end -= len(ACK)
        while end > start and text[end - 1].isspace():
            end -= 1
    if (start, end) == (0, len(text)):
        return None
    return " ".join(f"{text[start:end]}{punctuation}".split())


def _end_of_token(text: str) -> int:
    """Return where the token ends at the end of the text, before at most four marks; else the end."""
    for marks in range(_MAX_PUNCTUATION + 1):
        end = len(text) - marks
        if text.endswith(ACK, 0, max(end, 0)):
            return end
        if end > 0 and re.match(r"\w", text[end - 1]):
            break
    return len(text)


def _skip_blanks(text: str, position: int) -> int:
    while position < len(text) and text[position].isspace():
        position += 1
    return position
