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
from typing import TYPE_CHECKING, Literal

from pytest_openclaw.providers.fragments import CarriedBlocks, Text, ToolFragments
from pytest_openclaw.util.signals import epoch_ms
from pytest_openclaw.util.text import valid_text
from pytest_openclaw.values.replies import ANSWER, THINKING, Reply, Timing, Usage

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Sequence

    from pytest_openclaw.util.json_types import JsonObject
    from pytest_openclaw.values.tool_calls import ToolCall

Channel = Literal["text", "reasoning", "refusal"]
CHANNELS: tuple[Channel, ...] = ("reasoning", "text", "refusal")
ALL = "all"
"""The key of all blocks of a channel."""


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
        self._latest: float | None = None
        self._is_finished = self._is_over = self._has_resumed = False
        self._text = Text()
        self._reasoning = Text()
        self._refusal = Text()
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

    def receive_text(
        self, piece: str, *, key: Hashable = None, choice: int = 0, at_end: bool = False
    ) -> None:
        """Add a piece of the answer; an empty piece is not a token.

        Args:
            piece: may be the whole text once more, which `Text` detects.
            key: shared by the pieces of one block of text.
            choice: which of the answers it is part of; only the first one with a text is read.
            at_end: whether the piece comes with a finish reason.

        """
        if piece and self._text.add(piece, key=key, choice=choice, at_end=at_end or self._is_finished):
            self._stamp(output=True)

    def receive_reasoning(
        self, piece: str, *, key: Hashable = None, choice: int = 0, at_end: bool = False
    ) -> None:
        """Add a piece of a separate reasoning channel."""
        if piece and self._reasoning.add(piece, key=key, choice=choice, at_end=at_end or self._is_finished):
            self._stamp(output=False)

    def receive_refusal(self, piece: str, *, key: Hashable = None) -> None:
        """Add a piece of a refusal, which is a separate kind of answer."""
        if piece and self._refusal.add(piece, key=key, at_end=self._is_finished):
            self._stamp(output=True)

    def receive_start(self, channel: Channel, text: str, *, key: Hashable) -> None:
        """Add the text with which a block starts: its first piece, or a copy of all that follows."""
        if text:
            self._channel(channel).announce(text, key=key)
            self._stamp(output=channel != "reasoning")

    def receive_whole(self, channel: Channel, text: str, *, key: Hashable = ALL, choice: int = 0) -> None:
        """Add the whole text of a block, or of a channel; pieces that have arrived are not read again.

        The time of the first token is not known if all of them arrive at once.
        """
        if not text:
            return
        self._touch()
        if key == ALL:
            self._channel(channel).complete_all(text, choice=choice)
        else:
            self._channel(channel).complete(text, key=key)

    def receive_note(self, text: str) -> None:
        """Keep what the server says about the end of the answer, which no model wrote, for `raw` only."""
        if text:
            self._notes.append(text)

    def receive_tool_call(
        self,
        *,
        key: Hashable = None,
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
            name: the tool's name, or a piece of it; some servers repeat it.
            arguments: a piece of the JSON text; a repetition of the whole text is ignored.
            whole: whether `arguments` is the whole text, which replaces the pieces.

        """
        if id or name or arguments:
            self._stamp(output=True)
            self._calls.receive(key, id, name, arguments, whole=whole)

    def receive_calls(self, calls: Sequence[ToolCall]) -> None:
        """Add a complete list of the answer's calls; those that have arrived are not made again."""
        if calls:
            self._touch()
            self._calls.receive_all(calls)

    def repeats_calls(self, calls: Sequence[ToolCall], *, at_end: bool) -> bool:
        """Whether an event with these calls sums up the calls so far."""
        return self._calls.is_repeated_by(calls, at_end=at_end or self._is_finished)

    def receive_block(self, piece: JsonObject, *, key: Hashable = None) -> None:
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
        self._touch()
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

    def receive_finish(self, reason: str) -> None:
        """Note a finish reason, which ends nothing: tokens may follow, and a later reason counts.

        A `stop` that only repeats the end does not hide a more specific reason.
        """
        if self._is_over and self._finish_reason:
            return
        if reason != "stop" or self._finish_reason is None or self._has_resumed:
            self._finish_reason = reason
        self._is_finished = True
        self._touch()

    def receive_end(self, finish_reason: str | None = None) -> None:
        """Note the end mark: the reply is complete, and the first end mark sets the time."""
        if finish_reason:
            self.receive_finish(finish_reason)
        if not self._is_over:
            self._latest, self._is_over = self._moment(), True

    def receive_at_once(self) -> None:
        """Note that the answer has arrived whole: the time of its first token is not known."""
        self.streaming, self._first_token, self._first_output = False, None, None

    # --- the result so far ------------------------------------------------------------------

    @property
    def is_over(self) -> bool:
        """Whether the end mark has arrived."""
        return self._is_over

    @property
    def ended(self) -> bool:
        """Whether the answer is complete if nothing more arrives: an end mark or a finish reason has."""
        return self._is_over or self._is_finished

    @property
    def is_complete(self) -> bool:
        """Whether nothing can be missing: the end mark, or a finish reason of a server that means it.

        Some servers write a finish reason into every chunk, or continue after it.
        """
        return self._is_over or (self._is_finished and not self._has_resumed and self.has_tokens)

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

    def raw(self) -> str:
        """Return everything received as one valid text; a reasoning channel is first, in `<think>` tags."""
        reasoning = self._reasoning.text()
        answer = self._text.text() + self._refusal.text()
        answer = "\n\n".join(filter(None, (answer, *map(valid_text, self._notes))))
        return f"{THINKING}{reasoning}{ANSWER}{answer}" if reasoning else answer

    def timing(self) -> Timing:
        """Return the times of the attempt, up to the last byte of a complete answer, or up to now."""
        started_at_ms = self._wall_ms(self._started)
        latest = self._latest if self.ended else None
        e2e_ms = self._since_start(self._monotonic() if latest is None else latest)
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
            text=self._text.text(),
            reasoning=self._reasoning.text(),
            raw=self.raw(),
            tool_calls=self._calls.tool_calls(),
            refusal=self._refusal.text() or None,
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

    def _channel(self, channel: Channel) -> Text:
        return {"text": self._text, "reasoning": self._reasoning, "refusal": self._refusal}[channel]

    def _stamp(self, *, output: bool) -> None:
        """Note the time of a token."""
        self._touch()
        self._has_resumed = self._has_resumed or self._is_finished
        if self._first_output is not None or not self.streaming:
            return
        if self._first_token is not None and not output:
            return
        moment = self._moment()
        if self._first_token is None:
            self._first_token = moment
        if output:
            self._first_output = moment

    def _touch(self) -> None:
        """Note the time of a part of the answer, whose bytes have arrived."""
        if not self._is_over:
            self._latest = self._arrived

    def _moment(self) -> float:
        return self._monotonic() if self._arrived is None else self._arrived

    def _since_start(self, moment: float) -> float:
        return (moment - self._started) * 1000


def _latest(count: int | None, before: int | None) -> int | None:
    return before if count is None or (count == 0 and before) else count
