"""A small world for a scripted exchange: its definition in a suite, and its state at the end.

A world uses no real file, command, message or page.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Annotated, Any, ClassVar, Literal

from msgspec import Meta, Struct

from pytest_openclaw.util.bounded import BoundedSchema
from pytest_openclaw.util.typed import Count, Positive

Words = tuple[str, ...]
"""A simple command: a program and its arguments."""
Failure = Literal["denied", "gone", "rate_limit", "timeout"]
"""How a call can fail without an effect; a tool that is `gone` is offered, but not found."""


class ScriptedCommand(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """The result of a shell command.

    Attributes:
        pattern: a regular expression that matches the whole command without surrounding blanks.
        writes: files that it writes, path → text.
        when: path → regular expression; the command applies only while each file's whole text matches. A
            missing file never matches.
    """

    pattern: str
    output: str = ""
    exit_code: Annotated[int, Meta(ge=0, le=255)] = 0
    writes: Mapping[str, str] = {}
    removes: tuple[str, ...] = ()
    when: Mapping[str, str] = {}


class ScriptedAnswer(
    Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True, dict=True
):
    """A tool's result for some calls, which replaces the result of the played world.

    One of `result`, `error`, `fails` and `cut` is set, or `result` with `cut`. A call that fails has no
    effect; a message to others that `result` answers is recorded as sent.

    Attributes:
        error: the text of an error of the tool.
        cut: the number of characters after which the result is cut off, be it `result` or the played tool's.
        matching: a JSON Schema of the arguments; an empty one accepts any.
        after: the number of matching calls before the first that is answered.
        times: the number of calls that are answered; None means all.
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
        """Whether this answers the matching call with this number, counted from 1."""
        return number > self.after and (self.times is None or number <= self.after + self.times)


class World(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """A world at the start of a cell.

    Attributes:
        commands: the first with a matching pattern is used; other commands run in a sandboxed bash.
        memory: path of a note, such as `memory/2026-11-20.md` → text; as in OpenClaw, a note is a file that
            the memory tools search and read.
        pages: URL → text.
        answers: the first that matches a call is used.
        optional_tools: offered tools that the task does not need; the real agent may lack them.
        python: whether commands may run `python3`: CPython in a sandbox, never the machine's.
        steps: the maximum number of turns for each message of the user.
        player: the class that plays it, for `pkgutil.resolve_name`; a subclass of `worlds.playing.Playing`.
    """

    player: ClassVar[str] = "pytest_openclaw.worlds.playing:Playing"
    files: Mapping[str, str] = {}
    commands: tuple[ScriptedCommand, ...] = ()
    memory: Mapping[str, str] = {}
    pages: Mapping[str, str] = {}
    answers: tuple[ScriptedAnswer, ...] = ()
    env: Mapping[str, str] = {}
    optional_tools: tuple[str, ...] = ()
    python: bool = False
    steps: Annotated[int, Meta(ge=1, le=50)] = 8


@dataclass(frozen=True, kw_only=True)
class WorldState:
    """A world during or after a cell.

    Attributes:
        files: path → text; paths in the workspace are relative to it.
        sent: the arguments of every message, with the tool under `tool`.
        ran: every command.
        parts: for each command, the simple commands that ran in it, however nested, each as its words after
            expansion; programs that the sandbox lacks are among them. Builtins that change only the shell are
            not.
        unrecorded: indices of the commands for which `parts` may be incomplete.
        changed: paths whose text has changed since the start, or that were removed.
        start: path → text at the start.
        timed_out: indices of the answered calls that exceeded their limits of time and memory, from 0.
    """

    files: Mapping[str, str] = field(default_factory=dict)
    sent: tuple[Mapping[str, Any], ...] = ()
    ran: tuple[str, ...] = ()
    parts: tuple[tuple[Words, ...], ...] = ()
    unrecorded: tuple[int, ...] = ()
    changed: tuple[str, ...] = ()
    start: Mapping[str, str] = field(default_factory=dict)
    timed_out: tuple[int, ...] = ()
