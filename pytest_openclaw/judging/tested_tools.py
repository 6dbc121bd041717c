"""Finds OpenClaw's tools for which a cell is evidence: those that it called correctly, or failed to call."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from pytest_openclaw.tools.bridge import reached_tools, with_inner_calls
from pytest_openclaw.tools.catalogue import said_tools
from pytest_openclaw.validators.demands import demanded_calls

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pytest_openclaw.types.prompts import Prompt
    from pytest_openclaw.types.replies import Reply
    from pytest_openclaw.types.tool_calls import ToolOutcome


def tested_tools(prompt: Prompt, answer: Reply, outcome: ToolOutcome | None) -> tuple[str, ...]:
    """Return the required tools that were called if the cell succeeded, else all required ones.

    A successful cell is no evidence about an alternative that was not called. A suite's own tools do not
    count as OpenClaw's, even with the same names.

    Args:
        prompt: of the cell.
        answer: prepared, so that its calls are dispatched.
        outcome: of the cell.

    Returns:
        The offered names, sorted; empty if no tool was offered on the wire or none was required.
    """
    demanded = _demanded(prompt) if outcome else set()
    if outcome == "valid":
        called = {call.tool for call in with_inner_calls(answer.dispatched) if call.is_executed}
        demanded = {tool for tool in demanded if tool in called}
    return tuple(sorted(demanded))


def _demanded(prompt: Prompt) -> set[str]:
    wanted = demanded_calls(prompt.validator)
    if prompt.tools is None or not wanted:
        return set()
    own = {*_own_names(prompt)}
    names = {tool.name for tool in reached_tools(prompt.tools)} - own
    return {name for name in names if any(call.is_for(name) for call in wanted)}


def _own_names(prompt: Prompt) -> Iterator[str]:
    listed = said_tools(prompt.tools_spec)
    if isinstance(listed, list):
        yield from (str(entry.get("name")) for entry in listed if isinstance(entry, Mapping))
