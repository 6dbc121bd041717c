"""Helpers for all APIs: values in servers' JSON, errors, token counts, parts of bodies, bounds of tokens.

A value of an unexpected type counts as missing.
"""

from __future__ import annotations

import itertools
import json
import math
import re
from dataclasses import replace
from itertools import product
from typing import TYPE_CHECKING, Any

from pytest_openclaw.openclaw.thinking import strip_thinking
from pytest_openclaw.util.text import cut, masked
from pytest_openclaw.util.typed import LARGEST
from pytest_openclaw.values.faults import WireError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from pytest_openclaw.util.files import JsonObject
    from pytest_openclaw.values.replies import Image, Turn
    from pytest_openclaw.values.requests import Request
    from pytest_openclaw.values.tool_calls import Tool

# The text of a chat template around messages and tools; the longest known templates have about 4 KB.
TEMPLATE_BYTES = 4096
# An upper bound for an image: gpt-4o-mini, the most of all known models, counts 2,833 tokens and 5,667 for
# each of at most 8 tiles.
IMAGE_TOKENS = 50_000
LARGEST_COUNT = 2**40
"""More tokens than any request has, and so few that sums over all turns and requests stay below 2**53."""
SMALLEST_NUMBER = 0.05
"""A speed or a time below it would be shown as 0.0."""
_LONGEST_TEXT = 300
_MESSAGES = ("message", "Message", "detail", "error_description", "msg", "error_msg", "status_msg", "title")
# Where an error may be in an event, in addition to the event itself.
_HOLDERS = ("response", "message", "data", "delta", "x_groq")
# Signs of an error object that is the whole event, and of an answer.
_BARE = {"code", "statusCode", "detail", "errors"}
_ANSWERS = ("choices", "candidates", "content", "output", "delta", "data")
_TITLE = re.compile(r"<title\b[^>]*>(.*?)</title\s*>", re.IGNORECASE | re.DOTALL)
# Ollama's error if its parser cannot read the model's text:
# https://github.com/ollama/ollama/blob/main/model/parsers/parsers.go
_UNREAD_CALL = re.compile(r"error parsing tool call: raw='(.*)', err=", re.DOTALL)


# --- values -------------------------------------------------------------------------------------


def load_object(text: str) -> JsonObject | None:
    """Return the JSON object in a text; None if the text is something else."""
    if not text.lstrip().startswith("{"):
        return None
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, dict) else None


def load_objects(text: str) -> list[JsonObject]:
    """Return the JSON object in a text, or the objects in an array; empty if the text is something else."""
    if (value := load_object(text)) is not None:
        return [value]
    try:
        return objects_in(json.loads(text)) if text.lstrip().startswith("[") else []
    except (ValueError, RecursionError):
        return []


def text_in(value: Any) -> str:
    """Return a string; empty for another type."""
    return value if isinstance(value, str) else ""


def count_in(value: Any, most: int = LARGEST_COUNT) -> int | None:
    """Return a whole number from 0 to `most`; None for another value, including true and 1.0."""
    is_number = isinstance(value, int) and not isinstance(value, bool)
    return value if is_number and 0 <= value <= most else None


def positive_in(value: Any) -> float | None:
    """Return a number above 0, up to 2**53; None for another value, and for one that is as good as 0."""
    is_number = isinstance(value, (int, float)) and not isinstance(value, bool)
    return float(value) if is_number and SMALLEST_NUMBER <= value <= LARGEST else None


def object_in(value: Any) -> JsonObject:
    """Return an object; empty for another type."""
    return value if isinstance(value, dict) else {}


def objects_in(value: Any) -> list[JsonObject]:
    """Return the objects in an array; empty for another type."""
    return [item for item in value if isinstance(item, dict)] if isinstance(value, list) else []


def texts_in(value: Any) -> list[str]:
    """Return the strings in an array; empty for another type."""
    return [item for item in value if isinstance(item, str)] if isinstance(value, list) else []


def json_text(value: Any) -> str:
    """Return a string unchanged, and another value as JSON; None and false are empty."""
    if value is None or value is False:
        return ""
    try:
        return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    except RecursionError:
        return "…"


# --- errors -------------------------------------------------------------------------------------


def error_in(payload: Mapping[str, Any]) -> WireError | None:
    """Return the error that an answer or event with status 200 reports, or None."""
    for holder in (payload, *(object_in(payload.get(name)) for name in _HOLDERS)):
        if holder.get("error") or "error" in map(holder.get, ("object", "type", "status")):
            return error_of_object(holder)
    reply = object_in(payload.get("base_resp"))
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
        error = payload.get("error") or next(iter(objects_in(payload.get("errors"))), payload)
    if isinstance(error, str) and (inner := load_object(error)) and inner.get("error"):
        error = inner["error"]
    if not isinstance(error, dict):
        return _error_of_text(json_text(error))
    texts = [json_text(next(filter(None, map(error.get, _MESSAGES)), None)), text_in(error.get("param"))]
    # MiMo's parameter is a sentence.
    said = _error_of_text(": ".join(text for text in texts if text and (text == texts[0] or " " in text)))
    behind = WireError() if is_behind else _error_behind(object_in(error.get("metadata")))
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
    error = error_of_object(load_object(raw) or raw if isinstance(raw, str) else raw, is_behind=True)
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
    """Return the error of an answer: its error object, the page's title, its text, or the status phrase."""
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


# --- token counts -------------------------------------------------------------------------------


def settled(counts: Mapping[str, int | None], total: int | None) -> dict[str, int | None]:
    """Return the counts with all cached tokens in the input and all reasoning tokens in the output.

    Most servers count like this. xAI and some gateways count reasoning in addition to the output, and other
    servers count cached tokens in addition to the input. This shows in the total, or in a part that is larger
    than the whole. Tokens that only the total has are reasoning, as in Gemini's API for chat completions.
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
        usage: the server's object with counts.
        names: our name → the servers' names, such as `prompt_tokens_details.cached_tokens`, separated by
            blanks; the largest of these counts is returned.
    """
    found: dict[str, int | None] = {}
    for ours, paths in names.items():
        parts = [path.rpartition(".") for path in paths.split()]
        values = [(object_in(usage.get(holder)) if holder else usage).get(name) for holder, _, name in parts]
        found[ours] = max((count for value in values if (count := count_in(value)) is not None), default=None)
    return found


# --- fields of requests -------------------------------------------------------------------------


def chosen(**fields: Any) -> JsonObject:
    """Return the fields that have a value; the server chooses the others."""
    return {name: value for name, value in fields.items() if value is not None}


def with_fields(body: JsonObject, fields: Mapping[str, Any]) -> JsonObject:
    """Return the body with further fields; objects are merged key by key, and null removes a field."""
    merged = dict(body)
    for name, value in fields.items():
        if value is None:
            merged.pop(name, None)
        elif isinstance(value, dict) and isinstance(merged.get(name), dict):
            merged[name] = with_fields(merged[name], value)
        else:
            merged[name] = value
    return merged


def function_of(tool: Tool, schema: str = "parameters") -> JsonObject:
    """Return a tool as APIs describe functions, with its schema under this name."""
    return {"name": tool.name, "description": tool.description, schema: dict(tool.parameters)}


# --- turns --------------------------------------------------------------------------------------


def with_ids(history: Sequence[Turn]) -> tuple[Turn, ...]:
    """Return the turns in the form for the next request: no thinking, and each call with arguments and an id.

    A call keeps its own id; a new id is generated if the call has no id, or the id of an earlier call.
    Missing arguments become `{}`, since many servers reject an empty text.
    """
    taken: set[str] = set()
    own = {call.id for turn in history for call in turn.calls if call.id}
    # Nine letters and digits, the only form that Mistral accepts.
    made_up = (id_ for number in itertools.count(1) if (id_ := f"call{number:05}") not in own)

    def id_for(own_id: str | None) -> str:
        id_ = next(made_up) if not own_id or own_id in taken else own_id
        taken.add(id_)
        return id_

    def sent_again(turn: Turn) -> Turn:
        calls = [
            replace(call, id=id_for(call.id), arguments=call.arguments if call.arguments.strip() else "{}")
            for call in turn.calls
        ]
        return replace(turn, text=strip_thinking(turn.text), calls=tuple(calls))

    return tuple(turn if turn.is_user_only else sent_again(turn) for turn in history)


def users_content(
    turn: Turn, image: Callable[[Image], JsonObject], *, kind: str = "text"
) -> str | list[JsonObject]:
    """Return the content of a user's message: the text, or a list if it has images, as in OpenClaw."""
    assert turn.user is not None, "the turn has a message of the user"
    return [{"type": kind, "text": turn.user}, *map(image, turn.images)] if turn.images else turn.user


# --- lengths ------------------------------------------------------------------------------------


def fewest_tokens(request: Request) -> int:
    """Return a lower bound of the tokens of a request that the server reads completely: its words.

    No tokenizer joins two words across white space. Text that some templates drop is not counted: thinking of
    earlier turns, and the words next to a call (Llama 3.1). Tools are not counted either, since a server may
    shorten them.
    """
    texts = [request.system or ""]
    for turn in request.conversation:
        texts += [turn.user or "", *turn.results]
        if not turn.calls:
            texts.append(strip_thinking(turn.text))
    return sum(len(text.split()) for text in texts)


def most_tokens(request: Request) -> int:
    """Return an upper bound of the tokens of a request: a token of a text has at least one byte."""
    # Some templates write the schemas over many lines.
    tools = [[tool.name, tool.description, dict(tool.parameters)] for tool in request.tools]
    texts = [request.system or "", *(json.dumps(tool, indent=4) for tool in tools)]
    for turn in request.conversation:
        calls = (json.dumps([call.name, call.arguments]) for call in turn.calls)
        texts += [turn.user or "", turn.text, *turn.results, *calls]
    in_texts = sum(len(text.encode("utf-8", "replace")) for text in texts)
    n_images = sum(len(turn.images) for turn in request.conversation)
    return TEMPLATE_BYTES + in_texts + n_images * IMAGE_TOKENS
