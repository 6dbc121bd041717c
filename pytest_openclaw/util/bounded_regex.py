r"""Regular expressions that always terminate, and the time limit for judging one reply.

Patterns have the syntax of Python's `re`, but `regex` matches them: it has a timeout and lets other threads
run. The two differ in rare characters, such as separators in `\s`.

Patterns and schemas take their time from the limit. Other parts take time proportional to the reply, whose
length is bounded; only the code of plugins is unbounded.
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


def fullmatches(pattern: str, text: str) -> bool:
    """Whether the whole text matches.

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
            re.compile(pattern)
            return regex.compile(pattern, regex.V0)
        except (re.error, regex.error, RecursionError, OverflowError) as error:
            why = (
                f"is not a regular expression ({error}): {shown(pattern)}. Fix it, or use another validator."
            )
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
