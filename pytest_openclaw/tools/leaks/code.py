"""Written calls in the form of code: `read(path="notes.md")`, `[read(path="notes.md")]`, `read({…})`."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from pytest_openclaw.core.text import atomic
from pytest_openclaw.tools.leaks.written_calls import Leak, parameters_of, required_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pytest_openclaw.tools.leaks.written_calls import KnownTools
    from pytest_openclaw.types.tool_calls import Tool

_CALL = re.compile(r"(?<![\w.\-/$\\])((?:[A-Za-z_]\w{0,40}+\.){0,3}[A-Za-z_][\w-]{0,63}+)\(")
_TOKEN = re.compile(
    r"\"(?:[^\"\\]|\\.)*(?:\"|\Z)|'(?:[^'\\\n]|\\.)*(?:'|$)|[()]",
    re.DOTALL | re.MULTILINE,
)
_BEFORE = re.compile(
    r"^[ \t]*+"
    + atomic(r"(?:(?:[-*]|\d{1,3}[.)]|>>>|<\w{1,40}>|<\|[\w]{1,40}\|>|\[TOOL_CALLS\])[ \t]*+)*")
    + atomic(
        r"(?:(?:print|await|return|result|call|Calling|Call|Action)[ \t]*+[:(]?[ \t]*+"
        r"|[A-Za-z_]\w{0,40}[ \t]*+=[ \t]*+)*"
    )
    + r"[`\[({0,4}[ \t]*+(?:await[ \t]+)?$"
)
_AFTER = re.compile(r"^[\s)\]`;,.]*+(?:$|#|//|</?\w|<\||\w[\w.]{0,60}\()")
_KEYWORD = re.compile(r"\s*([A-Za-z_]\w{0,40})\s*=(?!=)")
_OBJECT = re.compile(r"\s*\{\s*[\"']?([A-Za-z_]\w{0,40})[\"']?\s*:")
_POSITIONAL = re.compile(r"\s*(?:[frb]?[\"'])")
_FENCE = re.compile(r"^[ \t]*(?:>[ \t]*)?(```+|~~~+)[ \t]*([\w+-]*)[^\n`]*$", re.MULTILINE)
_SHELL = frozenset({"bash", "sh", "shell", "zsh", "console", "powershell", "cmd", "terminal", "diff", "sql"})
_TOOL_CODE = frozenset({"tool_code", "tool_call", "tool_calls", "tool", "tools", "tool_use", "function_call"})
_PROGRAM = re.compile(
    r"^[ \t]*(?:def|import|from|class|function|const|let|var|async|with|for|while|if|public|#include)\b",
    re.MULTILINE,
)
_MOST_ARGUMENTS = 200_000
_WORK_FACTOR = 4


def find_code_calls(text: str, known: KnownTools) -> Iterator[Leak]:
    """Yield the calls that are on a line of their own, or in a list of calls."""
    blocks = _Blocks(text)
    budget = _WORK_FACTOR * len(text) + 10_000
    after_last = 0
    for match in _CALL.finditer(text):
        tool = known.find(match[1])
        if tool is None or budget <= 0 or match.start() < after_last:
            continue
        end = _end_of_call(text, match.end() - 1)
        budget -= end - match.start()
        arguments = text[match.end() : end].removesuffix(")")
        if not _is_alone(text, match.start(), end, after_last):
            continue
        tag, body = blocks.at(match.start())
        if _is_call(tool, arguments, tag, body):
            after_last = end
            yield Leak(name=tool.name, arguments=arguments, form="code", start=match.start(), end=end)


def _end_of_call(text: str, opening: int) -> int:
    depth = 0
    limit = min(len(text), opening + _MOST_ARGUMENTS)
    for match in _TOKEN.finditer(text, opening, limit):
        if match[0] == "(":
            depth += 1
        elif match[0] == ")":
            depth -= 1
            if depth == 0:
                return match.end()
    return limit


def _is_alone(text: str, start: int, end: int, after_last: int) -> bool:
    line = text.rfind("\n", max(0, start - 300), start) + 1 or max(0, start - 300)
    before = text[max(line, min(after_last, start)) : start]
    if after_last > line:
        before = before.lstrip(" \t,;)]")
    newline = text.find("\n", end, end + 300)
    after = text[end : newline if newline >= 0 else end + 300]
    return bool(_BEFORE.match(before) and _AFTER.match(after))


def _is_call(tool: Tool, arguments: str, tag: str | None, body: str) -> bool:
    if tag in _SHELL or (tag is not None and tag not in _TOOL_CODE and _PROGRAM.search(body)):
        return False
    if not arguments.strip():
        return not required_of(tool)
    named = _KEYWORD.match(arguments) or _OBJECT.match(arguments)
    if named:
        return not parameters_of(tool) or named[1] in parameters_of(tool) or tag in _TOOL_CODE
    return bool(_POSITIONAL.match(arguments)) and tag not in ("python", "py", "javascript", "js", "ts")


class _Blocks:
    """The fenced blocks of a text, looked up in order."""

    def __init__(self, text: str) -> None:
        self._blocks: list[tuple[int, int, str]] = []
        self._text = text
        self._next = 0
        opened: re.Match[str] | None = None
        for fence in _FENCE.finditer(text):
            if opened is None:
                opened = fence
            elif fence[1].startswith(opened[1]) and not fence[2]:
                self._blocks.append((opened.end(), fence.start(), opened[2].lower()))
                opened = None
        if opened is not None:
            self._blocks.append((opened.end(), len(text), opened[2].lower()))

    def at(self, place: int) -> tuple[str | None, str]:
        """Return tag and body of the block at a place, which must not be before the previous place."""
        while self._next < len(self._blocks) and self._blocks[self._next][1] <= place:
            self._next += 1
        if self._next < len(self._blocks) and self._blocks[self._next][0] <= place:
            start, end, tag = self._blocks[self._next]
            return tag, self._text[start : min(end, start + 5000)]
        return None, ""
