"""How often a prompt is asked and must pass, as its author wrote it: `repeat = 5`, `pass = "4 of 5"`."""

from __future__ import annotations

import re
from typing import Any, NamedTuple

from pytest_openclaw.suites.wording import kind_of, shown

MOST_REPEATS = 9999
_PASS = re.compile(r"\s*([0-9]{1,5})\s+of\s+([0-9]{1,5})\s*")


class Share(NamedTuple):
    """`pass = "4 of 5"`: of so many repeats, so many must pass."""

    min_passes: int
    repeat: int


def read_repeat(value: Any) -> int:
    """Return how often a prompt is asked.

    Raises:
        ValueError: it is no such number; the text says what and how to fix it.
    """
    is_whole = isinstance(value, int) and not isinstance(value, bool)
    if not is_whole or not 1 <= value <= MOST_REPEATS:
        raise ValueError(f"is {shown(value)}. Write a whole number from 1 to {MOST_REPEATS}, such as 5.")
    return int(value)


def read_pass(value: Any) -> Share:
    """Return how many repeats of how many must pass.

    Raises:
        ValueError: it is no such text; the text says what and how to fix it.
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
    """Return what is wrong if `repeat` and `pass` say different numbers of repeats."""
    if share is None or repeat in (None, share.repeat):
        return None
    text = shown(pass_text(share.min_passes, share.repeat))
    return f"repeat is {repeat}, but pass is {text}. Leave repeat out, or write {share.repeat}."


def pass_text(min_passes: int, repeat: int) -> str:
    """Return `4 of 5`, as a suite says it."""
    return f"{min_passes} of {repeat}"
