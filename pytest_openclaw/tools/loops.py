"""When a model that calls tools goes round in circles."""

from __future__ import annotations

import json
from collections import Counter
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pytest_openclaw.toolcalls import ToolCall

SAME_CALLS = 4
PING_PONG_ROUNDS = 4


def is_looping(steps: Sequence[tuple[str, str]]) -> bool:
    """Whether a model goes round in circles.

    The last call got the same result a fourth time, or two calls have taken turns for four rounds.

    Args:
        steps: each call and its result, as `call_key` and text.
    """
    if not steps:
        return False
    if Counter(steps)[steps[-1]] >= SAME_CALLS:
        return True
    last = [call for call, _ in steps[-2 * PING_PONG_ROUNDS :]]
    evens, odds = set(last[::2]), set(last[1::2])
    return len(last) == 2 * PING_PONG_ROUNDS and len(evens) == len(odds) == 1 and evens != odds


def call_key(call: ToolCall) -> str:
    """Return what two calls have in common that ask for the same, however they were written."""
    try:
        arguments = json.dumps(json.loads(call.arguments or "{}"), sort_keys=True)
    except (ValueError, RecursionError):
        arguments = call.arguments
    return f"{call.name.strip().casefold()} {arguments}"
