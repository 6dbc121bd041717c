"""Resolves a name to one of the offered tools as OpenClaw 2026.9.6 does.

A name need not be exact: case and blanks do not matter, three old names still work, the part before a dot or
a slash is ignored (`functions.read`, `tools/exec`), and so are a counter at the end (`read_1`,
`functions.read:0`) and the rest of a broken tag (`read"`, `read<path`).
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator

ALIASES = {"bash": "exec", "apply-patch": "apply_patch", "cron": "automations"}
MAX_NAME_CHARS = 128
"""Longer names match nothing, so that not all their parts have to be tried."""

_NAMESPACE = re.compile(r"^(?:functions?|tools?)[./]", re.IGNORECASE)
_WRAPPER = re.compile(r"^(?:functions?|tools?)[._-]?", re.IGNORECASE)
_COUNTER = re.compile(r"(?:[:._/-]\d+|\d+)$")
_REPEATED = re.compile(r"[A-Za-z0-9_:.-]{1,64}")
_TAG = re.compile(r"(?<=.)[\"'<]", re.DOTALL)


def find_name(name: str, offered: Collection[str]) -> str | None:
    """Return the offered name that `name` means; None if there is none, or more than one."""
    bare = name.strip()
    if not bare or len(bare) > MAX_NAME_CHARS:
        return None
    if exact := _exact(bare, offered):
        return exact
    reached = {found for guess in _without_counters(bare) if (found := _part(guess, offered))}
    if len(reached) == 1:
        return reached.pop()
    if _WRAPPER.match(bare) and _COUNTER.search(bare):
        return None
    return _part(bare, offered)


def is_repeated(name: str) -> bool:
    """Whether an unknown name is sent to the model again, with the result of its call.

    OpenClaw 2026.9.6 leaves a call with any other name out of the next request, as if it had not been made.
    """
    return _REPEATED.fullmatch(name.strip()) is not None


def same_tool(name: str, other: str) -> bool:
    """Whether two names are one tool's: case, blanks, old names and the usual namespaces left out."""
    return _plain(_NAMESPACE.sub("", name.strip(), count=1)) == _plain(
        _NAMESPACE.sub("", other.strip(), count=1)
    )


def edit_distance(name: str, other: str) -> int:
    """Return how many characters must be added, removed or replaced between two names (Levenshtein)."""
    row: list[int] = [*range(len(other) + 1)]
    for n, char in enumerate(name, 1):
        before, row = row, [n]
        for m, wanted in enumerate(other, 1):
            row.append(min(before[m] + 1, row[-1] + 1, before[m - 1] + (char != wanted)))
    return row[-1]


def _plain(name: str) -> str:
    lower = name.strip().lower()
    return ALIASES.get(lower, lower)


def _exact(name: str, offered: Collection[str]) -> str | None:
    for spelled in (name, _plain(name)):
        if spelled in offered:
            return spelled
    return _ignoring_case(name, offered) or _ignoring_case(_plain(name), offered)


def _ignoring_case(name: str, offered: Collection[str]) -> str | None:
    found = {known for known in offered if known.strip().lower() == name.strip().lower()}
    return found.pop() if len(found) == 1 else None


def _part(name: str, offered: Collection[str]) -> str | None:
    """Look for the name, or for the part behind one of its dots and slashes."""
    guesses = [spelled for guess in _parts(name.strip()) for spelled in (guess, _plain(guess))]
    for guess in guesses:
        if guess in offered:
            return guess
    return next((found for guess in guesses if (found := _ignoring_case(guess, offered))), None)


def _parts(name: str) -> Iterator[str]:
    whole = [name]
    if tag := _TAG.search(name):
        whole.append(name[: tag.start()].strip())
    yield from whole
    for text in whole:
        dotted = text.replace("/", ".")
        yield dotted
        steps = [step.strip() for step in dotted.split(".") if step.strip()]
        yield from (".".join(steps[n:]) for n in range(1, len(steps)))


def _without_counters(name: str) -> Iterator[str]:
    for text in dict.fromkeys((name, name.partition(":")[0].strip())):
        dotted = text.replace("/", ".")
        for form in dict.fromkeys((text, dotted, _WRAPPER.sub("", dotted, count=1))):
            yield form
            yield re.sub(r"[:._/-]\d+$", "", form)
            yield re.sub(r"\d+$", "", form)
