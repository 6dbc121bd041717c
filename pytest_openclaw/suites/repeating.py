"""Parses how often a prompt is asked and must pass: `repeat = 5`, `pass = "4 of 5"`."""

from __future__ import annotations

import re
from typing import Any, NamedTuple

from pytest_openclaw.suites.wording import is_whole, kind_of, shown

MOST_REPEATS = 9999
_PASS = re.compile(r"\s*([0-9]{1,5})\s+of\s+([0-9]{1,5})\s*")


class Share(NamedTuple):
    """`pass = "4 of 5"`: the required passes and the number of repeats."""

    min_passes: int
    repeat: int


def read_repeat(value: Any) -> int:
    """Return how often a prompt is asked.

    Raises:
        ValueError: it is not a valid number; the message has a hint.
    """
    if not is_whole(value, 1, MOST_REPEATS):
        raise ValueError(f"is {shown(value)}. Write a whole number from 1 to {MOST_REPEATS}, such as 5.")
    return value


def read_pass(value: Any) -> Share:
    """Return how many of the repeats must pass.

    Raises:
        ValueError: it is malformed; the message has a hint.
    """
    if not isinstance(value, str):
        raise ValueError(f'is {kind_of(value)}, not a string. Write for example "4 of 5".')
    found = _PASS.fullmatch(value)
    share = Share(*map(int, found.groups())) if found else Share(0, 0)
    if not 1 <= share.min_passes <= share.repeat <= MOST_REPEATS:
        least = "how many repeats of how many must pass, at least 1 and at most all"
        raise ValueError(f'is {shown(value)}. Write {least}, such as "4 of 5".')
    return share


def find_disagreement(repeat: int | None, share: Share | None) -> str | None:
    """Return the error if `repeat` and `pass` have different numbers of repeats."""
    if share is None or repeat in (None, share.repeat):
        return None
    text = shown(pass_text(share.min_passes, share.repeat))
    return f"repeat is {repeat}, but pass is {text}. Leave repeat out, or write {share.repeat}."


def pass_text(min_passes: int, repeat: int) -> str:
    """Return `4 of 5`, as in a suite."""
    return f"{min_passes} of {repeat}"
