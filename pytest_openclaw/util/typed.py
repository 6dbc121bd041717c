"""Converts plain JSON to typed values; msgspec checks it, and errors are in our own words."""

from __future__ import annotations

import json
import re
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Annotated, Any

import msgspec
from msgspec import Meta, inspect

from pytest_openclaw.util.text import closest, cut

LARGEST = 2**53
"""The largest whole number that all programs represent exactly."""
Count = Annotated[int, Meta(ge=0, le=LARGEST)]
Positive = Annotated[int, Meta(ge=1, le=LARGEST)]
Amount = Annotated[float, Meta(ge=0, le=LARGEST)]
PositiveAmount = Annotated[float, Meta(gt=0, le=LARGEST)]
Filled = Annotated[str, Meta(pattern=r"\S")]
"""A text that is not blank."""

# msgspec (0.20 to 0.22) caches the description of a type at its first conversion, before the description is
# complete. A second thread that reads it then crashes the process.
_ONE_AT_A_TIME = threading.RLock()

_LONGEST = 60
_STEP = re.compile(r"\[(?P<index>\d+)\]|\.(?P<key>[^.\[]+)")
_KINDS = {
    "str": "a text", "int": "a whole number", "float": "a number", "bool": "true or false", "array": "a list",
    "object": "a table",
}  # fmt: skip


def shown(value: Any) -> str:
    """Return a value from a file or an option as JSON, in ASCII, cut after 60 characters.

    Lone surrogates and control characters are escaped, so that any terminal can print it.
    """
    text = json.dumps(value, default=str)
    return text if len(text) <= _LONGEST else f"{cut(text, _LONGEST - 3)}..."


@contextmanager
def prefixed(words: str, kind: type[Exception] = ValueError) -> Iterator[None]:
    """Put words before the message of a `ValueError`, and raise it as a `kind`."""
    try:
        yield
    except ValueError as error:
        raise kind(f"{words} {error}") from error


def converted(value: Any, kind: Any, name: str = "") -> Any:
    """Return a JSON value as a value of a type.

    Args:
        value: from JSON, TOML or a mark in Python.
        kind: any type that msgspec knows. An error of its `__post_init__` is a sentence with a hint, without
            its subject.
        name: the name of the value in messages.

    Raises:
        ValueError: the value does not fit. The message has the key, its value and the expectation; it ends
            with a full stop only if it has a hint.
    """
    try:
        with _ONE_AT_A_TIME:
            return msgspec.convert(value, kind)
    except msgspec.ValidationError as error:
        raise ValueError(_in_our_words(str(error), value, kind, name)) from None


def _in_our_words(text: str, value: Any, kind: Any, name: str) -> str:
    # Such as "Expected `int`, got `str` - at `$.calls[0].repeat`".
    what, _, path = text.removesuffix("`").partition(" - at `$")
    place = (name + path).removeprefix(".")
    if what.startswith("Object "):
        problem, key = what.removesuffix("`").split("`", 1)
        inner = f"{place}.{key}" if place else key
        if problem == "Object missing required field ":
            return f"{inner} is missing"
        types = _types_at(kind, path)
        known = [*dict.fromkeys(field.encode_name for one in types for field in getattr(one, "fields", ()))]
        return f"{inner} is an unknown key.{closest(key, known)} Its keys are {', '.join(known)}."
    try:
        for step in _STEP.finditer(path):
            value = value[int(step["index"])] if step["index"] else value[step["key"]]
        subject = f"{place or 'it'} is {shown(value)}"
    except (KeyError, TypeError, IndexError):  # a key of a table, which msgspec does not name
        subject = f"a value in {place.removesuffix('[...]')} is wrong"
    if what.startswith("Invalid"):
        known = ["null" if one is None else str(one) for one in _values_at(kind, path)]
        return f"{subject}, not one of {', '.join(known)}"
    if not what.startswith("Expected `"):  # our own sentence
        return f"{place} {what}"
    expected, _, bound = what.partition(", got ")[0].removeprefix("Expected `").partition("`")
    if bound.startswith(" matching"):
        return subject if str(value).strip() else f"{place} is blank"
    kinds = " or ".join(_KINDS.get(kind, kind) for kind in expected.split(" | "))
    return f"{subject}, not {kinds}{bound.replace('.0', '')}"


def _types_at(kind: Any, path: str) -> list[Any]:
    """Return the types that a value may have at a path, in msgspec's notation."""
    types = _alternatives(inspect.type_info(kind))
    for step in _STEP.finditer(path):
        fields = (field for one in types for field in getattr(one, "fields", ()))
        inner = [field.type for field in fields if field.encode_name == step["key"]]
        inner += [one.item_type for one in types if step["index"] and hasattr(one, "item_type")]
        types = [alternative for one in inner for alternative in _alternatives(one)]
    return types


def _values_at(kind: Any, path: str) -> list[Any]:
    """Return the values of a closed set, or the tags of the tables in a list."""
    holder, _, key = path.rpartition(".")
    values = [value for one in _types_at(kind, path) for value in getattr(one, "values", ())]
    tags = [one.tag for one in _types_at(kind, holder) if getattr(one, "tag_field", None) == key]
    return values or tags


def _alternatives(info: Any) -> list[Any]:
    return [*info.types] if isinstance(info, inspect.UnionType) else [info]
