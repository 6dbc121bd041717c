"""The time that the judging of one reply may take, for everything in it that can look at the clock.

Patterns and schemas do. All else takes a time that grows with the length of a reply, which is bounded; only
the code of a plugin is bounded by nothing.
"""

from __future__ import annotations

import math
import time
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

_DEADLINE: ContextVar[float] = ContextVar("deadline", default=math.inf)


@contextmanager
def within(seconds: float) -> Iterator[None]:
    """Let everything that is judged inside share this time, or what is left of an outer one."""
    token = _DEADLINE.set(min(time.monotonic() + seconds, _DEADLINE.get()))
    try:
        yield
    finally:
        _DEADLINE.reset(token)


def left_s() -> float:
    """Return the seconds that are left; negative once they are over, infinite where nothing limits them."""
    return _DEADLINE.get() - time.monotonic()
