"""Reads a prompt's `world`."""

from __future__ import annotations

import re
from typing import Annotated, Any

from msgspec import Meta, Struct

from pytest_openclaw.openclaw.paths import place_of
from pytest_openclaw.suites.wording import Key
from pytest_openclaw.util.bounded_regex import compile_pattern
from pytest_openclaw.util.json_schema import BoundedSchema
from pytest_openclaw.util.typed import Count, Positive, shown
from pytest_openclaw.values.worlds import DEFAULT_STEPS, Answer, Command, Failure, World

MOST_STEPS = 50
_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


def _check_paths(*tables: dict[str, Any]) -> None:
    for path in (path for table in tables for path in table):
        try:
            place = place_of(path)
        except ValueError as error:
            raise ValueError(f"has the path {shown(path)}: {error}. Write a shorter name.") from None
        if not place or path.endswith("/"):
            raise ValueError(f"has the path {shown(path)}, which is a folder. Write the name of a file.")


class CommandSpec(Struct, forbid_unknown_fields=True):
    """A command as a suite has it; see `Command`."""

    pattern: str
    output: str = ""
    exit_code: Annotated[int, Meta(ge=0, le=255)] = 0
    writes: dict[str, str | None] = {}
    removes: list[str] = []
    when: dict[str, str] = {}

    def __post_init__(self) -> None:
        self.writes |= dict.fromkeys(self.removes)
        _check_paths(self.writes, self.when)
        for pattern in (self.pattern, *self.when.values()):
            compile_pattern(pattern)


class AnswerSpec(Struct, forbid_unknown_fields=True):
    """An answer as a suite has it; see `Answer`. Null is the same as a missing key."""

    tool: str
    result: str | None = None
    error: str | None = None
    fails: Failure | None = None
    cut: Positive | None = None
    matching: dict[str, Any] = {}
    after: Count | None = None
    times: Positive | None = None

    def __post_init__(self) -> None:
        given = [key for key in ("result", "error", "fails", "cut") if getattr(self, key) is not None]
        if len(given) != 1 and given != ["result", "cut"]:
            raise ValueError(
                f"has {' and '.join(given) or 'no result'}. Write one of result, error, fails, cut for each"
                " answer, or result with cut."
            )
        try:
            BoundedSchema(self.matching)
        except ValueError as error:
            raise ValueError(f"has matching that {error}") from None


class WorldSpec(Struct, forbid_unknown_fields=True):
    """A world as a suite has it; see `World`."""

    files: dict[str, str] = {}
    commands: list[CommandSpec] = []
    memory: dict[str, str] = {}
    pages: dict[str, str] = {}
    answers: list[AnswerSpec] = []
    env: dict[str, str] = {}
    python: bool = False
    steps: Annotated[int, Meta(ge=1, le=MOST_STEPS)] = DEFAULT_STEPS

    def __post_init__(self) -> None:
        _check_paths(self.files, self.memory)
        for name, text in self.env.items():
            if not _VARIABLE.fullmatch(name):
                raise ValueError(
                    f"has env {shown(name)}, which cannot name a variable. Write letters, digits and _."
                )
            if "\0" in text:
                raise ValueError(f"has a null byte in env {shown(name)}. Write a text without one.")

    def built(self) -> World:
        """Return the world."""
        return World(
            files=self.files,
            commands=tuple(
                Command(
                    pattern=one.pattern,
                    output=one.output,
                    exit_code=one.exit_code,
                    writes=one.writes,
                    when=one.when,
                )
                for one in self.commands
            ),
            memory=self.memory,
            pages=self.pages,
            answers=tuple(
                Answer(
                    tool=one.tool,
                    result=one.result,
                    error=one.error,
                    fails=one.fails,
                    cut=one.cut,
                    matching=one.matching,
                    after=one.after or 0,
                    times=one.times,
                )
                for one in self.answers
            ),
            env=self.env,
            python=self.python,
            steps=self.steps,
        )


WORLD = Key(
    WorldSpec,
    {
        "files": '{ "notes/a.txt" = "text" }',
        "memory": '{ "memory/2026-11-20.md" = "text" }',
        "pages": '{ "https://example.org" = "text" }',
        "env": '{ LANG = "C" }',
        "commands": '[{ pattern = "df.*", output = "90 %", exit_code = 0 }]',
        "answers": '[{ tool = "web_search", result = "nothing found" }]',
        "steps": "8",
        "python": "true",
    },
    WorldSpec.built,
)
