"""Makes the `Record` of a cell from its call result and judgment, and cuts it to the size of a row."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, replace
from itertools import accumulate, chain, repeat
from typing import TYPE_CHECKING, Any

from pytest_openclaw.judging.judge import Judgment, conclude, read, tool_demand_of
from pytest_openclaw.openclaw.dispatch import dispatch, reaching
from pytest_openclaw.suites.load import known_failure_of
from pytest_openclaw.util.json_text import line_of
from pytest_openclaw.util.text import MAX_NAME_BYTES, MAX_TEXT_BYTES, clip, cut_text, map_texts, valid_text
from pytest_openclaw.values.faults import Outcome, outcome_of
from pytest_openclaw.values.prompts import LABELS, Cell
from pytest_openclaw.values.replies import THINKING, CallResult, Fault, Reply, Timing, Turn, Verdict
from pytest_openclaw.values.rows import Record, to_row
from pytest_openclaw.values.tool_calls import Problem, ToolCall

if TYPE_CHECKING:
    from pytest_openclaw.util.redact import Redactor


# Fields of a row that have the same name in a prompt, a call result, a judgment and a reply.
_PROMPT_FIELDS = ("suite", "category", *LABELS, "part_labels")
SHORTEST_MS = 50.0
_CALL_FIELDS = ("attempts", "cold_start", "in_flight", "cost_usd")
_JUDGMENT_FIELDS = (
    *("tool_use_success", "tool_outcome", "leaked_valid", "tools_tested", "harm", "harm_tools"),
)
REPLY_FIELDS = (
    *("input_tokens", "output_tokens", "reasoning_tokens", "cached_tokens", "finish_reason"),
    *("effective_model", "ended_by"),
)


def record_of(
    run_id: str, cell: Cell, ending: CallResult, judgment: Judgment | None, redactor: Redactor
) -> Record:
    """Return the cell's row.

    Args:
        run_id: the id of the run.
        cell: the cell.
        ending: how the cell's call ended.
        judgment: of the reply; after a fault, of the calls before it, or None.
        redactor: removes secrets from every text that a model, server or plugin wrote.
    """
    timing = ending.timing
    known = known_failure_of(cell.prompt, cell.target)
    prompt = cell.prompt
    common: dict[str, Any] = {
        "run_id": run_id,
        **asdict(cell.target),
        **{name: getattr(prompt, name) for name in _PROMPT_FIELDS},
        **{name: getattr(ending, name) for name in _CALL_FIELDS},
        "prompt_id": prompt.id,
        "prompt_name": prompt.name,
        "repeat": cell.repeat,
        "started_at_ms": round(timing.started_at_ms),
        "ended_at_ms": round(timing.ended_at_ms),
        "e2e_ms": round(timing.e2e_ms),
        "ttft_ms": _whole(timing.ttft_ms),
        "ttfo_ms": _whole(timing.ttfo_ms),
        "retry_wait_ms": round(ending.retry_wait_ms),
        "queue_ms": _whole(ending.queue_ms),
        "tools_offered": None if prompt.tools is None else len(prompt.tools),
        "images": tuple({"path": one.path, "sha256": one.sha256} for one in prompt.images) or None,
        "tool_demand": tool_demand_of(prompt),
        "known_failure": None if known is None else known.reason,
    }
    if isinstance(ending.result, Fault):
        specific = _fault_fields(cell, ending.result, judgment)
    else:
        assert judgment is not None, "a reply is always judged"
        specific = _reply_fields(ending.result, judgment, timing)

    def clean(text: str) -> str:
        # A plugin's validator or a test's assertion may quote half a surrogate pair, which no file accepts.
        return redactor.text(valid_text(text))

    for name, value in specific.items():
        if value and not isinstance(value, int | float):
            specific[name] = map_texts(value, clean)
    return clipped(Record(**common, **specific, cut=tuple(ending.result.cut) or None))


def _fault_fields(cell: Cell, fault: Fault, done: Judgment | None) -> dict[str, Any]:
    outcome, tools = outcome_of(fault), cell.prompt.tools or ()
    made = reaching([dispatch(call, tools) for turn in fault.turns for call in turn.calls], tools)
    problems = {one.call: one.meant.problem for one in made}
    # A filtered answer came from the model, so a tool cell ends as with an empty answer.
    empty = conclude(read(cell.prompt, Reply()), Verdict(passed=None)) if outcome.status == "ok" else None
    return {
        **_outcome_fields(outcome),
        "raw_output": fault.raw,
        "fault_message": fault.message,
        "turns": tuple(_turn(turn, problems) for turn in fault.turns) or None,
        "tool_outcome": empty and empty.tool_outcome,
        "tools_tested": empty.tools_tested if empty else (),
        "harm": done and done.harm,
        "harm_tools": done.harm_tools if done else (),
    }


def _reply_fields(reply: Reply, judgment: Judgment, timing: Timing) -> dict[str, Any]:
    # The same call has the same problem in every turn.
    problems = {one.call: one.meant.problem for one in judgment.reply.dispatched}
    timed_out = {n for n, one in enumerate(judgment.reply.dispatched) if one.timed_out}
    return {
        **judgment_fields(judgment),
        "raw_output": reply.raw or reply.text,
        **{name: getattr(reply, name) for name in REPLY_FIELDS},
        "tokens_per_s": reply.tokens_per_s or _speed_of(reply, timing),
        "prompt_tokens_per_s": round(reply.prompt_tokens_per_s or 0.0, 1) or None,
        "tool_call_details": tuple(
            {**_call(call), **({"timed_out": True} if n in timed_out else {})}
            for n, call in enumerate(reply.tool_calls)
        ),
        "turns": tuple(_turn(turn, problems) for turn in reply.turns) or None,
    }


def judgment_fields(judgment: Judgment) -> dict[str, Any]:
    """Return the fields of a row that the judgment sets; the other fields are measured."""
    verdict = judgment.verdict
    names = judgment.reply.tool_names
    written = judgment.written_calls
    return {
        **_outcome_fields(judgment.outcome),
        **{name: getattr(judgment, name) for name in _JUDGMENT_FIELDS},
        "objective_pass": verdict.passed,
        "violation": verdict.violation,
        "parsed_output": verdict.parsed,
        "tool_calls": names,
        "tool_call_count": len(names),
        "written_calls": tuple({"name": one.name, "arguments": one.arguments} for one in written) or None,
    }


def _outcome_fields(outcome: Outcome) -> dict[str, Any]:
    return {
        "availability_status": outcome.status,
        "success": outcome.success,
        "failure_type": outcome.failure_type,
    }


def _call(call: ToolCall) -> dict[str, Any]:
    mark = {"unoffered": True} if call.unoffered else {}
    return {"id": call.id, "name": call.name, "arguments": call.arguments, **mark}


def _turn(turn: Turn, problems: Mapping[ToolCall, Problem | None]) -> dict[str, Any]:
    timing = turn.timing
    answered = chain(turn.results, repeat(None))
    return {
        **({} if turn.user is None else {"user": turn.user}),
        "text": turn.text,
        "reasoning": turn.reasoning,
        "calls": [
            {**_call(call), "result": result, "problem": problems.get(call)}
            for call, result in zip(turn.calls, answered, strict=False)
        ],
        "e2e_ms": timing and round(timing.e2e_ms),
        "ttft_ms": timing and _whole(timing.ttft_ms),
        "input_tokens": turn.input_tokens,
        "output_tokens": turn.output_tokens,
        "finish_reason": turn.finish_reason,
    }


def _speed_of(reply: Reply, timing: Timing) -> float | None:
    """Return the tokens per second between the first token and the last, without the TTFT of each turn.

    In less than 50 ms, or of tokens that arrived together, our clock measures the network. Hidden reasoning
    does not count, because it was generated before the first token.
    """
    turns = [(turn.output_tokens, turn.timing) for turn in reply.turns] or [(reply.output_tokens, timing)]
    timed = [
        (tokens - 1, generating_ms)
        for tokens, times in turns
        if tokens is not None and tokens > 1 and times is not None
        if times.ttft_ms is not None and not times.at_once
        if (generating_ms := times.e2e_ms - times.ttft_ms) >= SHORTEST_MS
    ]
    total_ms = sum(ms for _, ms in timed)
    n_hidden = 0 if THINKING.strip() in reply.raw else reply.reasoning_tokens or 0
    n_shown = sum(n for n, _ in timed) - n_hidden
    return round(n_shown / total_ms * 1000, 1) if n_shown > 0 else None


def _whole(milliseconds: float | None) -> int | None:
    return None if milliseconds is None else round(milliseconds)


# --- the size of a row ---------------------------------------------------------------------------

MAX_ROW_BYTES = 1024 * 1024
# The names of all fields that can be cut take fewer bytes.
_ROOM_FOR_CUT = 1024
_TEXT_LIMITS = {
    "finish_reason": MAX_NAME_BYTES,
    "effective_model": MAX_NAME_BYTES,
    "violation": MAX_TEXT_BYTES // 4,
    "fault_message": MAX_TEXT_BYTES // 4,
    "raw_output": MAX_TEXT_BYTES,
}
_LISTS = ("tool_calls", "harm_tools", "tool_call_details", "turns", "written_calls")
"""Fields in the order in which they share the space that the texts leave."""


def figures_in(parsed: dict[str, Any] | None) -> dict[str, Any] | None:
    """Return the values of a `parsed_output` from which plugins make figures."""
    keys = ("score", "agreement", "steps", "recorded_steps", "without_judge")
    found = {key: parsed[key] for key in keys if key in parsed} if parsed else {}
    return {key: value for key, value in found.items() if _size(value) <= MAX_NAME_BYTES} or None


def clipped(record: Record) -> Record:
    """Return a record whose row takes at most `MAX_ROW_BYTES`; its `cut` names the shortened fields."""
    cut = {*(record.cut or ())}
    kept: dict[str, Any] = {
        name: cut_text(cut, name, getattr(record, name), most) for name, most in _TEXT_LIMITS.items()
    }
    if _size(record.parsed_output) > MAX_TEXT_BYTES:
        cut.add("parsed_output")
        kept["parsed_output"] = figures_in(record.parsed_output)
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


def _size(value: Any) -> int:
    return len(line_of(value))
