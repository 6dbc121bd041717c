"""Renders users' texts for error messages: on one line, short, and safe to print."""

from __future__ import annotations

import json
import re
from difflib import get_close_matches
from math import inf
from typing import TYPE_CHECKING, Any, TypeGuard

from pytest_openclaw.util.text import UNSEEN

if TYPE_CHECKING:
    from collections.abc import Collection

_LONGEST = 60
_LEAST_BEGINNING = 3
# The similarity of `difflib`, 0 to 1.
_LIKE, _SLIP = 0.6, 0.8
_BLANK = re.compile(rf"[\s{UNSEEN}]")


def shown(value: Any) -> str:
    """Return a value of a suite or an option as JSON, in ASCII, cut after 60 characters.

    Lone surrogates and control characters are escaped, so that any terminal can print it.
    """
    text = json.dumps(value, default=str)
    return text if len(text) <= _LONGEST else text[: _LONGEST - 3] + "..."


def kind_of(value: Any) -> str:
    """Return what a value is, in the words of a suite's author."""
    if value is None:
        return "null"
    kinds: dict[type, str] = {bool: "a boolean", int: "a number", float: "a number"}
    kinds |= {str: "a string", dict: "an object", list: "a list"}
    # A mark in Python can contain anything.
    return kinds.get(type(value), f"of type {type(value).__name__}")


def is_whole(value: Any, least: float = -inf, most: float = inf) -> TypeGuard[int]:
    """Whether a value is a whole number within these limits; true and false are none."""
    return isinstance(value, int) and not isinstance(value, bool) and least <= value <= most


def closest(word: str, known: Collection[str], *, slip: bool = False) -> str:
    """Return ` Did you mean x?` if one of the known words begins with it or is near, else nothing.

    Args:
        word: as it was written.
        known: what could have been meant.
        slip: only a slip of the keyboard counts, and nothing that just begins alike.

    """
    begins = [one for one in sorted(known) if len(word) >= _LEAST_BEGINNING and one.startswith(word)]
    likeness = _SLIP if slip else _LIKE
    near = (not slip and begins) or get_close_matches(word, sorted(known), n=1, cutoff=likeness)
    return f" Did you mean {near[0]}?" if near else ""


def is_plain(text: str) -> bool:
    """Whether every character can be seen: no blanks, control or invisible characters, lone surrogates."""
    return text.isprintable() and not _BLANK.search(text)
