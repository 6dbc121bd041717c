"""Reads the result of `openclaw agent exec --json`: finds the object in its output, and interprets it.

That of `openclaw agent --local --json`, a turn of a session, has the same under other keys. The object has
neither times nor arguments of calls; `relay.py` records those.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from itertools import islice
from typing import TYPE_CHECKING

from pytest_openclaw.providers.json_values import object_in, objects_in, text_in
from pytest_openclaw.providers.wire_errors import shortened
from pytest_openclaw.util.text import valid_text
from pytest_openclaw.values import faults
from pytest_openclaw.values.faults import WireError

if TYPE_CHECKING:
    from pytest_openclaw.util.json_types import JsonObject
    from pytest_openclaw.values.replies import Fault

_STATUS = re.compile(r"\b(?:HTTP )?([45]\d\d)\b")
_AUTH = re.compile(r"no (api key|credentials|auth)|missing (api key|auth)|not authenticated", re.IGNORECASE)
_NO_MODEL = re.compile(r"unknown model|model not found|no such model|not allowed: ", re.IGNORECASE)
_UNREACHABLE = re.compile(r"ECONNREFUSED|ENOTFOUND|EAI_AGAIN|EHOSTUNREACH", re.IGNORECASE)
_NO_ANSWER = re.compile(r"couldn't generate a response|incomplete or malformed tool call", re.IGNORECASE)
_LOST = re.compile(r"ECONNRESET|connection error|fetch failed|socket hang up|terminated", re.IGNORECASE)
# The first key of every answer in all known releases; inside a JSON string the quotes would be escaped.
_BEGINNING = re.compile(r'\{\s*"(?:ok|payloads)"\s*:')
# Each start without an object costs a scan of the text; releases print only a few.
_MOST_BEGINNINGS = 200


@dataclass(frozen=True, kw_only=True)
class CalledModel:
    """The model that a program was called for, for messages."""

    name: str
    model: str
    where: str
    timeout_s: float


@dataclass(frozen=True, kw_only=True)
class AgentResult:
    """The result of a successful run; the relay has its tokens and calls."""

    text: str
    model: str | None


def find_envelope(stdout: str, stderr: str = "") -> JsonObject | None:
    """Return the last complete object of the command on stdout, else on stderr, as `agent exec` prints it.

    Other text may precede and follow it, also on its own first and last line. Only the first 200 places
    where an object could begin are tried. Returns None if there is none.
    """
    found = _last_envelope(stdout) or _last_envelope(stderr)  # some releases print it there
    return _of_session(found) if found and "meta" in found else found


def _last_envelope(text: str) -> JsonObject | None:
    decoder, found, end = json.JSONDecoder(), None, 0
    for match in islice(_BEGINNING.finditer(text), _MOST_BEGINNINGS):
        if match.start() < end:
            continue  # it is part of the previous one
        try:
            value, stop = decoder.raw_decode(text, match.start())
        except (ValueError, RecursionError):
            continue
        if isinstance(value, dict) and _is_envelope(value):
            found, end = value, stop
    return found


def _is_envelope(value: JsonObject) -> bool:
    if isinstance(value.get("payloads"), list) and isinstance(value.get("meta"), dict):
        return True
    return isinstance(value.get("ok"), bool) and bool(text_in(value.get("status")))


def _of_session(answer: JsonObject) -> JsonObject:
    """Return the answer of a session's turn as `agent exec` would print it, by the rules of 2026.9.6."""
    meta, payloads = object_in(answer.get("meta")), objects_in(answer.get("payloads"))
    agent, error = object_in(meta.get("agentMeta")), object_in(meta.get("error"))
    errors = [one for one in payloads if one.get("isError") is True]
    timed_out = meta.get("stopReason") == "timeout" or "timeoutPhase" in meta
    failed = bool(meta.get("aborted") is True or error or meta.get("stopReason") == "error" or errors)
    hidden = ("isError", "isReasoning", "isCommentary")
    shown = [text_in(one.get("text")).rstrip() for one in payloads if not any(map(one.get, hidden))]
    final = "\n".join(filter(None, shown)) or (
        "" if errors else text_in(meta.get("finalAssistantVisibleText"))
    )
    return {
        "ok": not (timed_out or failed),
        "status": "timeout" if timed_out else "error" if failed else "ok",
        "final": final,
        "payloads": payloads,
        "model": agent.get("model"),
        **({"error": error} if error else {}),
    }


def read_envelope(envelope: JsonObject, called: CalledModel) -> AgentResult | Fault:
    """Return the result in an object, or its fault.

    A run in which the model gave no answer, even after OpenClaw repeated the request, is a result.
    """
    model = text_in(envelope.get("model")) or None
    error = object_in(envelope.get("error"))
    if text_in(error.get("kind")) == "incomplete_turn" or _NO_ANSWER.search(text_in(error.get("message"))):
        return AgentResult(text="", model=model)
    if envelope.get("ok") is True and envelope.get("status") == "ok":
        return AgentResult(text=valid_text(text_in(envelope.get("final"))), model=model)
    return _fault(envelope, called)


def _fault(envelope: JsonObject, called: CalledModel) -> Fault:
    error = object_in(envelope.get("error"))
    kind, said = text_in(error.get("kind")), shortened(valid_text(_words(envelope, error)))
    if kind == "timeout" or envelope.get("status") == "timeout":
        return faults.timed_out(called.name, called.timeout_s)
    if kind == "context_overflow":
        wire = WireError(code="context_length_exceeded", message=said)
        return faults.refused_by_server(called.name, called.model, wire)
    if _AUTH.search(said):
        return faults.auth_missing(called.name, f"OpenClaw says: {said}")
    if _NO_MODEL.search(said):
        return faults.refused_by_server(
            called.name, called.model, WireError(code="model_not_found", message=said)
        )
    if found := _STATUS.search(said):
        return faults.refused_by_server(
            called.name, called.model, WireError(status=int(found[1]), message=said)
        )
    if _UNREACHABLE.search(said):
        return faults.unreachable(called.name, called.where, said)
    if _LOST.search(said):
        return faults.connection_lost(called.name, said)
    return faults.cli_failed(called.name, f"OpenClaw ended with {kind or 'an error'}: {said}")


def _words(envelope: JsonObject, error: JsonObject) -> str:
    if said := text_in(error.get("message")):
        return said
    payloads = objects_in(envelope.get("payloads"))
    return next((text_in(one.get("text")) for one in payloads if one.get("isError")), "no reason given")
