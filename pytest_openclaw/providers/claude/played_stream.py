"""Reads the turns of a scripted exchange from the Claude CLI's lines.

The CLI itself sends requests and gets the results of calls from our server. It is stopped where an exchange
with other providers ends: at a call whose arguments are no JSON, and after an answer, after which it might
continue by itself.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING

from pytest_openclaw.core.text import valid_text
from pytest_openclaw.providers.claude.stream_json import Stream
from pytest_openclaw.providers.claude.tools import wire_names
from pytest_openclaw.providers.exchange import Exchange
from pytest_openclaw.providers.prices import summed
from pytest_openclaw.tools.dispatch import dispatch
from pytest_openclaw.tools.loops import at_last_step

if TYPE_CHECKING:
    from collections.abc import Callable

    from pytest_openclaw.types.replies import EndedBy, Reply, Timing, Turn
    from pytest_openclaw.types.requests import Request


def stream_for(request: Request) -> Stream:
    """Return the stream for a request; its clock starts now."""
    offered = wire_names(request.tools)
    begin = partial(Exchange, streaming=request.stream)
    if not request.is_exchange:
        return Stream(begin(), offered=offered)
    return PlayedStream(begin(), offered=offered, begin=begin)


@dataclass
class PlayedStream(Stream):
    """The state of a scripted exchange after the lines so far.

    Attributes:
        begin: makes the exchange of another turn, and starts its clock.
    """

    begin: Callable[[], Exchange] = Exchange
    _ended: list[tuple[Exchange, Turn]] = field(default_factory=list)
    _results: dict[str, str] = field(default_factory=dict)
    _stopped: EndedBy | None = None
    _message: str | None = None

    def receive_result(self, call_id: str, text: str) -> None:
        """Add the result that the model receives for a call."""
        call = next((call for call in self.exchange.reply().tool_calls if call.id == call_id), None)
        if call is None or self._stopped:
            return
        self._results[call_id] = valid_text(text)

    def end_message(self) -> None:
        """Note the end of the model's message; as in OpenClaw, a malformed call ends the exchange."""
        super().end_message()
        calls = self.exchange.reply().tool_calls
        # The tool does not matter here; checking its arguments would take too long.
        if any(dispatch(call, ()).problem == "malformed_json" for call in calls):
            self._results = {}
            self._stopped = "malformed_call"
            self.over = True

    def next_request(self) -> None:
        """Start another turn if calls were answered; end the stream if the CLI continues by itself."""
        if not self._results:
            super().next_request()
            return
        self._ended.append((self.exchange, self._turn()))
        self._message, self._results = None, {}
        self.begin_message(self.begin())

    @property
    def awaits_message(self) -> bool:
        """Whether the CLI waits for the user's next message, after an answer."""
        result = self.result or {}
        is_answer = result.get("subtype") == "success" and not (result.get("is_error") or self.error)
        return is_answer and self._stopped is None

    @property
    def went_on(self) -> bool:
        """Whether it is over because the CLI sent another request by itself."""
        return self.over and self.result is None and self._stopped is None and not self.lacking

    def send_message(self, text: str) -> None:
        """Start the turn that answers the user's next message."""
        self._ended.append((self.exchange, self._turn()))
        self._message, self._results = text, {}
        self.over, self.result = False, None
        self.begin_message(self.begin())

    def reply(self, *, at_limit: bool = False) -> Reply:
        """Return the whole exchange as a reply."""
        received = [*self._ended, (self.exchange, self._turn())]
        turns = tuple(turn for _, turn in received)
        replies = [exchange.reply() for exchange, _ in received]
        began = max(place for place, turn in enumerate(turns) if turn.user is not None or place == 0)
        ended_by = self._stopped or (at_last_step(turns[began:]) if at_limit else "answer")
        return replace(
            summed(replies),
            effective_model=next((r.effective_model for r in reversed(replies) if r.effective_model), None),
            timing=self.timing(),
            turns=turns,
            ended_by=ended_by,
        )

    def timing(self) -> Timing:
        """Return the times from the first turn on."""
        return self.exchange.timing_since(self._ended[0][0] if self._ended else self.exchange)

    def raw(self) -> str:
        """Return the texts of all turns, separated by blank lines."""
        texts = [exchange.raw() for exchange, _ in self._ended] + [self.exchange.raw()]
        return "\n\n".join(filter(None, texts))

    def _turn(self) -> Turn:
        reply = self.exchange.reply()
        results: list[str] = []
        for call in reply.tool_calls:
            if call.id not in self._results:
                break  # the exchange ended there
            results.append(self._results[call.id])
        return reply.as_turn(user=self._message, results=tuple(results))
