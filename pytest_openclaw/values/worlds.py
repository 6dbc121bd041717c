"""A small world for a scripted exchange: its definition in a suite, and its state at the end.

Nothing in it is real: no file, command, message or page outside these values is used.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Annotated, Any, Literal

from msgspec import Meta, Struct

from pytest_openclaw.util.bounded import BoundedSchema
from pytest_openclaw.util.typed import Count, Positive

Failure = Literal["denied", "gone", "rate_limit", "timeout"]
"""How a call can fail without an effect; a tool that is gone is offered, and no longer found."""


class Command(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """The result of a shell command.

    Attributes:
        pattern: a regular expression that matches the whole command without surrounding blanks.
        writes: files that it writes, path → text.
        when: applies only while these files match, path → regular expression for the whole text; a missing
            file never matches.
    """

    pattern: str
    output: str = ""
    exit_code: Annotated[int, Meta(ge=0, le=255)] = 0
    writes: Mapping[str, str] = {}
    removes: tuple[str, ...] = ()
    when: Mapping[str, str] = {}


class Answer(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True, dict=True):
    """A tool's result for some calls, with precedence over playing the world.

    One of `result`, `error`, `fails` and `cut` is set, or `result` with `cut`. A call that fails has no
    effect; messages to others that are answered by `result` are recorded as sent nevertheless.

    Attributes:
        error: the text of an error of the tool.
        cut: the number of characters after which the result, `result` or the played tool's, is cut off.
        matching: a JSON Schema of the arguments; an empty one accepts any.
        after: the number of matching calls that come first and that it does not answer.
        times: the number of calls that it answers; None is all.
    """

    tool: str
    result: str | None = None
    error: str | None = None
    fails: Failure | None = None
    cut: Positive | None = None
    matching: Mapping[str, Any] = {}
    after: Count = 0
    times: Positive | None = None

    @cached_property
    def schema(self) -> BoundedSchema | None:
        """The schema of matching arguments; None if any match."""
        return BoundedSchema(self.matching) if self.matching else None

    def is_for(self, number: int) -> bool:
        """Whether it answers this one of the matching calls, which count from 1."""
        return number > self.after and (self.times is None or number <= self.after + self.times)


class World(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """The state at the start.

    Attributes:
        commands: the first with a matching pattern answers; other commands run in a sandboxed bash.
        memory: note → text, such as `memory/2026-11-20.md`; also files, as in OpenClaw, which the memory
            tools search and read.
        pages: URL → text.
        answers: the first that matches a call.
        optional_tools: offered tools that the task does not need; the real agent may lack them.
        python: whether commands may run `python3`: a small embedded one, without the machine's.
        steps: the maximum of turns for each message of the user.
    """

    files: Mapping[str, str] = {}
    commands: tuple[Command, ...] = ()
    memory: Mapping[str, str] = {}
    pages: Mapping[str, str] = {}
    answers: tuple[Answer, ...] = ()
    env: Mapping[str, str] = {}
    optional_tools: tuple[str, ...] = ()
    python: bool = False
    steps: Annotated[int, Meta(ge=1, le=50)] = 8


@dataclass(frozen=True, kw_only=True)
class WorldState:
    """The state at a moment.

    Attributes:
        files: path → text; in the workspace relative to it.
        sent: the arguments of every message, with the tool under `tool`.
        ran: every command.
        parts: for each of them the simple commands that ran in it, with their words after expansion.
        changed: paths whose text has changed since the start, or that were removed.
        timed_out: indices of the answered calls that exceeded their limits of time and memory, from 0.
    """

    files: Mapping[str, str] = field(default_factory=dict)
    sent: tuple[Mapping[str, Any], ...] = ()
    ran: tuple[str, ...] = ()
    parts: tuple[tuple[str, ...], ...] = ()
    changed: tuple[str, ...] = ()
    timed_out: tuple[int, ...] = ()
