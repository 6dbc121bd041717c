"""What OpenClaw 2026.9.6 makes of a tool call: which tool it reaches, and what the model is told if none.

Observed on the released program: names are matched without case, prefix and blanks; `bash` is `exec`;
simple types are converted before the arguments are checked; arguments that are no JSON end the whole run.
"""

from __future__ import annotations

import json
import re
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from pytest_openclaw.toolcalls import Dispatched

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from jsonschema import Draft202012Validator
    from jsonschema.exceptions import ValidationError

    from pytest_openclaw.toolcalls import Tool, ToolCall

ALIASES = {"bash": "exec"}
RENAMED = {("exec", "timeout"): "timeoutSeconds"}
_PREFIX = re.compile(r"(?:functions?|tools?)[./:]", re.IGNORECASE)
_NUMBER = re.compile(r"-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?")


def dispatch(call: ToolCall, tools: Sequence[Tool]) -> Dispatched:
    """Say what becomes of a call, given what was offered."""
    tool, notes = _find(call.name, tools)
    try:
        arguments = json.loads(call.arguments, parse_constant=_no_json) if call.arguments.strip() else {}
    except (ValueError, RecursionError):
        message = "Provider returned an incomplete or malformed tool call"
        reached = tool.name if tool else None
        return Dispatched(call=call, tool=reached, problem="malformed_json", message=message)
    if tool is None:
        message = f"Tool {call.name.strip()} not found"
        return Dispatched(
            call=call,
            arguments=arguments if isinstance(arguments, dict) else None,
            problem="unknown_tool",
            message=message,
        )
    if not isinstance(arguments, dict):
        return _refused(call, tool, None, _framed(tool, ["root: must be object"], arguments), notes)
    for name in arguments:
        if renamed := _renamed(tool, name):
            said = f'{tool.name} parameter "{name}" is unsupported; use "{renamed}" instead'
            told = json.dumps({"status": "error", "tool": tool.name, "error": said})
            return _refused(call, tool, arguments, told, notes)
    converted = _coerced(arguments, tool.parameters)
    if converted != arguments:
        notes = (*notes, "arguments were converted to the types of the schema")
    if wrong := [*_complaints(tool, converted)]:
        return _refused(call, tool, converted, _framed(tool, wrong, arguments), notes)
    return Dispatched(call=call, tool=tool.name, arguments=converted, notes=notes)


def _no_json(word: str) -> Any:
    """Refuse NaN and Infinity, which Python would read and no other program does."""
    raise ValueError(f"{word} is no JSON")


def same_tool(name: str, other: str) -> bool:
    """Whether two names reach the same tool."""
    return _plain(name) == _plain(other)


def _plain(name: str) -> str:
    bare = _PREFIX.sub("", name.strip(), count=1) if _PREFIX.match(name.strip()) else name.strip()
    bare = bare.casefold()
    return ALIASES.get(bare, bare)


def _find(name: str, tools: Sequence[Tool]) -> tuple[Tool | None, tuple[str, ...]]:
    for tool in tools:
        if tool.name == name:
            return tool, ()
    for tool in tools:
        if same_tool(tool.name, name):
            return tool, (f"{name!r} was taken for {tool.name}",)
    return None, ()


def _renamed(tool: Tool, name: str) -> str | None:
    known = tool.parameters.get("properties", {})
    renamed = RENAMED.get((tool.name, name))
    return renamed if renamed in known and name not in known else None


def _refused(
    call: ToolCall, tool: Tool, arguments: Mapping[str, Any] | None, message: str, notes: tuple[str, ...]
) -> Dispatched:
    return Dispatched(
        call=call, tool=tool.name, arguments=arguments, problem="bad_arguments", message=message, notes=notes
    )


def _framed(tool: Tool, wrong: Sequence[str], arguments: Any) -> str:
    lines = "\n".join(f"  - {complaint}" for complaint in wrong)
    received = json.dumps(arguments, ensure_ascii=False, indent=2)
    return f'Validation failed for tool "{tool.name}":\n{lines}\n\nReceived arguments:\n{received}'


def _complaints(tool: Tool, arguments: Mapping[str, Any]) -> Iterator[str]:
    for error in sorted(_validator(json.dumps(tool.parameters)).iter_errors(arguments), key=str):
        yield _worded(error)


def _worded(error: ValidationError) -> str:
    """The complaint in the words that OpenClaw's own validator has for it."""
    place = ".".join(str(part) for part in error.absolute_path)
    wanted: Any = error.validator_value
    instance: Any = error.instance
    if error.validator == "required":
        missing = next((name for name in wanted if name not in instance), "")
        return f"{_joined(place, missing)}: must have required properties {missing}"
    if error.validator == "enum":
        return f"{place or 'root'}: must be equal to one of the allowed values"
    if error.validator == "type":
        return f"{place or 'root'}: must be {wanted if isinstance(wanted, str) else ' or '.join(wanted)}"
    if error.validator == "additionalProperties":
        return f"{place or 'root'}: must not have additional properties"
    return f"{place or 'root'}: {error.message[:200]}"


def _joined(place: str, name: str) -> str:
    return f"{place}.{name}" if place else name


@lru_cache(maxsize=256)
def _validator(schema: str) -> Draft202012Validator:
    from jsonschema import Draft202012Validator

    return Draft202012Validator(json.loads(schema))


def _coerced(value: Any, schema: Mapping[str, Any]) -> Any:
    """Convert simple types to what the schema asks for, where that loses nothing."""
    if isinstance(value, dict):
        known = schema.get("properties", {})
        return {
            name: _coerced(inner, known[name]) if isinstance(known.get(name), dict) else inner
            for name, inner in value.items()
        }
    if isinstance(value, list):
        items = schema.get("items")
        return [_coerced(inner, items) for inner in value] if isinstance(items, dict) else value
    kind = schema.get("type")
    return _converted(value, kind) if isinstance(kind, str) else value


def _converted(value: Any, kind: str) -> Any:
    if kind in ("number", "integer") and isinstance(value, str) and _NUMBER.fullmatch(value.strip()):
        number = json.loads(value)
        return int(number) if kind == "integer" and float(number).is_integer() else number
    if kind == "boolean" and value in ("true", "false"):
        return value == "true"
    if kind == "string" and isinstance(value, int | float):
        return json.dumps(value)
    return value
