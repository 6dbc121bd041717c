"""Reads the Claude CLI's `--output-format stream-json`, and turns it into a `Reply` or a `Fault`.

The answer to a single prompt is only the model's first message. The CLI continues by itself after an answer
that was cut by the output limit (three more requests) or empty (one more). No other provider does, so the
stream is over as soon as a second request starts. In an exchange the CLI also sends the results of calls,
which it gets from our server; there the stream is over where an exchange of other providers ends.

In every API error the CLI's `subtype` is still "success"; the error is in `is_error`, `api_error_status` and
the error word of the assistant line, and without these only in the CLI's English text.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING

from pytest_openclaw.openclaw.dispatch import dispatch
from pytest_openclaw.openclaw.recovery import at_last_step
from pytest_openclaw.providers.anthropic_messages import read_messages
from pytest_openclaw.providers.claude.command_line import PREFIX
from pytest_openclaw.providers.prices import summed
from pytest_openclaw.providers.processes import fault_of_words
from pytest_openclaw.providers.wire import (
    count_in,
    load_object,
    object_in,
    objects_in,
    shortened,
    text_in,
    texts_in,
)
from pytest_openclaw.util.signals import how_it_ended
from pytest_openclaw.util.text import valid_text
from pytest_openclaw.values import faults
from pytest_openclaw.values.faults import WireError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from pytest_openclaw.providers.answer import Answer
    from pytest_openclaw.providers.claude.command_line import Access
    from pytest_openclaw.providers.processes import Running
    from pytest_openclaw.util.files import JsonObject
    from pytest_openclaw.values.replies import EndedBy, Fault, Reply, Timing, Turn
    from pytest_openclaw.values.requests import Request

#: the model name on assistant lines that the CLI wrote itself
SYNTHETIC = "<synthetic>"
_FINISH_REASONS = {"max_tokens": "length", "model_context_window_exceeded": "length"}


class Stream:
    """The state of the stream after the lines so far.

    Attributes:
        answer: the current turn.
        lacking: the tools that the CLI does not offer, by their own names; then the stream is over.
        servers: the CLI's status of each of its servers, in its words.
        messages: number of complete messages of the model before the current one.
        over: whether the answer is complete, so that later lines do not belong to it.
        error: the error word of an assistant line that the CLI wrote itself, such as `billing_error`.
        by_itself: whether the CLI answered instead of the model.
        skipped: the lines that are not of the format.
    """

    def __init__(
        self,
        begin: Callable[[], Answer],
        *,
        offered: Mapping[str, str] | None = None,
        is_exchange: bool = False,
    ) -> None:
        self.answer = begin()
        self.offered = offered or {}
        self.lacking: tuple[str, ...] = ()
        self.servers = ""
        self.messages = 0
        self.over = False
        self.result: JsonObject | None = None
        self.error = ""
        self.stop_reason: str | None = None
        self.message_done = self.by_itself = self.is_received = False
        self.skipped: list[str] = []
        self._begin = begin
        self._is_exchange = is_exchange
        self._ended: list[tuple[Answer, Reply, Turn]] = []
        self._results: dict[str, str] = {}
        self._user: str | None = None
        self._stopped: EndedBy | None = None

    # --- the result so far ------------------------------------------------------------------

    def reply(self, *, at_limit: bool = False) -> Reply:
        """Return the reply received so far."""
        if not self._is_exchange:
            return self._reply()
        turns = (*(turn for _, _, turn in self._ended), self._turn())
        replies = [*(reply for _, reply, _ in self._ended), self._reply()]
        began = max(index for index, turn in enumerate(turns) if turn.user is not None or index == 0)
        return replace(
            summed(replies),
            timing=self.timing(),
            turns=turns,
            ended_by=self._stopped or (at_last_step(turns[began:]) if at_limit else "answer"),
        )

    def timing(self) -> Timing:
        """Return the times from the first turn on, up to now or to the end."""
        return self.answer.timing_since(self._ended[0][0] if self._ended else self.answer)

    def raw(self) -> str:
        """Return the texts of all turns, separated by blank lines."""
        texts = [answer.raw() for answer, _, _ in self._ended] + [self.answer.raw()]
        return "\n\n".join(filter(None, texts))

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
        """Start the turn that answers the user's next message."""
        self.over, self.result = False, None
        self._begin_turn(text)

    def _reply(self) -> Reply:
        """Return the current turn's reply, with the tools' own names."""
        reply = self.answer.reply()
        return replace(
            reply,
            tool_calls=tuple(
                replace(call, name=self.offered.get(call.name) or call.name.removeprefix(PREFIX))
                for call in reply.tool_calls
            ),
        )

    def _turn(self) -> Turn:
        reply = self._reply()
        results: list[str] = []
        for call in reply.tool_calls:
            if call.id not in self._results:
                break  # the exchange ended there
            results.append(self._results[call.id])
        return reply.as_turn(user=self._user, results=tuple(results))

    def _begin_turn(self, user: str | None = None) -> None:
        self._ended.append((self.answer, self._reply(), self._turn()))
        self.answer = self._begin()
        self.messages += 1
        self.message_done, self.stop_reason = False, None
        self._user, self._results = user, {}

    # --- lines ------------------------------------------------------------------------------

    def receive_line(self, raw: bytes) -> None:
        """Read one line of output; other lines than those of the format are skipped."""
        text = raw.decode("utf-8", "replace").strip()
        line = (load_object(text) if text else None) or {}
        if kind := text_in(line.get("type")):
            self.is_received = True
            if kind in _READERS and not self.over:
                _READERS[kind](self, line)
        elif text:
            self.skipped.append(text)

    def _read_system(self, line: JsonObject) -> None:
        if line.get("subtype") == "init":
            given = texts_in(line.get("tools"))
            self.lacking = tuple(own for name, own in self.offered.items() if name not in given)
            self.servers = ", ".join(
                text_in(one.get("status")) for one in objects_in(line.get("mcp_servers"))
            )
            self.over = bool(self.lacking)
        if line.get("status") == "requesting" and self.message_done:
            self._next_request()

    def _read_user(self, line: JsonObject) -> None:
        """Read the results of calls; for a single prompt the call is the answer."""
        for block in objects_in(object_in(line.get("message")).get("content")):
            call_id, content = text_in(block.get("tool_use_id")), block.get("content")
            is_ours = any(call.id == call_id for call in self.answer.reply().tool_calls)
            if self._is_exchange and is_ours and block.get("type") == "tool_result":
                texts = [text_in(part.get("text")) for part in objects_in(content)] or [text_in(content)]
                self._results[call_id] = valid_text("\n".join(texts))

    def _read_event(self, line: JsonObject) -> None:
        """Read an event of the Messages API, whose stop reason is kept as it is."""
        event = object_in(line.get("event"))
        match event.get("type"):
            case "message_start" if self.message_done:
                self._next_request()
                if self.over:
                    return
            case "message_delta":
                self.stop_reason = (
                    text_in(object_in(event.get("delta")).get("stop_reason")) or self.stop_reason
                )
                event = {**event, "delta": {}}
            case "message_stop":
                self._end_message()
                return
        read_messages(event, self.answer)

    def _read_assistant(self, line: JsonObject) -> None:
        message = object_in(line.get("message"))
        self.error = text_in(line.get("error")) or self.error
        if self.error or message.get("model") == SYNTHETIC:
            self.by_itself = True

    def _read_result(self, line: JsonObject) -> None:
        self.result = line
        if not (line.get("is_error") or self.by_itself or self.answer.has_tokens):
            self.answer.receive_at_once()
            self.answer.receive_text(text_in(line.get("result")))
        self._end(self.stop_reason or text_in(line.get("stop_reason")))

    # --- what they mean ---------------------------------------------------------------------

    def _end_message(self) -> None:
        """Note the end of the model's message; later work of the CLI is not part of the model's time.

        As in OpenClaw, a malformed call ends an exchange.
        """
        self.message_done = True
        self.answer.receive_end(_finish_reason(self.stop_reason))
        calls = self.answer.reply().tool_calls if self._is_exchange else ()
        # The tool does not matter here; checking its arguments would take too long.
        if any(dispatch(call, ()).problem == "malformed_json" for call in calls):
            self._results, self._stopped, self.over = {}, "malformed_call", True

    def _next_request(self) -> None:
        """Start another turn if calls were answered; end the stream if the CLI continues by itself."""
        if self._results:
            self._begin_turn()
        else:
            self._end(self.stop_reason)

    def _end(self, stop_reason: str | None) -> None:
        self.over = True
        self.answer.receive_end(_finish_reason(stop_reason))


_READERS: Mapping[str, Callable[[Stream, JsonObject], None]] = {
    "system": Stream._read_system,
    "user": Stream._read_user,
    "stream_event": Stream._read_event,
    "assistant": Stream._read_assistant,
    "result": Stream._read_result,
}


def _finish_reason(stop_reason: str | None) -> str | None:
    return _FINISH_REASONS.get(stop_reason or "", stop_reason)


# --- how it ended -------------------------------------------------------------------------------

_AUTH_ERRORS = ("authentication_failed", "oauth_org_not_allowed")
_NOT_LOGGED_IN = re.compile(r"^(not logged in|invalid api key|please run /login)", re.IGNORECASE)
_STATUS = re.compile(r"\bAPI Error: (\d{3})\b|\bRequest rejected \((\d{3})\)")
_PREFIX = re.compile(r"^(Failed to authenticate\. )?API Error:\s*(\d{3}\b\s*)?")

# Errors that the CLI words itself.
_FAULTS: Mapping[str, Callable[[str, str], Fault]] = {
    "empty or malformed response": faults.malformed,
    "stream ended": faults.stream_broken,
}
_WIRE_TYPES = {
    "billing_error": "billing_error",
    "rate_limit": "rate_limit_error",
    "overloaded": "overloaded_error",
    "model_not_found": "model_not_found",
    "invalid_request": "invalid_request_error",
    "server_error": "api_error",
    "prompt_too_long": "context_length_exceeded",
}


@dataclass(frozen=True)
class Ending:
    """The end of a call of the CLI."""

    stream: Stream
    name: str
    request: Request
    access: Access

    def outcome(self) -> Reply | Fault:
        """Return the reply or fault of a stream that is over."""
        stream, result = self.stream, self.stream.result
        if stream.lacking:
            names = ", ".join(stream.lacking[:3]) + (", …" if len(stream.lacking) > 3 else "")
            why = f"the CLI does not offer {len(stream.lacking)} of the {len(stream.offered)} tools: {names}"
            return faults.cli_failed(self.name, f"{why} (its server is {stream.servers or 'missing'}).")
        if result is None:  # ended by us, after the model's message
            return stream.reply()
        has_tokens = stream.answer.has_tokens
        if "refusal" in (stream.stop_reason, result.get("stop_reason")):
            return replace(stream.reply(), finish_reason="refusal", refusal=_PREFIX.sub("", self._said))
        if stream.error == "max_output_tokens" and has_tokens:
            return replace(stream.reply(), finish_reason="length")
        if stream.error or result.get("is_error") or result.get("api_error_status") is not None:
            return self._error(result)
        # For a slash command the CLI answers without a request to the model.
        spoke_by_itself = not has_tokens and (stream.by_itself or result.get("num_turns") == 0)
        is_answer = result.get("subtype") == "success" and not spoke_by_itself
        return stream.reply() if is_answer else self._failed()

    def without_result(self, running: Running) -> Fault:
        """Return the fault of a CLI that ended, or closed its output, before its `result` line."""
        stream, status = self.stream, running.exit_status
        said = running.stderr or (stream.skipped[-1] if stream.skipped else "")
        words = f": {shortened(said)}" if said else ""
        if status or not stream.is_received:
            return faults.program_ended(self.name, "the CLI", status, words, stream.raw())
        why = f"the CLI {how_it_ended(status)} before its result line{words}"
        return faults.stream_broken(self.name, why, stream.raw())

    @cached_property
    def _said(self) -> str:
        """The CLI's text on one line; an error subtype has it in `errors` instead of `result`."""
        result = self.stream.result or {}
        words = [text_in(result.get("result")), *texts_in(result.get("errors"))]
        return shortened("; ".join(filter(None, words)) or f"subtype {result.get('subtype')}")

    def _error(self, result: JsonObject) -> Reply | Fault:
        stream, name, said = self.stream, self.name, self._said
        if result.get("subtype") == "error_max_turns" and stream.answer.has_output and stream.message_done:
            # For a single prompt the call is the answer; in an exchange the turns are used up.
            return stream.reply(at_limit=True)
        given = count_in(result.get("api_error_status"))
        if not (result.get("subtype") == "success" or stream.error) and given is None:
            return self._failed()
        if stream.answer.has_tokens:
            return faults.stream_broken(name, said, stream.raw())
        in_text = _STATUS.search(said)
        status = given or (int(in_text[1] or in_text[2]) if in_text else None)
        plain = _PREFIX.sub("", said)
        if status is None:
            if stream.error in _AUTH_ERRORS or _NOT_LOGGED_IN.search(said):
                return faults.auth_missing(name, f"the Claude CLI says: {said}. {self.access.login}")
            if "request timed out" in said.lower():
                return faults.timed_out(name, self.request.timeout_s)
            for words, fault in _FAULTS.items():
                if words in said.lower():
                    return fault(name, plain)
        kind = "prompt_too_long" if result.get("terminal_reason") == "prompt_too_long" else stream.error
        is_overloaded = re.search(r"\boverloaded\b", said, re.IGNORECASE)
        word = _WIRE_TYPES.get(kind) or ("overloaded_error" if is_overloaded else "")
        error = WireError(status=status, type=word, message=plain)
        where = self.access.shown_url or "the Anthropic API"
        known = fault_of_words(name, self.request.model, error, where)
        return known or faults.cli_failed(name, said)

    def _failed(self) -> Fault:
        why = f"the CLI ended with: {self._said.rstrip('.')}."
        return faults.cli_failed(self.name, why, self.stream.raw())
