"""Decides when OpenClaw 2026.9.6 sends another request instead of ending its run, and when a model loops.

After a call whose arguments are not JSON, OpenClaw repeats the request without that turn. After an answer
without visible text, OpenClaw reports this to the model and asks for text. It executes no call of a turn
that was cut off; if that turn has no visible text either, OpenClaw asks for text, without tools, but only if
calls were answered before. A model that then calls a tool receives an error that the tool does not exist, and
is asked again; an answer without visible text, or a call that is not JSON, then ends the run. This was
observed on the released program; docs/maintaining/agreement.md has the cases.

A loop does not end an exchange, because OpenClaw detects loops only with `tools.loopDetection`, and a model
may leave a loop. Repeated calls of an unknown tool end a run.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass

from pytest_openclaw.openclaw.thinking import strip_thinking
from pytest_openclaw.values.replies import EndedBy, Turn
from pytest_openclaw.values.tool_calls import Dispatched, ToolCall

Dispatch = Callable[[ToolCall], Dispatched]
"""Returns OpenClaw's handling of a call."""

MOST_BROKEN = 3
"""The maximum number of repetitions in a run; a further malformed turn ends the run."""
MOST_EMPTY, MOST_WORDS = 1, 2
"""The maximum numbers of requests after an empty answer; the second after a call, for text only."""
HARMLESS = frozenset({
    "agents_list", "conversations_list", "get_goal", "ls", "memory_get", "read", "sessions_history",
    "sessions_list", "sessions_search", "tool_describe", "tool_search", "view_image", "web_fetch",
    "web_search",
})  # fmt: skip
"""Tools without side effects, which OpenClaw considers safe to call again."""

MESSAGE = "message"
SENDS = frozenset({MESSAGE, "conversations_send", "conversations_turn", "sessions_send"})
"""Tools that send a message to others; each result has another id."""

# Small models repeat this message as their answer, so its words must not pass as an answer.
_GO_ON = "Your last turn has no answer that a user could see. Go on from here, and give it now."
_WORDS_ALONE = "Your last turn has no answer that a user could see. Write the answer now, as plain text."
# Text that OpenClaw does not show to a user: calls in one of these forms.
_WRITTEN = re.compile(
    r"<(tool_calls?|function_calls?)\b.*?(?:</\1>|\Z)"
    r"|\[(?:tool:)?[\w-]{1,120}\]\s*\{.*?(?:\[END_TOOL_REQUEST\]|\[/[\w-]{1,120}\]|\Z)",
    re.DOTALL,
)


@dataclass(frozen=True, kw_only=True)
class Nudge:
    """The message to a model that gave no answer."""

    words: str
    with_tools: bool


def is_broken(calls: Sequence[ToolCall], dispatched: Dispatch) -> bool:
    """Whether the arguments of one of a turn's calls are not JSON, so that none of them is executed."""
    return any(dispatched(call).problem == "malformed_json" for call in calls)


def is_asked_again(turns: Sequence[Turn], dispatched: Dispatch) -> bool:
    """Whether OpenClaw sends another request after the last of these turns, which is malformed.

    It does not if the turn has text that a user can see, was cut off, or had to be text only; nor if, since
    the start or the last repetition, a tool with side effects was called or the last call was an error.
    """
    *before, last = turns
    if _is_visible(last) or _is_cut(last) or _calls_nothing(last):
        return False
    if sum(is_broken(turn.calls, dispatched) for turn in before) >= MOST_BROKEN:
        return False
    since = _since_broken(before, dispatched)
    is_harmless = all(dispatched(call).tool in HARMLESS for turn in since for call in turn.calls)
    results = [result for turn in since for result in turn.results]
    return is_harmless and not (results and _is_error(results[-1]))


def nudge(turns: Sequence[Turn], dispatched: Dispatch) -> Nudge | None:
    """Return the message that OpenClaw sends after an empty last turn; None if the run ends."""
    *before, last = turns
    if not _is_empty(last) or _is_visible(last) or any(map(_calls_nothing, before)):
        return None
    n_empty = 0
    while before and _is_empty(before[-1]):
        before.pop()
        n_empty += 1
    if any(turn.results for turn in _since_broken(before, dispatched)):
        most = 1 if _is_cut(last) else MOST_WORDS
        return Nudge(words=_WORDS_ALONE, with_tools=False) if n_empty < most else None
    return Nudge(words=_GO_ON, with_tools=True) if n_empty < MOST_EMPTY and not _is_cut(last) else None


def _calls_nothing(turn: Turn) -> bool:
    """Whether a turn that had to be text only has calls."""
    return any(call.unoffered for call in turn.calls)


def _is_cut(turn: Turn) -> bool:
    return turn.finish_reason == "length"


def _is_empty(turn: Turn) -> bool:
    """Whether a turn had no effect: it has no calls, or was cut off before they could be executed."""
    return not turn.results and (not turn.calls or _is_cut(turn))


def _since_broken(turns: Sequence[Turn], dispatched: Dispatch) -> list[Turn]:
    broken = [n for n, turn in enumerate(turns) if is_broken(turn.calls, dispatched)]
    return list(turns[broken[-1] + 1 :] if broken else turns)


def _is_visible(turn: Turn) -> bool:
    text = strip_thinking(turn.text).strip()
    return bool(text if turn.calls else _WRITTEN.sub("", text).strip())


def _is_error(result: str) -> bool:
    """Whether the result of a call is an error of the tool, or says that the tool does not exist."""
    if result.startswith("Validation failed for tool ") or re.fullmatch(r"Tool \S+ not found|", result):
        return True
    try:
        value = json.loads(result)
    except (ValueError, RecursionError):
        return False
    return isinstance(value, dict) and value.get("status") == "error"


SAME_CALLS = 4
PING_PONG_ROUNDS = 4
LONGEST_COMPARED = 16_000
"""Characters; longer arguments are equal only if their texts are."""
MOST_UNKNOWN = 10
"""The most consecutive turns that OpenClaw answers with "no such tool"; the next one ends its run."""


def at_last_step(turns: Sequence[Turn]) -> EndedBy:
    """Return how an exchange that has used up its steps ended."""
    return "loop" if is_looping(turns) else "step_limit"


def is_looping(turns: Sequence[Turn]) -> bool:
    """Whether a model is in a loop at the end of these turns.

    A call of the last turn had the same result a fourth time, or sent the same message a fourth time, or two
    calls have alternated for four rounds.
    """
    steps = [_steps(turn) for turn in turns]
    counts = Counter(step for turn in steps for step in turn)
    if steps and any(counts[step] >= SAME_CALLS for step in steps[-1]):
        return True
    last = [call for turn in steps for call, _ in turn][-2 * PING_PONG_ROUNDS :]
    evens, odds = set(last[::2]), set(last[1::2])
    return len(last) == 2 * PING_PONG_ROUNDS and len(evens) == len(odds) == 1 and evens != odds


def is_given_up(calls: Sequence[Sequence[ToolCall]], dispatched: Callable[[ToolCall], Dispatched]) -> bool:
    """Whether OpenClaw ends its run because the last turns called only one unknown tool.

    OpenClaw does not count calls if it offered no tools.
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
    """Return the answered calls with their results; equal calls of one turn are one."""
    answered = zip(turn.calls, turn.results, strict=False)
    return list(
        dict.fromkeys((call_key(call), "" if call.name in SENDS else result) for call, result in answered)
    )


def _plain(name: str) -> str:
    return name.strip().casefold()
