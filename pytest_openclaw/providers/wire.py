"""Reads what servers send: values of foreign JSON, errors in every form, waits and token counts.

A value of an unexpected type counts as missing.
"""

from __future__ import annotations

import json
import math
import re
from dataclasses import replace
from itertools import product
from typing import TYPE_CHECKING, Any

from pytest_openclaw.util.typed import LARGEST
from pytest_openclaw.values.faults import WireError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pytest_openclaw.util.files import JsonObject

_LONGEST_TEXT = 300
_MESSAGES = ("message", "detail", "error_description", "msg", "status_msg")
_TITLE = re.compile(r"<title\b[^>]*>(.*?)</title\s*>", re.IGNORECASE | re.DOTALL)
# Ollama's, if its parser cannot read what the model wrote:
# https://github.com/ollama/ollama/blob/main/model/parsers/parsers.go
_UNREAD_CALL = re.compile(r"error parsing tool call: raw='(.*)', err=", re.DOTALL)


# --- values -------------------------------------------------------------------------------------


def load_object(text: str) -> JsonObject | None:
    """Return the JSON object that `text` is, None if it is something else."""
    if not text.lstrip().startswith("{"):
        return None
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, dict) else None


def text_in(value: Any) -> str:
    """Return a string, empty for another type."""
    return value if isinstance(value, str) else ""


def count_in(value: Any) -> int | None:
    """Return a whole number from 0 to 2**53, the most in a row; None for another value, also true and 1.0."""
    return value if isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= LARGEST else None


def positive_in(value: Any) -> float | None:
    """Return a finite number above 0; None for another value."""
    is_number = isinstance(value, (int, float)) and not isinstance(value, bool)
    return float(value) if is_number and 0 < value < math.inf else None


def object_in(value: Any) -> JsonObject:
    """Return an object, empty for another type."""
    return value if isinstance(value, dict) else {}


def objects_in(value: Any) -> list[JsonObject]:
    """Return the objects of an array, none for another type."""
    return [item for item in value if isinstance(item, dict)] if isinstance(value, list) else []


def texts_in(value: Any) -> list[str]:
    """Return the strings of an array, none for another type."""
    return [item for item in value if isinstance(item, str)] if isinstance(value, list) else []


def json_text(value: Any) -> str:
    """Return a string as it is, and another value as JSON; None and false are empty."""
    if value is None or value is False:
        return ""
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


# --- errors -------------------------------------------------------------------------------------


def error_in(payload: Mapping[str, Any]) -> WireError | None:
    """Return the error that an answer or event with status 200 is or carries, if it does."""
    if payload.get("error") or payload.get("object") == "error" or payload.get("type") == "error":
        return error_of_object(payload)
    if "base_resp" in payload and (reply := object_in(payload["base_resp"])).get("status_code"):
        return error_of_object(reply)  # MiniMax's
    return None


def error_of_object(payload: Any) -> WireError:
    """Return the contents of an error object, in the form of any server or in a list.

    Ollama's `{"error": "text"}` may have the error object of the engine below it as its text. Groq adds what
    the model wrote (`failed_generation`), OpenRouter the error of the server behind it (`metadata.raw`).
    """
    if isinstance(payload, list) and payload:
        payload = payload[0]
    error = (payload.get("error") or payload) if isinstance(payload, dict) else payload
    if isinstance(error, str) and (inner := load_object(error)) and inner.get("error"):
        error = inner["error"]
    if not isinstance(error, dict):
        return _error_of_text(json_text(error))
    said = _error_of_text(json_text(next(filter(None, map(error.get, _MESSAGES)), None)))
    behind = _error_behind(object_in(error.get("metadata")))
    kind = json_text(error.get("type"))
    details = objects_in(error.get("details"))
    delays = (_number(text_in(detail.get("retryDelay")).removesuffix("s")) for detail in details)
    status = count_in(error.get("status_code"))
    return WireError(
        status=status if status in range(400, 600) else None,
        code=json_text(error.get("code")),
        type=_google_words(error, details) if kind in ("", "error") else kind,
        message=shortened(f"{said.message} ({behind.message})" if behind.message else said.message),
        retry_after_s=next((delay for delay in delays if delay is not None), None),
        written=text_in(error.get("failed_generation")) or said.written or behind.written,
    )


def _error_of_text(text: str) -> WireError:
    unread = _UNREAD_CALL.search(text)
    return WireError(message=shortened(text), written=unread[1] if unread else "")


def _error_behind(metadata: JsonObject) -> WireError:
    """Return the error of the server behind OpenRouter: an error object, its JSON text, or another text."""
    if not (raw := metadata.get("raw")):
        return WireError()
    error = error_of_object(load_object(raw) or raw if isinstance(raw, str) else raw)
    said = error.message or shortened(json_text(raw))
    server = text_in(metadata.get("provider_name"))
    return replace(error, message=f"{server}: {said}" if server else said)


def _google_words(error: JsonObject, details: list[JsonObject]) -> str:
    """Return the status, reasons and names of quotas of https://cloud.google.com/apis/design/errors."""
    violations = [violation for detail in details for violation in objects_in(detail.get("violations"))]
    words = [
        text_in(error.get("status")),
        *(text_in(detail.get("reason")) for detail in details),
        *(text_in(violation.get("quotaId")) for violation in violations),
    ]
    return shortened(" ".join(filter(None, words)))


def error_of_body(status: int, body: bytes, *, phrase: str = "") -> WireError:
    """Return the error of an answer: an error object, a page's title, its text, or the status line's."""
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
    if not (error.message or error.code or error.type):
        error = replace(error, message=shortened(phrase))
    return replace(error, status=status)


def page_title(text: str) -> str | None:
    """Return the title of an HTML page, None if `text` is not one."""
    if text[:1] != "<":
        return None
    found = _TITLE.search(text[:100_000])
    return f"a web page, {shortened(found[1])!r}" if found else "a web page without a title"


def shortened(text: str) -> str:
    """Return the text on one line, printable, valid UTF-8, cut in the middle at 300 characters."""
    words = " ".join(text[: 20 * _LONGEST_TEXT].split())
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


# --- token counts -------------------------------------------------------------------------------


def settled(counts: Mapping[str, int | None], total: int | None) -> dict[str, int | None]:
    """Return the counts with all cached tokens in the input and all reasoning tokens in the output.

    Most servers count like this. xAI and some gateways count reasoning in addition to the output, and others
    cached tokens in addition to the input: the total has them, or a part is larger than the whole. Tokens of
    the total that no other count has are reasoning, as in Gemini's API for chat completions.
    """
    n_input, n_output = counts.get("input_tokens"), counts.get("output_tokens")
    if not n_input:
        return {**counts, "input_tokens": None}
    cached, reasoning = counts.get("cached_tokens") or 0, counts.get("reasoning_tokens") or 0
    written = counts.get("cache_write_tokens") or 0
    more_input = cached if cached > n_input else 0
    if n_output is None:
        return {**counts, "input_tokens": n_input + more_input}
    more_output = reasoning if reasoning > n_output else 0
    beyond = max(0, (total or 0) - n_input - n_output)
    ways = product((0, cached, cached + written), (0, reasoning))
    if beyond and (way := next((way for way in ways if sum(way) == beyond), None)):
        more_input, more_output = way
    elif beyond and not reasoning:
        reasoning = more_output = beyond - more_input
        counts = {**counts, "reasoning_tokens": reasoning}
    return {**counts, "input_tokens": n_input + more_input, "output_tokens": n_output + more_output}


def counts_in(usage: JsonObject, names: Mapping[str, str]) -> dict[str, int | None]:
    """Return the counts of a request under our names.

    Args:
        usage: the server's.
        names: our name → the servers' names, such as `prompt_tokens_details.cached_tokens`, separated by
            blanks; the largest of their counts is returned.
    """
    found: dict[str, int | None] = {}
    for ours, paths in names.items():
        places = [path.rpartition(".") for path in paths.split()]
        values = [(object_in(usage.get(holder)) if holder else usage).get(name) for holder, _, name in places]
        found[ours] = max((count for value in values if (count := count_in(value)) is not None), default=None)
    return found
