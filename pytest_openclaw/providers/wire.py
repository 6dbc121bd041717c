"""Values in servers' JSON, by their paths, and the parts of requests that several APIs share.

A path such as `usage.prompt_tokens` has the keys of nested objects; without a path, the value itself counts.
A value of an unexpected type counts as missing.
"""

from __future__ import annotations

import itertools
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from pytest_openclaw.openclaw.thinking import strip_thinking
from pytest_openclaw.util.typed import LARGEST
from pytest_openclaw.values.replies import Image, Turn
from pytest_openclaw.values.tool_calls import Tool, ToolCall

if TYPE_CHECKING:
    from pytest_openclaw.util.files import JsonObject
    from pytest_openclaw.values.requests import Request

# The text of a chat template around messages and tools; the longest known templates have about 4 KB.
TEMPLATE_BYTES = 4096
# An upper bound for an image: gpt-4o-mini, the most of all known models, counts 2,833 tokens and 5,667 for
# each of at most 8 tiles.
IMAGE_TOKENS = 50_000
MOST_ITEMS = 10_000
"""The most items of an array that are read: more than any answer has, and so few that they take no time."""
LARGEST_COUNT = 2**40
"""More tokens than any request has, and so few that sums over all turns and requests stay below 2**53."""
SMALLEST_NUMBER = 0.05
"""A speed or a time below it would be shown as 0.0."""


def load_object(text: str) -> JsonObject | None:
    """Return the JSON object in a text; None if the text is something else."""
    return next(iter(load_objects(text)), None) if text.lstrip().startswith("{") else None


def load_objects(text: str) -> list[JsonObject]:
    """Return the JSON object in a text, or the objects in an array; empty if the text is something else."""
    if text.lstrip()[:1] not in ("{", "["):
        return []
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return []
    return [value] if isinstance(value, dict) else objects_in(value)


def value_in(value: Any, path: str) -> Any:
    """Return the value at a path; None if there is none."""
    for key in filter(None, path.split(".")):
        value = value.get(key) if isinstance(value, dict) else None
    return value


def text_in(value: Any, path: str = "") -> str:
    """Return a string; empty for another type."""
    value = value_in(value, path)
    return value if isinstance(value, str) else ""


def count_in(value: Any, path: str = "", *, most: int = LARGEST_COUNT) -> int | None:
    """Return a whole number from 0 to `most`; None for another value, including true and 1.0."""
    value = value_in(value, path)
    is_number = isinstance(value, int) and not isinstance(value, bool)
    return value if is_number and 0 <= value <= most else None


def positive_in(value: Any, path: str = "") -> float | None:
    """Return a number above 0, up to 2**53; None for another value, and for one that is as good as 0."""
    value = value_in(value, path)
    is_number = isinstance(value, (int, float)) and not isinstance(value, bool)
    return float(value) if is_number and SMALLEST_NUMBER <= value <= LARGEST else None


def object_in(value: Any, path: str = "") -> JsonObject:
    """Return an object; empty for another type."""
    value = value_in(value, path)
    return value if isinstance(value, dict) else {}


def objects_in(value: Any, path: str = "") -> list[JsonObject]:
    """Return the objects in an array, of its first `MOST_ITEMS` items; empty for another type."""
    value = value_in(value, path)
    return [item for item in value[:MOST_ITEMS] if isinstance(item, dict)] if isinstance(value, list) else []


def texts_in(value: Any, path: str = "") -> list[str]:
    """Return the strings in an array; empty for another type."""
    value = value_in(value, path)
    return [item for item in value[:MOST_ITEMS] if isinstance(item, str)] if isinstance(value, list) else []


def json_text(value: Any) -> str:
    """Return a string unchanged, and another value as JSON; None and false are empty."""
    if value is None or value is False:
        return ""
    try:
        return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    except RecursionError:
        return "…"


def call_in(holder: JsonObject, arguments: Any, *, id_key: str = "id") -> ToolCall:
    """Return the call that an object names, with these arguments, a JSON text or a JSON value."""
    id_ = text_in(holder, id_key) or None
    return ToolCall(name=text_in(holder, "name"), arguments=json_text(arguments), id=id_)


def function_call_in(entry: JsonObject) -> ToolCall:
    """Return a call in the form of chat completions; some servers send its arguments as an object."""
    function = {**entry, **object_in(entry, "function"), "id": entry.get("id")}
    return call_in(function, function.get("arguments"))


def counts_in(usage: JsonObject, names: Mapping[str, str]) -> dict[str, int | None]:
    """Return the counts of a request under our names.

    Args:
        usage: the server's object with counts.
        names: our name → the paths of the servers' counts, separated by blanks; the largest is returned.
    """
    found = {ours: [count_in(usage, path) for path in paths.split()] for ours, paths in names.items()}
    return {
        ours: max((count for count in counts if count is not None), default=None)
        for ours, counts in found.items()
    }


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
    ways = itertools.product((0, cached, cached + written), (0, reasoning))
    if beyond and (way := next((way for way in ways if sum(way) == beyond), None)):
        more_input, more_output = way
    elif beyond > more_input and not reasoning:
        reasoning = more_output = beyond - more_input
        counts = {**counts, "reasoning_tokens": reasoning}
    return {**counts, "input_tokens": n_input + more_input, "output_tokens": n_output + more_output}


# --- requests -----------------------------------------------------------------------------------


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


def with_ids(history: Sequence[Turn]) -> tuple[Turn, ...]:
    """Return the turns in the form for the next request: no thinking, and each call with arguments and an id.

    A call keeps its own id; a new id is generated if the call has no id, or the id of an earlier call.
    Missing arguments become `{}`, since many servers reject an empty text.
    """
    taken: set[str] = set()
    own = {call.id for turn in history for call in turn.calls if call.id}
    # Nine letters and digits, the only form that Mistral accepts.
    made_up = (id_ for number in itertools.count(1) if (id_ := f"call{number:05}") not in own)

    def sent_again(call: ToolCall) -> ToolCall:
        id_ = next(made_up) if not call.id or call.id in taken else call.id
        taken.add(id_)
        return replace(call, id=id_, arguments=call.arguments if call.arguments.strip() else "{}")

    return tuple(
        turn
        if turn.is_user_only
        else replace(turn, text=strip_thinking(turn.text), calls=tuple(map(sent_again, turn.calls)))
        for turn in history
    )


def users_content(
    turn: Turn, image: Callable[[Image], JsonObject], *, kind: str = "text"
) -> str | list[JsonObject]:
    """Return the content of a user's message: the text, or a list if it has images, as in OpenClaw."""
    assert turn.user is not None, "the turn has a message of the user"
    return [{"type": kind, "text": turn.user}, *map(image, turn.images)] if turn.images else turn.user


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
