"""Keys of a suite: their types, and errors with an example."""

from __future__ import annotations

import re
from difflib import get_close_matches
from typing import TYPE_CHECKING, Any

from pytest_openclaw.util.text import UNSEEN
from pytest_openclaw.util.typed import converted

if TYPE_CHECKING:
    from collections.abc import Callable, Collection

    from pytest_openclaw.values.prompts import Key

_BLANK = re.compile(rf"[\s{UNSEEN}]")


def read_key(name: str, value: Any, key: Key, build: Callable[[Any], Any] | None = None) -> Any:
    """Return the value of a key, or what `build` makes of it.

    Errors of `build` continue a sentence that begins with the key.

    Raises:
        ValueError: the message names the key, the expected type, and an example.
    """
    try:
        found = converted(value, key.kind, name)
    except ValueError as error:
        text = str(error)
        raise ValueError(text if text.endswith(".") else f"{text}. {_example(name, key, text)}") from None
    if build is None:
        return found
    try:
        return build(found)
    except ValueError as error:
        text = str(error)
        raise ValueError(f"{name}{'' if text[:1] in ' .[' else ' '}{text}") from None


def _example(name: str, key: Key, text: str) -> str:
    example = key.example
    if not isinstance(example, str):
        inner = next((one for one in example if f"{name}.{one}" in text), next(iter(example)))
        name, example = inner, example[inner]
    return f"Write for example {name} = {example}."


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
