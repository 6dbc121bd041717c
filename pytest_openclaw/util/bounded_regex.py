r"""Regular expressions that always terminate.

Patterns have the meaning of Python's `re`, but `regex` matches them, because only it has a timeout and
lets other threads run. Where the two differ, the pattern is rewritten first:

- `{e}` is fuzzy matching and `[[:alpha:]]` a POSIX class in `regex`; in `re` they are plain characters.
- `\s`, `\w` and `\b` differ in a few characters: the separators U+001C to U+001F, fractions, combining
  marks. (`\W` and `\S` inside brackets keep the meaning that `regex` gives them.)

The time limit for judging one reply, for all parts that check it.

Patterns and schemas do. Other parts take time proportional to the reply, whose length is bounded; only the
code of plugins is unbounded.
"""

from __future__ import annotations

import math
import re
import time
import warnings
from contextlib import contextmanager
from contextvars import ContextVar
from functools import lru_cache
from typing import TYPE_CHECKING

from pytest_openclaw.util.errors import OpenClawError
from pytest_openclaw.util.text import shown

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    import regex


_DEADLINE: ContextVar[float] = ContextVar("deadline", default=math.inf)


@contextmanager
def within(seconds: float) -> Iterator[None]:
    """Limit the judging inside to this time, or to the rest of an outer limit."""
    token = _DEADLINE.set(min(time.monotonic() + seconds, _DEADLINE.get()))
    try:
        yield
    finally:
        _DEADLINE.reset(token)


def left_s() -> float:
    """Return the remaining seconds; negative after the limit, infinite without one."""
    return _DEADLINE.get() - time.monotonic()


PATTERN_TIMEOUT_S = 2.0
_SHORTEST_S = 0.001

_PART = re.compile(
    r"""
    (?P<comment> \(\?\#[^)]*\) )
    | (?P<escape> \\N\{[^}]*\} | \\. )
    | (?P<set> \[ \^? \]? (?: \\. | [^\]\\] )* \] )
    | (?P<repeat> \{ (?: [0-9]+ (?: ,[0-9]* )? | ,[0-9]* ) \} )
    | (?P<brace> \{ )
    """,
    re.VERBOSE | re.DOTALL,
)
_PART_OF_SET = re.compile(r"(?P<escape>\\.)|(?P<bracket>\[)", re.DOTALL)
_WORD = r"[\p{L}\p{N}_]"
_OUTSIDE = {
    r"\b": rf"(?:(?<={_WORD})(?!{_WORD})|(?<!{_WORD})(?={_WORD}))",
    r"\s": r"[\s\x1c-\x1f]",
    r"\S": r"[^\s\x1c-\x1f]",
    r"\w": _WORD,
    r"\W": r"[^\p{L}\p{N}_]",
}
_INSIDE = {r"\s": r"\s\x1c-\x1f", r"\w": r"\p{L}\p{N}_"}
_ASCII_GROUP = re.compile(r"\(\?[a-z]*a")


def fullmatches(pattern: str, text: str) -> bool:
    """Whether the whole text matches.

    Args:
        pattern: of Python's `re`.
        text: all of it must match.

    Raises:
        OpenClawError: it cannot be decided within 2 s, or the remaining time, or the available memory.

    """
    return _decide(compile_pattern(pattern).fullmatch, pattern, text)


def searches(pattern: str, text: str) -> bool:
    """Whether the pattern matches somewhere in the text; raises as `fullmatches` does."""
    return _decide(compile_pattern(pattern).search, pattern, text)


@lru_cache(maxsize=256)
def compile_pattern(pattern: str) -> regex.Pattern[str]:
    """Compile a pattern of Python's `re`.

    Raises:
        ValueError: `re` rejects it; the message continues a sentence that begins with the key.

    """
    import regex  # most suites have no pattern

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FutureWarning)
        try:
            flags = re.compile(pattern).flags
            return regex.compile(_translated(pattern, flags), regex.V0)
        except (re.error, regex.error, RecursionError, OverflowError) as error:
            why = f"is no regular expression ({error}): {shown(pattern)}. Fix it, or use another validator."
            raise ValueError(why) from error


def _decide(match: Callable[..., object], pattern: str, text: str) -> bool:
    # Without remaining time, most patterns can still be decided quickly.
    patience_s = max(_SHORTEST_S, min(PATTERN_TIMEOUT_S, left_s()))
    try:
        return match(text, concurrent=True, timeout=patience_s) is not None
    except (TimeoutError, MemoryError) as error:
        raise OpenClawError(
            f"the pattern {shown(pattern)} cannot be decided on a reply of {len(text)} characters within"
            f" {patience_s:.3g} s. Write it without nested repeats, such as (a+)+."
        ) from error


def _translated(pattern: str, flags: int) -> str:
    """Rewrite parts that `regex` reads differently; comments of verbose patterns may have half a bracket."""
    if flags & re.VERBOSE:
        return pattern
    plain = bool(flags & re.ASCII) or _ASCII_GROUP.search(pattern) is not None

    def outside(part: re.Match[str]) -> str:
        text = part.group()
        if part.lastgroup == "brace":
            return r"\{"
        if part.lastgroup == "set":
            return "[" + _PART_OF_SET.sub(inside, text[1:])
        return text if plain else _OUTSIDE.get(text, text)

    def inside(part: re.Match[str]) -> str:
        text = part.group()
        if part.lastgroup == "bracket":
            return r"\["
        return text if plain else _INSIDE.get(text, text)

    return _PART.sub(outside, pattern)
