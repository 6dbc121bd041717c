"""OpenClaw's code mode: a model runs JavaScript with `exec` and resumes it with `wait`; code calls the tools.

As OpenClaw 2026.9.6 does with `tools.codeMode`: of its other tools only those are sent whose effect code
cannot have, all others are functions of the code. OpenClaw alone runs code; a scripted exchange cannot.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from pytest_openclaw.tools.dispatch import dispatch
from pytest_openclaw.types.tool_calls import CodeTool

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pytest_openclaw.types.replies import Reply, Turn
    from pytest_openclaw.types.tool_calls import Tool, ToolCall

CODE_MODE = "code-mode"
"""The name of its surface in a capture."""
RUN, WAIT = "exec", "wait"
SENT_BESIDE = frozenset({"sessions_yield"})
"""Tools that code cannot call, and that are sent as usual."""
_TEXT = {"type": "string"}
_RUN = {
    "type": "object",
    "properties": {"title": _TEXT, "code": _TEXT, "restartSafe": {"type": "boolean"}},
    "required": ["code"],
}
_WAIT = {"type": "object", "properties": {"runId": _TEXT}, "required": ["runId"]}


def code_mode_tools(tools: Sequence[Tool]) -> tuple[Tool, ...]:
    """Return what code mode sends in place of these tools, which its code may call."""
    reached = tuple(tool for tool in tools if tool.name not in SENT_BESIDE)
    return (
        CodeTool(name=RUN, description="Run JavaScript.", parameters=_RUN, reaches=reached),
        CodeTool(name=WAIT, description="Resume a run that waits.", parameters=_WAIT),
        *(tool for tool in tools if tool.name in SENT_BESIDE),
    )


def runs_code(call: ToolCall, tools: Sequence[Tool]) -> bool:
    """Whether a call runs code, or resumes it, and has no other effect than the calls of that code."""
    made = None if call.in_code else dispatch(call, tools)
    return bool(made and made.is_executed and any(_is_code(tool, made.tool) for tool in tools))


def without_code(reply: Reply, tools: Sequence[Tool]) -> Reply:
    """Return a reply without the calls that run code: with those that the code made, and all others."""
    if not any(isinstance(tool, CodeTool) for tool in tools):
        return reply
    return replace(
        reply,
        tool_calls=tuple(call for call in reply.tool_calls if not runs_code(call, tools)),
        turns=tuple(_without_code(turn, tools) for turn in reply.turns),
    )


def _without_code(turn: Turn, tools: Sequence[Tool]) -> Turn:
    kept = [place for place, call in enumerate(turn.calls) if not runs_code(call, tools)]
    return replace(
        turn,
        calls=tuple(turn.calls[place] for place in kept),
        results=tuple(turn.results[place] for place in kept if place < len(turn.results)),
    )


def _is_code(tool: Tool, name: str | None) -> bool:
    return isinstance(tool, CodeTool) and tool.name == name
