"""Collects one answer while it arrives: joins its pieces, notes their times and makes the `Reply`.

The reader of a wire format calls the `receive_` methods of `Answer`, which is independent of wire formats.

Servers should send each piece once. Many gateways also send the whole text, or all calls, at the end, at the
start or with every piece; some number all calls 0, cut or repeat names, or send a new id with every piece.
`docs/explanation/servers.md` lists these habits. A model may repeat itself, so a short repetition is kept.

Times are measured on the wire if the reader knows them: the clock starts when the request's bytes are passed
to the socket (opening a connection is not the model's latency), and a token's time is the arrival of its
bytes, even if a busy process reads them later.
"""

from __future__ import annotations

import re
import time
from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import TYPE_CHECKING, Any, Literal

from pytest_openclaw.providers.wire import load_object, settled
from pytest_openclaw.util.signals import epoch_ms
from pytest_openclaw.values.faults import WireError
from pytest_openclaw.values.replies import ANSWER, THINKING, Reply, Timing, Usage, meaning_of
from pytest_openclaw.values.tool_calls import ToolCall

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Iterable, Sequence

    from pytest_openclaw.util.files import JsonObject

Channel = Literal["text", "reasoning", "refusal"]
CHANNELS: tuple[Channel, ...] = ("reasoning", "text", "refusal")
_ALL = "all"
"""The key of all blocks of a channel."""
# A text with at least this number of different characters is not repeated by chance: "ha ha " has 3.
_DISTINCT = 6
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
        self._texts: dict[Channel, _Text] = {channel: _Text() for channel in CHANNELS}
        self._calls = _Calls()
        self._blocks: dict[Hashable, dict[str, list[Any]]] = {}
        self._notes: list[str] = []
        self._model: str | None = None
        self._counts: dict[str, int] | None = None
        self._speeds: tuple[float | None, float | None] = None, None

    def receive_at_once(self) -> None:
        """Note that the answer has arrived whole, so that the time of its first token is unknown."""
        self.streaming, self._first_token, self._first_output = False, None, None

    # --- texts --------------------------------------------------------------------------------

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

    # --- calls and blocks ---------------------------------------------------------------------

    def receive_tool_call(
        self,
        *,
        key: Hashable = None,
        id: str | None = None,  # noqa: A002 - the wire's own word, and the field's
        name: str | None = None,
        arguments: str = "",
        whole: bool = False,
    ) -> None:
        """Add a fragment of a tool call; `whole` is true if it has all arguments.

        The fragments of one call share a `key`: its index, or an item's id. Without a key, the id is used;
        without both, a name starts a call, and other fragments continue the latest call. Under a known key,
        another id with a name starts another call, since some servers number all calls 0.
        """
        if id or name or arguments:
            self._stamp(output=True)
            self._calls.add(key, id, name, arguments, whole=whole)

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
        if not may_repeat or not all(
            call.name and load_object(call.arguments or "{}") is not None for call in calls
        ):
            return False
        self.receive_calls(calls)
        return True

    def receive_block(self, piece: JsonObject, *, key: Hashable = None) -> None:
        """Keep a piece of a block that the API requires unchanged in the next request.

        Without a key, the piece is a whole block. Texts are joined; of other values, the last counts.
        """
        block = self._blocks.setdefault(object() if key is None else key, {})
        for name, value in piece.items():
            block.setdefault(name, []).append(value)

    # --- counts -------------------------------------------------------------------------------

    def receive_usage(self, *, total_tokens: int | None = None, **counts: int | None) -> None:
        """Set the server's own counts; for each, the last above 0 counts, since some gateways end with zeros.

        `uncached_tokens` may replace `input_tokens`. For the total, see `settled`.
        """
        self._touch()
        known = {name: count for name, count in settled(counts, total_tokens).items() if count is not None}
        so_far = self._counts or {}
        self._counts = so_far | {
            name: count for name, count in known.items() if count or not so_far.get(name)
        }

    def receive_speeds(self, tokens_per_s: float | None, prompt_tokens_per_s: float | None) -> None:
        """Set the speeds as measured by the server: of generation, and of reading uncached tokens."""
        self._speeds = tokens_per_s or self._speeds[0], prompt_tokens_per_s or self._speeds[1]

    def receive_model(self, name: str) -> None:
        """Set the name of the answering model, as reported by the server."""
        self._model = name or self._model

    # --- the end ------------------------------------------------------------------------------

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
        return bool(self._calls.calls)

    def raw(self) -> str:
        """Return everything received as one text; a reasoning channel is first, in `<think>` tags."""
        reasoning, text, refusal = (self._texts[channel].text() for channel in CHANNELS)
        answer = "\n\n".join(filter(None, (text + refusal, *self._notes)))
        return f"{THINKING}{reasoning}{ANSWER}{answer}" if reasoning else answer

    def timing(self) -> Timing:
        """Return the times of the attempt, up to the last byte of a complete answer, or up to now."""
        started_at_ms = self._wall_ms(self.started)
        latest = self._latest if self.ended else None
        e2e_ms = self._since_start(self._monotonic() if latest is None else latest)
        return Timing(
            started_at_ms=started_at_ms,
            ended_at_ms=started_at_ms + round(e2e_ms),
            e2e_ms=e2e_ms,
            ttft_ms=None if self._first_token is None else self._since_start(self._first_token),
            ttfo_ms=None if self._first_output is None else self._since_start(self._first_output),
            at_once=not self._is_spread,
        )

    def timing_since(self, first: Answer) -> Timing:
        """Return the times of several answers up to this one; the first answer has the first tokens."""
        e2e_ms = self.timing().e2e_ms + (self.started - first.started) * 1000
        timing = first.timing()
        return replace(timing, ended_at_ms=timing.started_at_ms + round(e2e_ms), e2e_ms=e2e_ms)

    def usage(self) -> tuple[Usage, ...]:
        """Return the counts with the model's name; empty if the server has sent none."""
        counts = self._counts
        if counts is None:
            return ()
        n_input = counts.get("input_tokens")
        if (n_uncached := counts.get("uncached_tokens")) is not None:
            n_input = n_uncached + counts.get("cached_tokens", 0) + counts.get("cache_write_tokens", 0)
        usage = Usage(
            model=self._model,
            input_tokens=n_input or None,  # no prompt has 0 tokens
            output_tokens=counts.get("output_tokens"),
            cached_tokens=counts.get("cached_tokens"),
            cache_write_tokens=counts.get("cache_write_tokens"),
            cache_write_1h_tokens=counts.get("cache_write_1h_tokens"),
        )
        return (usage,)

    def reply(self) -> Reply:
        """Return the reply received so far, without calls that have no name."""
        usages = self.usage()
        usage = usages[0] if usages else Usage()
        return Reply(
            text=self._texts["text"].text(),
            reasoning=self._texts["reasoning"].text(),
            raw=self.raw(),
            tool_calls=tuple(
                ToolCall(name=call.name, arguments=call.arguments, id=call.id) for call in self._calls.named()
            ),
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
                {name: _joined_values(name, values) for name, values in block.items()}
                for block in self._blocks.values()
                if block
            ),
        )

    # --- times --------------------------------------------------------------------------------

    def _stamp(self, *, output: bool) -> None:
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

    def _since_start(self, moment: float) -> float:
        return (moment - self.started) * 1000


# --- texts --------------------------------------------------------------------------------------


@dataclass
class _Block:
    """One text as its pieces arrive.

    Attributes:
        pieces: each with whether it came with, or after, a finish reason.
        whole: the text that was sent in one piece.
        starts: whether the pieces may continue `whole`.
    """

    pieces: list[tuple[str, bool]] = field(default_factory=list)
    whole: str = ""
    starts: bool = False

    def text(self) -> str:
        text = _joined(self.pieces)
        if text == self.whole or (_is_telling(self.whole) and text.startswith(self.whole)):
            return text
        if self.whole.startswith(text):
            return self.whole
        return self.whole + text if self.starts else text


class _Text:
    """One channel of an answer; true if it has a text.

    Attributes:
        whole: the text of the channel that was sent in one piece.
    """

    def __init__(self) -> None:
        self.whole = ""
        self._blocks: dict[Hashable, _Block] = {}

    def __bool__(self) -> bool:
        return bool(self._blocks or self.whole)

    def block(self, key: Hashable) -> _Block:
        return self._blocks.setdefault(key, _Block())

    def text(self) -> str:
        """Return the text so far, without repetitions by the server."""
        text = "".join([block.text() for block in self._blocks.values()])
        return self.whole if self.whole.startswith(text) else text


def _is_telling(text: str) -> bool:
    return len(set(text)) >= _DISTINCT


def _joined(pieces: Sequence[tuple[str, bool]]) -> str:
    """Join pieces; a piece that begins with all earlier text replaces this text, unless by chance."""
    texts = [piece for piece, _ in pieces]
    if len(texts) < 2:
        return "".join(texts)
    if _is_cumulative(texts):
        return texts[-1]
    parts: list[str] = []
    length = 0
    for number, (piece, at_end) in enumerate(pieces):
        if number and len(piece) >= length and (number > 1 or at_end):
            before = "".join(parts)
            if piece.startswith(before) and _is_telling(before):
                parts, length = [], 0
        parts.append(piece)
        length += len(piece)
    return "".join(parts)


def _is_cumulative(texts: Sequence[str]) -> bool:
    """Whether each piece begins with the previous piece, and not by chance."""
    grown = [texts[0]]
    for before, text in pairwise(texts):
        if not text.startswith(before):
            return False
        if text != before:
            grown.append(text)
    if len(grown) < 2:
        return False
    return _is_telling(grown[-2]) or (len(grown) > 3 and len(set(grown[-1])) > 3)


def _joined_values(name: str, values: list[Any]) -> Any:
    """Return the texts of a carried block as one text; of other values, return the last."""
    if name in ("thinking", "signature", "text", "summary") and all(
        isinstance(value, str) for value in values
    ):
        return _joined([(value, True) for value in values if value])
    return values[-1]


# --- tool calls ---------------------------------------------------------------------------------


@dataclass
class _Call:
    """A tool call as its fragments arrive."""

    name: str = ""
    id: str | None = None
    pieces: list[str] = field(default_factory=list)

    @property
    def arguments(self) -> str:
        return "".join(self.pieces)

    def repeats(self, arguments: str) -> bool:
        """Whether the call's arguments are complete and equal to these; no text is an empty object."""
        given = load_object(arguments or "{}")
        return given is not None and given == load_object(self.arguments or "{}")

    def take(self, name: str, arguments: str, *, whole: bool) -> None:
        """Add a piece of the arguments, and until there are any, a piece of the name."""
        if name.startswith(self.name):
            self.name = name
        elif not self.pieces and name != self.name:
            self.name += name
        if not arguments or (self.pieces and not whole and self.repeats(arguments)):
            return
        # The arguments begin anew after a placeholder, or if a piece begins with everything so far, which
        # JSON itself never does.
        so_far = self.arguments if arguments.lstrip()[:1] == "{" else ""
        if whole or (so_far and (load_object(so_far) == {} or arguments.startswith(so_far))):
            self.pieces = []
        self.pieces.append(arguments)

    def ends_before(self, id: str | None, name: str, arguments: str, *, whole: bool) -> bool:  # noqa: A002
        """Whether a fragment with a tool's name, and this call's key or id, starts another call."""
        if id and self.id and (whole or id != self.id):
            return id != self.id
        # This call must have arrived whole in one piece.
        if not self.name or not arguments.strip() or len(self.pieces) != 1:
            return False
        own = load_object(self.pieces[0])
        return own is not None and (name != self.name or (own != {} and not self.repeats(arguments)))

    def is_repeated_by(self, name: str | None, arguments: str) -> bool:
        """Whether a fragment with this call's id neither begins another call nor continues the arguments."""
        if name and name != self.name:
            return False
        if not arguments or not self.pieces:
            return True
        is_complete = load_object(self.arguments) is not None
        return is_complete and (load_object(arguments) == {} or self.repeats(arguments))


class _Calls:
    """The calls of one answer, in order of their start."""

    def __init__(self) -> None:
        self.calls: list[_Call] = []
        self._by_key: dict[Hashable, _Call] = {}
        self._by_id: dict[str, _Call] = {}

    def add(
        self,
        key: Hashable,
        id: str | None,  # noqa: A002 - the wire's own word
        name: str | None,
        arguments: str,
        *,
        whole: bool,
    ) -> None:
        """Add a fragment; see `Answer.receive_tool_call`."""
        known = self._by_id.get(id) if id else None
        if known is not None and known.is_repeated_by(name, arguments):
            if not known.pieces or (whole and known.repeats(arguments)):
                known.take("", arguments, whole=whole)
            return
        call = self._found(key, id, name)
        if begins := call is None or (name and call.ends_before(id, name, arguments, whole=whole)):
            call = _Call()
            self.calls.append(call)
        if key is not None and (begins or id or name):
            self._by_key[key] = call
        if id and call.id is None:
            call.id = id
            self._by_id[id] = call
        call.take(name or "", arguments, whole=whole)

    def _found(self, key: Hashable, id: str | None, name: str | None) -> _Call | None:  # noqa: A002
        """Return the call to which a fragment belongs; None if the fragment starts a call."""
        known = (self._by_id.get(id) if id else None) or (None if key is None else self._by_key.get(key))
        starts = name or (id and key is not None)
        return known or (None if starts or not self.calls else self.calls[-1])

    def add_all(self, calls: Iterable[ToolCall]) -> None:
        """Add all calls of an answer; any of them may have arrived before, in any form."""
        left = self.named()
        for one in calls:
            if again := _match(one, [call for call in left if call.name == one.name]):
                left.remove(again)
                if load_object(again.arguments) is None:
                    again.take("", one.arguments, whole=True)
            elif one.name:
                self.calls.append(_Call(one.name, one.id, [one.arguments]))

    def named(self) -> list[_Call]:
        return [call for call in self.calls if call.name]


def _match(one: ToolCall, left: Sequence[_Call]) -> _Call | None:
    """Return the earlier call that a call in a complete list repeats; all of `left` are to its tool."""
    by_id = [call for call in left if one.id and call.id == one.id]
    same = [call for call in left if call.arguments == one.arguments or call.repeats(one.arguments)]
    cut = [call for call in left if load_object(call.arguments) is None]
    return next(iter(by_id + same + cut), None)
