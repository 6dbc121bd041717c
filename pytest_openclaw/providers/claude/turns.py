"""A scripted exchange through the Claude CLI: its lines → turns.

The CLI itself asks, has our server answer the calls, and asks again. It is stopped where an exchange ends
that is asked turn by turn: at a call whose arguments are no JSON, and after an answer, where it would go on
by itself.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING

from pytest_openclaw.core.text import valid_text
from pytest_openclaw.providers.claude.stream_json import Stream
from pytest_openclaw.providers.claude.tools import wire_names
from pytest_openclaw.providers.exchange import Exchange
from pytest_openclaw.providers.prices import total_tokens
from pytest_openclaw.tools.dispatch import dispatch
from pytest_openclaw.tools.loops import at_last_step
from pytest_openclaw.types.replies import Reply, Turn

if TYPE_CHECKING:
    from collections.abc import Callable

    from pytest_openclaw.types.replies import EndedBy, Timing
    from pytest_openclaw.types.requests import Request


def stream_for(request: Request) -> Stream:
    """Return what hears the CLI's answer; its clock starts now."""
    offered = wire_names(request.tools)
    begin = partial(Exchange, streaming=request.stream)
    if request.world is None:
        return Stream(begin(), offered=offered)
    return PlayedStream(begin(), offered=offered, begin=begin)


@dataclass
class PlayedStream(Stream):
    """What the lines have told of a scripted exchange.

    Attributes:
        begin: starts the clock of another turn.
    """

    begin: Callable[[], Exchange] = Exchange
    _ended: list[tuple[Exchange, Turn]] = field(default_factory=list)
    _results: dict[str, str] = field(default_factory=dict)
    _stopped: EndedBy | None = None

    def receive_result(self, call_id: str, text: str) -> None:
        """Take what the model is told that a call brought."""
        call = next((call for call in self.exchange.reply().tool_calls if call.id == call_id), None)
        if call is None or self._stopped:
            return
        self._results[call_id] = valid_text(text)

    def end_message(self) -> None:
        """The model's message is whole; a broken call ends the run as in OpenClaw: none is carried out."""
        super().end_message()
        calls = self.exchange.reply().tool_calls
        # Which tool is called does not matter here; to check the arguments of one would take too long.
        if any(dispatch(call, ()).problem == "malformed_json" for call in calls):
            self._results = {}
            self._stopped = "malformed_call"
            self.over = True

    def next_request(self) -> None:
        """Another turn begins if calls were answered; after an answer the CLI only asks by itself."""
        if not self._results:
            super().next_request()
            return
        self._ended.append((self.exchange, self._turn()))
        self._results = {}
        self.begin_message(self.begin())

    def reply(self, *, at_limit: bool = False) -> Reply:
        """The exchange as a whole."""
        received = [*self._ended, (self.exchange, self._turn())]
        turns = tuple(turn for _, turn in received)
        replies = [exchange.reply() for exchange, _ in received]
        ended_by = self._stopped or (at_last_step(turns) if at_limit else "answer")
        return replace(
            replies[-1],
            raw=self.raw(),
            tool_calls=tuple(call for turn in turns for call in turn.calls),
            effective_model=next((r.effective_model for r in reversed(replies) if r.effective_model), None),
            timing=self.timing(),
            input_tokens=total_tokens(reply.input_tokens for reply in replies),
            output_tokens=total_tokens(reply.output_tokens for reply in replies),
            cached_tokens=total_tokens(reply.cached_tokens for reply in replies),
            usage=tuple(usage for reply in replies for usage in reply.usage),
            turns=turns,
            ended_by=ended_by,
        )

    def timing(self) -> Timing:
        """When it happened, from the first turn on."""
        return self.exchange.timing_since(self._ended[0][0] if self._ended else self.exchange)

    def raw(self) -> str:
        """The texts of all turns, with a blank line between them."""
        texts = [exchange.raw() for exchange, _ in self._ended] + [self.exchange.raw()]
        return "\n\n".join(filter(None, texts))

    def _turn(self) -> Turn:
        reply = self.exchange.reply()
        results: list[str] = []
        for call in reply.tool_calls:
            if call.id not in self._results:
                break  # the exchange ended there
            results.append(self._results[call.id])
        return Turn(
            text=reply.text,
            reasoning=reply.reasoning,
            calls=reply.tool_calls,
            results=tuple(results),
            finish_reason=reply.finish_reason,
            timing=reply.timing,
            input_tokens=reply.input_tokens,
            output_tokens=reply.output_tokens,
        )
