"""Keys of a suite: their types, and errors with an example."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from difflib import get_close_matches
from typing import TYPE_CHECKING, Any, NamedTuple

from pytest_openclaw.util.text import UNSEEN
from pytest_openclaw.util.typed import converted

if TYPE_CHECKING:
    from collections.abc import Collection

_BLANK = re.compile(rf"[\s{UNSEEN}]")


class Key(NamedTuple):
    """A key of a suite.

    Attributes:
        kind: the type of its value.
        example: a value in TOML, for messages; for a table with many keys, a value for each.
        build: turns the value into the prompt's; its errors continue a sentence that begins with the key.
    """

    kind: Any
    example: str | Mapping[str, str]
    build: Callable[[Any], Any] | None = None


def read_key(name: str, value: Any, key: Key) -> Any:
    """Return the value of a key.

    Raises:
        ValueError: the message names the key, the expected type, and an example.
    """
    try:
        found = converted(value, key.kind, name)
    except ValueError as error:
        text = str(error)
        raise ValueError(text if text.endswith(".") else f"{text}. {_example(name, key, text)}") from None
    if key.build is None:
        return found
    try:
        return key.build(found)
    except ValueError as error:
        text = str(error)
        raise ValueError(f"{name}{'' if text[:1] in ' .[' else ' '}{text}") from None


def _example(name: str, key: Key, text: str) -> str:
    example = key.example
    if not isinstance(example, str):
        inner = next((one for one in example if f"{name}.{one}" in text), next(iter(example)))
        name, example = inner, example[inner]
    return f"Write for example {name} = {example}."


def read_keys(values: Mapping[str, Any], keys: Mapping[str, Key]) -> tuple[dict[str, Any], list[str]]:
    """Return the values of the keys that are present, and an error for each malformed one; null is absent."""
    found: dict[str, Any] = {}
    errors: list[str] = []
    for name, key in keys.items():
        if values.get(name) is not None:
            try:
                found[name] = read_key(name, values[name], key)
            except ValueError as error:
                errors.append(str(error))
    return found, errors


NOTE = "x_"
"""Keys that begin with it are the author's own, in prompts, worlds, tools and commands."""


def without_notes(table: Any, *lists: str) -> Any:
    """Return a table without the author's own keys, also in the tables of these lists."""
    if not isinstance(table, dict):
        return table
    plain = {key: value for key, value in table.items() if not key.startswith(NOTE)}
    inner = {name: plain[name] for name in lists if isinstance(plain.get(name), list)}
    return plain | {name: [without_notes(one) for one in tables] for name, tables in inner.items()}


def closest(word: str, known: Collection[str], *, then: str = "", cutoff: float = 0.6) -> str:
    """Return ` Did you mean x?`, with `then` after the x, if a known word is similar; else empty."""
    near = get_close_matches(word, sorted(known), n=1, cutoff=cutoff)
    return f" Did you mean {near[0]}{then}?" if near else ""


def is_plain(text: str) -> bool:
    """Whether every character is visible: no blank, control character or lone surrogate."""
    return text.isprintable() and not _BLANK.search(text)
