"""Text that can be written anywhere: valid UTF-8 of a bounded length, whatever a server or a guest sent."""

from __future__ import annotations

from itertools import count
from typing import Any

MAX_TEXT_BYTES = 64 * 1024
"""Of a text in a row."""
MAX_ANSWER_BYTES = 256 * 1024
"""Of an answer that is judged, without its thinking; some 64,000 tokens."""
MAX_CALLS_BYTES = 128 * 1024
"""Of the calls of a turn that are judged."""

_numbers = count(1)


def clip(text: str, max_bytes: int = MAX_TEXT_BYTES) -> str:
    """Cut `text` to at most `max_bytes` of UTF-8, on a boundary between characters."""
    encoded = text[:max_bytes].encode("utf-8", "replace")
    return encoded[:max_bytes].decode("utf-8", "ignore") if len(encoded) > max_bytes else text[:max_bytes]


def atomic(pattern: str) -> str:
    """Return a regular expression that takes all that `pattern` takes, and gives nothing of it back.

    Groups that repeat possessively, `(?:…)*+`, lose their place in Python before 3.11.5, such as Debian 12's
    (https://github.com/python/cpython/issues/106052). A look ahead is atomic in all of them.
    """
    name = f"atomic_{next(_numbers)}"
    return f"(?=(?P<{name}>{pattern}))(?P={name})"


def valid_text(text: str) -> str:
    r"""Return `text` without surrogates: pairs become their character, lone ones U+FFFD.

    JSON may spell a character beyond U+FFFF as two escapes, and a stream may cut between them; a
    surrogate that is left cannot be encoded, and kills the xdist worker whose report carries it.
    Everything else is kept, control characters and `\0` too.
    """
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
    return text


def valid_value(value: Any) -> Any:
    """Return a JSON value, or tuples and mappings like one, with every text in it made valid."""
    if isinstance(value, str):
        return valid_text(value)
    if isinstance(value, dict):
        return {valid_text(key): valid_value(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return type(value)(valid_value(item) for item in value)
    return value
