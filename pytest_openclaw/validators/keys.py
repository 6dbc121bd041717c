"""Reads the values that a suite author wrote: each function returns a clean value or raises with a hint.

All raise `ValueError` whose message has the validator, the key, the value and what to write.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pytest_openclaw.core.bounded_regex import compile_pattern
from pytest_openclaw.core.quoting import shown
from pytest_openclaw.validators.answer import BLANKS


def hint(text: str) -> dict[str, str]:
    """Return the metadata of a required field: the hint if it is missing."""
    return {"hint": text}


def settle(validator: object, **values: object) -> None:
    """Set the clean values of a frozen validator, during its `__post_init__`."""
    for key, value in values.items():
        object.__setattr__(validator, key, value)


def text_value(owner: str, key: str, value: object) -> str:
    """Return the text of a key."""
    if not isinstance(value, str):
        raise ValueError(f'validator {owner}: "{key}" is {what(value)}. Write a text in quotes.')
    return value


def check_pattern(owner: str, key: str, pattern: str) -> None:
    """Reject a text that is no regular expression."""
    try:
        compile_pattern(pattern)
    except ValueError as error:
        raise ValueError(f'validator {owner}: "{key}" {error}') from error


def list_value(owner: str, key: str, value: object) -> tuple[Any, ...]:
    """Return the items of a list; an empty list is fine."""
    if isinstance(value, list | tuple):
        return tuple(value)
    example = f', for example "{key}": [{shown(value)}]' if isinstance(value, str) else ""
    raise ValueError(f'validator {owner}: "{key}" is {what(value)}. Write a list{example}.')


def texts_value(owner: str, key: str, value: object) -> tuple[str, ...]:
    """Return the texts of a list."""
    items = list_value(owner, key, value)
    for item in items:
        if not isinstance(item, str):
            raise ValueError(f'validator {owner}: "{key}" holds {what(item)}. Write texts in quotes.')
    return items


def choices_value(owner: str, key: str, value: object) -> tuple[str | int | float, ...]:
    """Return texts without surrounding blanks; numbers are allowed too and match no text."""
    choices: list[str | int | float] = []
    for item in list_value(owner, key, value):
        if isinstance(item, bool) or not isinstance(item, str | int | float):
            raise ValueError(f'validator {owner}: "{key}" holds {what(item)}. Write texts in quotes.')
        choices.append(item.strip(BLANKS) if isinstance(item, str) else item)
    return tuple(choices)


def limit_value(owner: str, key: str, value: object) -> int:
    """Return a limit: a whole number of 0 or more, or a text of digits."""
    if isinstance(value, str) and value.isascii() and value.isdigit() and len(value) < 19:
        return int(value)
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    if isinstance(value, bool) or not isinstance(value, int) or value < 0:
        raise ValueError(f'validator {owner}: "{key}" is {what(value)}. Write a whole number of 0 or more.')
    return value


def flag_value(owner: str, key: str, value: object) -> bool:
    """Return true or false."""
    if not isinstance(value, bool):
        raise ValueError(f'validator {owner}: "{key}" is {what(value)}. Write true or false.')
    return value


def table_value(owner: str, key: str, value: object) -> Mapping[str, Any]:
    """Return an object with texts as keys."""
    if not isinstance(value, Mapping) or not all(isinstance(name, str) for name in value):
        raise ValueError(f'validator {owner}: "{key}" is {what(value)}. Write an object.')
    return value


def what(value: object) -> str:
    """Name a value of a suite in a message, in the words of JSON."""
    if value is None:
        return "null"
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, str):
        return f"the text {shown(value)}"
    if isinstance(value, int | float):
        return str(value)
    if isinstance(value, Mapping):
        return "an object"
    return "a list" if isinstance(value, list | tuple) else f"a {type(value).__name__}"
