"""Collects one answer while it arrives: joins its pieces, notes their times and makes the `Reply`.

The reader of a wire format calls the `receive_` methods of `Answer`, which is independent of wire formats.

Times are measured on the wire if the reader knows them: the clock starts when the request's bytes are passed
to the socket (opening a connection is not the model's latency), and a token's time is the arrival of its
bytes, even if a busy process reads them later.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Hashable, Sequence
from typing import TYPE_CHECKING, Any, Literal

from pytest_openclaw.providers.repairs import Calls, Text, joined_values
from pytest_openclaw.providers.wire import MOST_ITEMS, load_object, settled
from pytest_openclaw.util.signals import epoch_ms
from pytest_openclaw.values.faults import WireError
from pytest_openclaw.values.replies import ANSWER, THINKING, Reply, Timing, Usage, meaning_of
from pytest_openclaw.values.tool_calls import ToolCall

if TYPE_CHECKING:
    from pytest_openclaw.util.files import JsonObject

Channel = Literal["text", "reasoning", "refusal"]
CHANNELS: tuple[Channel, ...] = ("reasoning", "text", "refusal")
_ALL = "all"
"""The key of all blocks of a channel."""
# The beginning of Gemini's explanation; the rest is the model's text.
_CALL_PREFIX = re.compile(r"\A(?:malformed|unexpected) (?:function|tool) calls?:\s*", re.IGNORECASE)


class Answer:
    """One attempt, received piece by piece.

    Attributes:
        streaming: whether the pieces arrive as they are generated. If the answer arrives whole, the time
            of its first token is unknown, and `ttft_ms` stays None.
        is_over: whether the end mark has arrived.
        started: when the request was sent.
        arrived: when the next pieces arrived; None means that they arrive when a method is called.
    """

    def __init__(
        self,
        *,
        streaming: bool = True,
        monotonic: Callable[[], float] = time.perf_counter,
        wall_ms: Callable[[float], int] = epoch_ms,
    ) -> None:
        """Start the clock `monotonic`, which measures all times; `wall_ms` converts them to epoch ms."""
        self.streaming = streaming
        self.is_over = False
        self.started = monotonic()
        self.arrived: float | None = None
        self._monotonic, self._wall_ms = monotonic, wall_ms
        self._first_token: float | None = None
        self._first_output: float | None = None
        self._latest: float | None = None
        self._is_finished = self._has_resumed = self._is_spread = False
        self._finish_reason: str | None = None
        self._texts: dict[Channel, Text] = {channel: Text() for channel in CHANNELS}
        self._calls = Calls()
        self._blocks: dict[Hashable, dict[str, list[Any]]] = {}
        self._notes: list[str] = []
        self._model: str | None = None
        self._counts: dict[str, int] | None = None
        self._speeds: tuple[float | None, float | None] = None, None

    def receive_at_once(self) -> None:
        """Note that the answer has arrived whole, so that the time of its first token is unknown."""
        self.streaming, self._first_token, self._first_output = False, None, None

    def receive_text(
        self, piece: str, channel: Channel = "text", *, key: Hashable = None, at_end: bool = False
    ) -> None:
        """Add a piece of a text, which may be the whole text again; an empty piece is not a token.

        The pieces of one block share a `key`. `at_end` is true if the piece comes with a finish reason.
        """
        if piece:
            self._texts[channel].block(key).pieces.append((piece, at_end or self._is_finished))
            self._stamp(output=channel != "reasoning")

    def receive_whole(
        self, channel: Channel, text: str, *, key: Hashable = _ALL, starts: bool = False
    ) -> None:
        """Add the whole text of a block, or of a channel; any part of the text may have arrived already.

        A text that `starts` a block is its first piece, or a copy of all following pieces.
        """
        if text:
            whole = self._texts[channel] if key == _ALL else self._texts[channel].block(key)
            whole.whole = max(whole.whole, text, key=len)
            if starts:
                self._texts[channel].block(key).starts = True
                self._stamp(output=channel != "reasoning")
            self._touch()

    def receive_note(self, text: str) -> None:
        """Keep the server's own explanation of the end, which no model wrote, for `raw` only."""
        if text:
            self._notes.append(text)

    def receive_tool_call(self, call: ToolCall, *, key: Hashable = None, whole: bool = False) -> None:
        """Add a fragment of a tool call; `whole` is true if it has all arguments.

        The fragments of one call share a `key`: its index, or an item's id. Without a key, the id is used;
        without both, a name starts a call, and other fragments continue the latest call. Under a known key,
        another id with a name starts another call, since some servers number all calls 0.
        """
        if call.id or call.name or call.arguments:
            self._stamp(output=True)
            self._calls.add(key, call, whole=whole)

    def receive_calls(self, calls: Sequence[ToolCall]) -> None:
        """Add a complete list of the answer's calls; calls that have arrived already are not added again."""
        if calls:
            self._touch()
            self._calls.add_all(calls)

    def receive_repeated(self, calls: Sequence[ToolCall], *, at_end: bool) -> bool:
        """Add whole calls that may repeat earlier calls; return False if they cannot be a repetition.

        They may be one if calls have arrived, and these come together or at the end: a model may make a
        single call again, but not several at once.
        """
        may_repeat = self.has_tool_calls and (len(calls) > 1 or at_end or self._is_finished)
        are_whole = all(call.name and load_object(call.arguments or "{}") is not None for call in calls)
        if may_repeat and are_whole:
            self.receive_calls(calls)
        return may_repeat and are_whole

    def receive_block(self, piece: JsonObject, *, key: Hashable = None) -> None:
        """Keep a piece of a block that the API requires unchanged in the next request.

        Without a key, the piece is a whole block. Texts are joined; of other values, the last counts.
        """
        if len(self._blocks) >= MOST_ITEMS:
            return
        block = self._blocks.setdefault(object() if key is None else key, {})
        for name, value in piece.items():
            block.setdefault(name, []).append(value)

    def receive_usage(self, *, total_tokens: int | None = None, **counts: int | None) -> None:
        """Set the server's own counts; for each, the last above 0 counts, since some gateways end with zeros.

        `uncached_tokens` may replace `input_tokens`. For the total, see `settled`.
        """
        self._touch()
        so_far = self._counts or {}
        self._counts = so_far | {
            name: count
            for name, count in settled(counts, total_tokens).items()
            if count or (count == 0 and not so_far.get(name))
        }

    def receive_speeds(self, tokens_per_s: float | None, prompt_tokens_per_s: float | None) -> None:
        """Set the speeds as measured by the server: of generation, and of reading uncached tokens."""
        self._speeds = tokens_per_s or self._speeds[0], prompt_tokens_per_s or self._speeds[1]

    def receive_model(self, name: str) -> None:
        """Set the name of the answering model, as reported by the server."""
        self._model = name or self._model

    def receive_finish_word(self, word: str, *, native: str = "", said: str = "") -> WireError | None:
        """Note the server's word for the end of the answer; return an error if the word means a failure.

        `native` is the word of the server behind a gateway, and `said` the server's explanation.
        """
        shown = word if meaning_of(native) in (None, "stop", "tool_calls") else native
        meaning = meaning_of(shown)
        failure = f"its finish reason is {shown!r}" + (f": {said}" if said else "")
        if meaning == "context_full":
            if not self.has_tokens:
                return WireError(code="context_length_exceeded", message=failure)
            meaning = "length"
        elif meaning == "failed" or (meaning == "no_reason" and not self.has_output):
            return WireError(message=failure)
        elif meaning == "denied":
            return WireError(code="permission_denied", message=failure)
        elif meaning in ("malformed_call", "unexpected_call"):
            self.receive_text(_CALL_PREFIX.sub("", said))
        elif meaning in ("content_filter", "refusal"):
            self.receive_note(said)
        self.receive_finish(shown if meaning in (None, "no_reason") else meaning)
        return None

    def receive_finish(self, reason: str) -> None:
        """Note a finish reason, which does not end the answer: tokens may follow, and a later reason counts.

        A `stop` that only repeats the end does not hide a more specific reason.
        """
        if self.is_over and self._finish_reason:
            return
        if reason != "stop" or self._finish_reason is None or self._has_resumed:
            self._finish_reason = reason
        self._is_finished = True
        self._touch()

    def receive_end(self, finish_reason: str | None = None) -> None:
        """Note the end mark: the reply is complete, and the first end mark sets the time."""
        if finish_reason:
            self.receive_finish(finish_reason)
        if not self.is_over:
            self._latest, self.is_over = self._moment(), True

    def _stamp(self, *, output: bool) -> None:
        """Note the time of a token."""
        self._touch()
        self._has_resumed |= self._is_finished
        self._is_spread |= self._first_token is not None and self.arrived != self._first_token
        if self.streaming and (self._first_token is None or (output and self._first_output is None)):
            moment = self._moment()
            self._first_token = moment if self._first_token is None else self._first_token
            self._first_output = moment if output else None

    def _touch(self) -> None:
        """Note the time of a part of the answer, whose bytes have arrived."""
        if not self.is_over:
            self._latest = self.arrived

    def _moment(self) -> float:
        return self._monotonic() if self.arrived is None else self.arrived

    # --- the result so far --------------------------------------------------------------------

    @property
    def ended(self) -> bool:
        """Whether an end mark or a finish reason has arrived, after which nothing more need arrive."""
        return self.is_over or self._is_finished

    @property
    def is_complete(self) -> bool:
        """Whether nothing can be missing: the end mark has arrived, or a reliable finish reason.

        Some servers write a finish reason into every chunk, or continue after a finish reason.
        """
        return self.is_over or (self._is_finished and not self._has_resumed and self.has_tokens)

    @property
    def has_tokens(self) -> bool:
        """Whether a token has arrived on any channel."""
        return self.has_output or bool(self._texts["reasoning"])

    @property
    def has_output(self) -> bool:
        """Whether a part of the answer itself has arrived: text, a refusal, a tool call."""
        return bool(self._texts["text"] or self._texts["refusal"]) or self.has_tool_calls

    @property
    def has_tool_calls(self) -> bool:
        """Whether a part of a native tool call has arrived."""
        return bool(self._calls)

    def raw(self) -> str:
        """Return everything received as one text; a reasoning channel is first, in `<think>` tags."""
        reasoning, text, refusal = (self._texts[channel].text() for channel in CHANNELS)
        answer = "\n\n".join(filter(None, (text + refusal, *self._notes)))
        return f"{THINKING}{reasoning}{ANSWER}{answer}" if reasoning else answer

    def timing(self) -> Timing:
        """Return the times of the attempt, up to the last byte of a complete answer, or up to now."""
        latest = self._latest if self.ended else None
        e2e_ms = ((self._monotonic() if latest is None else latest) - self.started) * 1000
        started_at_ms = self._wall_ms(self.started)
        ttft_ms, ttfo_ms = (
            None if moment is None else (moment - self.started) * 1000
            for moment in (self._first_token, self._first_output)
        )
        return Timing(
            started_at_ms=started_at_ms,
            ended_at_ms=started_at_ms + round(e2e_ms),
            e2e_ms=e2e_ms,
            ttft_ms=ttft_ms,
            ttfo_ms=ttfo_ms,
            at_once=not self._is_spread,
        )

    def usage(self) -> tuple[Usage, ...]:
        """Return the counts with the model's name; empty if the server has sent none."""
        if self._counts is None:
            return ()
        counts = dict(self._counts)
        reads = ("uncached_tokens", "cached_tokens", "cache_write_tokens")
        if "uncached_tokens" in counts:
            counts["input_tokens"] = sum(counts.get(name, 0) for name in reads)
        return (
            Usage(
                model=self._model,
                input_tokens=counts.get("input_tokens") or None,  # no prompt has 0 tokens
                output_tokens=counts.get("output_tokens"),
                cached_tokens=counts.get("cached_tokens"),
                cache_write_tokens=counts.get("cache_write_tokens"),
                cache_write_1h_tokens=counts.get("cache_write_1h_tokens"),
            ),
        )

    def reply(self) -> Reply:
        """Return the reply received so far, without calls that have no name."""
        usages = self.usage()
        usage = usages[0] if usages else Usage()
        return Reply(
            text=self._texts["text"].text(),
            reasoning=self._texts["reasoning"].text(),
            raw=self.raw(),
            tool_calls=self._calls.named(),
            refusal=self._texts["refusal"].text() or None,
            finish_reason=self._finish_reason,
            effective_model=self._model,
            timing=self.timing(),
            tokens_per_s=self._speeds[0],
            prompt_tokens_per_s=self._speeds[1],
            input_tokens=usage.input_tokens,
            output_tokens=usage.output_tokens,
            reasoning_tokens=(self._counts or {}).get("reasoning_tokens"),
            cached_tokens=usage.cached_tokens,
            usage=usages,
            carried=tuple(
                {name: joined_values(name, values) for name, values in block.items()}
                for block in self._blocks.values()
                if block
            ),
        )
