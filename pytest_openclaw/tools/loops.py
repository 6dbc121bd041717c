"""When a model that calls tools goes round in circles.

It is asked on all the same: OpenClaw 2026.9.6 detects loops only where `tools.loopDetection` turns that on,
and a model may find out of one. What does end a run is a tool that does not exist, called again and again.
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
"""Longer arguments, in characters, are the same only if they are written the same."""
MOST_UNKNOWN = 10
"""So many turns in a row OpenClaw answers that there is no such tool; the next one ends its run."""


def at_last_step(turns: Sequence[Turn]) -> EndedBy:
    """Return what is said of an exchange that has used up its steps."""
    return "loop" if is_looping(turns) else "step_limit"


def is_looping(turns: Sequence[Turn]) -> bool:
    """Whether a model goes round in circles at the end of these turns.

    A call of the last one got the same result a fourth time, or two calls have taken turns for four rounds.
    """
    steps = [_steps(turn) for turn in turns]
    counts = Counter(step for turn in steps for step in turn)
    if steps and any(counts[step] >= SAME_CALLS for step in steps[-1]):
        return True
    last = [call for turn in steps for call, _ in turn][-2 * PING_PONG_ROUNDS :]
    evens, odds = set(last[::2]), set(last[1::2])
    return len(last) == 2 * PING_PONG_ROUNDS and len(evens) == len(odds) == 1 and evens != odds


def is_given_up(calls: Sequence[Sequence[ToolCall]], dispatched: Callable[[ToolCall], Dispatched]) -> bool:
    """Whether OpenClaw ends its run at a turn, because it and those before called one unknown tool alone.

    Args:
        calls: those of each turn; none of the last one is carried out yet.
        dispatched: returns what OpenClaw would make of a call.
    """
    last = calls[-MOST_UNKNOWN - 1 :]
    if len(last) <= MOST_UNKNOWN or not all(last):
        return False
    made = [call for turn in last for call in turn]
    names = {_plain(call.name) for call in made}
    return len(names) == 1 and all(dispatched(call).problem == "unknown_tool" for call in made)


def call_key(call: ToolCall) -> str:
    """Return what two calls have in common that ask for the same, however they were written."""
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
