"""A small world for a scripted exchange: what a suite says is there, and what is there at the end.

Nothing in it is real: no file, command, message or page outside these values is ever touched.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping

DEFAULT_STEPS = 8


@dataclass(frozen=True, kw_only=True)
class Command:
    """What a shell command answers.

    Attributes:
        pattern: a regular expression that the whole command matches, surrounding blanks left out.
        output: what it prints.
        exit_code: 0 to 255.
        writes: files that it leaves, by path; None removes one.
        when: it answers only while these files are so, path → regular expression that the whole text
            matches; a file that is not there has none.
    """

    pattern: str
    output: str = ""
    exit_code: int = 0
    writes: Mapping[str, str | None] = field(default_factory=dict)
    when: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class Answer:
    """What a tool answers to some arguments; it goes before what the world would play.

    What is sent to somebody is kept as sent all the same.

    Attributes:
        matching: a JSON Schema of the arguments; an empty one takes any.
    """

    tool: str
    result: str
    matching: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class World:
    """What is there at the start.

    Attributes:
        files: path in the workspace → text.
        commands: the first whose pattern fits answers; any other command is not found.
        memory: note → text, such as `memory/2026-11-20.md`; files too, as OpenClaw's notes are, which the
            memory tools search and read.
        pages: URL → text, for the web tools.
        answers: for every other tool; the first that fits.
        steps: the most turns that a model may take.
    """

    files: Mapping[str, str] = field(default_factory=dict)
    commands: tuple[Command, ...] = ()
    memory: Mapping[str, str] = field(default_factory=dict)
    pages: Mapping[str, str] = field(default_factory=dict)
    answers: tuple[Answer, ...] = ()
    steps: int = DEFAULT_STEPS


@dataclass(frozen=True, kw_only=True)
class WorldState:
    """What is there at a moment.

    Attributes:
        files: path → text; in the workspace relative to it.
        sent: of every message the arguments, and under `tool` what it was sent by.
        ran: every command that was run, found or not.
        changed: paths whose text is another one than at the start, or gone.
        timed_out: which of the calls that were answered took more work than they may, from 0.
    """

    files: Mapping[str, str] = field(default_factory=dict)
    sent: tuple[Mapping[str, Any], ...] = ()
    ran: tuple[str, ...] = ()
    changed: tuple[str, ...] = ()
    timed_out: tuple[int, ...] = ()
