"""Limits on the answer of one attempt, for servers and programs. A longer one is an error."""

from __future__ import annotations

MOST_BYTES = 64 << 20
"""Of a whole answer: the body of a response, decompressed, or the output of a program."""
MOST_EVENT_BYTES = 16 << 20
"""Of one event, one line or one JSON object: all of it is in memory, several times, before it is read."""


def mebibytes(limit: int) -> str:
    """Return a limit for a message, such as `64 MiB`."""
    return f"{limit >> 20} MiB"
