"""Joins the recorded exchange between OpenClaw and a model into one reply."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

from pytest_openclaw.openclaw.bridge import promoted_calls
from pytest_openclaw.openclaw.dispatch import dispatch, is_forgotten
from pytest_openclaw.openclaw.recovery import at_last_step, is_given_up
from pytest_openclaw.openclaw.thinking import strip_thinking
from pytest_openclaw.providers.openclaw.call import may_pass
from pytest_openclaw.providers.prices import summed
from pytest_openclaw.values.replies import Reply, Turn

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pytest_openclaw.providers.openclaw.disk import Disk
    from pytest_openclaw.providers.openclaw.envelope import AgentResult
    from pytest_openclaw.providers.openclaw.relay import RecordedRun
    from pytest_openclaw.values.replies import EndedBy, Fault, Timing
    from pytest_openclaw.values.requests import Request
    from pytest_openclaw.values.tool_calls import Tool, ToolCall


def reply_of(
    received: RecordedRun,
    result: AgentResult | None,
    request: Request,
    *,
    began: float,
) -> Reply:
    """Return the exchange as one reply.

    Its time is the sum of its turns without the tools' time, as in a scripted exchange; OpenClaw's time
    before its first request is `start_up_ms`.

    Args:
        received: of the run.
        result: OpenClaw's own result; None if it was ended before.
        request: the request.
        began: when OpenClaw was started, by `time.perf_counter`.

    """
    start_up_ms = None if received.first_at is None else (received.first_at - began) * 1000
    if not received.exchanges:  # it answered by itself
        text = result.text if result else ""
        return Reply(text=text, raw=text, effective_model=result.model if result else None)
    offered = [request.tools if offers else () for offers in received.offering]
    replies = [
        exchange.reply() if tools or not request.tools else _without_tools(exchange.reply())
        for exchange, tools in zip(received.exchanges, offered, strict=True)
    ]
    # The model's text has precedence over OpenClaw's version of it.
    text = replies[-1].text or (result.text if result else "")
    whole = replace(
        summed(replies),
        text=text,
        timing=_together([exchange.timing() for exchange in received.exchanges]),
        start_up_ms=start_up_ms,
    )
    if not request.is_exchange:
        return whole
    turns = _turns(replies, received.results, offered)
    calls = tuple(call for turn in turns for call in turn.calls)
    if request.world is None:
        ended_by = _question_ended_by(turns, result, request)
        if ended_by == "call":  # it is not carried out
            turns = (*turns[:-1], replace(turns[-1], results=()))
        return replace(whole, tool_calls=calls, turns=turns, ended_by=ended_by)
    return replace(whole, tool_calls=calls, turns=turns, ended_by=_ended_by(turns, result, request))


def answering(reply: Reply, message: str) -> Reply:
    """Return the reply of a run with the message of the user that began it."""
    first = tuple(replace(turn, user=message) for turn in reply.turns[:1])
    return replace(reply, turns=(*first, *reply.turns[1:]))


def joined(runs: Sequence[Reply]) -> Reply:
    """Return the runs of a session, one or more, as one reply."""
    if len(runs) == 1:
        return runs[0]
    timings = [run.timing for run in runs if run.timing]
    return replace(
        summed(runs),
        timing=_together(timings) if timings else None,
        start_up_ms=sum(run.start_up_ms or 0.0 for run in runs),
        turns=tuple(turn for run in runs for turn in run.turns),
    )


def broken_after(runs: Sequence[Reply], fault: Fault) -> Fault:
    """Return the fault of a session's run with what the runs before it said and took."""
    if not runs:
        return fault
    before = joined(runs)
    raw = "\n\n".join(filter(None, (before.raw, fault.raw)))
    return replace(fault, raw=raw, turns=(*before.turns, *fault.turns), usage=(*before.usage, *fault.usage))


def with_world_paths(reply: Reply, disk: Disk) -> Reply:
    """Return the reply with the workspace's path as in the suite; the raw text is unchanged."""
    plain = disk.with_world_paths

    def calls(made: Sequence[ToolCall]) -> tuple[ToolCall, ...]:
        return tuple(replace(call, arguments=plain(call.arguments)) for call in made)

    turns = tuple(
        replace(
            turn,
            text=plain(turn.text),
            reasoning=plain(turn.reasoning),
            calls=calls(turn.calls),
            results=tuple(map(plain, turn.results)),
        )
        for turn in reply.turns
    )
    return replace(
        reply,
        text=plain(reply.text),
        reasoning=plain(reply.reasoning),
        tool_calls=calls(reply.tool_calls),
        turns=turns,
    )


def _without_tools(reply: Reply) -> Reply:
    """Mark the calls of a reply whose request offered no tools."""
    return replace(reply, tool_calls=tuple(replace(call, unoffered=True) for call in reply.tool_calls))


def _turns(
    replies: Sequence[Reply], results: Sequence[tuple[str, ...]], offered: Sequence[Sequence[Tool]]
) -> tuple[Turn, ...]:
    by_turn = [*results, *[None] * (len(replies) - len(results))]
    # Calls that OpenClaw makes from a text count like others.
    calls = [
        reply.tool_calls or promoted_calls(strip_thinking(reply.text), tools)
        for reply, tools in zip(replies, offered, strict=True)
    ]
    return tuple(
        reply.as_turn(calls=made, results=() if result is None else _by_call(made, result, tools))
        for reply, made, result, tools in zip(replies, calls, by_turn, offered, strict=False)
    )


def _by_call(calls: Sequence[ToolCall], results: Sequence[str], tools: Sequence[Tool]) -> tuple[str, ...]:
    """Return the result of each call; empty for a call whose result OpenClaw does not send to the model."""
    left = list(results)
    ordered: list[str] = []
    for call in calls:
        if is_forgotten(dispatch(call, tools)):
            ordered.append("")
        elif left:
            ordered.append(left.pop(0))
        else:
            break
    return tuple(ordered)


def _question_ended_by(turns: Sequence[Turn], result: AgentResult | None, request: Request) -> EndedBy:
    passes, last = may_pass(request), turns[-1].calls
    if last and not (passes and all(map(passes, last))):
        return "call"
    return "answer" if result or not last else at_last_step(turns)


def _ended_by(turns: Sequence[Turn], result: AgentResult | None, request: Request) -> EndedBy:
    if result is None:
        return at_last_step(turns)
    if is_given_up([turn.calls for turn in turns], partial(dispatch, tools=request.tools)):
        return "loop"
    broken = any(dispatch(call, request.tools).problem == "malformed_json" for call in turns[-1].calls)
    return "malformed_call" if broken else "answer"


def _together(timings: Sequence[Timing]) -> Timing:
    e2e_ms = sum(timing.e2e_ms for timing in timings)
    return replace(timings[0], e2e_ms=e2e_ms, ended_at_ms=timings[0].started_at_ms + round(e2e_ms))
