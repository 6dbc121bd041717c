"""The time limit for judging one reply, for all parts that check it.

Patterns and schemas do. Other parts take time proportional to the reply, whose length is bounded; only the
code of plugins is unbounded.
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
    """Limit the judging inside to this time, or to the rest of an outer limit."""
    token = _DEADLINE.set(min(time.monotonic() + seconds, _DEADLINE.get()))
    try:
        yield
    finally:
        _DEADLINE.reset(token)


def left_s() -> float:
    """Return the remaining seconds; negative after the limit, infinite without one."""
    return _DEADLINE.get() - time.monotonic()
