"""Offered tools, their calls, and how OpenClaw handles a call."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal

if TYPE_CHECKING:
    from collections.abc import Mapping

ToolOutcome = Literal[
    "valid",
    "forbidden_call",
    "extra_call",
    "wrong_tool",
    "bad_arguments",
    "unknown_tool",
    "malformed_json",
    "leaked_as_text",
    "claimed_not_done",
    "no_call",
    "out_of_steps",
    "unfinished",
    "restrained",
    "called_needlessly",
]
"""The outcomes of a tool cell; the last two are for prompts that must not call."""

ToolDemand = Literal["call", "restraint", "none"]
"""What a prompt requires: a call, no call, or neither."""

Problem = Literal["unknown_tool", "bad_arguments", "malformed_json"]


@dataclass(frozen=True, kw_only=True)
class Tool:
    """A tool that is offered to a model.

    Attributes:
        parameters: a JSON Schema of the arguments, an object.
    """

    name: str
    description: str = ""
    parameters: Mapping[str, Any] = field(default_factory=lambda: {"type": "object", "properties": {}})


@dataclass(frozen=True, kw_only=True)
class ToolCall:
    """One native tool call as it was on the wire; `arguments` is the raw JSON text.

    Attributes:
        unoffered: the request that it answers offered no tools any more, so that it reaches none.
    """

    name: str
    arguments: str = ""
    id: str | None = None
    unoffered: bool = False


@dataclass(frozen=True, kw_only=True)
class Dispatched:
    """OpenClaw's handling of a call.

    Attributes:
        tool: the name of the offered tool that it reaches; None if there is none.
        arguments: as the tool gets them, with simple types converted; None if they are not an object.
        problem: why it is not executed; None if it is.
        message: the error that the model receives.
        notes: deviations that were tolerated, such as a name in another case.
        timed_out: whether it exceeded the time or memory of its world.
        reached: what a call over the bridge of a captured catalogue reaches; empty: what the release's does.
    """

    call: ToolCall
    tool: str | None = None
    arguments: Mapping[str, Any] | None = None
    problem: Problem | None = None
    message: str = ""
    notes: tuple[str, ...] = ()
    timed_out: bool = False
    reached: tuple[Tool, ...] = field(default=(), repr=False, compare=False)

    @property
    def is_executed(self) -> bool:
        """Whether the tool would run."""
        return self.problem is None
