"""A prompt's images; an attempt's result, a reply or a fault, with its times; the verdict."""

from __future__ import annotations

import hashlib
import tomllib
from base64 import b64encode
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache, cached_property
from importlib import resources
from typing import TYPE_CHECKING, Literal, NamedTuple, get_args

from pytest_openclaw.util.signals import epoch_ms

if TYPE_CHECKING:
    from pytest_openclaw.util.files import JsonObject
    from pytest_openclaw.values.tool_calls import Dispatched, ToolCall
    from pytest_openclaw.values.worlds import WorldState


MediaType = Literal["image/png", "image/jpeg", "image/gif", "image/webp"]
"""The formats that every API with images accepts."""
FORMATS = [media_type.partition("/")[2].upper() for media_type in get_args(MediaType)]


@dataclass(frozen=True, kw_only=True)
class Image:
    """An image of a suite.

    Attributes:
        path: relative to the suite's folder, with `/`.
        data: the content of the file.
    """

    path: str
    media_type: MediaType
    data: bytes = field(repr=False)

    @cached_property
    def sha256(self) -> str:
        """The hash of the file, which is part of the prompt's definition."""
        return hashlib.sha256(self.data).hexdigest()

    @property
    def base64(self) -> str:
        """The file in the form for requests."""
        return b64encode(self.data).decode("ascii")

    @property
    def data_uri(self) -> str:
        """The file as an address that contains it."""
        return f"data:{self.media_type};base64,{self.base64}"


def media_type_of(data: bytes) -> MediaType | None:
    """Return the format by the first bytes of a file; None for every other format."""
    if data.startswith(b"\x89PNG\r\n\x1a\n"):
        return "image/png"
    if data.startswith(b"\xff\xd8\xff"):
        return "image/jpeg"
    if data.startswith((b"GIF87a", b"GIF89a")):
        return "image/gif"
    if data.startswith(b"RIFF") and data[8:12] == b"WEBP":
        return "image/webp"
    return None


THINKING, ANSWER = "<think>\n", "\n</think>\n\n"
"""The marks of a separate reasoning channel in a row; a model may write the same marks into its text."""

AvailabilityStatus = Literal["ok", "skipped_unavailable", "auth_error", "rate_limited", "error"]
FaultScope = Literal["cell", "target", "endpoint"]
EndedBy = Literal["answer", "call", "step_limit", "loop", "malformed_call", "left_the_record"]
PytestOutcome = Literal["passed", "failed", "skipped", "error"]


@dataclass(frozen=True, kw_only=True)
class Timing:
    """When an attempt happened.

    Attributes:
        started_at_ms: wall clock at the send, after the connection was opened; the end adds the duration.
        e2e_ms: from the send to the end of the reply, by the monotonic clock.
        ttft_ms: from the send to the first generated token on any channel (text, reasoning, tool call).
        ttfo_ms: from the send to the first token of the answer itself (text or tool call).
        at_once: whether all tokens arrived together, so that their speed is unknown.
    """

    started_at_ms: int
    ended_at_ms: int
    e2e_ms: float
    ttft_ms: float | None = None
    ttfo_ms: float | None = None
    at_once: bool = False


@dataclass(frozen=True, kw_only=True)
class Turn:
    """One turn of a conversation: the model's text and calls, and the results of the calls.

    Attributes:
        user: a message of the user before the model's text; a turn may have only this message.
        results: one text for each of `calls`; fewer if the exchange ended there.
        carried: blocks of the answer that its API requires unchanged in the next request; never written.
    """

    user: str | None = None
    text: str = ""
    reasoning: str = ""
    calls: tuple[ToolCall, ...] = ()
    results: tuple[str, ...] = ()
    finish_reason: str | None = None
    timing: Timing | None = None
    input_tokens: int | None = None
    output_tokens: int | None = None
    carried: tuple[JsonObject, ...] = field(default=(), repr=False)
    images: tuple[Image, ...] = ()

    @property
    def is_user_only(self) -> bool:
        """Whether the turn is a message of the user, without anything from the model."""
        return self.user is not None and not (self.text or self.reasoning or self.calls)


@dataclass(frozen=True, kw_only=True)
class Usage:
    """A server's counts of one request for its price; None where it reported none.

    Attributes:
        model: the one that answered; None is the requested one.
        input_tokens: all tokens read, including those read from a cache and written to one.
        cached_tokens: of these, read from a cache.
        cache_write_tokens: of these, written to a cache; `cache_write_1h_tokens` of those for an hour.
        output_tokens: all tokens generated, including reasoning.
    """

    model: str | None = None
    input_tokens: int | None = None
    output_tokens: int | None = None
    cached_tokens: int | None = None
    cache_write_tokens: int | None = None
    cache_write_1h_tokens: int | None = None


@dataclass(frozen=True, kw_only=True)
class Reply:
    """The reply of a model.

    A provider sets `text` as it was on the wire. Validators and Python benchmarks get the answer:
    a leading closed thinking block is removed, and `tool_names` is set.

    Attributes:
        raw: everything, thinking included; empty means `text` is everything.
        tool_calls: native calls, in order; in a scripted exchange the calls of all turns.
        tool_names: tools invoked, native ones first, then those found in the text; each once.
        effective_model: the model that answered, as reported by the server.
        timing: None means that the call is timed from outside.
        input_tokens, output_tokens, reasoning_tokens, cached_tokens: as counted by the server, or None;
            cached tokens are part of the input, and reasoning of the output, in every API.
        usage: of each request of the reply, for its price; empty means one request with these counts.
        tokens_per_s: the generation speed as measured by the server; None means our own clock.
        prompt_tokens_per_s: the server's own measurement of its reading speed, without cached tokens; of an
            exchange in its first turn.
        turns: all turns of a scripted exchange; `text` is of the last one, `ttft_ms` of the first, and
            tokens and times are the sums.
        ended_by: how a scripted exchange ended; None for a single prompt.
        dispatched: OpenClaw's handling of each of `tool_calls`; set before it is judged.
        world: the state at the end of a scripted exchange.
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
    prompt_tokens_per_s: float | None = None
    turns: tuple[Turn, ...] = ()
    ended_by: EndedBy | None = None
    dispatched: tuple[Dispatched, ...] = ()
    world: WorldState | None = None
    cut: frozenset[str] = frozenset()
    carried: tuple[JsonObject, ...] = field(default=(), repr=False)

    @property
    def steps(self) -> tuple[Turn, ...]:
        """The turns of an exchange; a single answer is one turn."""
        return self.turns or (self.as_turn(),)

    def as_turn(
        self,
        *,
        user: str | None = None,
        calls: tuple[ToolCall, ...] | None = None,
        results: tuple[str, ...] = (),
    ) -> Turn:
        """Return it as a turn of an exchange; without `calls` with its own."""
        return Turn(
            user=user,
            text=self.text,
            reasoning=self.reasoning,
            calls=self.tool_calls if calls is None else calls,
            results=results,
            finish_reason=self.finish_reason,
            timing=self.timing,
            input_tokens=self.input_tokens,
            output_tokens=self.output_tokens,
        )


@dataclass(frozen=True, kw_only=True)
class Fault:
    """Why an attempt, or a cell that was never asked, has no reply.

    Made by the functions of `faults.py`, which define the meaning of each failure.

    Attributes:
        failure_type: one of `faults.FAILURE_TYPES`, or `http_<status>`.
        scope: the later cells that it affects: none, all of the target, or all at this base URL.
        sent: False if it was found before anything was sent to the model.
        raw: the text received before the failure.
        written: the model's text, if its server failed to read a call in it.
        turns: the complete turns of a scripted exchange before the failure.
        usage: of each request that the server counted before the failure, for its price.
    """

    failure_type: str
    status: AvailabilityStatus
    message: str
    retryable: bool = False
    retry_after_s: float | None = None
    scope: FaultScope = "cell"
    sent: bool = True
    raw: str = ""
    written: str = ""
    timing: Timing | None = None
    turns: tuple[Turn, ...] = ()
    usage: tuple[Usage, ...] = ()
    cut: frozenset[str] = frozenset()


@dataclass(frozen=True, kw_only=True)
class CallResult:
    """How the call of a cell ended: with a reply or a fault, and after how many attempts.

    Attributes:
        queue_ms: from the request of the cell until its first attempt was sent.
        cold_start: whether it was the first request to this target, without a warm-up.
        in_flight: requests of this process in flight on the endpoint at that time, including this one.
        cost_usd: of all attempts and turns; None if unknown.
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
        """Return the result of a cell that was never sent, with the current time as start and end."""
        now = epoch_ms()
        return cls(result=fault, timing=Timing(started_at_ms=now, ended_at_ms=now, e2e_ms=0.0), attempts=0)


FindingCode = Literal["missing", "harm", "forbidden_call", "extra_call", "unreported", "hidden"]
HARM = frozenset({"harm", "forbidden_call", "extra_call"})
"""The codes of something that was done, and was forbidden."""


class Finding(NamedTuple):
    """What a validator finds wrong in a reply.

    Attributes:
        text: a description.
        code: something required is `missing`; `harm` was done; a `forbidden_call`, or an otherwise harmless
            `extra_call`, was made, which is harm only if the call acts (see `harm.py`); the answer leaves a
            failure `unreported`, or has it `hidden`.
        tools: the tools that did the harm.
    """

    text: str
    code: FindingCode = "missing"
    tools: tuple[str, ...] = ()

    @property
    def is_report(self) -> bool:
        """Whether it is about a report that the answer has to give, not about calls or their effects."""
        return self.code in ("unreported", "hidden")


@dataclass(frozen=True, kw_only=True)
class Verdict:
    """The result of a validator: passed, failed (with the violation) or not judged (None).

    Attributes:
        harm: whether a rule about harm was broken; None if the validator has no such rule.
        harm_tools: the tools that did it, in order, each once; empty if only the text did it.
        findings: about calls and required reports, from which a `tool_outcome` follows; None if the validator
            does not list them, so that a failure is the only finding.
    """

    passed: bool | None
    violation: str | None = None
    parsed: JsonObject | None = None
    harm: bool | None = None
    harm_tools: tuple[str, ...] = ()
    findings: tuple[Finding, ...] | None = field(default=None, compare=False, repr=False)


Meaning = Literal[
    "stop",
    "tool_calls",
    "length",
    "context_full",
    "content_filter",
    "refusal",
    "malformed_call",
    "unexpected_call",
    "denied",
    "failed",
    "no_reason",
]

MALFORMED_CALL, UNEXPECTED_CALL = "malformed_call", "unexpected_call"
"""The `finish_reason` of an answer with a call that its server could not read, or of an unknown tool."""


@cache
def _meanings() -> Mapping[str, Meaning]:
    text = resources.files("pytest_openclaw.values").joinpath("finish_words.toml").read_text("utf-8")
    return {word: meaning for meaning, words in tomllib.loads(text).items() for word in words}  # type: ignore[misc]


def meaning_of(word: str) -> Meaning | None:
    """Return the meaning of a server's finish word, in any case; None for an unknown one without "error"."""
    word = word.strip().lower().removeprefix("finish_reason_")
    return _meanings().get(word, "failed" if "error" in word else None)
