"""Tools as they are offered, calls as they are made, and what becomes of them."""

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
"""How a tool cell ends; the last two are for prompts that must not call."""

ToolDemand = Literal["call", "restraint", "none"]
"""What a prompt wants of tools: that one is called, that none is, or nothing."""

Problem = Literal["unknown_tool", "bad_arguments", "malformed_json"]


@dataclass(frozen=True, kw_only=True)
class Tool:
    """A tool as a model is offered it.

    Attributes:
        parameters: a JSON Schema of the arguments, an object.
    """

    name: str
    description: str = ""
    parameters: Mapping[str, Any] = field(default_factory=lambda: {"type": "object", "properties": {}})


@dataclass(frozen=True, kw_only=True)
class ToolCall:
    """One native tool call as it was on the wire; `arguments` is the raw JSON text."""

    name: str
    arguments: str = ""
    id: str | None = None


@dataclass(frozen=True, kw_only=True)
class Dispatched:
    """What OpenClaw would make of a call.

    Attributes:
        tool: the offered tool that it reaches, by the name that was offered; None if there is none.
        arguments: as the tool would get them, simple types coerced; None if they are no object.
        problem: why it is not executed; None if it is.
        message: what the model receives then.
        notes: what was forgiven, such as a name in another case.
        timed_out: it took more work than the world of its prompt plays.
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
