"""What validators share: the answer in a reply, and the words of a violation."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pytest_openclaw.core.text import valid_text
from pytest_openclaw.types.replies import Reply, Verdict

if TYPE_CHECKING:
    from pytest_openclaw.core.json_types import JsonObject

BLANKS = " \t\r\n"
"""The four characters that may surround an answer without being part of it."""

MAX_KEPT_CHARS = 1000


def answer(reply: Reply) -> str:
    """Return the reply's text without surrounding blanks, tabs, CR and LF."""
    return reply.text.strip(BLANKS)


def kept(text: str) -> JsonObject:
    """Return the answer as `parsed_output` holds it: the first 1000 characters under `text`."""
    return {"text": valid_text(text[:MAX_KEPT_CHARS])}


def judged(passed: bool, violation: str, parsed: JsonObject | None = None) -> Verdict:
    """Return a verdict that carries the violation only if it failed."""
    return Verdict(passed=passed, violation=None if passed else violation, parsed=parsed)
