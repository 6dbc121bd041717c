"""A failed cell as text, to be read like a good assertion."""

from __future__ import annotations

from itertools import zip_longest
from typing import TYPE_CHECKING

from pytest_openclaw.core.text import printable
from pytest_openclaw.reports.message_texts import message_texts
from pytest_openclaw.reports.numbers import one_line, render_ms, shorten
from pytest_openclaw.suites.conversation import written_messages
from pytest_openclaw.types.replies import Reply

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from pytest_openclaw.types.prompts import Cell, Prompt
    from pytest_openclaw.types.replies import Timing
    from pytest_openclaw.types.tool_calls import Dispatched, ToolOutcome

PROMPT_WIDTH = 400
REPLY_WIDTH = 1200
CALL_WIDTH = 300
RESULT_WIDTH = 300
MOST_TURNS = 12
ENDS = {
    "step_limit": "at the last step that it had",
    "loop": "in a loop: the same call with the same result, again and again",
    "malformed_call": "at a call whose arguments are no JSON, which ends OpenClaw's run",
}
OUTCOMES: Mapping[ToolOutcome, str] = {
    "valid": "all that had to be called was called",
    "forbidden_call": "all that was due was done, and something that is forbidden",
    "extra_call": "all that was due was done, and more calls were made",
    "wrong_tool": "OpenClaw would execute these calls, but they are of other tools than those that were due",
    "bad_arguments": "a tool was called with arguments that it does not take, or not those that were due",
    "unknown_tool": "a tool was called that was not offered",
    "malformed_json": "a call's arguments are no JSON, which ends OpenClaw's run",
    "leaked_as_text": "a call was written into the text, where nothing executes it",
    "claimed_not_done": "the text says that it was done, and nothing was called for it",
    "no_call": "nothing was called",
    "out_of_steps": "the right tools were called, and the last step was used up",
    "unfinished": "the right tools were called, and something that was due is missing",
    "restrained": "nothing was called, as it was due",
    "called_needlessly": "a tool was called where none was due",
}
"""Each outcome in words."""
WORDS = {
    "empty_response": "the model answered with nothing",
    "refusal": "the model refused",
    "content_filter": "a content filter cut the answer off",
}


def render_failure(
    cell: Cell,
    reply: Reply | None,
    timing: Timing,
    *,
    what: str | None,
    failure_type: str | None,
    tool_outcome: ToolOutcome | None = None,
) -> str:
    """Return what went wrong, then target, prompt and reply.

    Args:
        cell: what was asked.
        reply: as it was judged; None if there is none.
        timing: of the attempt that counted.
        what: the violation, or what the server said.
        failure_type: why it is no answer at all, if it is none.
        tool_outcome: how the cell ended, if it asked about tools.
    """
    what = what or WORDS.get(failure_type or "", failure_type) or "failed"
    prompt, reply = cell.prompt, reply or Reply()
    times = f"e2e {render_ms(timing.e2e_ms)}, TTFT {render_ms(timing.ttft_ms)}"
    ended = f", ended by {one_line(reply.finish_reason, 40)}" if reply.finish_reason else ""
    lines = [
        f"{prompt.id} {one_line(prompt.name, 60)}: {one_line(what, 300)}",
        f"  target  {one_line(cell.target.label, 120)}",
        f"  times   {times}{ended}",
        *_before(prompt),
        _block("prompt", prompt.prompt, PROMPT_WIDTH),
        *_exchange(reply),
        _block("reply", reply.refusal or reply.text or reply.raw, REPLY_WIDTH),
    ]
    if prompt.tools is not None:
        lines += [] if reply.turns else [_call(call) for call in reply.dispatched]
    elif reply.tool_names:
        lines.append(f"  tools   {one_line(', '.join(reply.tool_names), 200)}")
    if prompt.tools is not None and tool_outcome:
        lines.append(f"  outcome {tool_outcome}: {OUTCOMES[tool_outcome]}")
    return "\n".join(lines)


def _before(prompt: Prompt) -> Iterator[str]:
    """The last message before the prompt, and how many there are."""
    texts = [*message_texts(written_messages(prompt.messages))]
    if texts:
        label, text = texts[-1]
        last = f"{len(texts)} earlier, the last ({label}): "
        yield _block("before", last + one_line(text, RESULT_WIDTH), RESULT_WIDTH + len(last))


def _call(made: Dispatched) -> str:
    """A native call, and what OpenClaw would answer the model."""
    called = f"{made.call.name} {made.call.arguments}".strip()
    shown_text = made.message or "; ".join(made.notes)
    lines = [_block("call", one_line(called, CALL_WIDTH), CALL_WIDTH)]
    if shown_text:
        lines.append(_block("", f"-> {shorten(shown_text, RESULT_WIDTH)}", RESULT_WIDTH + 3))
    return "\n".join(lines)


def _exchange(reply: Reply) -> Iterator[str]:
    """A scripted exchange turn by turn; of a long one the middle is left out."""
    turns = list(enumerate(reply.turns, 1))
    shown = turns if len(turns) <= MOST_TURNS else [*turns[: MOST_TURNS // 2], *turns[-MOST_TURNS // 2 :]]
    last = 0
    for number, turn in shown:
        if number > last + 1:
            yield f"  ...     {number - last - 1} turns are left out"
        last = number
        if turn.user is not None:
            yield _block("user", turn.user, PROMPT_WIDTH)
        if turn.text.strip() and (turn.calls or number < len(turns)):
            yield _block(f"turn {number}", one_line(turn.text.strip(), RESULT_WIDTH), RESULT_WIDTH)
        for call, result in zip_longest(turn.calls, turn.results):
            called = f"{call.name} {call.arguments}".strip() if call else ""
            yield _block(f"turn {number}", one_line(called, CALL_WIDTH), CALL_WIDTH)
            if result is not None:
                yield _block("", f"-> {shorten(result.strip(), RESULT_WIDTH)}", RESULT_WIDTH + 3)
    if reply.ended_by and reply.ended_by in ENDS:
        yield f"  ended   {ENDS[reply.ended_by]}"


def _block(label: str, text: str, width: int) -> str:
    first, *rest = printable(shorten(text.strip(), width)).split("\n")
    return "\n".join([f"  {label:<7} {first}".rstrip(), *(f"          {line}".rstrip() for line in rest)])
