"""Parses a prompt's `world`."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, get_args

from pytest_openclaw.openclaw.paths import place_of
from pytest_openclaw.suites.wording import is_whole, kind_of, shown
from pytest_openclaw.util.bounded_regex import compile_pattern
from pytest_openclaw.util.json_schema import BoundedSchema
from pytest_openclaw.values.worlds import Answer, Command, Failure, World

if TYPE_CHECKING:
    from collections.abc import Callable, Collection

MOST_STEPS = 50
_ANSWER_KEYS = ("tool", "result", "error", "fails", "cut", "matching", "after", "times")
_SAYS = ("result", "error", "fails", "cut")
_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


def read_world(value: Any) -> World:
    """Return the world in a suite.

    Raises:
        ValueError: a key is malformed; the message names it and has a hint.

    """
    if not isinstance(value, Mapping):
        raise ValueError(
            f"is {kind_of(value)}, not a table. Write files, commands, memory, pages, answers, env, python."
        )
    _only(value, _READERS)
    found: dict[str, Any] = {}
    for key, inner in value.items():
        try:
            found[key] = _READERS[key](inner)
        except ValueError as error:
            raise ValueError(f"{key} {error}") from None
    return World(**found)


def _texts(value: Any) -> dict[str, str]:
    if not isinstance(value, Mapping) or not all(isinstance(text, str) for text in value.values()):
        raise ValueError("is no table of texts. Write name = text.")
    return dict(value)


def _files(value: Any) -> dict[str, str]:
    files = _texts(value)
    for path in files:
        _check_path(path)
    return files


def _check_path(path: str) -> None:
    try:
        place = place_of(path)
    except ValueError as error:
        raise ValueError(f"has the path {shown(path)}: {error}. Write a shorter name.") from None
    if not place or path.endswith("/"):
        raise ValueError(f"has the path {shown(path)}, which is a folder. Write the name of a file.")


def _commands(value: Any) -> tuple[Command, ...]:
    return tuple(_command(entry) for entry in _entries(value, "pattern, output, exit_code, writes, when"))


def _command(entry: Mapping[str, Any]) -> Command:
    _only(entry, ("pattern", "output", "exit_code", "writes", "removes", "when"))
    pattern = _text(entry, "pattern")
    compile_pattern(pattern)
    code = entry.get("exit_code", 0)
    if not is_whole(code, 0, 255):
        raise ValueError(f"has exit_code {shown(code)}. Write a whole number from 0 to 255.")
    removes = entry.get("removes", [])
    if not isinstance(removes, list) or not all(isinstance(path, str) for path in removes):
        raise ValueError("has removes that is no list of paths. Write paths in brackets.")
    writes = {**_written(entry.get("writes", {})), **dict.fromkeys(removes)}
    for path in writes:
        _check_path(path)
    return Command(
        pattern=pattern,
        output=_text(entry, "output", ""),
        exit_code=code,
        writes=writes,
        when=_when(entry.get("when", {})),
    )


def _when(value: Any) -> dict[str, str]:
    patterns = _files(value)
    for pattern in patterns.values():
        compile_pattern(pattern)
    return patterns


def _written(value: Any) -> dict[str, str | None]:
    """Return texts by path; null, which TOML does not have, removes a file."""
    if not isinstance(value, Mapping):
        raise ValueError("has writes that are no table. Write path = text.")
    kept = _texts({path: text for path, text in value.items() if text is not None})
    return {**dict.fromkeys(value), **kept}


def _env(value: Any) -> dict[str, str]:
    variables = _texts(value)
    for name, text in variables.items():
        if not _VARIABLE.fullmatch(name):
            raise ValueError(
                f"has {shown(name)}, which is no name of a variable. Write letters, digits and _."
            )
        if "\0" in text:
            raise ValueError(f"has a null byte in {shown(name)}. Write a text without one.")
    return variables


def _answers(value: Any) -> tuple[Answer, ...]:
    return tuple(_answer(entry) for entry in _entries(value, ", ".join(_ANSWER_KEYS)))


def _answer(entry: Mapping[str, Any]) -> Answer:
    _only(entry, _ANSWER_KEYS)
    matching = entry.get("matching", {})
    if not isinstance(matching, Mapping):
        raise ValueError(f"has matching {shown(matching)}. Write a JSON Schema of the arguments.")
    try:
        BoundedSchema(matching)
    except ValueError as error:
        raise ValueError(f"has matching that {error}") from None
    # A world in config.json has every key; null is the same as a missing one.
    given = {key: entry[key] for key in (*_SAYS, "after", "times") if entry.get(key) is not None}
    said = [key for key in _SAYS if key in given]
    if len(said) != 1 and said != ["result", "cut"]:
        raise ValueError(
            f"has {' beside '.join(said) or 'no result'}. Write one of {', '.join(_SAYS)} for each answer,"
            " or result with cut."
        )
    for key in ("result", "error"):
        if key in given:
            _text(given, key)
    if "fails" in given and given["fails"] not in get_args(Failure):
        raise ValueError(f"has fails {shown(given['fails'])}. Write one of {', '.join(get_args(Failure))}.")
    for key, least in (("cut", 1), ("after", 0), ("times", 1)):
        if key in given and not is_whole(given[key], least):
            raise ValueError(f"has {key} {shown(given[key])}. Write a whole number from {least}.")
    return Answer(tool=_text(entry, "tool"), matching=matching, **given)


def _python(value: Any) -> bool:
    if not isinstance(value, bool):
        raise ValueError(f"is {shown(value)}. Write true or false.")
    return value


def _steps(value: Any) -> int:
    if not is_whole(value, 1, MOST_STEPS):
        raise ValueError(f"is {shown(value)}. Write a whole number from 1 to {MOST_STEPS}.")
    return value


def _entries(value: Any, keys: str) -> list[Mapping[str, Any]]:
    if not isinstance(value, list) or not all(isinstance(entry, Mapping) for entry in value):
        raise ValueError(f"is no list of tables. Write tables with {keys}.")
    return value


def _only(entry: Mapping[str, Any], known: Collection[str]) -> None:
    if unknown := [key for key in entry if key not in known]:
        raise ValueError(f"has {shown(unknown[0])}. Its keys are {', '.join(known)}.")


def _text(entry: Mapping[str, Any], key: str, default: str | None = None) -> str:
    value = entry.get(key, default)
    if not isinstance(value, str):
        raise ValueError(f"has no {key}, or one that is no text. Write a text in quotes.")
    return value


_READERS: dict[str, Callable[[Any], Any]] = {
    "files": _files,
    "commands": _commands,
    "memory": _files,
    "pages": _texts,
    "answers": _answers,
    "env": _env,
    "python": _python,
    "steps": _steps,
}
