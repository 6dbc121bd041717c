"""Detects loops of a model that calls tools.

The exchange continues in a loop: OpenClaw 2026.9.6 detects loops only with `tools.loopDetection`, and a model
may leave one. Repeated calls of an unknown tool do end a run.
"""

from __future__ import annotations

import json
from collections import Counter
from contextlib import suppress
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from pytest_openclaw.types.replies import EndedBy, Turn
    from pytest_openclaw.types.tool_calls import Dispatched, ToolCall

SAME_CALLS = 4
PING_PONG_ROUNDS = 4
LONGEST_COMPARED = 16_000
"""Longer arguments, in characters, are equal only if their texts are."""
MOST_UNKNOWN = 10
"""The most consecutive turns that OpenClaw answers with "no such tool"; the next one ends its run."""


def at_last_step(turns: Sequence[Turn]) -> EndedBy:
    """Return how an exchange that has used up its steps ended."""
    return "loop" if is_looping(turns) else "step_limit"


def is_looping(turns: Sequence[Turn]) -> bool:
    """Whether a model is in a loop at the end of these turns.

    A call of the last one got the same result a fourth time, or two calls have alternated for four rounds.
    """
    steps = [_steps(turn) for turn in turns]
    counts = Counter(step for turn in steps for step in turn)
    if steps and any(counts[step] >= SAME_CALLS for step in steps[-1]):
        return True
    last = [call for turn in steps for call, _ in turn][-2 * PING_PONG_ROUNDS :]
    evens, odds = set(last[::2]), set(last[1::2])
    return len(last) == 2 * PING_PONG_ROUNDS and len(evens) == len(odds) == 1 and evens != odds


def is_given_up(calls: Sequence[Sequence[ToolCall]], dispatched: Callable[[ToolCall], Dispatched]) -> bool:
    """Whether OpenClaw ends its run at a turn, because it and earlier ones only called one unknown tool.

    It does not count calls where it offers no tools.

    Args:
        calls: those of each turn; those of the last one are not executed yet.
        dispatched: returns what OpenClaw would make of a call.
    """
    last = calls[-MOST_UNKNOWN - 1 :]
    if len(last) <= MOST_UNKNOWN or not all(last):
        return False
    made = [call for turn in last for call in turn]
    if any(call.unoffered for call in made):
        return False
    names = {_plain(call.name) for call in made}
    return len(names) == 1 and all(dispatched(call).problem == "unknown_tool" for call in made)


def call_key(call: ToolCall) -> str:
    """Return a key that is equal for equal calls, regardless of their notation."""
    arguments = call.arguments
    if len(arguments) <= LONGEST_COMPARED:
        with suppress(ValueError, RecursionError):
            arguments = json.dumps(json.loads(arguments or "{}"), sort_keys=True)
    return f"{_plain(call.name)} {arguments}"


def _steps(turn: Turn) -> list[tuple[str, str]]:
    """Return the calls that were answered, with their results; side by side, the same is one."""
    return list(dict.fromkeys(zip(map(call_key, turn.calls), turn.results, strict=False)))


def _plain(name: str) -> str:
    return name.strip().casefold()
