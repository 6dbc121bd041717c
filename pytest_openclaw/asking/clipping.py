"""Makes replies valid and short as they arrive, so that judging takes a bounded time, and shortens rows.

Both count the missing bytes by field of the row, of a text as UTF-8 and of a list as JSON; `answer` is the
part of a text that was not judged, `reasoning` the missing part of a reasoning channel.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from itertools import accumulate
from typing import TYPE_CHECKING, Any, TypeVar

from pytest_openclaw.openclaw.thinking import strip_thinking
from pytest_openclaw.util.json_text import line_of
from pytest_openclaw.util.text import MAX_ANSWER_BYTES, MAX_CALLS_BYTES, MAX_TEXT_BYTES, clip, valid_text
from pytest_openclaw.values.rows import to_row

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from pytest_openclaw.values.replies import Fault, Reply, Turn
    from pytest_openclaw.values.rows import Record
    from pytest_openclaw.values.tool_calls import ToolCall

T = TypeVar("T", str, str | None)

MAX_ROW_BYTES = 1024 * 1024
MAX_CALLS = 256
"""Of one turn; together they take at most `MAX_CALLS_BYTES`."""
MAX_NAME_BYTES = 1024
"""Of a name or a word: a tool, an id, a model, a finish reason."""

_MOST_THINKING_BYTES = 16 * MAX_ANSWER_BYTES
# The name and the number of every field that can be cut take less.
_ROOM_FOR_CUT = 1024
_OF_JUDGMENT = frozenset({"violation", "parsed_output", "tool_calls", "harm_tools", "fault_message"})
_TEXTS = {
    "finish_reason": MAX_NAME_BYTES,
    "effective_model": MAX_NAME_BYTES,
    "violation": MAX_TEXT_BYTES // 4,
    "fault_message": MAX_TEXT_BYTES // 4,
    "raw_output": MAX_TEXT_BYTES,
}
_LISTS = ("tool_calls", "harm_tools", "tool_call_details", "turns")
"""Fields in the order in which they share the space that the texts leave."""


def _cut(cuts: Counter[str], field: str, text: T, max_bytes: int = MAX_NAME_BYTES) -> T:
    """Return a text, or None, cut to a limit and without surrogates; count the missing bytes."""
    if not isinstance(text, str):
        return text
    text = valid_text(text)
    kept = clip(text, max_bytes)
    cuts[field] += _bytes(text) - _bytes(kept)
    return kept


def bounded_reply(reply: Reply) -> Reply:
    """Return a reply without parts that are too long to be judged, with the missing bytes by field."""
    cuts = Counter(reply.cut)
    turns = tuple(_turn(turn, cuts) for turn in reply.turns)
    calls = tuple(call for turn in turns for call in turn.calls)
    return replace(
        reply,
        text=_answer(reply.text, cuts),
        reasoning=_cut(cuts, "reasoning", reply.reasoning, MAX_ANSWER_BYTES),
        raw=_cut(cuts, "raw_output", reply.raw or reply.text, MAX_ANSWER_BYTES),
        refusal=_cut(Counter(), "", reply.refusal, MAX_TEXT_BYTES),  # which is in `raw` too
        finish_reason=_cut(cuts, "finish_reason", reply.finish_reason),
        effective_model=_cut(cuts, "effective_model", reply.effective_model),
        turns=turns,
        tool_calls=calls if turns else _calls(reply.tool_calls, cuts),
        cut=dict(+cuts),
    )


def bounded_fault(fault: Fault) -> Fault:
    """Return a fault that is not too long, with the missing bytes by field."""
    cuts = Counter(fault.cut)
    return replace(
        fault,
        message=_cut(cuts, "fault_message", fault.message, MAX_TEXT_BYTES),
        raw=_cut(cuts, "raw_output", fault.raw, MAX_ANSWER_BYTES),
        turns=tuple(_turn(turn, cuts) for turn in fault.turns),
        cut=dict(+cuts),
    )


def all_cuts(parts: Sequence[Reply | Fault]) -> Mapping[str, int]:
    """Return the missing bytes of all turns of an exchange."""
    return dict(sum((Counter(part.cut) for part in parts), Counter()))


def _answer(text: str, cuts: Counter[str]) -> str:
    """Return the part of a text that is judged; of a text that is too long, thinking is cut first."""
    if _bytes(text) <= MAX_ANSWER_BYTES:
        return valid_text(text)
    near = _cut(cuts, "answer", text, _MOST_THINKING_BYTES)
    return _cut(cuts, "answer", strip_thinking(near), MAX_ANSWER_BYTES)


def _calls(calls: Sequence[ToolCall], cuts: Counter[str]) -> tuple[ToolCall, ...]:
    kept: list[ToolCall] = []
    room = MAX_CALLS_BYTES
    for call in calls:
        if len(kept) == MAX_CALLS or room <= 0:
            cuts["tool_call_details"] += _bytes(call.name + call.arguments)
            continue
        arguments = _cut(cuts, "tool_call_details", call.arguments, room)
        name, id_ = (_cut(cuts, "tool_call_details", word) for word in (call.name, call.id))
        kept.append(replace(call, name=name or "", id=id_, arguments=arguments))
        room -= _bytes(call.name + arguments)
    return tuple(kept)


def _turn(turn: Turn, cuts: Counter[str]) -> Turn:
    calls = _calls(turn.calls, cuts)
    return replace(
        turn,
        text=_answer(turn.text, cuts),
        reasoning=_cut(cuts, "reasoning", turn.reasoning, MAX_ANSWER_BYTES),
        calls=calls,
        results=tuple(_cut(cuts, "turns", result, MAX_TEXT_BYTES) for result in turn.results[: len(calls)]),
        finish_reason=_cut(cuts, "turns", turn.finish_reason),
    )


def _bytes(text: str) -> int:
    return len(text.encode("utf-8", "replace"))


def clipped(record: Record) -> Record:
    """Return a record whose row takes at most `MAX_ROW_BYTES`, with the missing bytes by field."""
    cuts = Counter(record.cut or {})
    kept: dict[str, Any] = {
        name: _cut(cuts, name, getattr(record, name), most) for name, most in _TEXTS.items()
    }
    if (size := _size(record.parsed_output)) > MAX_TEXT_BYTES:
        cuts["parsed_output"] += size - _size(None)
        kept["parsed_output"] = None
    lists = {name: list(value) for name in _LISTS if (value := getattr(record, name))}
    bare: dict[str, Any] = {**kept, **dict.fromkeys(lists, ()), "cut": None}
    room = MAX_ROW_BYTES - _ROOM_FOR_CUT - _size(to_row(replace(record, **bare)))
    for name, items in lists.items():
        short = [_with_short_texts(item) for item in items]
        ends = accumulate(_size(item) + len(", ") for item in short)
        kept[name] = tuple(item for item, end in zip(short, ends, strict=True) if end <= room)
        cuts[name] += _size(items) - _size(kept[name])
        room -= _size(kept[name])
    cut = dict(+cuts) or None
    return replace(record, **kept, truncated=bool(cut) or record.truncated, cut=cut)


def unjudged(record: Record) -> Record:
    """Return a record to be judged again, without the missing bytes of its old verdict."""
    if record.cut is None:
        return record
    cut = {name: n_bytes for name, n_bytes in record.cut.items() if name not in _OF_JUDGMENT}
    return replace(record, truncated=bool(cut), cut=cut or None)


def _with_short_texts(value: Any) -> Any:
    """Return a JSON value with all texts shortened to the limit."""
    if isinstance(value, str):
        return clip(value)
    if isinstance(value, dict):
        return {key: _with_short_texts(item) for key, item in value.items()}
    return [_with_short_texts(item) for item in value] if isinstance(value, list) else value


def _size(value: Any) -> int:
    return len(line_of(value))
