"""The bridge to tools that are not offered at once: `tool_search`, `tool_describe`, `tool_call`.

OpenClaw's default for local models: a few tools directly, all others behind these three.
"""

from __future__ import annotations

import json
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from pytest_openclaw.tools.catalogue import CALL, Bridge, load_catalogue
from pytest_openclaw.tools.dispatch import dispatch
from pytest_openclaw.types.tool_calls import Dispatched, ToolCall

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from pytest_openclaw.types.tool_calls import Tool

SEARCH, DESCRIBE = "tool_search", "tool_describe"
BRIDGE = (SEARCH, DESCRIBE, CALL)


def reached_tools(offered: Sequence[Tool]) -> tuple[Tool, ...]:
    """Return the tools that the bridge reaches: those offered, and those that the release defers."""
    return (*(tool for tool in offered if tool.name not in BRIDGE), *deferred_tools(offered))


def deferred_tools(offered: Sequence[Tool]) -> tuple[Tool, ...]:
    """Return the tools that can be reached by the bridge alone."""
    names = {tool.name for tool in offered}
    captured = next((tool.reaches for tool in offered if isinstance(tool, Bridge)), None)
    deferred = load_catalogue().deferred_tools() if captured is None else captured
    return tuple(tool for tool in deferred if tool.name not in names)


def inner_call(made: Dispatched, offered: Sequence[Tool] | None = None) -> Dispatched | None:
    """Return what becomes of the call that a `tool_call` carries; None if `made` carries none.

    Args:
        made: a call.
        offered: with it; None takes what the call itself knows, else the surface on which the bridge is.
    """
    if made.tool != CALL or not made.is_executed or not made.arguments:
        return None
    call = ToolCall(
        name=name_of(str(made.arguments.get("id", ""))), arguments=_carried(made.arguments), id=made.call.id
    )
    if offered is None and made.reached:
        return dispatch(call, made.reached)
    return dispatch(call, reached_tools(load_catalogue().surface("direct") if offered is None else offered))


def reaching(made: Sequence[Dispatched], offered: Sequence[Tool]) -> tuple[Dispatched, ...]:
    """Return calls that know what the bridge reaches where it is that of a captured catalogue."""
    if not any(isinstance(tool, Bridge) for tool in offered):
        return tuple(made)
    reached = reached_tools(offered)
    return tuple(replace(call, reached=reached) if call.tool == CALL else call for call in made)


def id_of(tool: str) -> str:
    """Return the id by which the bridge knows a tool."""
    return f"openclaw:{'memory-core' if tool.startswith('memory_') else 'core'}:{tool}"


def name_of(tool_id: str) -> str:
    """Return the name in an id; the name alone will do as well."""
    return tool_id.strip().rpartition(":")[2]


def _carried(arguments: Mapping[str, Any]) -> str:
    """The inner arguments as JSON: under `args`, or, which OpenClaw takes too, beside the id or as a text."""
    if "args" not in arguments:
        return json.dumps({name: value for name, value in arguments.items() if name != "id"})
    carried = arguments["args"]
    return carried if isinstance(carried, str) else json.dumps(carried or {})


def with_inner_calls(made: Sequence[Dispatched]) -> tuple[Dispatched, ...]:
    """Return the calls, each followed by the one that it carries over the bridge, if it does."""
    found: list[Dispatched] = []
    for call in made:
        inner = inner_call(call)
        found += [call] if inner is None else [call, inner]
    return tuple(found)
