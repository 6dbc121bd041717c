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
_RESULTS = ("result", "error", "fails", "cut")


def read_world(value: Any) -> World:
    """Return the world in a suite.

    Raises:
        ValueError: a key is malformed; the message names it and has a hint.
    """
    if not isinstance(value, Mapping):
        raise ValueError(f"is {kind_of(value)}, not a table. Write {', '.join(_READERS)}.")
    _check_keys(value, _READERS)
    found: dict[str, Any] = {}
    for key, inner in value.items():
        try:
            found[key] = _READERS[key](inner)
        except ValueError as error:
            raise ValueError(f"{key} {error}") from None
    return World(**found)


def _texts(value: Any) -> dict[str, str]:
    if not isinstance(value, Mapping) or not all(isinstance(text, str) for text in value.values()):
        raise ValueError("is not a table of texts. Write name = text.")
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


def _command(entry: Mapping[str, Any]) -> Command:
    _check_keys(entry, (*Command.__dataclass_fields__, "removes"))
    pattern = _text(entry, "pattern")
    code, writes, removes = entry.get("exit_code", 0), entry.get("writes", {}), entry.get("removes", [])
    if not is_whole(code, 0, 255):
        raise ValueError(f"has exit_code {shown(code)}. Write a whole number from 0 to 255.")
    if not isinstance(removes, list) or not all(isinstance(path, str) for path in removes):
        raise ValueError("has removes that is not a list of paths. Write paths in brackets.")
    if not isinstance(writes, Mapping):
        raise ValueError("has writes that is not a table. Write path = text.")
    # Null, which TOML does not have, removes a file.
    _texts({path: text for path, text in writes.items() if text is not None})
    writes = {**writes, **dict.fromkeys(removes)}
    for path in writes:
        _check_path(path)
    when = _files(entry.get("when", {}))
    for one in (pattern, *when.values()):
        compile_pattern(one)
    return Command(
        pattern=pattern, output=_text(entry, "output", ""), exit_code=code, writes=writes, when=when
    )


def _answer(entry: Mapping[str, Any]) -> Answer:
    _check_keys(entry, Answer.__dataclass_fields__)
    matching = entry.get("matching", {})
    if not isinstance(matching, Mapping):
        raise ValueError(f"has matching {shown(matching)}. Write a JSON Schema of the arguments.")
    try:
        BoundedSchema(matching)
    except ValueError as error:
        raise ValueError(f"has matching that {error}") from None
    # A world in config.json has every key; null is the same as a missing one.
    given = {key: entry[key] for key in (*_RESULTS, "after", "times") if entry.get(key) is not None}
    results = [key for key in _RESULTS if key in given]
    if len(results) != 1 and results != ["result", "cut"]:
        raise ValueError(
            f"has {' and '.join(results) or 'no result'}. Write one of {', '.join(_RESULTS)} for each answer,"
            " or result with cut."
        )
    for key in {"result", "error"} & given.keys():
        _text(given, key)
    if "fails" in given and given["fails"] not in get_args(Failure):
        raise ValueError(f"has fails {shown(given['fails'])}. Write one of {', '.join(get_args(Failure))}.")
    for key, least in (("cut", 1), ("after", 0), ("times", 1)):
        if key in given and not is_whole(given[key], least):
            raise ValueError(f"has {key} {shown(given[key])}. Write a whole number from {least}.")
    return Answer(tool=_text(entry, "tool"), matching=matching, **given)


def _env(value: Any) -> dict[str, str]:
    variables = _texts(value)
    for name, text in variables.items():
        if not re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]*", name):
            raise ValueError(f"has {shown(name)}, which cannot name a variable. Write letters, digits and _.")
        if "\0" in text:
            raise ValueError(f"has a null byte in {shown(name)}. Write a text without one.")
    return variables


def _python(value: Any) -> bool:
    if not isinstance(value, bool):
        raise ValueError(f"is {shown(value)}. Write true or false.")
    return value


def _steps(value: Any) -> int:
    if not is_whole(value, 1, MOST_STEPS):
        raise ValueError(f"is {shown(value)}. Write a whole number from 1 to {MOST_STEPS}.")
    return value


def _tables(value: Any) -> list[Mapping[str, Any]]:
    if not isinstance(value, list) or not all(isinstance(entry, Mapping) for entry in value):
        raise ValueError("is not a list of tables. Write tables in brackets.")
    return value


def _check_keys(entry: Mapping[str, Any], known: Collection[str]) -> None:
    if unknown := [key for key in entry if key not in known]:
        raise ValueError(f"has {shown(unknown[0])}. Its keys are {', '.join(known)}.")


def _text(entry: Mapping[str, Any], key: str, default: str | None = None) -> str:
    value = entry.get(key, default)
    if not isinstance(value, str):
        raise ValueError(f"has no {key}, or one that is not a text. Write a text in quotes.")
    return value


_READERS: dict[str, Callable[[Any], Any]] = {
    "files": _files,
    "commands": lambda value: tuple(map(_command, _tables(value))),
    "memory": _files,
    "pages": _texts,
    "answers": lambda value: tuple(map(_answer, _tables(value))),
    "env": _env,
    "python": _python,
    "steps": _steps,
}
