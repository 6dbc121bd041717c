"""Prepares the arguments of a call as OpenClaw 2026.9.6 does, before and after the schema's check."""

from __future__ import annotations

import json
import math
from typing import TYPE_CHECKING, Any

from pytest_openclaw.core.text import valid_value

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pytest_openclaw.types.tool_calls import Tool

MAX_ARGUMENT_BYTES = 256_000
MAX_DEPTH = 64
"""The depth that validators, rows, reports and recursive schemas can handle."""

MAX_VALUES = 5000
"""The most values in arguments: the schema's check takes some microseconds for each."""

RENAMED = {("exec", "timeout"): "timeoutSeconds"}
SELECTORS = ("id", "toolId", "name")
"""The keys with a tool's id in a call through the bridge."""
_DISPATCHERS = ("tool_call", "tool_describe")
_MESSAGE_ALIASES = ("SendMessage", "content", "text")
_LONGEST_INTEGER = 308
_BROKEN = object()


class _Undefined:
    """Marks a key that JavaScript has without a value: it exists, and has no type."""

    def __deepcopy__(self, memo: object) -> _Undefined:
        return self


UNDEFINED = _Undefined()


def read_json(text: str) -> Any:
    """Parse a JSON text; return a special object, equal to nothing, if it is malformed.

    Numbers beyond a double stay text and are not numbers, as in the release.
    """
    try:
        value = json.loads(text, parse_int=_number, parse_float=_number, parse_constant=_refuse)
    except (ValueError, RecursionError):
        return _BROKEN
    return value if excess(value) else valid_value(value)


def excess(value: Any) -> str | None:
    """Return why rows and schemas cannot handle a value; None if they can."""
    level = [value]
    n_values = 0
    for _ in range(MAX_DEPTH):
        level = [
            inner
            for outer in level
            if isinstance(outer, dict | list)
            for inner in (outer.values() if isinstance(outer, dict) else outer)
        ]
        n_values += len(level)
        if n_values > MAX_VALUES:
            return f"more than {MAX_VALUES} values"
        if not level:
            return None
    is_deeper = any(isinstance(inner, dict | list) for inner in level)
    return f"nested more than {MAX_DEPTH} levels deep" if is_deeper else None


def prepare(tool: Tool, arguments: dict[str, Any]) -> dict[str, Any]:
    """Convert arguments in an older form to the current one, for tools that still accept them."""
    known = tool.parameters.get("properties", {})
    if tool.name == "edit" and "edits" in known:
        return _prepare_edit(arguments)
    if tool.name == "sessions_send" and "message" in known:
        return _prepare_message(arguments)
    if tool.name in _DISPATCHERS and "id" in known:
        return _prepare_selector(arguments)
    return arguments


def as_sent(value: Any) -> Any:
    """Return arguments as JavaScript shows them: keys without a value are left out, 2.0 is 2."""
    if isinstance(value, dict):
        return {name: as_sent(inner) for name, inner in value.items() if inner is not UNDEFINED}
    if isinstance(value, list):
        return [as_sent(inner) for inner in value]
    return int(value) if isinstance(value, float) and value.is_integer() else value


def unusable(tool: Tool, arguments: Mapping[str, Any]) -> str | None:
    """Return the tool's own error for arguments that the schema allows; None if it would run."""
    known = tool.parameters.get("properties", {})
    for name in arguments:
        renamed = RENAMED.get((tool.name, name))
        if renamed in known and name not in known:
            return f'{tool.name} parameter "{name}" is unsupported; use "{renamed}" instead'
    if tool.name == "exec" and arguments.get("command") == "":
        return "Provide a command to start."
    if tool.name == "edit" and arguments.get("edits") == []:
        return (
            "Missing required parameter: edits (received: path, edits=<array>)."
            " Supply correct parameters before retrying."
        )
    return None


def _prepare_edit(arguments: dict[str, Any]) -> dict[str, Any]:
    edits = arguments.get("edits", UNDEFINED)
    if isinstance(edits, str) and isinstance(held := read_json(edits), list):
        edits = held
    if isinstance(edits, list):
        edits = [_edit(edit) if isinstance(edit, dict) else edit for edit in edits]
    old, new = arguments.get("oldText"), arguments.get("newText")
    if isinstance(old, str) and isinstance(new, str):
        batch = edits if isinstance(edits, list) else []
        single = {"oldText": old, "newText": new}
        edits = batch if single in batch else [*batch, single]
    return {"path": arguments.get("path", UNDEFINED), "edits": edits}


def _edit(edit: Mapping[str, Any]) -> dict[str, Any]:
    return {name: edit.get(name, UNDEFINED) for name in ("oldText", "newText")}


def _prepare_message(arguments: dict[str, Any]) -> dict[str, Any]:
    kept = {name: value for name, value in arguments.items() if name not in _MESSAGE_ALIASES}
    texts = [arguments.get(name) for name in ("message", *_MESSAGE_ALIASES)]
    said = next((text for text in texts if isinstance(text, str) and text.strip()), None)
    return kept if said is None else {**kept, "message": said}


def _prepare_selector(arguments: dict[str, Any]) -> dict[str, Any]:
    """Move the id of a tool out of the inner arguments, if the outer ones have none."""
    nested = next((arguments[key] for key in ("args", "input") if arguments.get(key) is not None), None)
    if not isinstance(nested, dict) or any(key in arguments for key in SELECTORS):
        return arguments
    named = next((nested[key] for key in SELECTORS if nested.get(key) is not None), None)
    if not isinstance(named, str) or not named.strip():
        return arguments
    outer = {name: value for name, value in arguments.items() if name not in ("args", "input")}
    return {**outer, **nested, "id": named}


def _number(written: str) -> int | float | str:
    if written.lstrip("-").isdigit():
        return int(written) if len(written) <= _LONGEST_INTEGER else written
    value = float(written)
    return value if math.isfinite(value) else written


def _refuse(constant: str) -> None:
    raise ValueError(f"{constant} is no JSON")
