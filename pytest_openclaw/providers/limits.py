"""How much one attempt may send. What is longer is no answer, whoever sends it."""

from __future__ import annotations

MOST_BYTES = 64 << 20
"""Of a whole answer: the body of a response, decompressed, or the output of a program."""
MOST_EVENT_BYTES = 16 << 20
"""Of one event, one line or one JSON object: all of it is in memory, several times, before it is read."""


def mebibytes(limit: int) -> str:
    """Return a limit for a message, such as `64 MiB`."""
    return f"{limit >> 20} MiB"
