"""A cell as text: a failed one, to be read like a good assertion, and those of a stored run."""

from __future__ import annotations

import json
import textwrap
from itertools import zip_longest
from typing import TYPE_CHECKING, Any

from pytest_openclaw.openclaw.dispatch import dispatch
from pytest_openclaw.openclaw.thinking import split_thinking
from pytest_openclaw.reports.blocks import Table, table_lines
from pytest_openclaw.reports.numbers import (
    DASH,
    WIDTH,
    one_line,
    render_ms,
    render_time,
    render_usd,
    shorten,
)
from pytest_openclaw.suites.cells import tools_sha256
from pytest_openclaw.suites.conversation import written_messages
from pytest_openclaw.suites.offered import read_tools
from pytest_openclaw.util.text import printable
from pytest_openclaw.values.replies import Reply
from pytest_openclaw.values.rows import call_of, to_row

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from pytest_openclaw.util.files import JsonObject
    from pytest_openclaw.values.prompts import Cell, Prompt
    from pytest_openclaw.values.replies import Timing
    from pytest_openclaw.values.rows import Record
    from pytest_openclaw.values.tool_calls import Dispatched, Tool, ToolOutcome


def message_texts(messages: Iterable[Mapping[str, Any]] | None) -> Iterator[tuple[str, str]]:
    """Yield `user`, `assistant`, `call read` or `result` with the text, message by message."""
    for message in messages or ():
        label = "result" if message["role"] == "tool" else str(message["role"])
        calls = message.get("calls") or ()
        if message["content"] or not calls:
            yield label, message["content"]
        for call in calls:
            yield f"call {call['name']}", json.dumps(call["arguments"], ensure_ascii=False)


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
        lines += [] if reply.turns else [_failure_call(call) for call in reply.dispatched]
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


def _failure_call(made: Dispatched) -> str:
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


# --- the parts of a row -----------------------------------------------------------------------------


def verdict_of(record: Record) -> str:
    """Return a row's verdict in a word or two."""
    if record.failure_type:
        return record.failure_type
    return {True: "passed", False: "failed", None: "not judged"}[record.objective_pass]


def is_miss(record: Record) -> bool:
    """Whether the cell did not pass: its verdict failed, or there is no answer."""
    return not record.success or record.objective_pass is False


def offered_tools(definition: Mapping[str, Any]) -> tuple[Tool, ...] | None:
    """Return the tools that a prompt offered; None if it offered none, or they have changed."""
    if definition.get("tools") is None:
        return None
    try:
        tools = read_tools(definition["tools"])
    except ValueError:  # a name that is no longer in the catalog
        return None
    return tools if tools_sha256(tools) == definition.get("tools_sha256") else None


def turns_of(record: Record, tools: Sequence[Tool] | None) -> list[JsonObject]:
    """Return the turns of a row, each call with what OpenClaw makes of it; a single question is one turn.

    Args:
        record: the row.
        tools: that its prompt offered; None if they are not known.
    """
    thinking, answer = split_thinking(record.raw_output)
    alone = {"text": answer, "reasoning": thinking, "calls": record.tool_call_details}
    turns: Sequence[Mapping[str, Any]] = record.turns or (alone,)
    return [{**turn, "calls": [_dispatched(call, tools) for call in turn.get("calls", ())]} for turn in turns]


def _dispatched(call: Mapping[str, Any], tools: Sequence[Tool] | None) -> JsonObject:
    made = None if tools is None else dispatch(call_of(call), tools)
    sent = pretty(call["arguments"])
    given = as_text(made.arguments) if made and made.arguments is not None else sent
    return {
        "name": call["name"],
        "arguments": sent,
        "result": call.get("result"),
        "problem": made.problem if made else call.get("problem"),
        "known": made is not None,
        "given": given if given != sent else None,
        "message": made.message if made and made.message != call.get("result") else "",
        "notes": list(made.notes) if made else [],
    }


def pretty(arguments: str) -> str:
    """Return arguments as a person reads them; other text than JSON is unchanged."""
    try:
        return as_text(json.loads(arguments))
    except (ValueError, RecursionError):
        return arguments


def as_text(value: object) -> str:
    """Return a JSON value as a person reads it; one that is nested too deep is named only."""
    try:
        return json.dumps(value, ensure_ascii=False, indent=2, sort_keys=True) if value is not None else ""
    except RecursionError:
        return "(nested too deep to show)"


_NAMES = {"e2e_ms": "whole answer", "ttft_ms": "first token", "ttfo_ms": "first of the answer"}
# Shown elsewhere, or the same for all cells.
_SHOWN_ELSEWHERE = frozenset(
    {
        "record_type", "schema_version", "provider", "model", "thinking_level", "suite", "prompt_id",
        "prompt_name", "category", "repeat", "raw_output", "turns", "tool_call_details", "objective_pass",
        "success", "violation", "fault_message", "failure_type", "tool_outcome", "availability_status",
        "parsed_output", "tool_calls", "tool_call_count", "tool_use_success", "ended_at_ms", "reported",
        "images",
    }
)  # fmt: skip


def measured(record: Record) -> dict[str, str]:
    """Return every further field of a row that has a value, in words."""
    return {
        _NAMES.get(name, name.removesuffix("_at_ms").removesuffix("_ms").replace("_", " ")): _worded(
            name, value
        )
        for name, value in to_row(record).items()
        if name not in _SHOWN_ELSEWHERE and value not in (None, False, "", [], {}, ())
    }


def _worded(name: str, value: Any) -> str:
    if name == "started_at_ms":
        return render_time(value, "%Y-%m-%d %H:%M:%S UTC")
    if name.endswith("_ms"):
        return render_ms(value)
    if name == "cost_usd":
        return render_usd(value)
    if isinstance(value, float):
        return f"{value:.6g}"
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


# --- cells of a stored run, in a terminal -----------------------------------------------------------

LABEL_WIDTH = 11
INDENT = "  "
EMPTY = "(nothing)"


def render_cells(cells: Mapping[str, Record], width: int = WIDTH) -> Iterator[str]:
    """Yield a line for each cell, by its name: its verdict, how long it took, and why it did not pass."""
    if not cells:
        yield "no cell fits"
        return
    rows = [
        (
            one_line(name, width // 2),
            verdict_of(record),
            render_ms(record.e2e_ms) if record.attempts else DASH,
            record.violation or record.fault_message or "",
        )
        for name, record in cells.items()
    ]
    yield from table_lines(
        Table(head=("cell", "verdict", "took", "why"), rows=rows, words=("verdict", "why"), shrinks=3), width
    )


def render_cell(
    name: str, record: Record, prompt: JsonObject, turns: Sequence[JsonObject], width: int = WIDTH
) -> list[str]:
    """Return the lines that show everything of a cell, its texts in full.

    Args:
        name: as pytest shows it.
        record: its row.
        prompt: its prompt's definition in `config.json`; empty if there is none.
        turns: see `turns_of`.
        width: columns of the terminal.
    """
    lines = [printable(name), f"{printable(record.suite)}  {one_line(record.prompt_name, 60)}", ""]
    for label, text in _facts(record, prompt):
        lines += _fact(label, text, width)
    lines += _text("system", prompt.get("system"))
    for label, text in message_texts(prompt.get("messages")):
        lines += _text(f"before: {printable(label)}", text or EMPTY)
    lines += _text("prompt", prompt.get("prompt"))
    shown = (f"{image['path']}, sha256 {image['sha256']}" for image in record.images or ())
    lines += _text("pictures", "\n".join(shown))
    for number, turn in enumerate(turns, 1):
        lines += _turn(number if record.turns else None, turn)
    return lines


def _fact(label: str, text: str, width: int) -> Iterator[str]:
    """A line or more, broken between words; a word that is too long stays whole, to be copied."""
    for line in printable(text).split("\n"):
        for part in textwrap.wrap(line, width - LABEL_WIDTH, break_long_words=False, break_on_hyphens=False):
            yield f"{label:<{LABEL_WIDTH}}{part}"
            label = ""


def _facts(record: Record, prompt: JsonObject) -> Iterator[tuple[str, str]]:
    why = record.violation or record.fault_message or WORDS.get(record.failure_type or "", "")
    yield "verdict", f"{verdict_of(record)}{f': {why}' if why else ''}"
    if rule := prompt.get("validator"):
        yield "validator", json.dumps(rule, ensure_ascii=False)
    if record.parsed_output is not None:
        yield "parsed", json.dumps(record.parsed_output, ensure_ascii=False)
    if record.tool_outcome:
        yield "tools", f"{record.tool_outcome}: {OUTCOMES[record.tool_outcome]}"
    if record.tool_calls:
        yield "invoked", ", ".join(record.tool_calls)
    if record.ended_by and record.ended_by in ENDS:
        yield "ended", ENDS[record.ended_by]
    yield "measured", "; ".join(f"{label} {text}" for label, text in measured(record).items())


def _turn(number: int | None, turn: Mapping[str, Any]) -> Iterator[str]:
    """Yield the lines of a turn; without a number it is the only one."""
    if turn.get("user"):
        yield from _text("user", turn["user"])
    if number:
        times = f"{render_ms(turn.get('e2e_ms'))}, TTFT {render_ms(turn.get('ttft_ms'))}"
        tokens = "".join(
            f", {turn[f'{what}put_tokens']} {what}"
            for what in ("in", "out")
            if turn.get(f"{what}put_tokens") is not None
        )
        yield from ("", f"turn {number}  ({times}{tokens})")
    yield from _text("thinking", turn.get("reasoning"))
    yield from _text("answer", turn.get("text"))
    for call in turn["calls"]:
        problem = f" ({call['problem']})" if call["problem"] else ""
        yield from _text(f"call {printable(call['name'])}{problem}", call["arguments"])
        yield from _text("OpenClaw", "\n".join(filter(None, [call["message"], *call["notes"]])))
        yield from _text("result", call["result"])


def _text(label: str, text: str | None) -> Iterator[str]:
    if text:
        yield from ("", label)
        # By line feeds alone: `printable` escapes every other end of a line.
        for line in printable(text).rstrip("\n").split("\n"):
            yield f"{INDENT}{line}" if line else ""
