"""Finds values in a prompt that a row or `config.json` cannot represent."""

from __future__ import annotations

import math
import re
from datetime import date, time
from typing import TYPE_CHECKING, Any

from pytest_openclaw.suites.document import Repeating
from pytest_openclaw.suites.wording import shown

if TYPE_CHECKING:
    from collections.abc import Iterator

_DEEPEST = 40
_SURROGATE = re.compile("[\ud800-\udfff]")
# The range of a float; Python also refuses to print whole numbers of many thousand digits.
_LARGEST_BITS = 1024


def find_flaws(value: Any, place: str = "", depth: int = 0) -> Iterator[str]:
    """Yield a sentence, with its hint, for each value below `value` that cannot be used.

    Args:
        value: a prompt as it was written, or a part of it.
        place: the keys that lead to it, such as `validator.values[0]`.
        depth: how many objects and lists contain it.
    """
    if depth > _DEEPEST:
        yield f"{place} is nested more than {_DEEPEST} deep. Flatten it."
    elif isinstance(value, dict):
        yield from _flaws_of_keys(value, place)
        for key, inner in value.items():
            yield from find_flaws(inner, _below(place, key), depth + 1)
    elif isinstance(value, list):
        for position, inner in enumerate(value):
            yield from find_flaws(inner, f"{place}[{position}]", depth + 1)
    elif flaw := _flaw_of_scalar(value):
        yield f"{place} {flaw}"


def _flaws_of_keys(value: dict[str, Any], place: str) -> Iterator[str]:
    if isinstance(value, Repeating):
        for key in value.repeated:
            yield f"{_below(place, key)} is there twice. Keep one of them."
    for key in value:
        if _SURROGATE.search(key):
            yield f"the key {_below(place, key)} holds half a surrogate pair. Write the whole character."


def _flaw_of_scalar(value: Any) -> str:
    if isinstance(value, str) and _SURROGATE.search(value):
        return "holds half a surrogate pair. Write the whole character."
    if isinstance(value, float) and not math.isfinite(value):
        return "is NaN or infinite. Write a finite number."
    if isinstance(value, int) and value.bit_length() > _LARGEST_BITS:
        return "is a number of more than 300 digits. Shorten it."
    if isinstance(value, date | time):
        return "is a date or time. Put it in quotes."
    return ""


def _below(place: str, key: str) -> str:
    shown_key = key if key.isidentifier() else shown(key)
    return f"{place}.{shown_key}" if place else shown_key
