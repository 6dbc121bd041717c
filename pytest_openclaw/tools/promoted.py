"""Written calls that OpenClaw executes nevertheless: `[name]`, the arguments, `[END_TOOL_REQUEST]`.

Some local models write their calls in this form. The reply must contain nothing else, and each name must
reach an offered tool; any other reply stays text.
"""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING

from pytest_openclaw.tools.dispatch import same_tool
from pytest_openclaw.types.tool_calls import ToolCall

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pytest_openclaw.types.tool_calls import Tool

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
    """Return the calls that OpenClaw makes from a reply's text; none unless all of it is such calls."""
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
    assert blanks is not None, "it matches nothing, too"
    return ToolCall(name=name, arguments=written), (closing or blanks).end()
