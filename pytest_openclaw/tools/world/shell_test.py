"""`test` and `[`: conditions of a shell."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from pytest_openclaw.tools.world.shell_parts import Process

MISUSE = 2
_NUMBER = re.compile(r"\s*[-+]?\d{1,18}\s*")
_TEXTS: Mapping[str, Callable[[str, str], bool]] = {
    "=": lambda one, other: one == other,
    "==": lambda one, other: one == other,
    "!=": lambda one, other: one != other,
    "<": lambda one, other: one < other,
    ">": lambda one, other: one > other,
}
_NUMBERS: Mapping[str, Callable[[int, int], bool]] = {
    "-eq": lambda one, other: one == other,
    "-ne": lambda one, other: one != other,
    "-lt": lambda one, other: one < other,
    "-le": lambda one, other: one <= other,
    "-gt": lambda one, other: one > other,
    "-ge": lambda one, other: one >= other,
}
_TWO = _TEXTS.keys() | _NUMBERS.keys()
_ONE = ("-n", "-z", "-e", "-f", "-d", "-s", "-r", "-w", "-x", "-L", "-h")


def test(process: Process) -> str:
    """Exit with 0 if the condition is true, with 1 if it is not."""
    words = list(process.words)
    if process.name == "[" and (not words or words.pop() != "]"):
        raise process.fail("missing ']'", MISUSE)
    process.code = int(not _condition(process, words))
    return ""


def _condition(process: Process, words: list[str]) -> bool:
    """Decide up to four words by their number, as POSIX asks, and more by the usual precedence."""
    if len(words) < 2:
        return bool(words and words[0])
    if len(words) == 3 and words[1] in _TWO | {"-a", "-o"}:
        return _compared(process, *words)
    if words[0] == "!" and len(words) <= 4:
        return not _condition(process, words[1:])
    is_true, rest = _any(process, words)
    if rest:
        raise process.fail(f"{rest[0]}: unexpected operator", MISUSE)
    return is_true


def _any(process: Process, words: list[str]) -> tuple[bool, list[str]]:
    is_true, rest = _all(process, words)
    while rest[:1] == ["-o"]:
        other, rest = _all(process, rest[1:])
        is_true = is_true or other
    return is_true, rest


def _all(process: Process, words: list[str]) -> tuple[bool, list[str]]:
    is_true, rest = _one(process, words)
    while rest[:1] == ["-a"]:
        other, rest = _one(process, rest[1:])
        is_true = is_true and other
    return is_true, rest


def _one(process: Process, words: list[str]) -> tuple[bool, list[str]]:
    if len(words) >= 3 and words[1] in _TWO:
        return _compared(process, *words[:3]), words[3:]
    if words[:1] == ["!"] and len(words) > 1:
        is_true, rest = _one(process, words[1:])
        return not is_true, rest
    if len(words) >= 2 and words[0] in _ONE:
        return _holds(process, words[0], words[1]), words[2:]
    if not words:
        raise process.fail("argument expected", MISUSE)
    return bool(words[0]), words[1:]


def _compared(process: Process, one: str, operator: str, other: str) -> bool:
    if operator in ("-a", "-o"):
        return bool(one and other) if operator == "-a" else bool(one or other)
    if operator in _TEXTS:
        return _TEXTS[operator](one, other)
    for word in (one, other):
        if not _NUMBER.fullmatch(word):
            raise process.fail(f"{word[:100]}: integer expression expected", MISUSE)
    return _NUMBERS[operator](int(one), int(other))


def _holds(process: Process, operator: str, word: str) -> bool:
    if operator in ("-n", "-z"):
        return bool(word) == (operator == "-n")
    if not word or operator in ("-L", "-h"):
        return False
    place = process.place(word)
    text, is_folder = process.workspace.text(place), process.workspace.is_folder(place)
    if word.endswith("/") and text is not None:
        return False
    if operator == "-f":
        return text is not None
    if operator == "-d":
        return is_folder
    return bool(text) or is_folder if operator == "-s" else text is not None or is_folder
