"""A small world for a scripted exchange: its definition in a suite, and its state at the end.

Nothing in it is real: no file, command, message or page outside these values is used.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

DEFAULT_STEPS = 8

Failure = Literal["denied", "gone", "rate_limit", "timeout"]
"""How a call can fail without an effect; a tool that is gone is offered, and no longer found."""


@dataclass(frozen=True, kw_only=True)
class Command:
    """The result of a shell command.

    Attributes:
        pattern: a regular expression that matches the whole command without surrounding blanks.
        output: of the command.
        exit_code: 0 to 255.
        writes: files that it writes, by path; None removes one.
        when: applies only while these files match, path → regular expression for the whole text; a missing
            file never matches.
    """

    pattern: str
    output: str = ""
    exit_code: int = 0
    writes: Mapping[str, str | None] = field(default_factory=dict)
    when: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class Answer:
    """A tool's result for some calls, with precedence over playing the world.

    One of `result`, `error`, `fails` and `cut` is set, or `result` with `cut`. A call that fails has no
    effect; messages to others that are answered by `result` are recorded as sent nevertheless.

    Attributes:
        result: the whole result.
        error: the text of an error of the tool.
        fails: a failure in OpenClaw's form.
        cut: the number of characters after which the result is cut off, `result` or that of the played tool.
        matching: a JSON Schema of the arguments; an empty one accepts any.
        after: the number of matching calls that come first and that it does not answer.
        times: the number of calls that it answers; None is all.
    """

    tool: str
    result: str | None = None
    error: str | None = None
    fails: Failure | None = None
    cut: int | None = None
    matching: Mapping[str, Any] = field(default_factory=dict)
    after: int = 0
    times: int | None = None

    def is_for(self, number: int) -> bool:
        """Whether it answers this one of the matching calls, which count from 1."""
        return number > self.after and (self.times is None or number <= self.after + self.times)


@dataclass(frozen=True, kw_only=True)
class World:
    """The state at the start.

    Attributes:
        files: path in the workspace → text.
        commands: the first with a matching pattern answers; other commands run in a sandboxed bash.
        memory: note → text, such as `memory/2026-11-20.md`; also files, as in OpenClaw, which the memory
            tools search and read.
        pages: URL → text, for the web tools.
        answers: for every other tool; the first that matches.
        env: environment variables of commands, by name.
        python: whether commands may run `python3`: a small embedded one, without the machine's.
        steps: the maximum of turns for each message of the user.
    """

    files: Mapping[str, str] = field(default_factory=dict)
    commands: tuple[Command, ...] = ()
    memory: Mapping[str, str] = field(default_factory=dict)
    pages: Mapping[str, str] = field(default_factory=dict)
    answers: tuple[Answer, ...] = ()
    env: Mapping[str, str] = field(default_factory=dict)
    python: bool = False
    steps: int = DEFAULT_STEPS


def most_turns(world: World | None, n_messages: int) -> int:
    """Return the most turns of a model in an exchange with so many messages of the user.

    Without a world, as in a conversation without tools, each message has one turn.
    """
    return n_messages * (world.steps if world else 1)


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
