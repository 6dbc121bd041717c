"""What was heard between OpenClaw and a model, as one reply."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from pytest_openclaw.records import Reply, Turn
from pytest_openclaw.tools.dispatch import dispatch

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pytest_openclaw.providers.openclaw_disk import Disk
    from pytest_openclaw.providers.openclaw_relay import Heard
    from pytest_openclaw.providers.openclaw_result import Told
    from pytest_openclaw.records import EndedBy, Request, Timing
    from pytest_openclaw.toolcalls import ToolCall


def reply_of(heard: Heard, told: Told | None, request: Request, *, began: float) -> Reply:
    """Return the exchange as one reply.

    Its time is that of its turns together, without what the tools took, as in a scripted exchange; what
    OpenClaw took before its first request is `start_up_ms`.

    Args:
        heard: of the run.
        told: what OpenClaw said at the end; None if it was ended before.
        request: what was asked.
        began: when OpenClaw was started, by `time.perf_counter`.
    """
    start_up_ms = None if heard.first_at is None else (heard.first_at - began) * 1000
    if not heard.exchanges:  # it answered by itself
        text = told.text if told else ""
        return Reply(text=text, raw=text, effective_model=told.model if told else None)
    replies = [exchange.reply() for exchange in heard.exchanges]
    last = replies[-1]
    text = told.text if told and told.text else last.text
    whole = replace(
        last,
        text=text,
        raw="\n\n".join(filter(None, (reply.raw for reply in replies))),
        tool_calls=tuple(call for reply in replies for call in reply.tool_calls),
        timing=_together([exchange.timing() for exchange in heard.exchanges]),
        input_tokens=_total([reply.input_tokens for reply in replies]),
        output_tokens=_total([reply.output_tokens for reply in replies]),
        cached_tokens=_total([reply.cached_tokens for reply in replies]),
        usage=tuple(usage for reply in replies for usage in reply.usage),
        start_up_ms=start_up_ms,
    )
    if request.world is None:
        return whole
    turns = _turns(replies, heard.results)
    return replace(whole, turns=turns, ended_by=_ended_by(turns, told, request))


def told_in_world(reply: Reply, disk: Disk) -> Reply:
    """Return a reply in which the workspace has the name that a suite knows; the raw text keeps its own."""
    told = disk.told_in_world

    def calls(made: Sequence[ToolCall]) -> tuple[ToolCall, ...]:
        return tuple(replace(call, arguments=told(call.arguments)) for call in made)

    turns = tuple(
        replace(
            turn,
            text=told(turn.text),
            reasoning=told(turn.reasoning),
            calls=calls(turn.calls),
            results=tuple(map(told, turn.results)),
        )
        for turn in reply.turns
    )
    return replace(
        reply,
        text=told(reply.text),
        reasoning=told(reply.reasoning),
        tool_calls=calls(reply.tool_calls),
        turns=turns,
    )


def _turns(replies: Sequence[Reply], results: Sequence[tuple[str, ...]]) -> tuple[Turn, ...]:
    brought = [*results, *[()] * (len(replies) - len(results))]
    return tuple(
        Turn(
            text=reply.text,
            reasoning=reply.reasoning,
            calls=reply.tool_calls,
            results=result[: len(reply.tool_calls)],
            finish_reason=reply.finish_reason,
            timing=reply.timing,
            input_tokens=reply.input_tokens,
            output_tokens=reply.output_tokens,
        )
        for reply, result in zip(replies, brought, strict=False)
    )


def _ended_by(turns: Sequence[Turn], told: Told | None, request: Request) -> EndedBy:
    if told is None:
        return "step_limit"
    broken = any(dispatch(call, request.tools).problem == "malformed_json" for call in turns[-1].calls)
    return "malformed_call" if broken else "answer"


def _together(timings: Sequence[Timing]) -> Timing:
    e2e_ms = sum(timing.e2e_ms for timing in timings)
    return replace(timings[0], e2e_ms=e2e_ms, ended_at_ms=timings[0].started_at_ms + round(e2e_ms))


def _total(counts: Sequence[int | None]) -> int | None:
    """Return the sum; None if a turn's is not known."""
    known = [count for count in counts if count is not None]
    return sum(known) if len(known) == len(counts) else None
