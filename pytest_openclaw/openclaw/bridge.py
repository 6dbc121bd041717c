"""Calls that reach a tool of OpenClaw in another way than by its name in a native call.

The bridge (`tool_search`, `tool_describe`, `tool_call`) is OpenClaw's default for local models: a few tools
are sent, and all others are reached through these three.

OpenClaw also executes calls that a model writes as `[name]`, the arguments and `[END_TOOL_REQUEST]`, if the
reply contains nothing else and each name reaches an offered tool.
"""

from __future__ import annotations

import json
import re
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from pytest_openclaw.openclaw.catalog import (
    CALL,
    UNKNOWN,
    Bridge,
    load_catalogue,
    plugin_of,
    signature,
)
from pytest_openclaw.openclaw.dispatch import SELECTORS, dispatch, same_tool
from pytest_openclaw.util.text import cut
from pytest_openclaw.values.tool_calls import Dispatched, ToolCall

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from pytest_openclaw.values.tool_calls import Tool


SEARCH, DESCRIBE = "tool_search", "tool_describe"
BRIDGE = (SEARCH, DESCRIBE, CALL)
LOOKUPS = frozenset({SEARCH, DESCRIBE})
LONGEST_NAME = 200
MOST_MEANT = 3
_RECOVERY = (
    "Use tool_search to find a tool, tool_describe to inspect it, then tool_call with the exact id or name."
)


def reached_tools(offered: Sequence[Tool]) -> tuple[Tool, ...]:
    """Return the tools that can be called: those offered and those deferred."""
    return (*(tool for tool in offered if tool.name not in BRIDGE), *deferred_tools(offered))


def deferred_tools(offered: Sequence[Tool]) -> tuple[Tool, ...]:
    """Return the tools that can only be reached through the bridge."""
    names = {tool.name for tool in offered}
    captured = next((tool.reaches for tool in offered if isinstance(tool, Bridge)), None)
    deferred = load_catalogue().deferred_tools() if captured is None else captured
    return tuple(tool for tool in deferred if tool.name not in names)


def inner_call(made: Dispatched, offered: Sequence[Tool]) -> Dispatched | None:
    """Return the dispatch of the call that a `tool_call` carries; None if `made` carries none.

    Unlike in a call on the wire, the name must be exact, and types are not converted.
    """
    if made.tool != CALL or not made.is_executed or not made.arguments:
        return None
    reached = reached_tools(offered)
    by_name = {tool.name: tool for tool in reached}
    wanted, arguments = _carried(made.arguments)
    call = ToolCall(name=name_of(wanted), arguments=arguments, id=made.call.id)
    if (tool := by_name.get(call.name)) is None:
        said = unknown_id(wanted, reached)
        return replace(dispatch(call, ()), tool=None, problem="unknown_tool", message=said)
    inner = dispatch(call, (tool,), over_bridge=True)
    if inner.is_executed:
        return inner
    # The run continues despite malformed arguments.
    return replace(inner, problem="bad_arguments", message=_refusal(tool, inner))


def unknown_id(wanted: str, reached: Sequence[Tool]) -> str:
    """Return the bridge's message for an unknown id."""
    near = _like(wanted, reached)
    meant = f" Did you mean: {', '.join(near)}?" if near else ""
    return f"Unknown tool id: {cut(wanted.strip(), 200)}.{meant} {_RECOVERY}"


def reaching(made: Sequence[Dispatched], offered: Sequence[Tool]) -> tuple[Dispatched, ...]:
    """Return the calls, each with the call that it carries through the bridge."""
    return tuple(
        replace(call, inner=inner_call(call, offered)) if call.tool == CALL else call for call in made
    )


def is_lookup(made: Dispatched) -> bool:
    """Whether a call only looks up tools."""
    return made.tool in LOOKUPS


def id_of(tool: str) -> str:
    """Return a tool's id for the bridge."""
    return f"openclaw:{plugin_of(tool)}:{tool}"


def name_of(tool_id: str) -> str:
    """Return the name in an id, which may be only the name."""
    return tool_id.strip().rpartition(":")[2]


def _carried(arguments: Mapping[str, Any]) -> tuple[str, str]:
    """Return the id and the inner arguments as JSON.

    The arguments are under `args` or `input`, as an object or a text; if that is empty, next to the id.
    """
    selector = next(key for key in SELECTORS if isinstance(arguments.get(key), str))
    inner: Any = next((arguments[key] for key in ("args", "input") if arguments.get(key) is not None), {})
    if inner == {}:
        inner = {key: arguments[key] for key in arguments if key not in ("args", "input", selector)}
    return arguments[selector], inner if isinstance(inner, str) else json.dumps(inner)


def _refusal(tool: Tool, inner: Dispatched) -> str:
    wrong = "; ".join(line[4:] for line in inner.message.split("\n") if line.startswith("  - "))
    expected = signature(tool.parameters)
    shown = "" if expected == UNKNOWN else f" Expected input: {expected}."
    return f'Invalid arguments for tool "{id_of(tool.name)}": {wrong or inner.message}.{shown}'


def _like(wanted: str, tools: Sequence[Tool]) -> list[str]:
    """Return the names of tools that share words with an unknown id."""
    needle = wanted.strip().lower()[:LONGEST_NAME]
    words = _words(needle)

    def score(tool: Tool) -> int:
        name, tool_id = tool.name.lower(), id_of(tool.name).lower()
        near = 40 * (name in needle or needle in tool_id) + 40 * (name in words)
        return near + 12 * len(words & _words(f"{name} {tool_id} {tool.description}"))

    scores = sorted((-score(tool), tool.name) for tool in tools)
    return [name for points, name in scores if points][:MOST_MEANT]


def _words(text: str) -> set[str]:
    return set(re.findall("[a-z0-9]+", text.lower()))


def with_inner_calls(made: Sequence[Dispatched]) -> tuple[Dispatched, ...]:
    """Return the calls, each followed by the call that it carries through the bridge, if any."""
    return tuple(one for call in made for one in (call, call.inner) if one is not None)


NOTE = "written as [name] … [END_TOOL_REQUEST], which OpenClaw takes for a call"
MOST_BYTES = 256_000
"""Longer arguments are left as text."""
MOST_CHARS = 1_000_000
"""A longer reply is left as text."""

_OPEN = re.compile(
    r"\s*\[(?:(tool:)([A-Za-z0-9_-]{1,120})\]\s*|([A-Za-z0-9_-]{1,120})\][ \t]*\r?\n\s*)(?=\{)"
)
_CLOSE = re.compile(r"\s*(?:\[END_TOOL_REQUEST\]|\[/([A-Za-z0-9_-]{1,120})\])\s*")
_BLANKS = re.compile(r"\s*")
_DECODER = json.JSONDecoder()


def promoted_calls(text: str, tools: Sequence[Tool]) -> tuple[ToolCall, ...]:
    """Return the calls that OpenClaw reads from a reply's text; empty if the text has anything else."""
    calls: list[ToolCall] = []
    position = 0 if len(text) <= MOST_CHARS else len(text)
    while position < len(text):
        block = _block(text, position, tools)
        if block is None:
            return ()
        call, position = block
        calls.append(call)
    return tuple(calls)


def _block(text: str, start: int, tools: Sequence[Tool]) -> tuple[ToolCall, int] | None:
    """Return the call that begins at `start`, and its end."""
    opening = _OPEN.match(text, start)
    name = (opening[2] or opening[3]) if opening else ""
    if opening is None or not any(same_tool(tool.name, name) for tool in tools):
        return None
    try:
        arguments, end = _DECODER.raw_decode(text, opening.end())
    except (ValueError, RecursionError):
        return None
    written = text[opening.end() : end]
    if not isinstance(arguments, dict) or len(written.encode("utf-8", "replace")) > MOST_BYTES:
        return None
    closing = _CLOSE.match(text, end)
    if closing is not None and closing[1] not in (None, name):
        closing = None
    if closing is None and not opening[1]:
        return None
    blanks = _BLANKS.match(text, end)
    assert blanks is not None, "the pattern matches the empty text"
    return ToolCall(name=name, arguments=written), (closing or blanks).end()
