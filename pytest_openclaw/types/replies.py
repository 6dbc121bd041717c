"""What an attempt brings: a reply or a fault, with its times, and the verdict on it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal

from pytest_openclaw.core.clock import epoch_ms

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pytest_openclaw.core.json_types import JsonObject
    from pytest_openclaw.types.tool_calls import Dispatched, ToolCall
    from pytest_openclaw.types.worlds import WorldState


AvailabilityStatus = Literal["ok", "skipped_unavailable", "auth_error", "rate_limited", "error"]
EndedBy = Literal["answer", "step_limit", "loop", "malformed_call"]
PytestOutcome = Literal["passed", "failed", "skipped", "error"]


@dataclass(frozen=True, kw_only=True)
class Timing:
    """When an attempt happened.

    Attributes:
        started_at_ms: wall clock at the send, ms since the epoch; a connection, if it had to be opened for
            the request, was open then.
        ended_at_ms: `started_at_ms` plus the monotonic duration, so that it never runs backwards.
        e2e_ms: from the send to the end of the reply, monotonic clock.
        ttft_ms: from the send to the first generated token on any channel (text, reasoning, tool call).
        ttfo_ms: from the send to the first token of the answer itself (text or tool call).
    """

    started_at_ms: int
    ended_at_ms: int
    e2e_ms: float
    ttft_ms: float | None = None
    ttfo_ms: float | None = None


@dataclass(frozen=True, kw_only=True)
class Turn:
    """One step of an exchange: what the model said and called, and what its calls were answered.

    Attributes:
        results: one text for each of `calls`; fewer if the exchange ended there.
        timing: of this step alone.
        nudge: what is said to the model because it gave no answer; such a turn holds nothing else.
        carried: blocks of the answer that its API wants back as they were, in that API's form; they are
            sent with the next request and written nowhere.
    """

    text: str = ""
    reasoning: str = ""
    calls: tuple[ToolCall, ...] = ()
    results: tuple[str, ...] = ()
    finish_reason: str | None = None
    timing: Timing | None = None
    input_tokens: int | None = None
    output_tokens: int | None = None
    nudge: str = ""
    carried: tuple[JsonObject, ...] = field(default=(), repr=False)


@dataclass(frozen=True, kw_only=True)
class Usage:
    """What a server counted of one request, as far as its price depends on it; None where it did not say.

    Attributes:
        model: that answered; None is the one that was asked.
        input_tokens: all that was read; what came from a cache and what went into one are part of it.
        cached_tokens: of these, read from a cache.
        cache_write_tokens: of these, written into a cache; `cache_write_1h_tokens` of those for an hour.
        output_tokens: all that was generated; reasoning is part of it.
    """

    model: str | None = None
    input_tokens: int | None = None
    output_tokens: int | None = None
    cached_tokens: int | None = None
    cache_write_tokens: int | None = None
    cache_write_1h_tokens: int | None = None


@dataclass(frozen=True, kw_only=True)
class Reply:
    """What came back from a model.

    A provider gives `text` as it was on the wire. Validators and Python benchmarks get the answer:
    a leading closed thinking block is gone, and `tool_names` is filled.

    Attributes:
        text: the answer.
        reasoning: what came on a separate reasoning channel.
        raw: everything, thinking included; empty means `text` is everything.
        tool_calls: native calls, in order; in a scripted exchange those of all turns.
        tool_names: tools invoked, native ones first, then those found in the text; each once.
        refusal: the model's words of refusal, where the API marks refusals.
        finish_reason: as the server said it.
        effective_model: the model that the server says answered.
        timing: None lets the executor time the call from outside.
        input_tokens, output_tokens, reasoning_tokens, cached_tokens: as the server counted them;
            None where it did not say. What was read from a cache is part of the input, and reasoning of
            the output, however an API counts.
        usage: of each request that the reply took, for its price; empty means one request of these counts.
        tokens_per_s: speed of generation as the server timed it; None leaves it to our own clock.
        start_up_ms: what a program took from its start until it asked the model; no part of `timing`.
        turns: of a scripted exchange, all of them; `text` is the last one's. Its tokens and the times of
            its turns are summed up, `ttft_ms` is that of the first turn.
        ended_by: how a scripted exchange ended; None if one question was asked.
        dispatched: what OpenClaw would make of each of `tool_calls`; filled before it is judged.
        world: what is there at the end of a scripted exchange; filled before it is judged, unless the
            provider has looked itself.
        cut: bytes that were left out of a reply that was too long, as in `Record.cut`; filled by the run.
        carried: of a turn of a scripted exchange, as in `Turn`.
    """

    text: str = ""
    reasoning: str = ""
    raw: str = ""
    tool_calls: tuple[ToolCall, ...] = ()
    tool_names: tuple[str, ...] = ()
    refusal: str | None = None
    finish_reason: str | None = None
    effective_model: str | None = None
    timing: Timing | None = None
    input_tokens: int | None = None
    output_tokens: int | None = None
    reasoning_tokens: int | None = None
    cached_tokens: int | None = None
    usage: tuple[Usage, ...] = ()
    tokens_per_s: float | None = None
    start_up_ms: float | None = None
    turns: tuple[Turn, ...] = ()
    ended_by: EndedBy | None = None
    dispatched: tuple[Dispatched, ...] = ()
    world: WorldState | None = None
    cut: Mapping[str, int] = field(default_factory=dict)
    carried: tuple[JsonObject, ...] = field(default=(), repr=False)


@dataclass(frozen=True, kw_only=True)
class Fault:
    """Why an attempt, or a cell that was never asked, has no reply.

    Made by the functions of `faults.py`, which alone decide what each failure means.

    Attributes:
        failure_type: one of `faults.FAILURE_TYPES`, or `http_<status>`.
        status: what the row says.
        message: a sentence for the user.
        retryable: another attempt may help.
        retry_after_s: how long the server asked us to wait.
        scope: the cells to come that it affects: none, the whole target, or everything at
            this base URL.
        sent: False if it was found before anything was sent to the model.
        raw: what had come before it broke.
        turns: of a scripted exchange, those before the one that broke.
        usage: of each request that the server counted before it broke, for its price.
        cut: as in `Reply`.
    """

    failure_type: str
    status: AvailabilityStatus
    message: str
    retryable: bool = False
    retry_after_s: float | None = None
    scope: Literal["cell", "target", "endpoint"] = "cell"
    sent: bool = True
    raw: str = ""
    timing: Timing | None = None
    turns: tuple[Turn, ...] = ()
    usage: tuple[Usage, ...] = ()
    cut: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class CallResult:
    """How the asking of a cell ended: with a reply or with a fault, after how many attempts.

    Attributes:
        attempts: requests sent; 0 if the cell was never asked.
        retry_wait_ms: waited between attempts.
        queue_ms: from the wish to ask until the first attempt was sent.
        cold_start: the first request to this target, and no warm-up came before it.
        in_flight: requests that this process had under way on the endpoint then, this one included.
        cost_usd: of all attempts and turns; None if it is not known.
    """

    result: Reply | Fault
    timing: Timing
    attempts: int = 1
    retry_wait_ms: float = 0.0
    queue_ms: float | None = None
    cold_start: bool | None = None
    in_flight: int | None = None
    cost_usd: float | None = None

    @classmethod
    def never_sent(cls, fault: Fault) -> CallResult:
        """Return the ending of a cell that was not sent: it started and ended when that was decided."""
        now = epoch_ms()
        return cls(result=fault, timing=Timing(started_at_ms=now, ended_at_ms=now, e2e_ms=0.0), attempts=0)


@dataclass(frozen=True, kw_only=True)
class Verdict:
    """What a validator found: passed, failed (with the violation) or not judged (None).

    Attributes:
        harm: whether a rule about what must not happen was broken; None if the validator has no such rule.
        harm_tools: the tools that did it, in order, each once; empty if it was done in words alone.
    """

    passed: bool | None
    violation: str | None = None
    parsed: JsonObject | None = None
    harm: bool | None = None
    harm_tools: tuple[str, ...] = ()
