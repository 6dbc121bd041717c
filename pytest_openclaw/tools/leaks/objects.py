"""Written calls in JSON, or nearly JSON: bare, fenced, after a family's marker, cut off or misquoted."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any

from pytest_openclaw.tools.leaks.written_calls import Leak, parameters_of, required_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pytest_openclaw.tools.leaks.written_calls import KnownTools
    from pytest_openclaw.types.tool_calls import Tool

_NAMES = (
    "name", "tool_name", "toolName", "tool", "function_name", "function", "action", "tool_call",
    "recipient_name", "api_name", "command_name",
)  # fmt: skip
_ARGUMENTS = (
    "arguments", "parameters", "args", "input", "params", "action_input", "tool_input", "tool_args",
    "tool_arguments", "tool_parameters", "kwargs", "inputs", "actionInput", "function_args", "payload",
)  # fmt: skip
_OR = "|"
_BESIDE = frozenset(
    {"type", "id", "call_id", "tool_call_id", "thought", "reasoning", "explanation", "description", "index"}
)
_HEAD = re.compile(r"\{(?=\s{0,200}+(?:[\"'\u201c]|[A-Za-z_]\w{0,40}+\s{0,9}+:))")
_DOUBLE = re.compile(r"\"(?:[^\"\\]|\\.)*(?:\"|\Z)|[{}]", re.DOTALL)
_SINGLE = re.compile(r"\"(?:[^\"\\]|\\.)*(?:\"|\Z)|'(?:[^'\\\n]|\\.)*(?:'|$)|[{}]", re.DOTALL | re.MULTILINE)
_KEYED_NAME = re.compile(
    rf"[\"'\u201c]?\b({_OR.join(_NAMES)})[\"'\u201d]?\s{{0,20}}+:\s{{0,20}}+[\"'\u201c]([^\"'\n\u201d]{{1,100}})"
)
_KEYED_ARGUMENTS = re.compile(rf"[\"'\u201c]?\b({_OR.join(_ARGUMENTS)})[\"'\u201d]?\s{{0,20}}+:\s{{0,20}}+")
_TRAILING_COMMA = re.compile(r",(?=\s{0,200}+[}\]])")
_MARKERS = (
    (
        re.compile(
            r"<\|?(?:tool_calls?|toolcalls?|function_calls?|functioncall|tools?|tool_use)\|?>$", re.IGNORECASE
        ),
        "hermes",
    ),
    (re.compile(r"<\|python_tag\|>$"), "llama"),
    (re.compile(r"\[(?:AVAILABLE_)?TOOL_CALLS\]$"), "mistral"),
    (re.compile(r"<\|START_ACTION\|>$|Action:\s{0,9}(?:```\w{0,9})?$", re.IGNORECASE), "command"),
    (re.compile(r"\[TOOL_REQUEST\]$"), "bracket"),
    (re.compile(r"functools$|<\|action_start\|>(?:<\|plugin\|>)?$"), "phi"),
    (re.compile(r"<\|(?:message|constrain)\|>(?:json)?$"), "harmony"),
)
_ONLY_NAME = re.compile(
    r"(?:^|\n|>"
    r"|:)[ \t]*[`*\"\[]{0,3}([A-Za-z_][\w.-]{0,99}+)[`*\"\]]{0,3}[ \t:]*\s{0,9}(?:```\w{0,20}\s{0,9})?$"
)
_DEFINES = re.compile(r"\{\s*[\"']?type[\"']?\s*:\s*[\"']object")
_EMPTY = re.compile(r"(?<=\w)\{\}")
_MOST_NESTED = 6
_MOST_LISTED = 200
_LOOKBACK = 160
_HEAD_CHARS = 4000
_WORK_FACTOR = 4


def find_object_calls(text: str, known: KnownTools) -> Iterator[Leak]:
    """Yield the calls that are written as objects."""
    for empty in _EMPTY.finditer(text):
        start, end = empty.span()
        tool = known.ending(text[max(0, start - _LOOKBACK) : start])
        if tool is not None and not required_of(tool):
            yield Leak(name=tool.name, arguments="{}", form="glued", start=start, end=end)
    for start, end, closed in _objects(text):
        written = text[start:end] if closed else text[start : start + _HEAD_CHARS]
        before = text[max(0, start - _LOOKBACK) : start]
        for tool, arguments in _read(written, before, known, closed=closed):
            yield Leak(
                name=tool.name, arguments=arguments, form=_form(before), start=start, end=start + len(written)
            )


def _objects(text: str) -> Iterator[tuple[int, int, bool]]:
    """Yield start and end of the outermost objects, and whether they are closed.

    An unclosed one may contain others, so the search continues within it, up to a bound that keeps it
    linear.
    """
    position, budget = 0, _WORK_FACTOR * len(text) + 10_000
    while budget > 0 and (head := _HEAD.search(text, position)):
        start = head.start()
        end = _end_of_object(text, start)
        yield start, len(text) if end is None else end, end is not None
        budget -= (len(text) if end is None else end) - start
        position = head.end() if end is None else end


def _end_of_object(text: str, start: int) -> int | None:
    token = _SINGLE if re.match(r"\{\s{0,200}+'", text[start : start + 220]) else _DOUBLE
    depth = 0
    for match in token.finditer(text, start):
        if match[0] == "{":
            depth += 1
        elif match[0] == "}":
            depth -= 1
            if depth == 0:
                return match.end()
    return None


def _read(written: str, before: str, known: KnownTools, *, closed: bool) -> Iterator[tuple[Tool, str]]:
    value = _parsed(written) if closed else None
    if value is not None:
        found = list(_calls_in(value, known, 0))
        yield from found
        if not found and isinstance(value, dict):
            yield from _named_before(value, written, before, known)
    else:
        yield from _read_broken(written, known)


def _parsed(written: str) -> Any:
    for candidate in (written, _TRAILING_COMMA.sub("", written)):
        try:
            return json.loads(candidate, strict=False)
        except (ValueError, RecursionError):
            continue
    return None


def _calls_in(value: Any, known: KnownTools, depth: int) -> Iterator[tuple[Tool, str]]:
    if depth > _MOST_NESTED or not isinstance(value, dict | list):
        return
    if isinstance(value, dict):
        if (call := _as_call(value, known)) is not None:
            yield call
            return
        if _is_definition(value):
            return
    inner = value if isinstance(value, list) else list(value.values())
    for part in inner[:_MOST_LISTED]:
        yield from _calls_in(part, known, depth + 1)


def _as_call(value: dict[str, Any], known: KnownTools) -> tuple[Tool, str] | None:
    for key in _NAMES:
        name = value.get(key)
        if not isinstance(name, str) or (tool := known.find(name)) is None:
            continue
        given = next((argument for argument in _ARGUMENTS if argument in value and argument != key), None)
        if given is not None:
            return None if _is_definition(value) else (tool, _text(value[given]))
        rest = {other: inner for other, inner in value.items() if other != key and other not in _BESIDE}
        flat = bool(rest) and rest.keys() <= parameters_of(tool)
        if flat or (not rest and not required_of(tool)):
            return tool, _text(rest)
    return _keyed_by_tool(value, known)


def _keyed_by_tool(value: dict[str, Any], known: KnownTools) -> tuple[Tool, str] | None:
    """Read `{"read": {"path": "notes.md"}}`."""
    if len(value) != 1:
        return None
    ((name, arguments),) = value.items()
    tool = known.find(name)
    if tool is None or not isinstance(arguments, dict) or not arguments or not _fits(arguments, tool):
        return None
    return tool, _text(arguments)


def _named_before(
    value: dict[str, Any], written: str, before: str, known: KnownTools
) -> Iterator[tuple[Tool, str]]:
    """Read a tool's name that is directly before its arguments."""
    named = _ONLY_NAME.search(before)
    tool = known.find(named[1]) if named else None
    tool = tool or known.ending(before)
    if tool and value and _fits(value, tool):
        yield tool, written


def _fits(arguments: dict[str, Any], tool: Tool) -> bool:
    return required_of(tool) <= arguments.keys() <= parameters_of(tool)


def _is_definition(value: dict[str, Any]) -> bool:
    """Whether this is a tool's description, with parameters instead of arguments."""
    for key in ("parameters", "input_schema", "arguments", "inputSchema"):
        schema = value.get(key)
        if isinstance(schema, dict) and "properties" in schema and schema.get("type") == "object":
            return True
    return False


def _read_broken(written: str, known: KnownTools) -> Iterator[tuple[Tool, str]]:
    """Read malformed JSON: single quotes, comments, a missing brace, or text that is cut off."""
    for name in _KEYED_NAME.finditer(written[:_HEAD_CHARS]):
        tool = known.find(name[2])
        if tool is None:
            continue
        arguments = _KEYED_ARGUMENTS.search(written)
        if arguments and not _DEFINES.match(written[arguments.end() :][:60]):
            yield tool, written[arguments.end() :]
            return


def _form(before: str) -> str:
    marked = before.rstrip(" \t\r\n[(,")[-40:]
    for marker, form in _MARKERS:
        if marker.search(marked):
            return form
    return "json"


def _text(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
