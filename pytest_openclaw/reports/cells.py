"""A cell as text: a failed one, to be read like a good assertion, and those of a stored run."""

from __future__ import annotations

import json
import textwrap
from dataclasses import dataclass
from itertools import zip_longest
from typing import TYPE_CHECKING, Any

from pytest_openclaw.reports.blocks import Table, table_lines
from pytest_openclaw.reports.numbers import (
    DASH,
    WIDTH,
    one_line,
    render_ms,
    render_time,
    shorten,
)
from pytest_openclaw.suites.conversation import written_messages
from pytest_openclaw.util.text import counted, printable
from pytest_openclaw.values.replies import Reply

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from pytest_openclaw.util.json_types import JsonObject
    from pytest_openclaw.values.prompts import Cell, Prompt
    from pytest_openclaw.values.replies import Timing
    from pytest_openclaw.values.rows import Record
    from pytest_openclaw.values.tool_calls import Dispatched, ToolOutcome


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


LABEL_WIDTH = 11
INDENT = "  "
EMPTY = "(nothing)"


def verdict_of(record: Record) -> str:
    """Return a row's verdict in a word or two."""
    if record.failure_type:
        return record.failure_type
    return {True: "passed", False: "failed", None: "not judged"}[record.objective_pass]


def is_miss(record: Record) -> bool:
    """Whether the cell did not pass: its verdict failed, or there is no answer."""
    return not record.success or record.objective_pass is False


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


@dataclass(frozen=True, kw_only=True)
class Opened:
    """The parts of a row's texts.

    Attributes:
        thinking, answer: of a single question.
        calls: of a single question: `name`, `arguments`, the `problem` if it would not be executed, and
            what else is to be shown of it.
    """

    thinking: str = ""
    answer: str = ""
    calls: Sequence[Mapping[str, Any]] = ()


def render_cell(
    name: str, record: Record, prompt: JsonObject, opened: Opened, width: int = WIDTH
) -> list[str]:
    """Return the lines that show everything of a cell, its texts in full.

    Args:
        name: as pytest shows it.
        record: its row.
        prompt: its prompt's definition in `config.json`; empty if there is none.
        opened: the parts of its texts, if it was asked a single question.
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
    if record.turns:
        for number, turn in enumerate(record.turns, 1):
            lines += _turn(number, turn)
        return lines
    lines += _text("thinking", opened.thinking)
    lines += _text("answer", opened.answer)
    if opened.calls:
        lines += ["", "calls"]
    for call in opened.calls:
        lines += _call(call)
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
    if record.tool_notes:
        yield "forgiven", "; ".join(record.tool_notes)
    if record.ended_by and record.ended_by in ENDS:
        yield "ended", ENDS[record.ended_by]
    yield "times", _times(record)
    yield "tokens", _tokens(record)
    yield "asked", _asking(record)
    if record.finish_reason:
        yield "finish", record.finish_reason
    if record.effective_model and record.effective_model != record.model:
        yield "served by", record.effective_model
    if record.cost_usd is not None:
        yield "cost", f"{record.cost_usd:.6f} USD"
    if record.cut:
        lost = ", ".join(f"{n_bytes:,} bytes of {name}" for name, n_bytes in record.cut.items())
        yield "cut", f"{lost} did not fit into the row"
    for key, value in record.extra.items():
        yield key, json.dumps(value, ensure_ascii=False)


def _times(record: Record) -> str:
    if not record.attempts:
        return "never asked"
    first = None if record.ttfo_ms == record.ttft_ms else record.ttfo_ms
    parts = {
        f"e2e {render_ms(record.e2e_ms)}": True,
        f"TTFT {render_ms(record.ttft_ms)}": True,
        f"first of the answer {render_ms(first)}": first is not None,
        f"start of the program before that {render_ms(record.start_up_ms)}": record.start_up_ms is not None,
        f"sent {render_time(record.started_at_ms, '%Y-%m-%d %H:%M:%S')}": True,
    }
    return _shown(parts)


def _tokens(record: Record) -> str:
    parts = {
        f"{record.input_tokens} in": record.input_tokens is not None,
        f"{record.cached_tokens} of them cached": record.cached_tokens is not None,
        f"{record.output_tokens} out": record.output_tokens is not None,
        f"{record.reasoning_tokens} of them thinking": record.reasoning_tokens is not None,
        f"{record.tokens_per_s or 0:g} tok/s": record.tokens_per_s is not None,
    }
    return _shown(parts) or "not reported"


def _asking(record: Record) -> str:
    parts = {
        counted(record.attempts, "attempt"): True,
        f"{render_ms(record.retry_wait_ms)} waited between them": bool(record.retry_wait_ms),
        f"{render_ms(record.queue_ms)} in the queue": record.queue_ms is not None,
        f"{record.in_flight} in flight": record.in_flight is not None,
        "a cold start": bool(record.cold_start),
        f"from {record.host}": bool(record.host),
        f"in the run {record.run_id}": True,
    }
    return _shown(parts)


def _shown(parts: Mapping[str, bool]) -> str:
    return ", ".join(text for text, is_shown in parts.items() if is_shown)


def _turn(number: int, turn: Mapping[str, Any]) -> Iterator[str]:
    shown_text = [render_ms(turn.get("e2e_ms")), f"TTFT {render_ms(turn.get('ttft_ms'))}"]
    shown_text += [
        f"{turn[key]} {what}"
        for key, what in (("input_tokens", "in"), ("output_tokens", "out"))
        if turn.get(key) is not None
    ]
    if turn.get("user"):
        yield from _text("user", turn["user"])
    yield ""
    yield f"turn {number}  ({', '.join(shown_text)})"
    for label, text in (("thinking", turn.get("reasoning")), ("text", turn.get("text"))):
        if text:
            yield f"{INDENT}{label}"
            yield from _indented(text, 2)
    for call in turn.get("calls", ()):
        yield from _call(call)


def _call(call: Mapping[str, Any]) -> Iterator[str]:
    problem = f"  ({call['problem']})" if call.get("problem") else ""
    yield f"{INDENT}call {printable(call['name'])}{problem}"
    yield from _indented(call["arguments"], 2)
    for label in ("told", "result"):
        if (text := call.get(label)) is not None:
            yield f"{INDENT}  {label}"
            yield from _indented(text, 3)


def _text(label: str, text: str | None) -> Iterator[str]:
    if text:
        yield ""
        yield label
        yield from _indented(text, 1)


def _indented(text: str, depth: int) -> Iterator[str]:
    # By line feeds alone: `printable` escapes every other end of a line.
    for line in printable(text).rstrip("\n").split("\n") if text else ():
        yield f"{INDENT * depth}{line}" if line else ""
