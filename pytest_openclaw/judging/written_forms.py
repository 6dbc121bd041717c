"""Finds the calls written in a text, in the form of any model family.

This module reads tags and special tokens, which `written_calls.toml` lists, and JSON, even if malformed. If
the form is unambiguous, the name of a tool that was not offered counts too. `written_calls.py` finds calls
in the form of code, and decides whether the reply makes a call or only shows one.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

from pytest_openclaw.openclaw.claims import load_wordings
from pytest_openclaw.openclaw.dispatch import ALIASES
from pytest_openclaw.values.tool_calls import Tool

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

TEMPLATES = frozenset(
    {"hermes", "llama", "mistral", "deepseek", "kimi", "glm", "gemma", "harmony", "phi", "command"}
    | {"function-tag", "invoke", "functionary", "tool-tag", "longcat", "minimax", "openclaw", "react"}
)
"""Forms that do not occur in prose."""
NAME = r"[A-Za-z_][\w.:/-]{0,99}+"
_PREFIX = re.compile(
    r"(?:(?:default_api|functions?|tools?|api|assistant|openclaw|multi_tool_use|self|client)[./:])+",
    re.IGNORECASE,
)
_LONG_NAME_CHARS = 8
_NUMBER = re.compile(r":\d{1,4}$")
WORK_FACTOR = 4
"""The most characters that are read again in unclosed calls, as a multiple of the text's length."""


@dataclass(frozen=True, kw_only=True)
class WrittenCall:
    """A call in a text.

    Attributes:
        tool: the tool as it was offered; without parameters if no tool has the written name.
        is_known: whether a tool has the written name.
        arguments: as they were written; empty without arguments.
        form: the dialect, such as `hermes`.
        start, end: the position in the text.
        keys: in JSON, the keys of the name and the arguments.
    """

    tool: Tool
    is_known: bool
    arguments: str
    form: str
    start: int
    end: int
    keys: tuple[str, ...] = ()

    @property
    def name(self) -> str:
        """The tool's name."""
        return self.tool.name


_NO_TOOL = {"none", "null", "no_tool", "no_call", "no_function"}
"""Names that mean "no call"; small models write `{"name": "none", "arguments": {}}`."""
_NAME = re.compile(r"[A-Za-z_][\w.-]{0,99}")


class ToolNames:
    """The tools that count, found by the names that models write."""

    def __init__(self, tools: Sequence[Tool], expected: Iterable[str] = ()) -> None:
        """Set the offered tools, and further expected names."""
        self._tools = {tool.name.casefold(): tool for tool in reversed(tools)}
        for name in expected:
            if self.find(name) is None:
                self._tools[name.strip().casefold()] = Tool(name=name.strip())

    def find(self, name: str) -> Tool | None:
        """Return the tool that a written name means, or None."""
        plain = self._plain(name).casefold().removesuffix(".call")  # the form of Llama's built-in tools
        return self._tools.get(plain) or self._tools.get(ALIASES.get(plain, plain))

    def unknown(self, name: str) -> Tool | None:
        """Return a new tool for an unknown name; None if a tool has the name, or if it cannot be a name."""
        plain = self._plain(name)
        is_name = _NAME.fullmatch(plain) and plain.casefold() not in {"function", "json", *_NO_TOOL}
        return Tool(name=plain) if is_name and self.find(name) is None else None

    def named(self, name: str) -> Tool | None:
        """Return a new tool with any short text as its name; None if a tool has the name."""
        plain = " ".join(name.split())
        is_name = 0 < len(plain) <= 100 and plain.casefold() not in _NO_TOOL
        return Tool(name=plain) if is_name and self.find(name) is None else None

    def ending(self, text: str) -> Tool | None:
        """Return the tool whose name is at the end of a text, or None; the longest name counts.

        A short name counts only as a word of its own: `tools` does not end with `ls`.
        """
        for size in sorted({*map(len, self._tools)}, reverse=True):
            tool = self._tools.get(text[-size:].casefold())
            before = text[-size - 1 : -size]
            if tool and (size >= _LONG_NAME_CHARS or not (before.isalnum() or before == "_")):
                return tool
        return None

    @staticmethod
    def _plain(name: str) -> str:
        return _PREFIX.sub("", _NUMBER.sub("", name.strip().strip("`'\"*")), count=1)


def parameters_of(tool: Tool) -> frozenset[str]:
    """Return the names of a tool's parameters."""
    return frozenset(tool.parameters.get("properties", {}))


def required_of(tool: Tool) -> frozenset[str]:
    """Return the names of the required parameters."""
    return frozenset(tool.parameters.get("required", ()))


# --- Tags and special tokens ------------------------------------------------------------------------
#
# Many servers remove special tokens:
# `<|tool_call_begin|>functions.read:0<|tool_call_argument_begin|>{…}` becomes `functions.read:0{…}`.

_WORDINGS = load_wordings("written_calls", name=NAME)
_FORMS = [
    (form, pattern, closing, kind == "forms")
    for kind in ("forms", "known")
    for form, by_closing in _WORDINGS[kind].items()
    for closing, patterns in by_closing.items()
    for pattern in patterns
]
_ELEMENT = re.compile(rf"<({NAME})>\s{{0,99}}+<({NAME})>")
_CHANNEL = re.compile(r"(?<=\w)(?:commentary|analysis)?(?:json)?$")
"""The words that follow a name if a server removed the tokens between them."""
_CONTAINERS = frozenset({"parameters", "arguments", "args", "input"})
_OBJECT_NEXT = re.compile(r"\s{0,99}(?:arguments?\s?:\s{0,9})?(?:```\w{0,9}\s{0,9})?(?=\{)", re.IGNORECASE)
_MOST_MARKED = 20_000
_BEFORE_OBJECT = 80


def marked_calls(text: str, names: ToolNames) -> Iterator[WrittenCall]:
    """Yield the calls that are marked by tags or special tokens."""
    for form, pattern, closing, is_any in _FORMS:
        end = 0
        for match in pattern.finditer(text):
            known = names.find(match[1])
            name = _CHANNEL.sub("", match[1]) if form == "harmony" else match[1]
            tool = known or (names.unknown(name) if is_any else None)
            if tool and match.start() >= end:
                start, end = match.start(), _end_of_marked(text, match.end(), closing)
                yield WrittenCall(
                    tool=tool,
                    is_known=known is not None,
                    arguments=text[match.end() : end],
                    form=form,
                    start=start,
                    end=end,
                )
    yield from _elements(text, names)


def _elements(text: str, names: ToolNames) -> Iterator[WrittenCall]:
    """Yield calls like `<read><path>notes.md</path></read>`."""
    end = 0
    for match in _ELEMENT.finditer(text):
        tool = names.find(match[1])
        if tool and match.start() >= end and match[2] in parameters_of(tool) | _CONTAINERS:
            start, end = match.start(), _end_of_marked(text, match.start(2) - 1, f"</{match[1]}>")
            arguments = text[match.start(2) - 1 : end]
            yield WrittenCall(
                tool=tool, is_known=True, arguments=arguments, form="element", start=start, end=end
            )


def _end_of_marked(text: str, start: int, closing: str) -> int:
    """Return the end of marked arguments; with `}` as `closing`, the arguments are an object."""
    if not closing:
        return start
    if closing == "}":
        opening = text.find("{", start, start + _BEFORE_OBJECT)
        ended = end_of_object(text, opening, start + _MOST_MARKED) if opening >= 0 else None
        return min(len(text), start + _MOST_MARKED) if ended is None else ended
    begins = start
    if closing == "\n":  # the rest of a line or the next one, or the object that begins there
        first = _OBJECT_NEXT.match(text, start)
        if first and (ended := end_of_object(text, first.end(), start + _MOST_MARKED)):
            return ended
        near = text[start : start + _BEFORE_OBJECT]
        begins += len(near) - len(near.lstrip())
    end = text.find(closing, begins, start + _MOST_MARKED)
    return end + len(closing) if end >= 0 else min(len(text), start + _MOST_MARKED)


# --- JSON -------------------------------------------------------------------------------------------

_NAMES = (
    "name", "tool_name", "toolName", "tool", "function_name", "function", "action", "tool_call",
    "recipient_name", "api_name", "command_name",
)  # fmt: skip
_ARGUMENTS = (
    "arguments", "parameters", "args", "input", "params", "action_input", "tool_input", "tool_args",
    "tool_arguments", "tool_parameters", "kwargs", "inputs", "actionInput", "function_args", "payload",
)  # fmt: skip
_SURE = frozenset({"arguments", "parameters", "args"})
"""Next to these keys any text is a name: small models write `{"name": "Late Note", "arguments": …}`."""
_OR = "|"
_NEXT_TO_NAME = frozenset(
    {"type", "id", "call_id", "tool_call_id", "thought", "reasoning", "explanation", "description", "index"}
    | {"role", "status"}
)
_WRAPPERS = frozenset(
    {"tool_calls", "toolCalls", "tool_call", "toolCall", "tool_uses", "tool_use", "function_calls", "calls"}
    | {"function_call", "functionCall", "function", "actions", "message", "choices"}
)
"""Keys whose value is a call or a list of calls, even to an unknown tool."""
_HEAD = re.compile(r"\{(?=\s{0,200}+(?:[\"'\u201c]|[A-Za-z_]\w{0,40}+\s{0,9}+:))")
_QUOTED_OR_BRACE = re.compile(r"\"(?:[^\"\\]|\\.)*(?:\"|\Z)|[{}]", re.DOTALL)
_KEYED_NAME = re.compile(
    rf"[\"'\u201c]?\b({_OR.join(_NAMES)})[\"'\u201d]?\s{{0,20}}+:\s{{0,20}}+[\"'\u201c]([^\"'\n\u201d]{{1,100}})"
)
_KEYED_ARGUMENTS = re.compile(rf"[\"'\u201c]?\b({_OR.join(_ARGUMENTS)})[\"'\u201d]?\s{{0,20}}+:\s{{0,20}}+")
_CUT_KEY = re.compile(r"\"\s{0,99}+,\s{0,99}+\"(\w{3,20})\"?\s{0,20}+\Z")
"""After a name, the key at which a text is cut off."""
_TRAILING_COMMA = re.compile(r",(?=\s{0,200}+[}\]])")
_FINAL = re.compile(r"final(?:<\|constrain\|>\w{0,9})?<\|message\|>$|assistantfinal$")
"""The channel of gpt-oss for the answer to the user."""
_AFTER_NAME = re.compile(r"[\s:`*\"\]]*(?:```\w{0,9}\s*)?\Z")
_DEFINES = re.compile(
    r"\{\s*[\"']?type[\"']?\s*:\s*[\"']object"
    r"|\{\s*[\"']?\w+[\"']?\s*:\s*\{\s*[\"']?(?:type|description)[\"']?\s*:\s*[\"']\w"
)
_EMPTY = re.compile(r"(?<=\w)\{\}")
_MOST_NESTED = 6
_MOST_LISTED = 200
_LOOKBACK = 160
_HEAD_CHARS = 4000


class _Read(NamedTuple):
    """A call read from an object; `is_known` is false if no tool has the name."""

    tool: Tool
    arguments: str
    keys: tuple[str, ...] = ()
    is_known: bool = True


def object_calls(text: str, names: ToolNames) -> Iterator[WrittenCall]:
    """Yield the calls written as objects: bare, fenced, after a family's marker, cut off or misquoted."""
    for empty in _EMPTY.finditer(text):
        start, end = empty.span()
        tool = names.ending(text[max(0, start - _LOOKBACK) : start])
        if tool is not None and not required_of(tool):
            yield WrittenCall(tool=tool, is_known=True, arguments="{}", form="glued", start=start, end=end)
    for start, end, closed in _objects(text):
        before = text[max(0, start - _LOOKBACK) : start]
        if _FINAL.search(before.rstrip()):
            continue
        form = _form(before)
        value = _parsed(text[start:end]) if closed else None
        if value is None:
            written = text[start:end] if closed else text[start : start + _HEAD_CHARS]
            found = [*_read_broken(written, names)]
        else:
            found = [*_calls_in(value, names, 0, is_marked=form in TEMPLATES)]
            tool = None if found else names.ending(_AFTER_NAME.sub("", before, count=1))
            if tool and value and _fits(value, tool):
                found = [_Read(tool, text[start:end])]
        for read in found:
            yield WrittenCall(**read._asdict(), form=form, start=start, end=end)


def _objects(text: str) -> Iterator[tuple[int, int, bool]]:
    """Yield start and end of the outermost objects, and whether they are closed.

    An unclosed one may contain others, so the search continues within it, up to a bound that keeps it
    linear.
    """
    position, budget = 0, WORK_FACTOR * len(text) + 10_000
    while budget > 0 and (head := _HEAD.search(text, position)):
        start = head.start()
        end = end_of_object(text, start)
        yield start, len(text) if end is None else end, end is not None
        budget -= (len(text) if end is None else end) - start
        position = head.end() if end is None else end


def end_of_object(text: str, start: int, most: int | None = None) -> int | None:
    """Return the end of the object that begins at `start`; None if it is not closed before `most`."""
    depth = 0
    for match in _QUOTED_OR_BRACE.finditer(text, start, len(text) if most is None else most):
        if match[0] in ("{", "}"):
            depth += 1 if match[0] == "{" else -1
            if depth == 0:
                return match.end()
    return None


def _parsed(written: str) -> Any:
    for candidate in (written, _TRAILING_COMMA.sub("", written)):
        try:
            return json.loads(candidate, strict=False)
        except (ValueError, RecursionError):
            continue
    return None


def _calls_in(
    value: Any, names: ToolNames, depth: int, *, is_marked: bool, is_any: bool = True
) -> Iterator[_Read]:
    """Yield the calls in a parsed value; an unknown name counts only where calls are expected (`is_any`)."""
    if depth > _MOST_NESTED or not isinstance(value, dict | list):
        return
    if isinstance(value, dict):
        if is_definition(value):
            return
        if call := _as_call(value, names, is_marked=is_marked, is_any=is_any):
            yield call
            return
    parts = [("calls", part) for part in value] if isinstance(value, list) else [*value.items()]
    for key, part in parts[:_MOST_LISTED]:
        yield from _calls_in(part, names, depth + 1, is_marked=is_marked, is_any=is_any and key in _WRAPPERS)


def _as_call(value: dict[str, Any], names: ToolNames, *, is_marked: bool, is_any: bool) -> _Read | None:
    """Read a name with its arguments, a name next to parameters, or `{"read": {"path": "notes.md"}}`.

    If no tool has the name, the object must have nothing else but an object of arguments, which may be
    missing after a family's marker.
    """
    for key in _NAMES:
        name = value.get(key)
        if not isinstance(name, str):
            continue
        given = next((other for other in _ARGUMENTS if other in value and other != key), None)
        keys = (key, given) if given else (key,)
        if tool := names.find(name):
            if given:
                return _Read(tool, _text(value[given]), keys)
            rest = {
                other: inner for other, inner in value.items() if other != key and other not in _NEXT_TO_NAME
            }
            if rest.keys() <= parameters_of(tool) if rest else not required_of(tool):
                return _Read(tool, _text(rest), (key, *rest))
        elif is_any and value.keys() <= {*keys, *_NEXT_TO_NAME}:
            tool = names.unknown(name) or (names.named(name) if given in _SURE else None)
            arguments = value[given] if given else {} if is_marked else None
            arguments = _parsed(arguments) if isinstance(arguments, str) else arguments
            if tool and isinstance(arguments, dict):
                return _Read(tool, _text(arguments), keys, is_known=False)
    if len(value) != 1:
        return None
    ((name, arguments),) = value.items()
    if not isinstance(arguments, dict):
        return None
    if tool := names.find(name):
        return _Read(tool, _text(arguments), (name,)) if arguments and _fits(arguments, tool) else None
    tool = names.unknown(name) if is_any and is_marked and name not in _WRAPPERS else None
    return _Read(tool, _text(arguments), (name,), is_known=False) if tool else None


def _fits(arguments: dict[str, Any], tool: Tool) -> bool:
    return required_of(tool) <= arguments.keys() <= parameters_of(tool)


def is_definition(value: dict[str, Any]) -> bool:
    """Whether an object describes a tool: it has a schema of parameters instead of arguments."""
    for key in ("parameters", "input_schema", "arguments", "inputSchema"):
        schema = value.get(key)
        if isinstance(schema, dict) and "properties" in schema and schema.get("type") == "object":
            return True
        # Small models write the parameters themselves.
        types = [*schema.values()] if isinstance(schema, dict) and "description" in value else []
        if types and all(isinstance(one, dict) and "type" in one for one in types):
            return True
    return False


def _read_broken(written: str, names: ToolNames) -> Iterator[_Read]:
    """Read malformed JSON: single quotes, comments, a missing brace, or text that is cut off."""
    arguments = _KEYED_ARGUMENTS.search(written)
    if arguments is None and (cut := _CUT_KEY.search(written)):
        keys = (key for key in _ARGUMENTS if key.startswith(cut[1]))
        written = f'{written[: cut.start(1)]}{next(keys, "")}":'
        arguments = _KEYED_ARGUMENTS.search(written)
    if arguments is None or _DEFINES.match(written[arguments.end() :][:160]):
        return
    rest = written[arguments.end() :] or "{"  # cut off there
    for name in _KEYED_NAME.finditer(written[:_HEAD_CHARS]):
        tool = names.find(name[2])
        unknown = names.unknown(name[2]) if rest[0] == "{" and name.start() <= _BEFORE_OBJECT else None
        if found := tool or unknown:
            yield _Read(found, rest, (name[1], arguments[1]), is_known=tool is not None)
            return


def _form(before: str) -> str:
    marked = before.rstrip(" \t\r\n[(,")[-60:]
    for form, markers in _WORDINGS["markers"].items():
        if any(marker.search(marked) for marker in markers):
            return str(form)
    return "json"


def _text(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
