"""What was heard between OpenClaw and a model, as one reply."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

from pytest_openclaw.providers.prices import total_tokens
from pytest_openclaw.tools.dispatch import dispatch, is_forgotten
from pytest_openclaw.tools.loops import at_last_step, is_given_up
from pytest_openclaw.tools.promoted import promoted_calls
from pytest_openclaw.tools.thinking import strip_thinking
from pytest_openclaw.types.replies import Reply, Turn

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pytest_openclaw.providers.openclaw.disk import Disk
    from pytest_openclaw.providers.openclaw.relay import RecordedRun
    from pytest_openclaw.providers.openclaw.result import AgentResult
    from pytest_openclaw.types.replies import EndedBy, Timing
    from pytest_openclaw.types.requests import Request
    from pytest_openclaw.types.tool_calls import Tool, ToolCall


def reply_of(received: RecordedRun, told: AgentResult | None, request: Request, *, began: float) -> Reply:
    """Return the exchange as one reply.

    Its time is that of its turns together, without what the tools took, as in a scripted exchange; what
    OpenClaw took before its first request is `start_up_ms`.

    Args:
        received: of the run.
        told: what OpenClaw said at the end; None if it was ended before.
        request: what was asked.
        began: when OpenClaw was started, by `time.perf_counter`.
    """
    start_up_ms = None if received.first_at is None else (received.first_at - began) * 1000
    if not received.exchanges:  # it answered by itself
        text = told.text if told else ""
        return Reply(text=text, raw=text, effective_model=told.model if told else None)
    replies = [exchange.reply() for exchange in received.exchanges]
    last = replies[-1]
    # What the model wrote goes before what OpenClaw shows of it.
    text = last.text or (told.text if told else "")
    whole = replace(
        last,
        text=text,
        raw="\n\n".join(filter(None, (reply.raw for reply in replies))),
        tool_calls=tuple(call for reply in replies for call in reply.tool_calls),
        timing=_together([exchange.timing() for exchange in received.exchanges]),
        input_tokens=total_tokens(reply.input_tokens for reply in replies),
        output_tokens=total_tokens(reply.output_tokens for reply in replies),
        cached_tokens=total_tokens(reply.cached_tokens for reply in replies),
        usage=tuple(usage for reply in replies for usage in reply.usage),
        start_up_ms=start_up_ms,
    )
    if request.world is None:
        return whole
    turns = _turns(replies, received.results, request.tools)
    calls = tuple(call for turn in turns for call in turn.calls)
    return replace(whole, tool_calls=calls, turns=turns, ended_by=_ended_by(turns, told, request))


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


def _turns(
    replies: Sequence[Reply], results: Sequence[tuple[str, ...]], tools: Sequence[Tool]
) -> tuple[Turn, ...]:
    brought = [*results, *[None] * (len(replies) - len(results))]
    # Calls that OpenClaw makes of a text are calls like the others.
    calls = [reply.tool_calls or promoted_calls(strip_thinking(reply.text), tools) for reply in replies]
    return tuple(
        Turn(
            text=reply.text,
            reasoning=reply.reasoning,
            calls=made,
            results=() if result is None else _by_call(made, result, tools),
            finish_reason=reply.finish_reason,
            timing=reply.timing,
            input_tokens=reply.input_tokens,
            output_tokens=reply.output_tokens,
        )
        for reply, made, result in zip(replies, calls, brought, strict=False)
    )


def _by_call(calls: Sequence[ToolCall], results: Sequence[str], tools: Sequence[Tool]) -> tuple[str, ...]:
    """Return the result of each call; of one that OpenClaw does not tell the model of, an empty text."""
    left = list(results)
    told: list[str] = []
    for call in calls:
        if is_forgotten(dispatch(call, tools)):
            told.append("")
        elif left:
            told.append(left.pop(0))
        else:
            break
    return tuple(told)


def _ended_by(turns: Sequence[Turn], told: AgentResult | None, request: Request) -> EndedBy:
    if told is None:
        return at_last_step(turns)
    if is_given_up([turn.calls for turn in turns], partial(dispatch, tools=request.tools)):
        return "loop"
    broken = any(dispatch(call, request.tools).problem == "malformed_json" for call in turns[-1].calls)
    return "malformed_call" if broken else "answer"


def _together(timings: Sequence[Timing]) -> Timing:
    e2e_ms = sum(timing.e2e_ms for timing in timings)
    return replace(timings[0], e2e_ms=e2e_ms, ended_at_ms=timings[0].started_at_ms + round(e2e_ms))
