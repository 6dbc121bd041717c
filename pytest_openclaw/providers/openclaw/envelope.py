"""Reads the result of `openclaw agent exec --json`: finds the object in its output, and interprets it.

The result of `openclaw agent --local --json`, a turn of a session, has the same under other keys. The object
has neither times nor arguments of calls; `relay.py` records those.
"""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING

from pytest_openclaw.providers.processes import fault_of_words
from pytest_openclaw.providers.wire import object_in, objects_in, shortened, text_in
from pytest_openclaw.util.text import valid_text
from pytest_openclaw.values import faults
from pytest_openclaw.values.faults import WireError
from pytest_openclaw.values.replies import Reply

if TYPE_CHECKING:
    from pytest_openclaw.util.files import JsonObject
    from pytest_openclaw.values.replies import Fault
    from pytest_openclaw.values.requests import Request

_STATUS = re.compile(r"\b(?:HTTP )?([45]\d\d)\b")
_AUTH = re.compile(r"no (api key|credentials|auth)|missing (api key|auth)|not authenticated", re.IGNORECASE)
_NO_ANSWER = re.compile(r"couldn't generate a response|incomplete or malformed tool call", re.IGNORECASE)
# The first key of every answer in all known releases; inside a JSON string the quotes would be escaped.
_BEGINNING = re.compile(r'\{\s*"(?:ok|payloads)"\s*:')


def find_envelope(stdout: str, stderr: str = "") -> JsonObject | None:
    """Return the last complete object of the command on stdout, else on stderr, as `agent exec` prints it.

    Other text may precede and follow it, also on its own first and last line. Returns None if there is none.
    """
    found = _last_envelope(stdout) or _last_envelope(stderr)  # some releases print it there
    return _of_session(found) if found and "meta" in found else found


def _last_envelope(text: str) -> JsonObject | None:
    decoder, found, end = json.JSONDecoder(), None, 0
    for match in _BEGINNING.finditer(text):
        if match.start() < end:
            continue  # it is part of the previous one
        try:
            value, stop = decoder.raw_decode(text, match.start())
        except (ValueError, RecursionError):
            continue
        is_of_session = isinstance(value.get("payloads"), list) and isinstance(value.get("meta"), dict)
        if is_of_session or (isinstance(value.get("ok"), bool) and text_in(value.get("status"))):
            found, end = value, stop
    return found


def _of_session(answer: JsonObject) -> JsonObject:
    """Return the answer of a session's turn as `agent exec` would print it, by the rules of 2026.9.6."""
    meta, payloads = object_in(answer.get("meta")), objects_in(answer.get("payloads"))
    agent, error = object_in(meta.get("agentMeta")), object_in(meta.get("error"))
    errors = [one for one in payloads if one.get("isError") is True]
    timed_out = meta.get("stopReason") == "timeout" or "timeoutPhase" in meta
    failed = bool(meta.get("aborted") is True or error or meta.get("stopReason") == "error" or errors)
    return {
        "ok": not (timed_out or failed),
        "status": "timeout" if timed_out else "error" if failed else "ok",
        "final": text_in(meta.get("finalAssistantVisibleText")),
        "payloads": payloads,
        "model": agent.get("model"),
        **({"error": error} if error else {}),
    }


def read_envelope(envelope: JsonObject, request: Request, *, name: str, where: str) -> Reply | Fault:
    """Return OpenClaw's text and model in an object, without tokens and calls; or its fault.

    A run in which the model gave no answer, even after OpenClaw repeated the request, has an empty text.
    `where` is the address of the model's server.
    """
    error = object_in(envelope.get("error"))
    kind, said = text_in(error.get("kind")), text_in(error.get("message"))
    is_ok = envelope.get("ok") is True and envelope.get("status") == "ok"
    no_answer = kind == "incomplete_turn" or _NO_ANSWER.search(said)
    if no_answer or is_ok:
        text = "" if no_answer else valid_text(text_in(envelope.get("final")))
        return Reply(text=text, raw=text, effective_model=text_in(envelope.get("model")) or None)
    if kind == "timeout" or envelope.get("status") == "timeout":
        return faults.timed_out(name, request.timeout_s)
    wrong = [text_in(one.get("text")) for one in objects_in(envelope.get("payloads")) if one.get("isError")]
    said = shortened(valid_text(said or next(iter(wrong), "no reason given")))
    if kind != "context_overflow" and _AUTH.search(said):
        return faults.auth_missing(name, f"OpenClaw says: {said}")
    status = _STATUS.search(said)
    said_by_server = WireError(
        status=int(status[1]) if status and kind != "context_overflow" else None,
        code="context_length_exceeded" if kind == "context_overflow" else "",
        message=said,
    )
    own = faults.cli_failed(name, f"OpenClaw ended with {kind or 'an error'}: {said}")
    return fault_of_words(name, request.model, said_by_server, where) or own
