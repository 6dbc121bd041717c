"""Finds tool calls in replies, reads tool catalogs, plays scripted worlds."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pytest_openclaw.tools.detector import detect_tools

if TYPE_CHECKING:
    from pytest_openclaw.types.replies import Reply

__all__ = ["detect_tools", "invoked_tools"]


def invoked_tools(reply: Reply) -> tuple[str, ...]:
    """Return the names of the tools that `reply` invokes, each once, ignoring case.

    Native calls come first, spelled as the model spelled them; then those found in the text, in lower case.
    """
    names: dict[str, str] = {}
    for name in (*(call.name for call in reply.tool_calls), *detect_tools(reply.text)):
        names.setdefault(name.casefold(), name)
    return tuple(names.values())
