"""Runs an exchange: a model is asked turn by turn, and its calls are answered from a small world.

A single question on the surface `openclaw` is an exchange too: the model may look up tools before its call.
An exchange ends at the answer to the user's last message, at the world's last step, or where OpenClaw would
end the run: at a call whose arguments are not JSON, or at the eleventh call of an unknown tool. It continues
where OpenClaw would send another request (`recovery.py`). Each message of the user begins a run of OpenClaw.
A successful `sessions_yield` ends the run like an answer: the model then receives the note that it wrote for
itself, and the next message. A message that begins with `/new` begins another conversation in the same world;
the model receives nothing from before. A turn is an ordinary attempt, with retries and its own timeout.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import replace
from functools import cached_property
from pkgutil import resolve_name
from typing import TYPE_CHECKING

from pytest_openclaw.openclaw import recovery
from pytest_openclaw.openclaw.dispatch import LOOKUPS, is_forgotten, promoted_calls
from pytest_openclaw.openclaw.recovery import Nudge
from pytest_openclaw.openclaw.thinking import strip_thinking
from pytest_openclaw.providers.prices import summed, together, total_usd
from pytest_openclaw.util.bounded import in_thread
from pytest_openclaw.util.errors import OpenClawError
from pytest_openclaw.values import faults
from pytest_openclaw.values.replies import (
    MALFORMED_CALL,
    UNEXPECTED_CALL,
    CallResult,
    EndedBy,
    Fault,
    Reply,
    Turn,
)
from pytest_openclaw.values.requests import DEFAULT_CONTEXT_TOKENS, Request, in_new_conversation
from pytest_openclaw.values.tool_calls import Dispatched, ToolCall
from pytest_openclaw.values.worlds import World

if TYPE_CHECKING:
    from pytest_openclaw.worlds.playing import Playing

_Played = tuple[tuple["ToolCall", ...], tuple[str, ...], "EndedBy | None"]


async def hold_exchange(
    request: Request,
    ask: Callable[[Request], Awaitable[CallResult]],
    *,
    context_tokens: int = DEFAULT_CONTEXT_TOKENS,
) -> CallResult:
    """Ask until the exchange ends, and return one result for all of it."""
    exchange = _Exchange(request, context_tokens)
    while True:
        ending = await ask(exchange.next_request())
        exchange.endings.append(ending)
        if isinstance(ending.result, Fault):
            return exchange.broken(ending.result)
        try:
            ended_by = await exchange.answer_calls(ending.result)
        except OpenClawError as error:
            return exchange.broken(faults.broke("the world of this prompt", str(error)))
        if ended_by is not None:
            return exchange.ending(ended_by)


class _Exchange:
    """The exchange so far."""

    def __init__(self, request: Request, context_tokens: int) -> None:
        self.turns: list[Turn] = []
        self.received: list[Turn] = []  # in the form that the model receives
        self.offered = request.tools
        self._request = request
        self._context_tokens = context_tokens
        # A single question has a world only for looking up tools.
        self._world = request.world or World(steps=request.lookup_turns + 1)
        self._messages_left = [*request.turns]
        self._message: str | None = None  # the message that the next turn answers
        self._note: str | None = None  # a text that the model receives before the next message
        self._n_before = 0  # turns that answered earlier messages
        self.endings: list[CallResult] = []

    def next_request(self) -> Request:
        history = (*self._request.history, *self.received)
        return replace(self._request, history=history, tools=self.offered)

    @cached_property
    def _playing(self) -> Playing:
        # Imported here: a run without worlds does not need this module.
        player = resolve_name(self._world.player)
        playing: Playing = player(self._world, self._request.tools, context_tokens=self._context_tokens)
        return playing

    @property
    def _replies(self) -> list[Reply]:
        return [ending.result for ending in self.endings if isinstance(ending.result, Reply)]

    async def answer_calls(self, reply: Reply) -> EndedBy | None:
        """Answer the calls of a turn; return how the exchange ended, or None if it continues.

        Raises:
            OpenClawError: the world cannot be played.
        """
        # In a thread: a slow pattern must not delay the time stamps of other cells.
        calls, results, ended_by = await in_thread(lambda: self._play(reply))
        turn = reply.as_turn(user=self._message, calls=calls, results=results)
        turn = replace(turn, timing=self.endings[-1].timing)
        self._message = None
        self.turns.append(turn)
        run, dispatched = self.turns[self._n_before :], self._playing.dispatched
        if ended_by == "malformed_call" and recovery.is_asked_again(run, dispatched):
            ended_by = None
        else:
            self.received += _received(replace(turn, user=None, carried=reply.carried), dispatched)
        if ended_by in ("answer", "malformed_call") and (nudge := recovery.nudge(run, dispatched)):
            self._ask_for_words(nudge)
            ended_by = None
        if ended_by is None and len(run) >= self._world.steps:
            return recovery.at_last_step(run)
        return None if ended_by == "answer" and self._send_next_message() else ended_by

    def _send_next_message(self) -> bool:
        """Add the user's next message, which begins another run; return False if no message is left."""
        if not self._messages_left:
            return False
        self._message = self._messages_left.pop(0)
        if (prompt := in_new_conversation(self._message)) is not None:
            self._request = replace(self._request, prompt=prompt, messages=(), history=(), images=())
            self.received = []
        else:
            sent = [text for text in (self._note, self._message) if text is not None]
            self.received += [Turn(user=text) for text in sent]
        self._note = None
        self.offered = self._request.tools
        self._n_before = len(self.turns)
        self._playing.begin_run()
        return True

    def _ask_for_words(self, nudge: Nudge) -> None:
        self.offered = self._request.tools if nudge.with_tools else ()
        turn = Turn(user=nudge.words)
        if self.received[-1:] != [turn]:
            self.received.append(turn)

    def _play(self, reply: Reply) -> _Played:
        """Return the calls of a turn, with those that OpenClaw makes from its text, and their results."""
        from pytest_openclaw.worlds.playing import yield_note

        tools, playing = self._request.tools, self._playing
        native = reply.tool_calls
        if tools and not self.offered:
            native = tuple(replace(call, unoffered=True) for call in native)
        run = self.turns[self._n_before :]
        if recovery.is_given_up([*(turn.calls for turn in run), native], playing.dispatched):
            return native, (), "loop"
        if reply.finish_reason in (MALFORMED_CALL, UNEXPECTED_CALL):
            return native, (), "malformed_call"
        calls = native or promoted_calls(strip_thinking(reply.text), self.offered)
        if not calls:
            return (), (), "answer"
        looks_up = all(playing.dispatched(call).tool in LOOKUPS for call in calls)
        if self._request.lookup_turns and not looks_up:
            return calls, (), "call"
        # OpenClaw executes no calls of a turn that was cut off, and a conversation of texts has no tools.
        is_left = native and (reply.finish_reason == "length" or not tools)
        results = None if is_left else playing.answer_turn(calls)
        if results is None:
            return calls, (), "malformed_call" if recovery.is_broken(calls, playing.dispatched) else "answer"
        if len(results) < len(calls):
            return calls, results, "left_the_record"
        made = zip(map(playing.dispatched, calls), results, strict=True)
        self._note = yield_note(made)
        return calls, results, "answer" if self._note else None

    # --- the result ---

    def ending(self, ended_by: EndedBy) -> CallResult:
        reply = replace(
            summed(self._replies),
            tool_calls=tuple(call for turn in self.turns for call in turn.calls),
            tokens_per_s=_speed(self._replies),
            prompt_tokens_per_s=self._replies[0].prompt_tokens_per_s,
            world=self._playing.state if self._request.world else None,
            ended_by=ended_by,
            carried=(),
        )
        return self._ended(reply)

    def broken(self, fault: Fault) -> CallResult:
        if len(self.endings) == 1 and isinstance(self.endings[0].result, Fault):
            return self.endings[0]
        texts = [*(reply.raw or reply.text for reply in self._replies), fault.raw]
        return self._ended(replace(fault, raw="\n\n".join(filter(None, texts))))

    def _ended(self, result: Reply | Fault) -> CallResult:
        timing = together([ending.timing for ending in self.endings])
        cut = result.cut.union(*(reply.cut for reply in self._replies))
        return replace(
            self.endings[0],
            result=replace(result, timing=timing, turns=tuple(self.turns), cut=cut),
            timing=timing,
            attempts=sum(ending.attempts for ending in self.endings),
            retry_wait_ms=sum(ending.retry_wait_ms for ending in self.endings),
            cost_usd=total_usd((ending.result, ending.cost_usd) for ending in self.endings),
        )


def _speed(replies: Sequence[Reply]) -> float | None:
    """Return the server's own speed of generation over all turns; None if it did not time every turn."""
    n_tokens, seconds = 0, 0.0
    for reply in replies:
        if not (reply.output_tokens and reply.tokens_per_s):
            return None
        n_tokens += reply.output_tokens
        seconds += reply.output_tokens / reply.tokens_per_s
    return round(n_tokens / seconds, 1)


def _received(turn: Turn, dispatched: Callable[[ToolCall], Dispatched]) -> tuple[Turn, ...]:
    answered = zip(turn.calls, turn.results, strict=False)
    kept = [(call, result) for call, result in answered if not is_forgotten(dispatched(call))]
    if not kept and not strip_thinking(turn.text).strip():
        return ()
    calls, results = zip(*kept, strict=True) if kept else ((), ())
    return (replace(turn, calls=calls, results=results),)
