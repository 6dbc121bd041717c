"""Plain JSON as typed values: msgspec checks it, and errors have our words."""

from __future__ import annotations

import re
import reprlib
from typing import Annotated, Any, TypeVar

import msgspec
from msgspec import Meta

T = TypeVar("T")

LARGEST = 2**53
"""Up to this number all programs count exactly."""
Count = Annotated[int, Meta(ge=0, le=LARGEST)]
Positive = Annotated[int, Meta(ge=1, le=LARGEST)]
Number = Annotated[float, Meta(ge=-LARGEST, le=LARGEST)]
Amount = Annotated[float, Meta(ge=0, le=LARGEST)]
PositiveAmount = Annotated[float, Meta(gt=0, le=LARGEST)]

_ERROR = re.compile(r"(?P<what>.*?)(?: - at `\$\.?(?P<path>.*)`)?", re.DOTALL)
_MISSING = re.compile(r"Object missing required field `(.*)`")
_STEP = re.compile(r"\[(?P<index>\d+)\]|\.?(?P<key>[^.\[]+)")


def shown(value: Any) -> str:
    """Return a value of a file, shortened for a message."""
    return reprlib.repr(value)


def converted(value: Any, kind: type[T]) -> T:
    """Return a JSON value as a value of a type.

    Raises:
        ValueError: it does not fit; the message names the key, its value and what was expected.

    """
    try:
        return msgspec.convert(value, kind)
    except msgspec.ValidationError as error:
        raise ValueError(_in_our_words(str(error), value)) from None


def _in_our_words(text: str, value: Any) -> str:
    found = _ERROR.fullmatch(text)
    assert found is not None, "every text matches"
    what, path = found["what"], found["path"] or ""
    if missing := _MISSING.fullmatch(what):
        return f"{path}{'.' if path else ''}{missing[1]} is missing"
    what = what[:1].lower() + what[1:].partition(", got ")[0]
    try:
        for step in _STEP.finditer(path):
            value = value[int(step["index"])] if step["index"] else value[step["key"]]
    except (KeyError, TypeError):  # a key of a table, which msgspec does not name
        return f"{path}: {what}"
    return f"{path or 'it'} is {shown(value)}; {what}"
