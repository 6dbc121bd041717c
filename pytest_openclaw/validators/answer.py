"""What validators share: the answer in a reply, and the words of a violation."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pytest_openclaw.records import JsonObject, Reply, Verdict
from pytest_openclaw.text import valid_text

if TYPE_CHECKING:
    from collections.abc import Iterable

BLANKS = " \t\r\n"
"""The four characters that may surround an answer without being part of it."""

MAX_SHOWN_CHARS = 80
MAX_KEPT_CHARS = 1000
MAX_LISTED = 50


def answer(reply: Reply) -> str:
    """Return the reply's text without surrounding blanks, tabs, CR and LF."""
    return reply.text.strip(BLANKS)


def kept(text: str) -> JsonObject:
    """Return the answer as `parsed_output` holds it: the first 1000 characters under `text`."""
    return {"text": valid_text(text[:MAX_KEPT_CHARS])}


def judged(passed: bool, violation: str, parsed: JsonObject | None = None) -> Verdict:
    """Return a verdict that carries the violation only if it failed."""
    return Verdict(passed=passed, violation=None if passed else violation, parsed=parsed)


def shown(text: str) -> str:
    """Quote a text for a message: one line, printable, shortened in the middle to 80 characters."""
    if len(text) > MAX_SHOWN_CHARS:
        half = (MAX_SHOWN_CHARS - 3) // 2
        text = f"{text[:half]}...{text[-half:]}"
    return f'"{"".join(_printable(char) for char in text)}"'


def listed(texts: Iterable[object], none: str = "nothing") -> str:
    """Join values for a message, 50 at most; strings are quoted, `none` stands for an empty list."""
    words = [shown(text) if isinstance(text, str) else str(text) for text in texts]
    if len(words) > MAX_LISTED:
        words[MAX_LISTED:] = [f"and {len(words) - MAX_LISTED} more"]
    return ", ".join(words) or none


def _printable(char: str) -> str:
    return char if char.isprintable() else char.encode("unicode_escape").decode("ascii")
