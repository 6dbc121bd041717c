"""Reads servers' errors: objects in the form of any API, web pages, plain text, and waits in headers."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from pytest_openclaw.providers.wire import count_in, json_text, load_object, object_in, objects_in, text_in
from pytest_openclaw.util.text import cut, masked
from pytest_openclaw.values.faults import WireError

if TYPE_CHECKING:
    from pytest_openclaw.util.files import JsonObject

_LONGEST_TEXT = 300
_MESSAGES = ("message", "Message", "detail", "error_description", "msg", "error_msg", "status_msg", "title")
# Where an error may be in an event, in addition to the event itself.
_HOLDERS = ("", "response", "message", "data", "delta", "x_groq")
# Signs of an error object that is the whole event, and of an answer.
_BARE = {"code", "error_code", "statusCode", "detail", "errors"}
_ANSWERS = ("choices", "candidates", "content", "output", "delta", "data")
# A wait as a number of seconds, and in words: "retry after 2 seconds", "try again in 300ms".
_WAITS = ("retry_after", "retry_after_seconds", "retryAfter", "estimated_time")
_WAIT = re.compile(
    r"\b(?:again|retry|wait|resets?)(?: (?:in|after|for|about))?"
    r" (\d{1,5}(?:\.\d+)?) ?(m(?:illi)?)?s(?:ec(?:ond)?s?)?\b",
    re.IGNORECASE,
)
_TITLE = re.compile(r"<title\b[^<>]*>([^<]*)</title\s*>", re.IGNORECASE)
# Around the model's text, in Ollama's error if its parser cannot read that text:
# https://github.com/ollama/ollama/blob/main/model/parsers/parsers.go
_UNREAD_CALL = "error parsing tool call: raw='", "', err="


def error_in(payload: JsonObject) -> WireError | None:
    """Return the error that an answer or event with status 200 reports, or None."""
    for holder in (object_in(payload, name) for name in _HOLDERS):
        if holder.get("error") or "error" in map(holder.get, ("object", "type", "status")):
            return error_of_object(holder)
    reply = object_in(payload, "base_resp")
    if code := reply.get("status_code"):  # from MiniMax
        return replace(error_of_object({**reply, "code": f"base_resp_{json_text(code)}"}), type="")
    is_bare = _BARE & payload.keys() and not any(map(payload.get, _ANSWERS))
    error = error_of_object(payload) if is_bare else None
    return error if error and error.message else None


def error_of_object(payload: Any, *, is_behind: bool = False) -> WireError:
    """Return the contents of an error object, in the form of any server or in a list.

    The text in Ollama's `{"error": "text"}` may be the error object of the engine. Groq adds the model's text
    (`failed_generation`), OpenRouter the error of the server behind it (`metadata.raw`).
    """
    if isinstance(payload, list) and payload:
        payload = payload[0]
    error = payload
    if isinstance(payload, dict):  # Cloudflare has a list of errors
        error = payload.get("error") or next(iter(objects_in(payload, "errors")), payload)
    if isinstance(error, str) and (inner := load_object(error)) and inner.get("error"):
        error = inner["error"]
    if not isinstance(error, dict):
        return _error_of_text(json_text(error), payload)
    texts = [json_text(next(filter(None, map(error.get, _MESSAGES)), None)), text_in(error, "param")]
    # MiMo's parameter is a sentence.
    words = ": ".join(text for text in texts if text and (text == texts[0] or " " in text))
    said = _error_of_text(words, payload, error, error.get("metadata"))
    behind = WireError() if is_behind else _error_behind(object_in(error, "metadata"))
    kind = json_text(error.get("type"))
    details = objects_in(error, "details")
    delays = (_number(text_in(detail, "retryDelay").removesuffix("s")) for detail in details)
    status = count_in(error, "status_code")
    return WireError(
        status=status if status in range(400, 600) else None,
        code=json_text(error.get("code")),
        type=_google_words(error, details) if kind in ("", "error") else kind,
        message=shortened(f"{said.message} ({behind.message})" if behind.message else said.message),
        retry_after_s=next((delay for delay in delays if delay is not None), said.retry_after_s),
        written=text_in(error, "failed_generation") or said.written or behind.written,
    )


def _error_of_text(text: str, *holders: Any) -> WireError:
    written, *_ = text.partition(_UNREAD_CALL[0])[2].rpartition(_UNREAD_CALL[1])
    said = _WAIT.search(shortened(text))
    waits = (_number(json_text(object_in(one).get(name))) for one in holders for name in _WAITS)
    wait = next(filter(None, waits), float(said[1]) / (1000 if said[2] else 1) if said else None)
    return WireError(message=shortened(text), written=written, retry_after_s=wait)


def _error_behind(metadata: JsonObject) -> WireError:
    """Return the error of the server behind OpenRouter: an error object, its JSON text, or another text."""
    if not (raw := metadata.get("raw")):
        return WireError()
    error = error_of_object(load_object(raw) or raw if isinstance(raw, str) else raw, is_behind=True)
    said = error.message or shortened(json_text(raw))
    server = text_in(metadata, "provider_name")
    return replace(error, message=f"{server}: {said}" if server else said)


def _google_words(error: JsonObject, details: list[JsonObject]) -> str:
    """Return the status, reasons and names of quotas of https://cloud.google.com/apis/design/errors."""
    violations = [violation for detail in details for violation in objects_in(detail, "violations")]
    words = [
        text_in(error, "status"),
        *(text_in(detail, "reason") for detail in details),
        *(text_in(violation, "quotaId") for violation in violations),
    ]
    return shortened(" ".join(filter(None, words)))


def error_of_body(status: int, body: bytes, *, phrase: str = "") -> WireError:
    """Return the error of an answer: its error object, the page's title, its text, or the status phrase."""
    text = body.decode("utf-8-sig", "replace").strip()
    try:
        payload = json.loads(text)
    except (ValueError, RecursionError):
        payload, page = None, page_title(text)
        error = WireError(message=page) if page else _error_of_text(text)
    else:
        error = error_of_object(payload)
    if not (error.message or error.code or error.type):
        error = replace(error, message=shortened(text if payload else phrase))
    return replace(error, status=status)


def page_title(text: str) -> str | None:
    """Return the title of an HTML page in words; None if the text is not an HTML page."""
    if text[:1] != "<":
        return None
    found = _TITLE.search(text[:100_000])
    return f"a web page, {shortened(found[1])!r}" if found else "a web page without a title"


def shortened(text: str) -> str:
    """Return the text on one line, printable, valid UTF-8, cut in the middle at 300 characters."""
    words = masked(" ".join(cut(text, 20 * _LONGEST_TEXT).split()))
    words = "".join(character if character.isprintable() else "\ufffd" for character in words)
    if len(words) <= _LONGEST_TEXT:
        return words
    half = _LONGEST_TEXT // 2
    return f"{words[:half]} … {words[-half:]}"


def retry_after_s(headers: Mapping[str, str], *, now_s: float) -> float | None:
    """Return the wait in seconds that the server asks for; `now_s` is since the epoch."""
    if (wait := _number(headers.get("retry-after-ms"))) is not None:
        return wait / 1000
    asked = headers.get("retry-after")
    if (wait := _number(asked)) is not None or not asked:
        return wait
    from email.utils import parsedate_to_datetime  # it loads 3 ms of mail

    try:
        return max(0.0, parsedate_to_datetime(asked).timestamp() - now_s)
    except (ValueError, OverflowError):
        return None


def _number(text: str | None) -> float | None:
    try:
        number = float(text or "")
    except ValueError:
        return None
    return max(0.0, number) if math.isfinite(number) else None
