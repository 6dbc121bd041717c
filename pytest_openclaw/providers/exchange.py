"""Collects one attempt, from the send to the end of the reply, with its times.

The reader of a wire format calls the `receive_` methods as data arrives; `Exchange` joins the pieces, records
the times of the first tokens and makes the `Reply`. It is independent of wire formats.

Times are those of the wire where the reader knows them: the clock starts when the request's bytes are passed
to the socket (opening a connection is not the model's latency), and a token's time is the arrival of its
bytes, even if a busy process reads them later.
"""

from __future__ import annotations

import time
from dataclasses import replace
from typing import TYPE_CHECKING

from pytest_openclaw.core.clock import epoch_ms
from pytest_openclaw.core.text import valid_text
from pytest_openclaw.providers.carried import CarriedBlocks
from pytest_openclaw.providers.tool_fragments import ToolFragments
from pytest_openclaw.types.replies import ANSWER, THINKING, Reply, Timing, Usage

if TYPE_CHECKING:
    from collections.abc import Callable

    from pytest_openclaw.core.json_types import JsonObject


class Exchange:
    """One attempt, received piece by piece; it starts when it is created, or later by `receive_sent`.

    Attributes:
        streaming: whether the pieces arrive as they are generated. If the answer arrives whole, the time
            of its first token is not known, and `ttft_ms` stays None.
    """

    def __init__(
        self,
        *,
        streaming: bool = True,
        monotonic: Callable[[], float] = time.perf_counter,
        wall_ms: Callable[[float], int] = epoch_ms,
    ) -> None:
        """Start the clock.

        Args:
            streaming: whether a stream was requested.
            monotonic: a clock in seconds; all moments passed later are by this clock.
            wall_ms: returns the time of day of a moment, ms since the epoch.
        """
        self.streaming = streaming
        self._monotonic = monotonic
        self._wall_ms = wall_ms
        self._started = monotonic()
        self._arrived: float | None = None
        self._first_token: float | None = None
        self._first_output: float | None = None
        self._ended: float | None = None
        self._text: list[str] = []
        self._reasoning: list[str] = []
        self._refusal: list[str] = []
        self._notes: list[str] = []
        self._calls = ToolFragments()
        self._carried = CarriedBlocks()
        self._finish_reason: str | None = None
        self._model: str | None = None
        self._usage: Usage | None = None
        self._uncached_tokens: int | None = None
        self._reasoning_tokens: int | None = None
        self._tokens_per_s: float | None = None
        self._prompt_tokens_per_s: float | None = None

    # --- for a reader -----------------------------------------------------------------------

    def receive_sent(self, moment: float) -> None:
        """Restart the clock: the request was sent at `moment`."""
        self._started = moment

    def receive_arrival(self, moment: float) -> None:
        """Set the arrival time of the next pieces; otherwise the time of the call counts."""
        self._arrived = moment

    def receive_text(self, piece: str) -> None:
        """Add a piece of the answer; an empty piece is not a token."""
        if piece:
            self._stamp(output=True)
            self._text.append(piece)

    def receive_reasoning(self, piece: str) -> None:
        """Add a piece of a separate reasoning channel."""
        if piece:
            self._stamp(output=False)
            self._reasoning.append(piece)

    def receive_refusal(self, piece: str) -> None:
        """Add a piece of a refusal, which is a separate kind of answer."""
        if piece:
            self._stamp(output=True)
            self._refusal.append(piece)

    def receive_note(self, text: str) -> None:
        """Keep what the server says about the end of the answer, which no model wrote, for `raw` only."""
        if text:
            self._notes.append(text)

    def receive_tool_call(
        self,
        *,
        key: int | str | None = None,
        id: str | None = None,  # noqa: A002 - the wire's own word, and the field's
        name: str | None = None,
        arguments: str = "",
        whole: bool = False,
    ) -> None:
        """Add a fragment of a tool call.

        Args:
            key: shared by the fragments of one call: its index, or an item's id. Without a key the id is
                used; without both, a name starts a call and other fragments continue the latest one.
            id: the call's id; under a known key another id with a name starts another call, since some
                servers number all calls 0.
            name: the tool's name; the first one counts, because some servers repeat it.
            arguments: a piece of the JSON text; a repetition of the whole text is ignored.
            whole: whether `arguments` is the whole text, which replaces the pieces.
        """
        if id or name or arguments:
            self._stamp(output=True)
            self._calls.receive(key, id, name, arguments, whole=whole)

    def receive_block(self, piece: JsonObject, *, key: int | None = None) -> None:
        """Keep a block, or a piece of one, that the API wants back unchanged with the next request.

        Args:
            piece: its fields; texts of one key are joined, of other values the last one counts.
            key: shared by the pieces of one block; without it the piece is a whole block.
        """
        self._carried.receive(piece, key)

    def receive_usage(
        self,
        *,
        input_tokens: int | None = None,
        uncached_tokens: int | None = None,
        output_tokens: int | None = None,
        reasoning_tokens: int | None = None,
        cached_tokens: int | None = None,
        cache_write_tokens: int | None = None,
        cache_write_1h_tokens: int | None = None,
    ) -> None:
        """Set the server's own counts; of each, the last one above 0 counts: some gateways end with zeros.

        Args:
            input_tokens: all that was read; a cached part is part of it.
            uncached_tokens: in place of it, the input without what came from a cache or went into one.
            output_tokens: as in `Usage`, and so are the following.
            reasoning_tokens: part of the output.
            cached_tokens: part of the input, as are the following.
            cache_write_tokens: all that went into a cache.
            cache_write_1h_tokens: part of these.
        """
        before = self._usage or Usage()
        self._reasoning_tokens = _latest(reasoning_tokens, self._reasoning_tokens)
        self._uncached_tokens = _latest(uncached_tokens, self._uncached_tokens)
        cached_tokens = _latest(cached_tokens, before.cached_tokens)
        cache_write_tokens = _latest(cache_write_tokens, before.cache_write_tokens)
        if self._uncached_tokens is not None:
            input_tokens = self._uncached_tokens + (cached_tokens or 0) + (cache_write_tokens or 0)
        self._usage = Usage(
            input_tokens=input_tokens or before.input_tokens,  # no prompt has 0 tokens
            output_tokens=_latest(output_tokens, before.output_tokens),
            cached_tokens=cached_tokens,
            cache_write_tokens=cache_write_tokens,
            cache_write_1h_tokens=_latest(cache_write_1h_tokens, before.cache_write_1h_tokens),
        )

    def receive_speed(self, tokens_per_s: float | None) -> None:
        """Set the generation speed as measured by the server."""
        self._tokens_per_s = tokens_per_s or self._tokens_per_s

    def receive_prompt_speed(self, tokens_per_s: float | None) -> None:
        """Set the speed at which the server has read what its cache did not have of the prompt."""
        self._prompt_tokens_per_s = tokens_per_s or self._prompt_tokens_per_s

    def receive_model(self, name: str) -> None:
        """Set the name of the answering model, as reported by the server."""
        self._model = name or self._model

    def receive_end(self, finish_reason: str | None = None) -> None:
        """Note the end mark: the reply is complete; the first end mark sets the time."""
        if self._ended is None:
            self._ended = self._moment()
        self._finish_reason = self._finish_reason or finish_reason

    # --- the result so far ------------------------------------------------------------------

    @property
    def ended(self) -> bool:
        """Whether the end mark has arrived."""
        return self._ended is not None

    @property
    def has_usage(self) -> bool:
        """Whether the server has sent token counts."""
        return self._usage is not None

    @property
    def has_tokens(self) -> bool:
        """Whether a token has arrived on any channel."""
        return bool(self._text or self._reasoning or self._refusal or self._calls)

    @property
    def has_output(self) -> bool:
        """Whether a part of the answer itself has arrived: text, a refusal, a tool call."""
        return self.has_text or self.has_tool_calls

    @property
    def has_text(self) -> bool:
        """Whether text or a refusal has arrived."""
        return bool(self._text or self._refusal)

    @property
    def has_tool_calls(self) -> bool:
        """Whether a part of a native tool call has arrived."""
        return bool(self._calls)

    @property
    def has_reasoning(self) -> bool:
        """Whether a reasoning channel has sent text."""
        return bool(self._reasoning)

    def raw(self) -> str:
        """Return everything received as one valid text; a reasoning channel is first, in `<think>` tags."""
        reasoning = valid_text("".join(self._reasoning))
        answer = valid_text("".join(self._text) + "".join(self._refusal))
        answer = "\n\n".join(filter(None, (answer, *map(valid_text, self._notes))))
        return f"{THINKING}{reasoning}{ANSWER}{answer}" if reasoning else answer

    def timing(self) -> Timing:
        """Return the times of the attempt, up to the end mark or up to now."""
        started_at_ms = self._wall_ms(self._started)
        e2e_ms = self._since_start(self._ended if self._ended is not None else self._monotonic())
        return Timing(
            started_at_ms=started_at_ms,
            ended_at_ms=started_at_ms + round(e2e_ms),
            e2e_ms=e2e_ms,
            ttft_ms=None if self._first_token is None else self._since_start(self._first_token),
            ttfo_ms=None if self._first_output is None else self._since_start(self._first_output),
        )

    def timing_since(self, first: Exchange) -> Timing:
        """Return the times of several exchanges up to this one; first tokens are those of the first."""
        e2e_ms = self.timing().e2e_ms + (self._started - first._started) * 1000
        timing = first.timing()
        return replace(timing, ended_at_ms=timing.started_at_ms + round(e2e_ms), e2e_ms=e2e_ms)

    def reply(self) -> Reply:
        """Return the reply received so far, in valid UTF-8; a call without a name is ignored."""
        usage, model = self._usage or Usage(), valid_text(self._model) if self._model else None
        return Reply(
            text=valid_text("".join(self._text)),
            reasoning=valid_text("".join(self._reasoning)),
            raw=self.raw(),
            tool_calls=self._calls.tool_calls(),
            refusal=valid_text("".join(self._refusal)) if self._refusal else None,
            finish_reason=valid_text(self._finish_reason) if self._finish_reason else None,
            effective_model=model,
            timing=self.timing(),
            tokens_per_s=self._tokens_per_s,
            prompt_tokens_per_s=self._prompt_tokens_per_s,
            input_tokens=usage.input_tokens,
            output_tokens=usage.output_tokens,
            reasoning_tokens=self._reasoning_tokens,
            cached_tokens=usage.cached_tokens,
            usage=(replace(usage, model=model),) if self._usage else (),
            carried=self._carried.blocks(),
        )

    # --- how ----------------------------------------------------------------------------------

    def _stamp(self, *, output: bool) -> None:
        if self._first_output is not None or not self.streaming:
            return
        if self._first_token is not None and not output:
            return
        moment = self._moment()
        if self._first_token is None:
            self._first_token = moment
        if output:
            self._first_output = moment

    def _moment(self) -> float:
        return self._monotonic() if self._arrived is None else self._arrived

    def _since_start(self, moment: float) -> float:
        return (moment - self._started) * 1000


def _latest(count: int | None, before: int | None) -> int | None:
    return before if count is None or (count == 0 and before) else count
