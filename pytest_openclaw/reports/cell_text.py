"""Cells of a stored run as text: a list of them, and one in full."""

from __future__ import annotations

import json
import textwrap
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from pytest_openclaw.core.text import counted, printable
from pytest_openclaw.reports.columns import WIDTH, render_columns
from pytest_openclaw.reports.failure import ENDS, OUTCOMES, WORDS
from pytest_openclaw.reports.message_texts import message_texts
from pytest_openclaw.reports.numbers import DASH, one_line, render_ms, render_time

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from pytest_openclaw.core.json_types import JsonObject
    from pytest_openclaw.types.records import Record

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
    """Yield a line a cell: which, its verdict, how long it took, and why it did not pass.

    Args:
        cells: rows by the names that are shown.
        width: columns of the terminal.
    """
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
    heads = ("cell", "verdict", "took", "why")
    yield from render_columns([heads, *rows], (True, True, False, True), most=width, shrinks=3, width=width)


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
        opened: what its texts hold, if it was asked a single question.
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
    yield "times", ", ".join(_times(record))
    yield "tokens", ", ".join(_tokens(record)) or "not reported"
    yield "asked", ", ".join(_asking(record))
    if record.finish_reason:
        yield "finish", record.finish_reason
    if record.effective_model and record.effective_model != record.model:
        yield "served by", record.effective_model
    if record.cost_usd is not None:
        yield "cost", f"{record.cost_usd:.6f} USD"
    if record.cut:
        yield "cut", _cut(record.cut)
    for key, value in record.extra.items():
        yield key, json.dumps(value, ensure_ascii=False)


def _cut(cut: Mapping[str, int]) -> str:
    lost = ", ".join(f"{n_bytes:,} bytes of {name}" for name, n_bytes in cut.items())
    return f"{lost} did not fit into the row"


def _times(record: Record) -> Iterator[str]:
    if not record.attempts:
        yield "never asked"
        return
    yield f"e2e {render_ms(record.e2e_ms)}"
    yield f"TTFT {render_ms(record.ttft_ms)}"
    if record.ttfo_ms is not None and record.ttfo_ms != record.ttft_ms:
        yield f"first of the answer {render_ms(record.ttfo_ms)}"
    if record.start_up_ms is not None:
        yield f"start of the program before that {render_ms(record.start_up_ms)}"
    yield f"sent {render_time(record.started_at_ms, '%Y-%m-%d %H:%M:%S')}"


def _tokens(record: Record) -> Iterator[str]:
    for n, what in (
        (record.input_tokens, "in"),
        (record.cached_tokens, "of them cached"),
        (record.output_tokens, "out"),
        (record.reasoning_tokens, "of them thinking"),
    ):
        if n is not None:
            yield f"{n} {what}"
    if record.tokens_per_s is not None:
        yield f"{record.tokens_per_s:g} tok/s"


def _asking(record: Record) -> Iterator[str]:
    yield counted(record.attempts, "attempt")
    if record.retry_wait_ms:
        yield f"{render_ms(record.retry_wait_ms)} waited between them"
    if record.queue_ms is not None:
        yield f"{render_ms(record.queue_ms)} in the queue"
    if record.in_flight is not None:
        yield f"{record.in_flight} in flight"
    if record.cold_start:
        yield "a cold start"
    if record.host:
        yield f"from {record.host}"
    yield f"in the run {record.run_id}"


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
