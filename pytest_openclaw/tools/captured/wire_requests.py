"""Reads tools, system prompt and fields of a request to a model, in the format of any of the three APIs."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from pytest_openclaw.types.tool_calls import Tool

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from pytest_openclaw.core.json_types import JsonObject

PATHS = {
    "/chat/completions": "openai-completions",
    "/responses": "openai-responses",
    "/api/chat": "ollama",
}
"""End of a request's path → OpenClaw's name of the API."""
_TALK = frozenset({"messages", "input", "instructions", "tools"})
# A key of OpenClaw's own, not of JSON Schema.
_MARKS = frozenset({"~optional"})
_DEFERRED = re.compile(r"^### Deferred Tool Schemas\n(.*?)(?=\n\n|\n#|\Z)", re.DOTALL | re.MULTILINE)
_ENTRY = re.compile(r"^- ([A-Za-z0-9_.-]+)(?: \([^)\n]*\))?(?::|$)", re.MULTILINE)


@dataclass(frozen=True, kw_only=True)
class Sent:
    """One request.

    Attributes:
        api: OpenClaw's name of its API.
        tools: those that are offered as functions, in order.
        bytes_of_tools: all tools as compact JSON, as they were sent.
        fields: every other key except the conversation; also tools that are not functions.
        system: the system prompt; empty without one.
        deferred: names of the tools that the system prompt lists behind the bridge.
        question: the texts `before` and `after` the question in its message, and the `context` after it.
    """

    api: str
    tools: tuple[Tool, ...]
    bytes_of_tools: int
    fields: JsonObject
    system: str
    deferred: tuple[str, ...]
    question: Mapping[str, str] = field(default_factory=dict)


def api_of(path: str) -> str | None:
    """Return the API of a request's path; None if it is unknown."""
    return next((api for end, api in PATHS.items() if path.endswith(end)), None)


def read_request(api: str, body: Mapping[str, Any], question: str = "") -> Sent:
    """Parse a request.

    Args:
        api: one of `PATHS`.
        body: its JSON.
        question: what OpenClaw was asked.

    Raises:
        ValueError: it does not have the format of this API.
    """
    tools = body.get("tools") or []
    if not isinstance(tools, list) or not all(isinstance(tool, dict) for tool in tools):
        raise ValueError("its tools are no list of objects")
    system = system_of(body)
    fields = {key: value for key, value in body.items() if key not in _TALK}
    others = [tool for tool in tools if tool.get("type", "function") != "function"]
    return Sent(
        api=api,
        tools=tuple(_tool(tool) for tool in tools if tool not in others),
        bytes_of_tools=len(compact(tools)),
        fields={**fields, "tools": others} if others else fields,
        system=system,
        deferred=deferred_in(system),
        question=_framed(messages_of(body), question) if question else {},
    )


def compact(value: Any) -> bytes:
    """Return a value as JSON without blanks, in UTF-8, as OpenClaw sends it."""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode()


def deferred_in(system: str) -> tuple[str, ...]:
    """Return the tools that a system prompt lists as reached through `tool_call`."""
    section = _DEFERRED.search(system)
    return tuple(dict.fromkeys(_ENTRY.findall(section[1]))) if section else ()


def _tool(entry: Mapping[str, Any]) -> Tool:
    described = entry.get("function", entry)  # Responses has no object within the object
    if not isinstance(described, dict) or not isinstance(name := described.get("name"), str) or not name:
        raise ValueError("a tool of it has no name")
    parameters = described.get("parameters")
    if not isinstance(parameters, dict):
        parameters = {"type": "object", "properties": {}}
    description = described.get("description")
    return Tool(
        name=name,
        description=description if isinstance(description, str) else "",
        parameters=_without_marks(parameters),
    )


def _without_marks(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _without_marks(part) for key, part in value.items() if key not in _MARKS}
    return [_without_marks(part) for part in value] if isinstance(value, list) else value


def system_of(body: Mapping[str, Any]) -> str:
    """Join the system texts before the conversation and at its beginning."""
    said = [instructions] if isinstance(instructions := body.get("instructions"), str) else []
    texts = (text for role, text in said_in(messages_of(body)) if role in ("system", "developer"))
    return "\n\n".join([*said, *texts])


def messages_of(body: Mapping[str, Any]) -> list[JsonObject]:
    """Return the messages of a request, or the items that take their place."""
    talk = body.get("messages") or body.get("input") or []
    return [turn for turn in talk if isinstance(turn, dict)] if isinstance(talk, list) else []


def _framed(talk: Sequence[JsonObject], question: str) -> dict[str, str]:
    """Return what OpenClaw adds to a question; in every later request the context is the last message."""
    said = [text for role, text in said_in(talk) if role == "user"]
    for place, text in enumerate(said):
        before, found, after = text.partition(question)
        if found:
            return {"before": before, "after": after, "context": "\n\n".join(said[place + 1 :])}
    return {}


def said_in(talk: Sequence[JsonObject]) -> Iterator[tuple[str, str]]:
    """Yield role and text of each message and result; the role of a result is `tool`."""
    for turn in talk:
        if turn.get("type") == "function_call_output":
            yield "tool", text_of(turn.get("output"))
        else:
            yield str(turn.get("role") or ""), text_of(turn.get("content"))


def text_of(content: Any) -> str:
    """Return the text of a message, which may be a list of parts."""
    parts = content if isinstance(content, list) else [{"text": content}]
    texts = [part.get("text") for part in parts if isinstance(part, dict)]
    return "".join(text for text in texts if isinstance(text, str))
