"""The catalogue has what OpenClaw 2026.9.6 sends; the expected facts are those observed in its requests."""

from __future__ import annotations

import json
from collections.abc import Iterator
from importlib import resources
from typing import Any

import pytest
from jsonschema import Draft202012Validator

from pytest_openclaw.openclaw.catalog import LATEST, load_catalogue
from pytest_openclaw.util.json_schema import BoundedSchema
from pytest_openclaw.values.tool_calls import Tool

pytestmark = pytest.mark.newest

CATALOGUE = load_catalogue()
FILE = resources.files("pytest_openclaw.openclaw").joinpath("catalogues", f"{LATEST}.json")
BRIDGE = ("tool_call", "tool_describe", "tool_search")
PLACES = {name: CATALOGUE.surface(name) for name in CATALOGUE.surfaces} | {
    "deferred": CATALOGUE.deferred_tools()
}
EVERY = [pytest.param(tool, id=f"{place}-{tool.name}") for place in PLACES for tool in PLACES[place]]


def _parts(schema: Any) -> Iterator[dict[str, Any]]:
    """Yield a schema and all schemas in it."""
    yield schema
    for key in ("properties", "patternProperties"):
        for part in schema.get(key, {}).values():
            yield from _parts(part)
    for key in ("items", "additionalProperties"):
        if isinstance(schema.get(key), dict):
            yield from _parts(schema[key])
    for part in schema.get("anyOf", []):
        yield from _parts(part)


def _size(tools: tuple[Tool, ...]) -> int:
    """Bytes of the tools in a request of the chat completions API."""
    sent = [
        {
            "type": "function",
            "function": {"name": tool.name, "description": tool.description, "parameters": tool.parameters},
        }
        for tool in tools
    ]
    return len(json.dumps(sent, ensure_ascii=False, separators=(",", ":")).encode())


@pytest.mark.parametrize(
    ("surface", "count"), [("direct", 11), ("tool-search", 11), ("coding", 39), ("full", 54)]
)
def test_a_surface_sends_as_many_tools_as_the_release(surface: str, count: int) -> None:
    """Every surface has the release's number of tools, each once, in the order of the wire."""
    names = [tool.name for tool in CATALOGUE.surface(surface)]

    assert len(names) == len(set(names)) == count
    assert names == sorted(names)


def test_the_surfaces_hold_each_other() -> None:
    """Smaller profiles are parts of the full one; the bridge is only in surfaces with deferred tools."""
    full = set(CATALOGUE.surfaces["full"])

    assert set(CATALOGUE.surfaces["coding"]) < full
    assert set(CATALOGUE.surfaces["direct"]) - full == set(BRIDGE)
    assert set(CATALOGUE.tools) == full | set(BRIDGE)


def test_direct_are_the_eleven_default_tools() -> None:
    """A local model is sent eight tools and the bridge by default."""
    assert CATALOGUE.surfaces["direct"] == (
        "apply_patch", "edit", "exec", "ls", "process", "read", "sessions_yield",
        "tool_call", "tool_describe", "tool_search", "write",
    )  # fmt: skip


def test_the_bridge_reaches_the_rest_of_the_coding_profile() -> None:
    """The tools sent directly and the deferred ones together are the tools of the profile `coding`."""
    sent = set(CATALOGUE.surfaces["tool-search"]) - set(BRIDGE)

    assert CATALOGUE.surfaces["tool-search"] == CATALOGUE.surfaces["direct"]
    assert len(CATALOGUE.deferred) == 31
    assert sent.isdisjoint(CATALOGUE.deferred)
    assert sent | set(CATALOGUE.deferred) == set(CATALOGUE.surfaces["coding"])


@pytest.mark.parametrize("tool", EVERY)
def test_every_schema_is_one_of_an_object(tool: Tool) -> None:
    """Parameters are a valid Draft 2020-12 schema of an object whose required keys exist."""
    Draft202012Validator.check_schema(tool.parameters)
    BoundedSchema(tool.parameters)

    assert tool.parameters["type"] == "object"
    for part in _parts(tool.parameters):
        assert set(part.get("required", ())) <= set(part.get("properties", {}))
        assert part.keys() <= {
            "type", "properties", "required", "additionalProperties", "patternProperties", "items", "anyOf",
            "enum", "const", "default", "description", "pattern", "minLength", "maxLength", "minItems",
            "maxItems", "uniqueItems", "minimum", "maximum", "exclusiveMinimum",
        }  # fmt: skip


@pytest.mark.parametrize(
    ("tool", "parameters", "required"),
    [
        ("read", "path offset limit cursor optional", "path"),
        ("write", "path content", "path content"),
        ("edit", "path edits", "path edits"),
        ("apply_patch", "input", "input"),
        ("ls", "path limit after", ""),
        ("exec", "title command workdir env yieldMs background timeoutSeconds pty elevated host ask node", "command"),
        ("process", "action sessionId data keys hex literal text bracketed eof offset limit timeout", "action"),
        ("sessions_yield", "waitFor message acknowledgment", ""),
        ("tool_search", "query limit queries", ""),
        ("tool_describe", "id", "id"),
        ("tool_call", "id args", "id"),
        ("memory_search", "query maxResults minScore corpus", "query"),
        ("memory_get", "path from lines corpus", "path"),
        ("web_fetch", "url extractMode maxChars", "url"),
        ("web_search", "query count country language freshness date_after date_before search_lang ui_lang domain_filter max_tokens max_tokens_per_page", "query"),
        ("ask_user", "questions timeoutSeconds", "questions"),
        ("conversations_turn", "conversationRef message timeoutSeconds", "conversationRef message"),
        ("sessions_send", "sessionKey label agentId message timeoutSeconds watch mode", "message"),
        ("sessions_history", "sessionKey limit offset pendingBefore messageId sessionId includeTools", "sessionKey"),
        ("subagents", "action recentMinutes taskId taskIds timeoutSeconds", ""),
        ("gateway", "action gatewayUrl gatewayToken timeoutMs note path", "action"),
        ("get_goal", "", ""),
    ],
)  # fmt: skip
def test_a_tool_takes_what_the_release_takes(tool: str, parameters: str, required: str) -> None:
    """Names of parameters, and which of them are required, are the release's."""
    schema = CATALOGUE.tools[tool].parameters

    assert set(schema["properties"]) == set(parameters.split())
    assert set(schema.get("required", ())) == set(required.split())


@pytest.mark.parametrize(
    ("tool", "parameter", "facts"),
    [
        ("process", "action", {"enum": ["list", "poll", "log", "write", "send-keys", "submit", "paste", "kill", "clear", "remove"]}),
        ("process", "timeout", {"type": "number", "minimum": 0}),
        ("exec", "host", {"enum": ["auto", "sandbox", "gateway", "node"]}),
        ("exec", "title", {"type": "string", "maxLength": 120}),
        ("exec", "env", {"type": "object", "patternProperties": {"^.*$": {"type": "string"}}}),
        ("read", "offset", {"type": "integer", "minimum": 1}),
        ("read", "limit", {"type": "number"}),
        ("read", "optional", {"type": "boolean", "const": True}),
        ("sessions_yield", "waitFor", {"type": "string", "const": "message"}),
        ("tool_search", "limit", {"anyOf": [{"type": "integer", "minimum": 1}, {"type": "null"}]}),
        ("memory_search", "corpus", {"enum": ["memory", "wiki", "all", "sessions"]}),
        ("memory_get", "corpus", {"enum": ["memory", "wiki", "all"]}),
        ("web_fetch", "extractMode", {"enum": ["markdown", "text"], "default": "markdown"}),
        ("web_search", "count", {"type": "number", "minimum": 1, "maximum": 10}),
        ("conversations_send", "conversationRef", {"pattern": "^conv_[a-f0-9]{32}$"}),
        ("subagents", "timeoutSeconds", {"type": "integer", "minimum": 0, "maximum": 60}),
        ("sessions_spawn", "context", {"enum": ["isolated", "fork"]}),
        ("gateway", "action", {"enum": ["config.get", "config.schema.lookup", "update.run"]}),
        ("canvas", "action", {"enum": ["present", "hide", "navigate"]}),
        ("secrets", "name", {"pattern": "^[A-Z][A-Z0-9_]{0,127}$", "maxLength": 128}),
        ("update_goal", "status", {"enum": ["complete", "blocked"]}),
    ],
)  # fmt: skip
def test_a_parameter_has_the_limits_of_the_release(tool: str, parameter: str, facts: dict[str, Any]) -> None:
    """Types, enums, constants and bounds are the release's."""
    schema = CATALOGUE.tools[tool].parameters["properties"][parameter]

    assert {key: schema[key] for key in facts} == facts


@pytest.mark.parametrize(
    ("tool", "is_closed"),
    [
        ("memory_get", True), ("memory_search", True), ("ask_user", True), ("theme", True), ("intent", True),
        ("read", False), ("write", False), ("exec", False), ("web_fetch", False), ("sessions_spawn", False),
    ],
)  # fmt: skip
def test_only_some_tools_refuse_further_arguments(tool: str, is_closed: bool) -> None:
    """`additionalProperties: false` is where the release has it; the file tools accept other arguments."""
    assert (CATALOGUE.tools[tool].parameters.get("additionalProperties") is False) == is_closed


@pytest.mark.parametrize(
    ("tool", "place", "parameters"),
    [
        ("gateway", "full", 6),
        ("gateway", "coding", 2),
        ("gateway", "deferred", 2),
        ("sessions_spawn", "coding", 30),
        ("sessions_spawn", "deferred", 30),
    ],
)
def test_a_tool_may_take_less_on_a_smaller_surface(tool: str, place: str, parameters: int) -> None:
    """`gateway` is sent with fewer parameters where the release does so."""
    sent = next(entry for entry in PLACES[place] if entry.name == tool)

    assert len(sent.parameters["properties"]) == parameters


def test_the_file_says_how_much_it_weighs() -> None:
    """`about` has each surface's bytes as they are sent, and the file stays small."""
    data = json.loads(FILE.read_text("utf-8"))
    said = {surface: entry["bytes"] for surface, entry in data["about"]["sizes"].items()}

    assert data["release"] == LATEST
    assert said == {surface: _size(CATALOGUE.surface(surface)) for surface in CATALOGUE.surfaces}
    assert len(FILE.read_bytes()) < 110_000
    for entry in data["about"]["sizes"].values():
        assert 0.6 < entry["bytes"] / entry["bytes_of_the_release"] < 1.1
