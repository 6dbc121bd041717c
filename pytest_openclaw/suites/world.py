"""Reads a prompt's `world`."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from pytest_openclaw.openclaw.paths import place_of
from pytest_openclaw.suites.wording import Key
from pytest_openclaw.util.bounded_regex import compile_pattern
from pytest_openclaw.util.typed import shown
from pytest_openclaw.values.worlds import Answer, Command, World

if TYPE_CHECKING:
    from collections.abc import Iterable

_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


def _checked(world: World) -> World:
    """Return a world in which every path, pattern, variable and answer is valid.

    Raises:
        ValueError: one is not; the message begins with its place in the world.
    """
    _check_paths("", [*world.files, *world.memory])
    for name, text in world.env.items():
        if not _VARIABLE.fullmatch(name):
            raise ValueError(
                f" has env {shown(name)}, which cannot name a variable. Write letters, digits and _."
            )
        if "\0" in text:
            raise ValueError(f" has a null byte in env {shown(name)}. Write a text without one.")
    for n, command in enumerate(world.commands):
        _check_command(f".commands[{n}]", command)
    for n, answer in enumerate(world.answers):
        _check_answer(f".answers[{n}]", answer)
    return world


def _check_paths(where: str, paths: Iterable[str]) -> None:
    for path in paths:
        try:
            place = place_of(path)
        except ValueError as error:
            raise ValueError(f"{where} has the path {shown(path)}: {error}. Write a shorter name.") from None
        if not place or path.endswith("/"):
            raise ValueError(
                f"{where} has the path {shown(path)}, which is a folder. Write the name of a file."
            )


def _check_command(where: str, command: Command) -> None:
    _check_paths(where, [*command.effects, *command.when])
    for pattern in (command.pattern, *command.when.values()):
        try:
            compile_pattern(pattern)
        except ValueError as error:
            raise ValueError(f"{where} {error}") from None


def _check_answer(where: str, answer: Answer) -> None:
    given = [key for key in ("result", "error", "fails", "cut") if getattr(answer, key) is not None]
    if len(given) != 1 and given != ["result", "cut"]:
        raise ValueError(
            f"{where} has {' and '.join(given) or 'no result'}. Write one of result, error, fails, cut for"
            " each answer, or result with cut."
        )
    try:
        answer.schema  # noqa: B018 - checked when the suite is read
    except ValueError as error:
        raise ValueError(f"{where} has matching that {error}") from None


WORLD = Key(
    World,
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
    _checked,
)
