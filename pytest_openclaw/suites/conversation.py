"""Reads a prompt's `messages`, the conversation before it, its `images` and its `world`."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from typing import TYPE_CHECKING

from pytest_openclaw.openclaw.paths import normal_path
from pytest_openclaw.util.bounded import compile_pattern
from pytest_openclaw.util.typed import shown
from pytest_openclaw.values.prompts import ResultSpec, UserSpec
from pytest_openclaw.values.replies import FORMATS, Image, Turn, media_type_of
from pytest_openclaw.values.tool_calls import ToolCall

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from pytest_openclaw.util.files import JsonObject
    from pytest_openclaw.values.prompts import Message
    from pytest_openclaw.values.worlds import Answer, Command, World


def turns_of(messages: list[Message]) -> tuple[Turn, ...]:
    """Return the turns of messages; each result belongs to the first call without one."""
    turns: list[Turn] = []
    for n, message in enumerate(messages):
        try:
            _add(turns, message)
        except ValueError as error:
            raise ValueError(f"[{n}] {error}") from None
    if call := _open_call(turns):
        raise ValueError(f"end with a call of {call.name} without a result. {_RESULT}")
    return tuple(turns)


_RESULT = 'Write { role = "tool", content = "…" } after it.'


def _add(turns: list[Turn], message: Message) -> None:
    call = _open_call(turns)
    if isinstance(message, ResultSpec):
        if call is None:
            raise ValueError(
                "is a tool's result, and each call before it has one. Write the call, or remove it."
            )
        if message.name not in (None, call.name):
            raise ValueError(
                f"is a result of {shown(message.name)}, but the next call without one is of {call.name}."
                " Write results in the order of the calls."
            )
        turns[-1] = replace(turns[-1], results=(*turns[-1].results, message.content))
        return
    if call is not None:
        raise ValueError(f"follows a call of {call.name} without a result. {_RESULT}")
    if isinstance(message, UserSpec):
        turns.append(Turn(user=message.content))
        return
    if not turns:
        raise ValueError("is the assistant's. Begin with a message of the user.")
    calls = (
        ToolCall(name=one.name, arguments=json.dumps(one.arguments, ensure_ascii=False))
        for one in message.calls
    )
    turns.append(Turn(text=message.content, calls=tuple(calls)))


def _open_call(turns: list[Turn]) -> ToolCall | None:
    """Return the first call of the last turn that has no result."""
    return next(iter(turns[-1].calls[len(turns[-1].results) :]), None) if turns else None


def written_messages(turns: Iterable[Turn]) -> list[JsonObject]:
    """Return turns in the form of a suite's `messages`, which is read as the same turns."""
    return [entry for turn in turns for entry in _written(turn)]


def _written(turn: Turn) -> list[JsonObject]:
    if turn.user is not None:
        return [{"role": "user", "content": turn.user}]
    calls = [{"name": call.name, "arguments": json.loads(call.arguments)} for call in turn.calls]
    said = {"role": "assistant", "content": turn.text} | ({"calls": calls} if calls else {})
    return [said, *({"role": "tool", "content": result} for result in turn.results)]


MOST_BYTES = 3_932_160
"""The maximum size of an image: 5 MiB as base64, which is Anthropic's limit and the lowest of all."""


def images_of(paths: Iterable[str], read_file: Callable[[str], bytes]) -> tuple[Image, ...]:
    """Return the images of a prompt.

    `read_file` returns at most `MOST_BYTES` + 1 bytes of a file in the suite's folder, or raises
    `ValueError`.
    """
    return tuple(_image(path, read_file) for path in paths)


def _image(path: str, read_file: Callable[[str], bytes]) -> Image:
    data = read_file(path)
    if len(data) > MOST_BYTES:
        raise ValueError(
            f"has {shown(path)}, which has more than {MOST_BYTES:,} bytes; some APIs refuse that."
            " Make it smaller."
        )
    media_type = media_type_of(data)
    if media_type is None:
        raise ValueError(
            f"has {shown(path)}, which is not an image by its first bytes. Save it as {' or '.join(FORMATS)}."
        )
    return Image(path=path, media_type=media_type, data=data)


# --- world ----------------------------------------------------------------------------------------

_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


def checked_world(world: World) -> World:
    """Check every path, pattern, variable and answer; an error begins with its key in the world."""
    _check_paths("", [*world.files, *world.memory])
    for name, text in world.env.items():
        if not _VARIABLE.fullmatch(name) or "\0" in text:
            raise ValueError(
                f" has env {shown(name)}, which cannot be a variable. Write letters, digits and _."
            )
    for n, command in enumerate(world.commands):
        _check_command(f".commands[{n}]", command)
    for n, answer in enumerate(world.answers):
        _check_answer(f".answers[{n}]", answer)
    return world


def _check_paths(where: str, paths: Iterable[str]) -> None:
    for path in paths:
        try:
            is_file = bool(normal_path(path)) and not path.endswith("/")
        except ValueError:
            is_file = False
        if not is_file:
            raise ValueError(f"{where} has the path {shown(path)}, which cannot name a file.")


def _check_command(where: str, command: Command) -> None:
    _check_paths(where, [*command.writes, *command.removes, *command.when])
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
