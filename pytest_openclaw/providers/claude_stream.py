"""Reads the Claude CLI's `--output-format stream-json`, and turns it into a `Reply` or a `Fault`.

The answer to a single prompt is only the model's first message. The CLI continues by itself after an answer
that was cut by the output limit (three more requests) or empty (one more). No other provider does this, so
the stream is over as soon as a second request starts. In an exchange, the CLI also sends the results of
calls, which it receives from our server; the stream is over where an exchange of other providers would end.

A wrapper or an older CLI has no `stream_event` lines. Then the messages are in its `assistant` lines, one for
each block, or the text only in its `result` line.

After every API error, the CLI's `subtype` is still "success"; the error is in `is_error`, `api_error_status`
and the error word of the assistant line, or else only in the CLI's English text.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from itertools import takewhile

from pytest_openclaw.openclaw.dispatch import dispatch
from pytest_openclaw.openclaw.recovery import at_last_step
from pytest_openclaw.providers import wire
from pytest_openclaw.providers.answer import Answer
from pytest_openclaw.providers.anthropic_messages import read_messages
from pytest_openclaw.providers.prices import summed
from pytest_openclaw.providers.server_errors import shortened
from pytest_openclaw.util.files import JsonObject
from pytest_openclaw.util.text import valid_text
from pytest_openclaw.values import faults
from pytest_openclaw.values.faults import WireError
from pytest_openclaw.values.replies import EndedBy, Fault, Reply, Timing, Turn
from pytest_openclaw.values.tool_calls import Tool

#: the name of our server, and the CLI's prefix of our tools' names
NAME = "openclaw"
PREFIX = f"mcp__{NAME}__"
_UNREACHABLE = re.compile(
    r"ECONNREFUSED|ENOTFOUND|EAI_AGAIN|EHOSTUNREACH|ConnectionRefused|FailedToOpenSocket", re.IGNORECASE
)
_LOST = re.compile(
    r"ECONNRESET|connection error|fetch failed|socket hang up|terminated|unable to connect to api"
    r"|socket connection was closed",
    re.IGNORECASE,
)
_FINISH_REASONS = {"max_tokens": "length", "model_context_window_exceeded": "length"}


def wire_names(tools: Iterable[Tool]) -> dict[str, str]:
    """Return the names under which the CLI offers the tools → the tools' own names."""
    return {PREFIX + re.sub(r"[^a-zA-Z0-9_-]", "_", tool.name): tool.name for tool in tools}


@dataclass
class _Message:
    """A message of the model.

    Attributes:
        answer: the content.
        user: the user's message that is answered, unless it is the prompt.
        results: the results of the calls, by id.
        stop_reason: the API's word.
        is_done: whether the message is complete.
    """

    answer: Answer
    user: str | None = None
    results: dict[str | None, str] = field(default_factory=dict)
    stop_reason: str = ""
    is_done: bool = False

    def end(self) -> None:
        self.is_done = True
        self.answer.receive_end(_FINISH_REASONS.get(self.stop_reason, self.stop_reason) or None)


class Stream:
    """The state of the stream after the lines so far.

    Attributes:
        lacking: the tools that the CLI does not offer, by their own names; with any, the stream is over.
        over: whether the answer is complete, so that later lines do not belong to it.
        result: the CLI's last line about the prompt or message.
        error: the error word of an assistant line that the CLI wrote itself, such as `billing_error`.
        printed: the last line in another format.
    """

    def __init__(
        self,
        begin: Callable[[], Answer],
        *,
        offered: Mapping[str, str] | None = None,
        is_exchange: bool = False,
    ) -> None:
        self.lacking: tuple[str, ...] = ()
        self.over = False
        self.result: JsonObject | None = None
        self.error = self.printed = ""
        self._begin = begin
        self._offered = offered or {}
        self._is_exchange = is_exchange
        self._messages = [_Message(begin())]
        self._stopped: EndedBy | None = None
        self._has_events = self._answers_itself = False

    # --- the result so far ------------------------------------------------------------------

    @property
    def answer(self) -> Answer:
        """The content of the current message; each message has its own."""
        return self._messages[-1].answer

    def reply(self, *, at_limit: bool = False) -> Reply:
        """Return the reply received so far; with `at_limit`, the steps are used up."""
        replies = [self._reply_of(message.answer) for message in self._messages]
        if not self._is_exchange:
            return replies[-1]
        turns = tuple(map(_turn, self._messages, replies))
        began = max(index for index, turn in enumerate(turns) if turn.user is not None or index == 0)
        return replace(
            summed(replies),
            timing=self.timing(),
            turns=turns,
            ended_by=self._stopped or (at_last_step(turns[began:]) if at_limit else "answer"),
        )

    def timing(self) -> Timing:
        """Return the times from the first message until now or the end."""
        first, last = self._messages[0].answer, self.answer
        timing, e2e_ms = first.timing(), last.timing().e2e_ms + (last.started - first.started) * 1000
        return replace(timing, ended_at_ms=timing.started_at_ms + round(e2e_ms), e2e_ms=e2e_ms)

    def raw(self) -> str:
        """Return the texts of all messages, separated by blank lines."""
        return "\n\n".join(filter(None, (message.answer.raw() for message in self._messages)))

    @property
    def awaits_message(self) -> bool:
        """Whether the CLI waits for the user's next message, after an answer."""
        result = self.result or {}
        is_answer = result.get("subtype") == "success" and not (result.get("is_error") or self.error)
        return is_answer and self._stopped is None

    @property
    def continued(self) -> bool:
        """Whether the stream is over because the CLI sent another request by itself."""
        return self.over and self.result is None and self._stopped is None and not self.lacking

    def send_message(self, text: str) -> None:
        """Start the message that answers the user's next message."""
        self.over, self.result = False, None
        self._messages.append(_Message(self._begin(), user=text))

    def _reply_of(self, answer: Answer) -> Reply:
        """Return a message's reply, with the tools' own names."""
        reply = answer.reply()
        calls = tuple(
            replace(call, name=self._offered.get(call.name) or call.name.removeprefix(PREFIX))
            for call in reply.tool_calls
        )
        return replace(reply, tool_calls=calls)

    # --- lines ------------------------------------------------------------------------------

    def receive_line(self, raw: bytes) -> None:
        """Read one line of output; lines outside the format are skipped."""
        text = raw.decode("utf-8", "replace")
        line = wire.load_object(text)
        if line is None:
            self.printed = text.strip() or self.printed
        if line is None or self.over:
            return
        match line.get("type"):
            case "system":
                self._read_system(line)
            case "user" if self._is_exchange:
                self._read_results(wire.objects_in(line, "message.content"))
            case "stream_event":
                self._has_events = True
                self._read_event(wire.object_in(line, "event"))
            case "assistant":
                self.error = wire.text_in(line, "error") or self.error
                self._read_whole(wire.object_in(line, "message"))
            case "result":
                self.result = line
                message = self._messages[-1]
                if self.awaits_message and not self.answer.has_tokens:
                    self._read_whole({"content": [{"text": line.get("result")}], "usage": line.get("usage")})
                message.stop_reason = message.stop_reason or wire.text_in(line, "stop_reason")
                self._end()

    def _read_system(self, line: JsonObject) -> None:
        if line.get("subtype") == "init":
            given = wire.texts_in(line, "tools")
            self.lacking = tuple(own for name, own in self._offered.items() if name not in given)
            self.over = bool(self.lacking)
        if line.get("status") == "requesting":
            self._read_request()

    def _read_whole(self, message: JsonObject) -> None:
        """Read a message that came without events, unless the CLI wrote it itself."""
        self._answers_itself |= message.get("model") == "<synthetic>"
        if self._has_events or self._answers_itself:
            return
        if self._messages[-1].results:
            self._messages[-1].end()
            self._read_request()
        read_messages({**message, "type": "message", "stop_reason": None}, self.answer)

    def _read_results(self, blocks: list[JsonObject]) -> None:
        for block in blocks:
            call_id, content = wire.text_in(block, "tool_use_id"), block.get("content")
            parts = [wire.text_in(part, "text") for part in wire.objects_in(content)]
            self._messages[-1].results[call_id] = valid_text("\n".join(parts or [wire.text_in(content)]))

    def _read_event(self, event: JsonObject) -> None:
        """Read an event of the Messages API, whose stop reason is kept unchanged."""
        match event.get("type"):
            case "message_start":
                self._read_request()
                if self.over:
                    return
            case "message_delta":
                reason = wire.text_in(event, "delta.stop_reason")
                self._messages[-1].stop_reason = reason or self._messages[-1].stop_reason
                event = {**event, "delta": {}}
            case "message_stop":
                self._read_stop()
                return
        read_messages(event, self.answer)

    def _read_stop(self) -> None:
        """End the model's message; as in OpenClaw, a malformed call ends an exchange.

        Later work of the CLI is not part of the model's time.
        """
        message = self._messages[-1]
        if message.is_done:  # the calls are read once: a server may send any number of ends
            return
        message.end()
        calls = message.answer.reply().tool_calls if self._is_exchange else ()
        # The tool does not matter here; checking its arguments would take too long.
        if any(dispatch(call, ()).problem == "malformed_json" for call in calls):
            message.results, self._stopped, self.over = {}, "malformed_call", True

    def _read_request(self) -> None:
        """Start another message if calls were answered; end the stream if the CLI continues by itself."""
        message = self._messages[-1]
        if not message.is_done:
            return
        if any(call.id in message.results for call in message.answer.reply().tool_calls):
            self._messages.append(_Message(self._begin()))
        else:
            self._end()

    def _end(self) -> None:
        self.over = True
        self._messages[-1].end()

    # --- how it ended -----------------------------------------------------------------------

    def outcome(self, name: str, model: str, *, where: str, login: str) -> Reply | Fault:
        """Return the reply or fault of a stream that is over.

        `where` is the address of the server, and `login` a hint how to get credentials.
        """
        result, has_tokens = self.result, self.answer.has_tokens
        if self.lacking:
            names = ", ".join(self.lacking[:3]) + (", …" if len(self.lacking) > 3 else "")
            why = f"the CLI does not offer {len(self.lacking)} of the {len(self._offered)} tools: {names}"
            return faults.cli_failed(name, f"{why} (its server did not start).")
        if result is None:  # ended by us, after the model's message
            return self.reply()
        # An error subtype has the words in `errors` instead of `result`.
        words = [wire.text_in(result, "result"), *wire.texts_in(result, "errors")]
        said = shortened("; ".join(filter(None, words)))
        if "refusal" in (self._messages[-1].stop_reason, result.get("stop_reason")):
            return replace(self.reply(), finish_reason="refusal", refusal=said)
        if self.error == "max_output_tokens" and has_tokens:
            return replace(self.reply(), finish_reason="length")
        is_done = self.answer.has_output and self._messages[-1].is_done
        if result.get("subtype") == "error_max_turns" and is_done:
            # For a single prompt the call is the answer; in an exchange the turns are used up.
            return self.reply(at_limit=True)
        status = wire.count_in(result, "api_error_status")
        in_words = result.get("is_error") and result.get("result") and not has_tokens  # from an older CLI
        if self.error or status is not None or in_words:
            if has_tokens:
                return faults.stream_broken(name, said)
            if status is None and (self.error.startswith(("authentic", "oauth")) or "run /login" in said):
                return faults.auth_missing(name, f"the Claude CLI says: {said}. {login}")
            word = "overloaded_error" if "overloaded" in said.lower() else self.error
            message = said.rpartition("API Error:")[2].strip()  # perhaps with a status as its first word
            error = WireError(status=status, code=message[:3], type=word, message=message)
            return _fault_of_words(name, model, error, where) or faults.cli_failed(name, said)
        # An answer without tokens comes from the CLI itself, for example to a slash command.
        if result.get("subtype") == "success" and not result.get("is_error") and (has_tokens or not said):
            return self.reply()
        said = said or shortened(f"subtype {result.get('subtype')}")
        return faults.cli_failed(name, f"the CLI ended with: {said.rstrip('.')}.")


def _turn(message: _Message, reply: Reply) -> Turn:
    ids = takewhile(message.results.__contains__, (call.id for call in reply.tool_calls))
    # The exchange ended at a call without a result.
    return reply.as_turn(user=message.user, results=tuple(message.results[id_] for id_ in ids))


def _fault_of_words(name: str, model: str, error: WireError, where: str) -> Fault | None:
    """Return the fault of the server or the connection in the words of Node; None if they are unknown."""
    if error.status is None and _UNREACHABLE.search(error.message):
        return faults.unreachable(name, where, error.message)
    if error.status is None and _LOST.search(error.message):
        return faults.connection_lost(name, error.message)
    fault = faults.refused_by_server(name, model, error)
    is_known = error.status is not None or fault.failure_type != "stream_error"
    return fault if is_known else None
