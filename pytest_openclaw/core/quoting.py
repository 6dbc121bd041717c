"""Values quoted for a message."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable


MAX_SHOWN_CHARS = 80
MAX_LISTED = 50


def shown(text: str) -> str:
    """Quote a text for a message: one line, printable, shortened in the middle to 80 characters."""
    return f'"{shortened(text)}"'


def shortened(text: str) -> str:
    """Return a text for a message as `shown` does, without quotes."""
    if len(text) > MAX_SHOWN_CHARS:
        half = (MAX_SHOWN_CHARS - 3) // 2
        text = f"{text[:half]}...{text[-half:]}"
    return text if text.isprintable() else "".join(map(_printable, text))


def listed(texts: Iterable[object], none: str = "nothing") -> str:
    """Join values for a message, 50 at most; strings are quoted, an empty list is `none`."""
    words = [shown(text) if isinstance(text, str) else str(text) for text in texts]
    if len(words) > MAX_LISTED:
        words[MAX_LISTED:] = [f"and {len(words) - MAX_LISTED} more"]
    return ", ".join(words) or none


def _printable(char: str) -> str:
    return char if char.isprintable() else char.encode("unicode_escape").decode("ascii")
