"""Limits the size of replies, so that judging takes a bounded time, and of rows.

`cut` lists the shortened fields of the row. Two of its words are not fields: `answer`, if only the beginning
of a text was judged, and `reasoning`.
"""

from __future__ import annotations

from dataclasses import replace
from itertools import accumulate
from typing import TYPE_CHECKING, Any, TypeVar

from pytest_openclaw.openclaw.thinking import strip_thinking
from pytest_openclaw.util.json_text import line_of
from pytest_openclaw.util.text import (
    MAX_ANSWER_BYTES,
    MAX_CALLS_BYTES,
    MAX_TEXT_BYTES,
    clip,
    map_texts,
    valid_text,
)
from pytest_openclaw.values.rows import to_row

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pytest_openclaw.values.replies import Fault, Reply, Turn
    from pytest_openclaw.values.rows import Record
    from pytest_openclaw.values.tool_calls import ToolCall

T = TypeVar("T", str, str | None)

MAX_ROW_BYTES = 1024 * 1024
MAX_CALLS = 256
"""The most calls of one turn; together they take at most `MAX_CALLS_BYTES`."""
MAX_NAME_BYTES = 1024
"""The limit of a name or word: a tool, an id, a model, a finish reason."""

_MOST_THINKING_BYTES = 16 * MAX_ANSWER_BYTES
# The names of all fields that can be cut take fewer bytes.
_ROOM_FOR_CUT = 1024
_JUDGMENT_FIELDS = frozenset(
    {"violation", "parsed_output", "tool_calls", "harm_tools", "fault_message", "written_calls"}
)
_TEXT_LIMITS = {
    "finish_reason": MAX_NAME_BYTES,
    "effective_model": MAX_NAME_BYTES,
    "violation": MAX_TEXT_BYTES // 4,
    "fault_message": MAX_TEXT_BYTES // 4,
    "raw_output": MAX_TEXT_BYTES,
}
_LISTS = ("tool_calls", "harm_tools", "tool_call_details", "turns", "written_calls")
"""Fields in the order in which they share the space that the texts leave."""


def _cut(cut: set[str], field: str, text: T, max_bytes: int = MAX_NAME_BYTES) -> T:
    """Return a text (or None) without surrogates, cut to a limit; add `field` to `cut` if it was longer."""
    if not isinstance(text, str):
        return text
    text = valid_text(text)
    kept = clip(text, max_bytes)
    if kept != text:
        cut.add(field)
    return kept


def bounded_reply(reply: Reply) -> Reply:
    """Return a reply that is short enough to be judged; its `cut` names the shortened fields."""
    cut = {*reply.cut}
    turns = tuple(_turn(turn, cut) for turn in reply.turns)
    calls = tuple(call for turn in turns for call in turn.calls)
    return replace(
        reply,
        text=_answer(reply.text, cut),
        reasoning=_cut(cut, "reasoning", reply.reasoning, MAX_ANSWER_BYTES),
        raw=_cut(cut, "raw_output", reply.raw or reply.text, MAX_ANSWER_BYTES),
        refusal=_cut(set(), "", reply.refusal, MAX_TEXT_BYTES),  # `raw` has it too
        finish_reason=_cut(cut, "finish_reason", reply.finish_reason),
        effective_model=_cut(cut, "effective_model", reply.effective_model),
        turns=turns,
        tool_calls=calls if turns else _calls(reply.tool_calls, cut),
        cut=frozenset(cut),
    )


def bounded_fault(fault: Fault) -> Fault:
    """Return a fault with limited texts; its `cut` names the shortened fields."""
    cut = {*fault.cut}
    return replace(
        fault,
        message=_cut(cut, "fault_message", fault.message, MAX_TEXT_BYTES),
        raw=_cut(cut, "raw_output", fault.raw, MAX_ANSWER_BYTES),
        turns=tuple(_turn(turn, cut) for turn in fault.turns),
        cut=frozenset(cut),
    )


def _answer(text: str, cut: set[str]) -> str:
    """Return the part of a text that is judged; thinking is removed first if the text is too long."""
    beginning = _cut(cut, "answer", text, _MOST_THINKING_BYTES)
    if clip(beginning, MAX_ANSWER_BYTES) == beginning:
        return beginning
    return _cut(cut, "answer", strip_thinking(beginning), MAX_ANSWER_BYTES)


def _calls(calls: Sequence[ToolCall], cut: set[str]) -> tuple[ToolCall, ...]:
    kept: list[ToolCall] = []
    room = MAX_CALLS_BYTES
    for call in calls:
        if len(kept) == MAX_CALLS or room <= 0:
            cut.add("tool_call_details")
            break
        arguments = _cut(cut, "tool_call_details", call.arguments, room)
        name, id_ = (_cut(cut, "tool_call_details", word) for word in (call.name, call.id))
        kept.append(replace(call, name=name or "", id=id_, arguments=arguments))
        room -= len(f"{name}{arguments}".encode())
    return tuple(kept)


def _turn(turn: Turn, cut: set[str]) -> Turn:
    calls = _calls(turn.calls, cut)
    return replace(
        turn,
        text=_answer(turn.text, cut),
        reasoning=_cut(cut, "reasoning", turn.reasoning, MAX_ANSWER_BYTES),
        calls=calls,
        results=tuple(_cut(cut, "turns", result, MAX_TEXT_BYTES) for result in turn.results[: len(calls)]),
        finish_reason=_cut(cut, "turns", turn.finish_reason),
    )


def clipped(record: Record) -> Record:
    """Return a record whose row takes at most `MAX_ROW_BYTES`; its `cut` names the shortened fields."""
    cut = {*(record.cut or ())}
    kept: dict[str, Any] = {
        name: _cut(cut, name, getattr(record, name), most) for name, most in _TEXT_LIMITS.items()
    }
    if _size(record.parsed_output) > MAX_TEXT_BYTES:
        cut.add("parsed_output")
        kept["parsed_output"] = None
    lists = {name: list(value) for name in _LISTS if (value := getattr(record, name))}
    bare: dict[str, Any] = {**kept, **dict.fromkeys(lists, ()), "cut": None}
    room = MAX_ROW_BYTES - _ROOM_FOR_CUT - _size(to_row(replace(record, **bare)))
    for name, items in lists.items():
        short = [map_texts(item, clip) for item in items]
        ends = accumulate(_size(item) + len(", ") for item in short)
        kept[name] = tuple(item for item, end in zip(short, ends, strict=True) if end <= room)
        if [*kept[name]] != items:
            cut.add(name)
        room -= _size(kept[name])
    return replace(record, **kept, truncated=bool(cut) or record.truncated, cut=tuple(sorted(cut)) or None)


def unjudged(record: Record) -> Record:
    """Return a record to be judged again: its `cut` no longer names the fields that judging sets."""
    if record.cut is None:
        return record
    cut = tuple(name for name in record.cut if name not in _JUDGMENT_FIELDS)
    return replace(record, truncated=bool(cut), cut=cut or None)


def _size(value: Any) -> int:
    return len(line_of(value))
