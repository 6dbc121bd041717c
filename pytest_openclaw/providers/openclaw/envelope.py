"""Reads the JSON that `openclaw agent --json` prints: its text and model, or its error.

It has neither times nor arguments of calls; `relay.py` records those.
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
# The first keys of its answers and errors.
_BEGINNING = re.compile(r'^\{\s*"(?:ok|payloads)"\s*:', re.MULTILINE)


def find_envelope(stdout: str) -> JsonObject | None:
    """Return the object among the other lines that were printed; None if there is none."""
    for match in _BEGINNING.finditer(stdout):
        try:
            return object_in(json.JSONDecoder().raw_decode(stdout, match.start())[0])
        except (ValueError, RecursionError):
            continue
    return None


def read_envelope(envelope: JsonObject, request: Request, *, name: str, where: str) -> Reply | Fault:
    """Return OpenClaw's text and model in an object, without tokens and calls; or its fault.

    A run in which the model gave no answer, even after OpenClaw repeated the request, has an empty text.
    `where` is the address of the model's server.
    """
    meta = object_in(envelope.get("meta"))
    error = object_in(meta.get("error") or envelope.get("error"))
    kind, said = text_in(error.get("kind")), text_in(error.get("message"))
    if meta.get("stopReason") == "timeout" or "timeoutPhase" in meta:
        return faults.timed_out(name, request.timeout_s)
    wrong = [text_in(one.get("text")) for one in objects_in(envelope.get("payloads")) if one.get("isError")]
    is_ok = bool(meta) and not (error or wrong or meta.get("aborted") or meta.get("stopReason") == "error")
    no_answer = kind == "incomplete_turn" or _NO_ANSWER.search(said)
    if no_answer or is_ok:
        text = "" if no_answer else valid_text(text_in(meta.get("finalAssistantVisibleText")))
        model = text_in(object_in(meta.get("agentMeta")).get("model")) or None
        return Reply(text=text, raw=text, effective_model=model)
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
