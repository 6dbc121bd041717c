"""Makes parsers of option values; each raises `ValueError` with what to give instead."""

from __future__ import annotations

import re
from math import nan
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable

T = TypeVar("T")


def number(fits: Callable[[float], bool], hint: str) -> Callable[[str], float]:
    """Return the parser of a number that fits; a text that is no number is tried as NaN."""

    def parse(text: str) -> float:
        try:
            value = float(text)
        except ValueError:
            value = nan
        if not fits(value):
            raise ValueError(hint)
        return value

    return parse


def matching(pattern: str, read: Callable[[str], T], hint: str) -> Callable[[str], T]:
    """Return the parser of a text that matches a pattern as a whole."""

    def parse(text: str) -> T:
        if not re.fullmatch(pattern, text):
            raise ValueError(hint)
        return read(text)

    return parse


def either(one: str, other: str) -> Callable[[str], str]:
    """Return the parser of two words."""
    return matching(f"{one}|{other}", str, f"give {one} or {other}")


on_off = matching("on|off", lambda word: word == "on", "give on or off")
