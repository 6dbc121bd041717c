"""Reads the arguments of a written call, to judge it as if it had been made."""

from __future__ import annotations

import ast
import json
import re
from typing import TYPE_CHECKING, Any

from pytest_openclaw.judging.written_forms import NAME, end_of_object, parameters_of
from pytest_openclaw.types.tool_calls import ToolCall

if TYPE_CHECKING:
    from pytest_openclaw.judging.written_forms import WrittenCall
    from pytest_openclaw.types.tool_calls import Tool

_LEAD = re.compile(r"(?:<[|｜][^<>|｜]{1,40}[|｜]>|[^<{(])*")
_PARAMETER = re.compile(
    rf"<(?:[|｜]DSML[|｜] ?|[\w.]{{1,40}}:)?parameter(?:\s?=|\s+name=)\s?[\"']?({NAME})[\"']?[^<>]{{0,200}}>"
)
_ARGUMENT_KEY = re.compile(
    rf"<(?:\w{{1,40}}_)?arg_key>\s{{0,9}}({NAME})\s{{0,9}}</(?:\w{{1,40}}_)?arg_key>\s{{0,99}}<(?:\w{{1,40}}_)?arg_value>"
)
_TAGGED = (
    (
        _PARAMETER,
        re.compile(
            r"</(?:[|｜]DSML[|｜] ?|[\w.]{1,40}:)?parameter>"
            r"|(?=\n<parameter=)|(?=\s</function>)|(?=</invoke>)"
        ),
    ),
    (_ARGUMENT_KEY, re.compile(r"</(?:\w{1,40}_)?arg_value>|(?=</tool_call>)")),
    (
        re.compile(rf"<\|open\|>argument key=\"({NAME})\"[^<>]{{0,99}}<\|sep\|>"),
        re.compile(r"<\|close\|>argument<\|sep\|>"),
    ),
)
_ATTRIBUTE = re.compile(r"\s(\w{1,40})=\"([^\"<>]{0,500})\"")
_CHILD = re.compile(r"<([A-Za-z_][\w.-]{0,99})>")
_CONTAINERS = frozenset({"parameters", "arguments", "args", "input", "params", "action_input", "tool_input"})
_QUOTED = re.compile(r"(<escape>|<\|\"\|>)(.*?)\1", re.DOTALL)
_BARE_KEY = re.compile(
    r"\"(?:[^\"\\]|\\.)*\"|'(?:[^'\\]|\\.)*'|([{,]\s*)([A-Za-z_][\w-]*)(?=\s*:)", re.DOTALL
)
_OPTION = re.compile(r"--([\w-]{1,64})\s+(\"(?:[^\"\\]|\\.)*\"|[^\s\"]+)")
_WORDS = {"true": True, "false": False, "null": None, "True": True, "False": False, "None": None}
_UNREAD = object()


def as_call(written: WrittenCall) -> ToolCall:
    """Return a written call as the native one that a server's parser would make of it."""
    return ToolCall(name=written.name, arguments=_arguments_of(written))


def _arguments_of(written: WrittenCall) -> str:
    """Return the arguments as JSON; as they are written, if they cannot be read."""
    value = _value_of(written.arguments, written.tool, written.form)
    return json.dumps(value, ensure_ascii=False) if isinstance(value, dict) else written.arguments


def _value_of(text: str, tool: Tool, form: str) -> Any:
    if form == "code":
        return _called_with(text, tool)
    if form == "kimi" and "{" not in text[:1] and _TAGGED[-1][0].search(text):
        return _tagged(text, tool, {})
    lead = _LEAD.match(text)
    begins = lead.end() if lead else 0
    first = text[begins : begins + 1]
    if first == "{":
        return _object(text[begins:])
    if first == "(":
        return _called_with(text[begins + 1 :].rstrip().removesuffix("]").rstrip().removesuffix(")"), tool)
    attributes = dict(_ATTRIBUTE.findall(text[: text.find(">") + 1])) if form == "element" else {}
    if first == "<" or attributes:
        return _tagged(text, tool, attributes)
    return _plain_text(text, tool)


def _object(text: str) -> Any:
    """Return the object that begins a text, also if it is nearly JSON."""
    end = end_of_object(text, 0)
    written = text[:end]
    if end is None:
        return _UNREAD
    quoted = _QUOTED.sub(lambda found: json.dumps(found[2], ensure_ascii=False), written)
    keyed = _BARE_KEY.sub(lambda found: f'{found[1]}"{found[2]}"' if found[2] else found[0], quoted)
    for candidate in (written, re.sub(r",(?=\s*[}\]])", "", keyed)):
        try:
            value = json.loads(candidate, strict=False)
        except (ValueError, RecursionError):
            continue
        if isinstance(value, dict):
            return value
    if options := dict(_OPTION.findall(written)):
        return {name: _json_or_text(value) for name, value in options.items()}
    try:
        return ast.literal_eval(keyed)
    except (ValueError, SyntaxError, RecursionError, MemoryError):
        return _UNREAD


def _called_with(text: str, tool: Tool) -> Any:
    """Return the arguments of code: by keyword, by position, or one object."""
    if text.lstrip().startswith("{"):
        return _object(text.lstrip())
    try:
        call = ast.parse(f"f({text.strip()})", mode="eval").body
        if not isinstance(call, ast.Call):
            return _UNREAD
        by_position = [*(name for name in tool.parameters.get("required", ())), *sorted(parameters_of(tool))]
        places = [*dict.fromkeys(by_position)]
        given = (
            dict(zip(places, map(_literal, call.args), strict=False)) if len(call.args) <= len(places) else {}
        )
        return given | {one.arg: _literal(one.value) for one in call.keywords if one.arg}
    except (ValueError, SyntaxError, RecursionError, MemoryError):
        return _UNREAD


def _literal(node: ast.expr) -> Any:
    if isinstance(node, ast.Name) and node.id in _WORDS:
        return _WORDS[node.id]
    return ast.literal_eval(node)


def _tagged(text: str, tool: Tool, attributes: dict[str, str]) -> Any:
    """Return arguments that have a tag each; an unclosed one makes all unreadable."""
    for opening, closing in _TAGGED:
        if opening.search(text):
            return _typed(_between(text, opening, closing), tool)
    begins = text.find("{")
    if "arg_key>" in text:  # without a value
        return _object(text[begins:]) if begins >= 0 else _UNREAD
    found = _between(text, _CHILD)
    if found or attributes:
        return _typed({**attributes, **(found or {})}, tool)
    return _object(text[begins:]) if begins >= 0 else {}


def _between(
    text: str, opening: re.Pattern[str], closing: re.Pattern[str] | None = None
) -> dict[str, str] | None:
    """Return texts by name, from a tag to its end, by default `</name>`; None if one has no end."""
    found: dict[str, str] = {}
    position = 0
    while match := opening.search(text, position):
        if opening is _CHILD and match[1] in _CONTAINERS:
            position = match.end()
            continue
        end = closing or re.compile(f"</{re.escape(match[1])}>")
        ended = end.search(text, match.end())
        if ended is None:
            return None
        found[match[1]] = text[match.end() : ended.start()]
        position = ended.end()
    return found


def _typed(found: dict[str, str] | None, tool: Tool) -> Any:
    """Return texts as values of the types in a tool's schema."""
    if found is None:
        return _UNREAD
    schemas = tool.parameters.get("properties", {})
    values: dict[str, Any] = {}
    for name, text in found.items():
        schema = schemas.get(name)
        is_text = isinstance(schema, dict) and schema.get("type") == "string"
        plain = text[1:].removesuffix("\n") if text.startswith("\n") else text
        values[name] = plain if is_text else _json_or_text(plain)
    return values


def _json_or_text(text: str) -> Any:
    if text.strip() in _WORDS:
        return _WORDS[text.strip()]
    try:
        return json.loads(text, strict=False)
    except (ValueError, RecursionError):
        return text


def _plain_text(text: str, tool: Tool) -> Any:
    """Return a text as the only argument that a tool requires: `[tool: exec] df -h`."""
    plain = text.strip()
    if not plain.strip("]`)"):
        return {}
    required = tool.parameters.get("required", ())
    return {required[0]: plain} if len(required) == 1 else _UNREAD
