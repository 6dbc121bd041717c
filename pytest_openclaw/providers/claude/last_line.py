"""Turns the Claude CLI's last line, or its end without one, into a `Reply` or a `Fault`.

In every API error the CLI's `subtype` is still "success"; the error is in `is_error`, `api_error_status` and
the error word of the assistant line, and without these only in the CLI's English text.
"""

from __future__ import annotations

import re
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from pytest_openclaw.core.signals import how_it_ended
from pytest_openclaw.providers.json_values import count_in
from pytest_openclaw.providers.wire_errors import shortened
from pytest_openclaw.types import faults
from pytest_openclaw.types.faults import WireError

if TYPE_CHECKING:
    from pytest_openclaw.core.json_types import JsonObject
    from pytest_openclaw.providers.claude.stream_json import Stream
    from pytest_openclaw.providers.processes import CalledModel, Running
    from pytest_openclaw.types.replies import Fault, Reply

_AUTH_ERRORS = ("authentication_failed", "oauth_org_not_allowed")
_NOT_LOGGED_IN = re.compile(r"^(not logged in|invalid api key|please run /login)", re.IGNORECASE)
# "Server is temporarily limiting requests (not your usage limit)" is an ordinary 429.
_QUOTA = re.compile(
    r"credit balance is too low|(hit|reached) your [\w ]*limit|(?<!not your )usage limit\b|\bspend limit"
    r"|out of (usage|extra)|usage credits required",
    re.IGNORECASE,
)
_OVERFLOW = re.compile(
    r"prompt is too long|exceeds the available context size|maximum context length", re.IGNORECASE
)
_UNREACHABLE = re.compile(
    r"ConnectionRefused|FailedToOpenSocket|ECONNREFUSED|ENOTFOUND|EAI_AGAIN", re.IGNORECASE
)
_LOST = re.compile(
    r"unable to connect to api|connection error|ECONNRESET|socket connection was closed", re.IGNORECASE
)
_TIMED_OUT = re.compile(r"request timed out", re.IGNORECASE)
_MALFORMED = re.compile(r"empty or malformed response", re.IGNORECASE)
_STATUS = re.compile(r"\bAPI Error: (\d{3})\b|\bRequest rejected \((\d{3})\)")
_PREFIX = re.compile(r"^(Failed to authenticate\. )?API Error:\s*(\d{3}\b\s*)?")

_WIRE_TYPES = {
    "billing_error": "billing_error",
    "rate_limit": "rate_limit_error",
    "overloaded": "overloaded_error",
    "model_not_found": "model_not_found",
    "invalid_request": "invalid_request_error",
    "server_error": "api_error",
}


def meaning_of(stream: Stream, called: CalledModel) -> Reply | Fault:
    """Return the reply or fault of a finished stream."""
    if stream.lacking:
        return _not_offered(stream, called)
    reply, result = stream.reply(), stream.result
    if result is None:  # ended by us, after the model's message
        return reply
    said = _said(result)
    if "refusal" in (stream.stop_reason, result.get("stop_reason")):
        return replace(reply, finish_reason="refusal", refusal=_PREFIX.sub("", said))
    if stream.error == "max_output_tokens":
        cut = stream.exchange.has_tokens
        return replace(reply, finish_reason="length") if cut else faults.cli_failed(called.name, said)
    if stream.error or result.get("is_error") or result.get("api_error_status") is not None:
        return _error(stream, result, said, called)
    if result.get("subtype") != "success" or _spoke_by_itself(stream, result):
        return _failed(stream, said, called)
    return reply


def ended_without_result(stream: Stream, running: Running, called: CalledModel) -> Fault:
    """Return the fault of a CLI that ended, or closed its output, before its `result` line."""
    raw, status = stream.raw(), running.exit_status
    words = f": {shortened(running.stderr)}" if running.stderr else ""
    if running.flooded:
        why = f"the CLI wrote {running.flooded} and was stopped."
        return faults.cli_failed(called.name, why, raw)
    how = how_it_ended(status)
    if status:
        words = words or (f": {shortened(stream.last_skipped)}" if stream.skipped else "")
        return faults.program_ended(called.name, "the CLI", status, words, raw)
    if stream.received:
        return faults.stream_broken(called.name, f"the CLI {how} before its result line{words}", raw)
    if stream.skipped:
        why = f"none of the CLI's {stream.skipped} lines is a stream-json line, and it {how}{words}"
        return faults.malformed(called.name, why)
    return faults.cli_failed(called.name, f"the CLI {how} and said nothing{words}.")


def _error(stream: Stream, result: JsonObject, said: str, called: CalledModel) -> Reply | Fault:
    if result.get("subtype") == "error_max_turns" and stream.exchange.has_output and stream.message_done:
        # For a single prompt the call is the answer; in a scripted exchange the turns are used up.
        return stream.reply(at_limit=True)
    if result.get("subtype") != "success" and result.get("api_error_status") is None and not stream.error:
        return _failed(stream, said, called)
    status = _status(result, said)
    if stream.exchange.has_tokens:
        return faults.stream_broken(called.name, said, stream.raw())
    if status is None and (fault := _without_status(stream.error, said, called)):
        return fault
    error = WireError(status=status, type=_wire_type(stream, result, said), message=_PREFIX.sub("", said))
    if status is None and not error.type:
        return faults.cli_failed(called.name, said)
    return faults.refused_by_server(called.name, called.model, error)


def _not_offered(stream: Stream, called: CalledModel) -> Fault:
    names = ", ".join(stream.lacking[:3]) + (", …" if len(stream.lacking) > 3 else "")
    why = f"the CLI does not offer {len(stream.lacking)} of the {len(stream.offered)} tools: {names}"
    return faults.cli_failed(called.name, f"{why} (its server is {stream.servers or 'missing'}).")


def _failed(stream: Stream, said: str, called: CalledModel) -> Fault:
    why = f"the CLI ended with: {said.rstrip('.')}."
    return faults.cli_failed(called.name, why, stream.raw())


def _without_status(error: str, said: str, called: CalledModel) -> Fault | None:
    """Return the fault of an error without HTTP status: login, connection or timeout."""
    if error in _AUTH_ERRORS or _NOT_LOGGED_IN.search(said):
        return faults.auth_missing(called.name, f"the Claude CLI says: {said}. {called.login}")
    if _UNREACHABLE.search(said):
        return faults.unreachable(called.name, called.where, _PREFIX.sub("", said))
    if _LOST.search(said):
        return faults.connection_lost(called.name, _PREFIX.sub("", said))
    if _TIMED_OUT.search(said):
        return faults.timed_out(called.name, called.timeout_s)
    if _MALFORMED.search(said):
        return faults.malformed(called.name, _PREFIX.sub("", said))
    if "stream ended" in said.lower():
        return faults.stream_broken(called.name, _PREFIX.sub("", said))
    return None


def _wire_type(stream: Stream, result: JsonObject, said: str) -> str:
    """Return the API's error type for the CLI's text."""
    if _QUOTA.search(said) or (stream.limit_reached and _status(result, said) in (None, 429)):
        return "billing_error"
    if result.get("terminal_reason") == "prompt_too_long" or _OVERFLOW.search(said):
        return "context_length_exceeded"
    if stream.error in _WIRE_TYPES:
        return _WIRE_TYPES[stream.error]
    return "overloaded_error" if re.search(r"\boverloaded\b", said, re.IGNORECASE) else ""


def _status(result: JsonObject, said: str) -> int | None:
    status = count_in(result.get("api_error_status"))
    if status is not None and 400 <= status <= 599:
        return status
    found = _STATUS.search(said)
    return int(found[1] or found[2]) if found else None


def _said(result: JsonObject) -> str:
    """Return the CLI's text on one line; an error subtype has it in `errors` instead of `result`."""
    errors: Any = result.get("errors")
    words = [result.get("result"), *(errors if isinstance(errors, list) else [])]
    said = "; ".join(word for word in words if isinstance(word, str) and word)
    return shortened(said or f"subtype {result.get('subtype')}")


def _spoke_by_itself(stream: Stream, result: JsonObject) -> bool:
    """Whether the CLI answered without a request to the model, as it does for a slash command."""
    return not stream.exchange.has_tokens and (stream.by_itself or result.get("num_turns") == 0)
