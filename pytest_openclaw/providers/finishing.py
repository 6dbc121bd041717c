"""Ends an answer by its server's finish word, or returns the server's failure that the word means."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from pytest_openclaw.values.faults import WireError
from pytest_openclaw.values.replies import meaning_of

if TYPE_CHECKING:
    from pytest_openclaw.providers.exchange import Exchange

# Of Gemini's explanation; what follows is what the model wrote.
_PREFIX = re.compile(r"\A(?:malformed|unexpected) (?:function|tool) calls?:\s*", re.IGNORECASE)


def finish(exchange: Exchange, word: str, *, native: str = "", said: str = "") -> WireError | None:
    """Note how the answer ended; return the failure if the word means that the server failed.

    Args:
        exchange: of the answer.
        word: the finish word.
        native: the word of the server behind a gateway, which may know more than "stop".
        said: the server's explanation.

    """
    behind = meaning_of(native)
    shown = word if behind in (None, "stop", "tool_calls") else native
    meaning = meaning_of(shown)
    if meaning == "context_full":
        if not exchange.has_tokens:
            return WireError(code="context_length_exceeded", message=_failure(shown, said))
        meaning = "length"
    elif meaning == "failed" or (meaning == "no_reason" and not exchange.has_output):
        return WireError(message=_failure(shown, said))
    elif meaning == "denied":
        return WireError(code="permission_denied", message=_failure(shown, said))
    elif meaning in ("malformed_call", "unexpected_call"):
        exchange.receive_text(_PREFIX.sub("", said))
    elif meaning in ("content_filter", "refusal"):
        exchange.receive_note(said)
    exchange.receive_finish(shown if meaning in (None, "no_reason") else meaning)
    return None


def _failure(word: str, said: str) -> str:
    return f"its finish reason is {word!r}" + (f": {said}" if said else "")
