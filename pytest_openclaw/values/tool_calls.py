"""Offered tools, their calls, OpenClaw's handling of a call, and the surface of a request."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any, Literal

if TYPE_CHECKING:
    from pytest_openclaw.util.files import JsonObject


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
        parameters: a JSON Schema of type object for the arguments.
    """

    name: str
    description: str = ""
    parameters: Mapping[str, Any] = field(default_factory=lambda: {"type": "object", "properties": {}})


Effect = Literal["read", "write", "send"]
"""What a call of a suite's own tool does: it only looks, changes something, or sends something to others."""


@dataclass(frozen=True, kw_only=True)
class OwnTool(Tool):
    """A tool that a suite itself describes."""

    effect: Effect = "read"


@dataclass(frozen=True, kw_only=True)
class ToolCall:
    """One native tool call as it was on the wire; `arguments` is the raw JSON text.

    Attributes:
        unoffered: whether the request no longer offered tools, so that the call reaches none.
    """

    name: str
    arguments: str = ""
    id: str | None = None
    unoffered: bool = False


@dataclass(frozen=True, kw_only=True)
class Dispatched:
    """OpenClaw's handling of a call.

    Attributes:
        tool: the name of the offered tool that the call reaches; None if it reaches none.
        arguments: as the tool receives them, with simple types converted; None if they are not an object.
        message: the error that the model receives.
        inner: the handling of the call that it carries through the bridge, if any.
    """

    call: ToolCall
    tool: str | None = None
    arguments: Mapping[str, Any] | None = None
    problem: Problem | None = None
    message: str = ""
    notes: tuple[str, ...] = ()
    timed_out: bool = False
    inner: Dispatched | None = field(default=None, repr=False, compare=False)

    @property
    def is_executed(self) -> bool:
        """Whether the tool would run."""
        return self.problem is None

    @property
    def meant(self) -> Dispatched:
        """The call that it carries through the bridge, or itself."""
        return self.inner or self


LOOKUP_TURNS = 4
"""Further turns for finding a tool behind the bridge: a search, a description, and both again."""
SurfaceSource = Literal["captured", "substitute"]
SUBSTITUTE: SurfaceSource = "substitute"


@dataclass(frozen=True, kw_only=True)
class Surface:
    """The parts that OpenClaw adds to a question; each text may have the placeholder `<model>`.

    Attributes:
        source: captured from a release, or a substitute of the same form in our own words.
        before, after: the texts around the question, in its message.
        context: the user message that ends each request, after the turns so far.
        deferred: the tools behind the bridge.
        api: OpenClaw's name of the API with which the surface was captured.
        fields: request fields of that API, in addition to those of every request.
    """

    source: SurfaceSource
    release: str
    system: str
    before: str = ""
    after: str = ""
    context: str = ""
    tools: tuple[Tool, ...] = ()
    deferred: tuple[Tool, ...] = ()
    api: str = ""
    fields: Mapping[str, Any] = field(default_factory=dict)

    @cached_property
    def sha256(self) -> str:
        """A hash of everything that is sent."""
        sent = {**asdict(self), "source": None, "release": None}
        return hashlib.sha256(json.dumps(sent, sort_keys=True).encode()).hexdigest()

    @property
    def name(self) -> str:
        """The release and the source, for people."""
        return self.release + (" (substitute)" if self.source == SUBSTITUTE else "")


def surface_facts(surface: Surface | None) -> JsonObject | None:
    """Return the description of the surface for `config.json`; None if no target is asked on it."""
    if surface is None:
        return None
    return {
        "source": surface.source,
        "release": surface.release,
        "sha256": surface.sha256,
        "fields": dict(surface.fields),
    }
