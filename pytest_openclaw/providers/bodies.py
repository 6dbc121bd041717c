"""Parts of the bodies of requests that several APIs share, and bounds of a request's tokens."""

from __future__ import annotations

import itertools
import json
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from pytest_openclaw.openclaw.thinking import strip_thinking

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from pytest_openclaw.util.files import JsonObject
    from pytest_openclaw.values.replies import Image, Turn
    from pytest_openclaw.values.requests import Request
    from pytest_openclaw.values.tool_calls import Tool

# The text of a chat template around messages and tools; the longest known ones have about 4 KB.
TEMPLATE_BYTES = 4096
# Of a picture: gpt-4o-mini counts 2,833 and 5,667 for each of at most 8 tiles, the most of all known models.
IMAGE_TOKENS = 50_000


# --- fields -------------------------------------------------------------------------------------


def chosen(**fields: Any) -> JsonObject:
    """Return the fields that have a value; the server decides about the others."""
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
    """Return the turns as they are sent again: no thinking, and each call with arguments and an id.

    The id is the call's own; a new one is generated if it has none or if an earlier call has the same.
    Arguments that are missing become `{}`, since many servers reject an empty text.
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

    return tuple(turn if turn.is_users_alone else sent_again(turn) for turn in history)


def users_content(
    turn: Turn, picture: Callable[[Image], JsonObject], *, kind: str = "text"
) -> str | list[JsonObject]:
    """Return a message of the user: its text, as a list only where pictures follow, as in OpenClaw."""
    assert turn.user is not None, "only such turns have one"
    return [{"type": kind, "text": turn.user}, *map(picture, turn.images)] if turn.images else turn.user


# --- lengths ------------------------------------------------------------------------------------


def fewest_tokens(request: Request) -> int:
    """Return a lower bound of the tokens of a request that the server reads completely: its words.

    No tokenizer joins two words that white space divides. Text that some templates drop is not counted:
    thinking of earlier turns, and the words next to a call (Llama 3.1). Tools are not counted either, since
    a server may shorten them.
    """
    return sum(len(text.split()) for text in texts_read(request))


def texts_read(request: Request) -> Iterator[str]:
    """Yield the texts of a request, in order, that every template shows to the model."""
    yield request.system or ""
    for turn in request.conversation:
        yield turn.user or ""
        if not turn.calls:
            yield strip_thinking(turn.text)
        yield from turn.results


def most_tokens(request: Request) -> int:
    """Return an upper bound of the tokens of a request: a token of a text has at least one byte."""
    in_texts = sum(len(text.encode("utf-8", "replace")) for text in _all_texts(request))
    n_images = sum(len(turn.images) for turn in request.conversation)
    return TEMPLATE_BYTES + in_texts + n_images * IMAGE_TOKENS


def _all_texts(request: Request) -> Iterator[str]:
    yield request.system or ""
    for tool in request.tools:
        # Some templates write the schemas over many lines.
        yield json.dumps([tool.name, tool.description, dict(tool.parameters)], indent=4)
    for turn in request.conversation:
        yield turn.user or ""
        yield turn.text
        yield from turn.results
        yield from (json.dumps([call.name, call.arguments]) for call in turn.calls)
