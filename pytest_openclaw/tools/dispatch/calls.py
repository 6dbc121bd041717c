"""Dispatches a tool call as OpenClaw 2026.9.6 does: the tool that it reaches, or the error for the model.

Observed on the released program, over the chat completions API: names need not be exact (`names.py`),
simple types are converted (`coercion.py`) before the arguments are checked (`complaints.py`). If
arguments are not a JSON object, or are empty, no call of the turn is executed; it may end the whole run
(`recovery.py`).
"""

from __future__ import annotations

import json
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from pytest_openclaw.core.errors import OpenClawError
from pytest_openclaw.core.text import valid_text
from pytest_openclaw.tools.dispatch.arguments import (
    MAX_ARGUMENT_BYTES,
    as_sent,
    excess,
    prepare,
    read_json,
    unusable,
)
from pytest_openclaw.tools.dispatch.coercion import coerce
from pytest_openclaw.tools.dispatch.complaints import error_text, in_order, worded, worded_by_bridge
from pytest_openclaw.tools.dispatch.names import find_name, is_repeated
from pytest_openclaw.types.tool_calls import Dispatched

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from pytest_openclaw.core.json_schema import BoundedSchema
    from pytest_openclaw.types.tool_calls import Tool, ToolCall

CHECK_STEPS = 50_000
"""The most keywords of a schema that are checked."""
PATTERNS_S = 0.25
"""Seconds for the patterns of a schema, whose steps cannot be counted."""
MAX_SHOWN_CHARS = 16_000
MAX_ERRORS = 256
"""Several violations may form one complaint; the release sends eight complaints."""
_MALFORMED = "Provider returned an incomplete or malformed tool call"
_TOO_LONG = "Exceeded tool-call argument buffer limit"


def dispatch(call: ToolCall, tools: Sequence[Tool], *, over_bridge: bool = False) -> Dispatched:
    """Dispatch a call to the offered tools, in bounded time for any call.

    Args:
        call: the call.
        tools: the offered ones.
        over_bridge: whether the bridge carries it, which converts nothing and has other words for errors.

    Raises:
        OpenClawError: a tool's schema cannot be used.
    """
    tools = () if call.unoffered else tools
    tool = _reached(call.name, tools)
    name = tool.name if tool else None
    shortest = call.arguments[: MAX_ARGUMENT_BYTES + 1]  # each of these is a byte or more
    if len(shortest.encode("utf-8", "surrogatepass")) > MAX_ARGUMENT_BYTES:
        return Dispatched(call=call, tool=name, problem="malformed_json", message=_TOO_LONG)
    arguments = read_json(call.arguments)
    if not isinstance(arguments, dict) or not call.name.strip():
        return Dispatched(call=call, tool=name, problem="malformed_json", message=_MALFORMED)
    if tool is None:
        message = f"Tool {valid_text(call.name.strip()[:200])} not found"
        kept = None if excess(arguments) else arguments
        return Dispatched(call=call, arguments=kept, problem="unknown_tool", message=message)
    notes = () if call.name == tool.name else (f"{call.name!r} was taken for {tool.name}",)
    if too_much := excess(arguments):
        message = _framed(tool, [f"root: {too_much}"], "")
        return Dispatched(call=call, tool=name, problem="bad_arguments", message=message, notes=notes)
    return _checked(call, tool, arguments, notes, over_bridge=over_bridge)


def is_forgotten(made: Dispatched) -> bool:
    """Whether a call and its error are not sent to the model again, because no tool has such a name."""
    return made.problem == "unknown_tool" and not is_repeated(made.call.name)


def _checked(
    call: ToolCall, tool: Tool, arguments: dict[str, Any], notes: tuple[str, ...], *, over_bridge: bool
) -> Dispatched:
    prepared = arguments if over_bridge else prepare(tool, arguments)
    if not _same(as_sent(prepared), arguments):
        notes = (*notes, f"arguments were put into the form that {tool.name} takes")
    checker = _checker(tool.name, json.dumps(tool.parameters))
    try:
        converted, wrong = checker.check(prepared, over_bridge=over_bridge)
    except OpenClawError:
        converted, wrong = prepared, ["root: cannot be checked in bounded time"]
        notes = (*notes, f"the arguments could not be checked within {CHECK_STEPS} steps")
    if not _same(as_sent(converted), as_sent(prepared)):
        notes = (*notes, "arguments were converted to the types of the schema")
    given = as_sent(converted)
    if wrong:
        message = _framed(tool, wrong, as_sent(prepared))
    elif said := unusable(tool, given):
        message = error_text(tool.name, said)
    else:
        return Dispatched(call=call, tool=tool.name, arguments=given, notes=notes)
    return Dispatched(
        call=call, tool=tool.name, arguments=given, problem="bad_arguments", message=message, notes=notes
    )


def _same(value: Any, other: Any) -> bool:
    """Whether two values are the same JSON; in Python alone, 0 equals False."""
    return json.dumps(value, sort_keys=True) == json.dumps(as_sent(other), sort_keys=True)


def _reached(name: str, tools: Sequence[Tool]) -> Tool | None:
    by_name = {tool.name: tool for tool in tools}
    found = find_name(name, by_name)
    return by_name[found] if found else None


def _framed(tool: Tool, wrong: Sequence[str], arguments: Any) -> str:
    lines = "\n".join(f"  - {complaint}" for complaint in wrong)
    received = json.dumps(arguments, ensure_ascii=False, indent=2)
    if len(received) > MAX_SHOWN_CHARS:
        received = f"{received[:MAX_SHOWN_CHARS]}\n… (cut)"
    return f'Validation failed for tool "{tool.name}":\n{lines}\n\nReceived arguments:\n{received}'


class _Checker:
    """Converts and checks the arguments of one tool."""

    def __init__(self, parameters: Any) -> None:
        self._schema = in_order(parameters)
        self._parts: dict[int, BoundedSchema | None] = {}
        self._whole = _bounded(self._schema)

    def check(self, arguments: Mapping[str, Any], *, over_bridge: bool) -> tuple[Any, list[str]]:
        """Return the arguments as the tool would get them, and their errors.

        Raises:
            OpenClawError: it cannot be decided in time.
        """
        from pytest_openclaw.core.deadline import within
        from pytest_openclaw.core.json_schema import within_steps

        with within(PATTERNS_S), within_steps(CHECK_STEPS):
            converted = arguments if over_bridge else coerce(arguments, self._schema, self._fits)
            if too_much := excess(converted):
                return arguments, [f"root: {too_much}"]
            errors = self._whole.errors(converted, limit=MAX_ERRORS)
            return converted, worded_by_bridge(errors) if over_bridge else worded(errors)

    def _fits(self, part: Mapping[str, Any], value: Any) -> bool:
        if id(part) not in self._parts:
            try:
                self._parts[id(part)] = _bounded(part)
            except ValueError:
                # such as a $ref to the whole; the release does not convert there either
                self._parts[id(part)] = None
        schema = self._parts[id(part)]
        return schema is not None and schema.violation(value) is None


@lru_cache(maxsize=256)
def _checker(name: str, parameters: str) -> _Checker:
    try:
        return _Checker(json.loads(parameters))
    except ValueError as error:
        raise OpenClawError(f"tool {name}: parameters {error}") from error


def _bounded(schema: Mapping[str, Any]) -> BoundedSchema:
    from pytest_openclaw.core.json_schema import BoundedSchema

    return BoundedSchema(schema)
