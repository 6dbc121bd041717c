"""The tools that a reply invokes, by native calls and in its text."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pytest_openclaw.tools.detector import detect_tools

if TYPE_CHECKING:
    from pytest_openclaw.types.replies import Reply


def invoked_tools(reply: Reply) -> tuple[str, ...]:
    """Return the names of the tools that `reply` invokes, also through the bridge, each once, ignoring case.

    Native calls are first, as the model wrote them; then those found in the text, in lower case.
    """
    from pytest_openclaw.tools.bridge import with_inner_calls  # most sessions offer no tools

    names: dict[str, str] = {}
    carried = (call.call.name for call in with_inner_calls(reply.dispatched))
    for name in (*(call.name for call in reply.tool_calls), *carried, *detect_tools(reply.text)):
        names.setdefault(name.casefold(), name)
    return tuple(names.values())
