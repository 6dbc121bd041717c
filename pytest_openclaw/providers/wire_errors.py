"""What servers send instead of an answer → `WireError`: error objects, web pages, plain text, waits."""

from __future__ import annotations

import html
import json
import math
import re
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from pytest_openclaw.providers.json_values import count_in, object_in, objects_in, text_in
from pytest_openclaw.util.text import valid_text
from pytest_openclaw.values.faults import WireError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pytest_openclaw.util.json_types import JsonObject

_TITLE = re.compile(r"<(title|h1)\b[^>]*>(.*?)</\1\s*>", re.IGNORECASE | re.DOTALL)
_TAG = re.compile(r"<[^>]*>")
_LONGEST_TEXT = 300
_MESSAGES = ("message", "detail", "error_description", "msg", "status_msg")
_ERROR_STATUSES = range(400, 600)
_BLANKS = " \t\n\r"
# Ollama's, if its parser cannot read what the model wrote:
# https://github.com/ollama/ollama/blob/main/model/parsers/parsers.go
_UNREAD_CALL = re.compile(r"error parsing tool call: raw='(.*)', err=", re.DOTALL)
# `json.loads` does the same in twice the time for an event of a stream.
_decode = json.JSONDecoder().raw_decode


def load_object(text: str) -> JsonObject | None:
    """Return the JSON object that `text` is, None if it is something else."""
    text = text.strip(_BLANKS)
    if not text.startswith("{"):
        return None
    try:
        value, end = _decode(text)
    except (ValueError, RecursionError):
        return None
    return value if end == len(text) else None


def error_in(payload: Mapping[str, Any]) -> WireError | None:
    """Return the error that an answer or event with status 200 is or carries, if it does."""
    if payload.get("error") or payload.get("object") == "error" or payload.get("type") == "error":
        return error_of_object(payload)
    if "base_resp" in payload and (reply := object_in(payload["base_resp"])).get("status_code"):
        return error_of_object(reply)  # MiniMax's
    for key, value in payload.items():
        if key.startswith("error "):  # https://github.com/ollama/ollama/issues/11781
            return error_of_object(f"{key}: {_text_of(value)}")
    return None


def error_of_object(payload: Any) -> WireError:
    """Return what an error object says.

    It may be OpenAI's, vLLM's and llama.cpp's `{"error": {"message", "type", "code"}}`, Anthropic's with
    `"type": "error"` beside it, Ollama's `{"error": "text"}`, where the text may be the error object of the
    engine below it, Google's `{"error": {"code", "message", "status", "details"}}`, FastAPI's
    `{"detail": …}`, MiniMax's `{"status_code", "status_msg"}`, a bare `{"message", "code"}`, or a list of one
    of these. Groq adds what the model wrote (`failed_generation`), OpenRouter the error of the server behind
    it (`metadata.raw`).
    """
    if isinstance(payload, list) and payload:
        payload = payload[0]
    if not isinstance(payload, dict):
        return _error_of_text(_text_of(payload))
    error = payload.get("error") or payload
    if isinstance(error, str) and (inner := load_object(error)) and inner.get("error"):
        error = inner["error"]
    if not isinstance(error, dict):
        return _error_of_text(_text_of(error))
    said = _error_of_text(_text_of(next(filter(None, map(error.get, _MESSAGES)), None)))
    behind = _error_behind(object_in(error.get("metadata")))
    kind = _text_of(error.get("type"))
    details = objects_in(error.get("details"))
    status = count_in(error.get("status_code"))
    return WireError(
        status=status if status in _ERROR_STATUSES else None,
        code=_text_of(error.get("code")),
        type=_google_words(error, details) if kind in ("", "error") else kind,
        message=shortened(f"{said.message} ({behind.message})" if behind.message else said.message),
        retry_after_s=next((wait for one in details if (wait := _delay_s(one)) is not None), None),
        written=text_in(error.get("failed_generation")) or said.written or behind.written,
    )


def _error_of_text(text: str) -> WireError:
    unread = _UNREAD_CALL.search(text)
    return WireError(message=shortened(text), written=valid_text(unread[1]) if unread else "")


def _error_behind(metadata: JsonObject) -> WireError:
    """Return what the server behind OpenRouter says; its `raw` may be an error object or its JSON text."""
    raw = metadata.get("raw")
    if not raw:
        return WireError()
    error = error_of_object(load_object(raw) or raw if isinstance(raw, str) else raw)
    said = error.message or shortened(_text_of(raw))
    named = text_in(metadata.get("provider_name"))
    return replace(error, message=f"{named}: {said}" if named else said)


def error_of_body(status: int, body: bytes, *, phrase: str = "") -> WireError:
    """Return what the body of an error answer says: an error object, a page's title, or its text.

    Args:
        status: the HTTP status.
        body: as much of it as came.
        phrase: the status line's words, for an empty body.

    """
    text = body.decode("utf-8-sig", "replace").strip()
    try:
        payload = json.loads(text)
    except (ValueError, RecursionError):
        page = page_title(text)
        error = WireError(message=page) if page else _error_of_text(text)
    else:
        error = error_of_object(payload)
        if payload and not (error.message or error.code or error.type):
            error = replace(error, message=shortened(text))
    words = error.message or (shortened(phrase) if not (error.code or error.type) else "")
    return replace(error, status=status, message=words)


def page_title(text: str) -> str | None:
    """Return what an HTML page is called, None if `text` is no page."""
    if text[:1] != "<":
        return None
    found = _TITLE.search(text[:100_000])
    title = html.unescape(_TAG.sub(" ", found[2])) if found else ""
    return f"a web page, {shortened(title)!r}" if title.strip() else "a web page without a title"


def shortened(text: str) -> str:
    """Return the text on one line, printable, valid UTF-8, cut in the middle at 300 characters."""
    words = " ".join(valid_text(text[: 20 * _LONGEST_TEXT]).split())
    words = "".join(character if character.isprintable() else "\ufffd" for character in words)
    if len(words) <= _LONGEST_TEXT:
        return words
    half = _LONGEST_TEXT // 2
    return f"{words[:half]} … {words[-half:]}"


def retry_after_s(headers: Mapping[str, str], *, now_s: float) -> float | None:
    """Return how long the server asks us to wait, in seconds; None if it does not say.

    Args:
        headers: `retry-after-ms`, else `retry-after` as seconds or as an HTTP date.
        now_s: the time of day, seconds since the epoch, that a date is compared with.

    """
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


def _google_words(error: JsonObject, details: list[JsonObject]) -> str:
    """Return the short words of Google's error objects: its status, reasons and the names of quotas.

    As in https://cloud.google.com/apis/design/errors.
    """
    violations = (one for detail in details for one in objects_in(detail.get("violations")))
    words = (
        text_in(error.get("status")),
        *(text_in(detail.get("reason")) for detail in details),
        *(text_in(violation.get("quotaId")) for violation in violations),
    )
    return shortened(" ".join(word for word in words if word))


def _delay_s(detail: JsonObject) -> float | None:
    """Return what Google's `RetryInfo` asks to wait, such as `"15s"`."""
    return _number(text_in(detail.get("retryDelay")).removesuffix("s"))


def _number(text: str | None) -> float | None:
    try:
        number = float(text or "")
    except ValueError:
        return None
    return max(0.0, number) if math.isfinite(number) else None


def _text_of(value: Any) -> str:
    if value is None or value is False:
        return ""
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
