"""What servers send instead of an answer → `WireError`: error objects, web pages, plain text, waits."""

from __future__ import annotations

import html
import json
import math
import re
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from pytest_openclaw.core.text import valid_text
from pytest_openclaw.providers.json_values import objects_in, text_in
from pytest_openclaw.types.faults import WireError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pytest_openclaw.core.json_types import JsonObject

_TITLE = re.compile(r"<(title|h1)\b[^>]*>(.*?)</\1\s*>", re.IGNORECASE | re.DOTALL)
_TAG = re.compile(r"<[^>]*>")
_LONGEST_TEXT = 300
_BLANKS = " \t\n\r"
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
    return None


def error_of_object(payload: Any) -> WireError:
    """Return what an error object says.

    It may be OpenAI's, vLLM's and llama.cpp's `{"error": {"message", "type", "code"}}`, Anthropic's with
    `"type": "error"` beside it, Ollama's `{"error": "text"}`, where the text may be the error object of the
    engine below it, Google's `{"error": {"code", "message", "status", "details"}}`, FastAPI's
    `{"detail": …}`, a bare `{"message", "code"}`, or a list of one of these.
    """
    if isinstance(payload, list) and payload:
        payload = payload[0]
    if not isinstance(payload, dict):
        return WireError(message=shortened(_text_of(payload)))
    error = payload.get("error") or payload
    if isinstance(error, str) and (inner := load_object(error)) and inner.get("error"):
        error = inner["error"]
    if not isinstance(error, dict):
        return WireError(message=shortened(_text_of(error)))
    words = error.get("message") or error.get("detail") or error.get("error_description")
    kind = _text_of(error.get("type"))
    details = objects_in(error.get("details"))
    return WireError(
        code=_text_of(error.get("code")),
        type=_google_words(error, details) if kind in ("", "error") else kind,
        message=shortened(_text_of(words)),
        retry_after_s=next((wait for one in details if (wait := _delay_s(one)) is not None), None),
    )


def error_of_body(status: int, body: bytes, *, phrase: str = "") -> WireError:
    """Return what the body of an error answer says: an error object, a page's title, or its text.

    Args:
        status: the HTTP status.
        body: as much of it as came.
        phrase: the status line's words, for an empty body.
    """
    text = body.decode("utf-8-sig", "replace").strip()
    try:
        error = error_of_object(json.loads(text))
    except (ValueError, RecursionError):
        error = WireError(message=page_title(text) or shortened(text))
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
