"""A failed cell as text, to be read like a good assertion."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pytest_openclaw.records import Reply
from pytest_openclaw.reports.numbers import one_line, printable, render_ms, shorten

if TYPE_CHECKING:
    from pytest_openclaw.records import Cell, Timing

PROMPT_WIDTH = 400
REPLY_WIDTH = 1200
WORDS = {
    "empty_response": "the model answered with nothing",
    "refusal": "the model refused",
    "content_filter": "a content filter cut the answer off",
}


def render_failure(
    cell: Cell, reply: Reply | None, timing: Timing, *, what: str | None, failure_type: str | None
) -> str:
    """Return what went wrong, then target, prompt and reply.

    Args:
        cell: what was asked.
        reply: as it was judged; None if there is none.
        timing: of the attempt that counted.
        what: the violation, or what the server said.
        failure_type: why it is no answer at all, if it is none.
    """
    what = what or WORDS.get(failure_type or "", failure_type) or "failed"
    prompt, reply = cell.prompt, reply or Reply()
    times = f"e2e {render_ms(timing.e2e_ms)}, TTFT {render_ms(timing.ttft_ms)}"
    ended = f", ended by {one_line(reply.finish_reason, 40)}" if reply.finish_reason else ""
    lines = [
        f"{prompt.id} {one_line(prompt.name, 60)}: {one_line(what, 300)}",
        f"  target  {one_line(cell.target.label, 120)}",
        f"  times   {times}{ended}",
        _block("prompt", prompt.prompt, PROMPT_WIDTH),
        _block("reply", reply.refusal or reply.text or reply.raw, REPLY_WIDTH),
    ]
    if reply.tool_names:
        lines.append(f"  tools   {one_line(', '.join(reply.tool_names), 200)}")
    return "\n".join(lines)


def _block(label: str, text: str, width: int) -> str:
    first, *rest = printable(shorten(text.strip(), width)).split("\n")
    return "\n".join([f"  {label:<7} {first}".rstrip(), *(f"          {line}".rstrip() for line in rest)])
