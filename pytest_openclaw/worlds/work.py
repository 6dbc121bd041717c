"""Limits the work of the calls of an exchange, counted in steps, equally on every machine.

A step is about a microsecond of a processor. The work of a call is counted before it is done:
characters read, files visited, words expanded, lines compared. No clock decides whether a call has timed out.
"""

from __future__ import annotations

import time
from contextlib import contextmanager
from itertools import accumulate
from typing import TYPE_CHECKING

from pytest_openclaw.core.deadline import within
from pytest_openclaw.tools.dispatch.arguments import MAX_ARGUMENT_BYTES, MAX_VALUES

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from pytest_openclaw.types.tool_calls import ToolCall

MOST_CALLS = 300
"""The most calls of an exchange that are answered, and of a turn that are read."""
TURN_WEIGHT = 1_000_000
"""The limits of reading a turn: characters, values of the arguments, calls."""
CALL_STEPS = 150_000
EXCHANGE_STEPS = 300_000
PATTERNS_S = 0.25
_SHORT_TEXT_CHARS = 2500


class OutOfWorkError(Exception):
    """A call exceeds its work limit."""


class Work:
    """The steps that are left to a call, and to the exchange that it is part of."""

    def __init__(self) -> None:
        self._left = EXCHANGE_STEPS
        self._call_left = CALL_STEPS
        self._patterns_s = PATTERNS_S

    @property
    def spent(self) -> int:
        """The steps of all calls so far."""
        return EXCHANGE_STEPS - self._left

    def begin_call(self) -> None:
        """Start the count of the next call."""
        self._call_left = min(CALL_STEPS, self._left)

    def spend(self, steps: int) -> None:
        """Count steps that are about to be taken.

        Raises:
            OutOfWorkError: they are more than the remaining ones; none of them may be taken.
        """
        if steps > self._call_left:
            raise OutOfWorkError
        self._call_left -= steps
        self._left -= steps

    @contextmanager
    def patterns(self) -> Iterator[None]:
        """Limit the patterns of the suite inside to their remaining seconds in the exchange.

        The steps of a pattern cannot be counted. If its seconds are over, the suite is wrong: that is an
        error of the cell, not a timeout of a call.
        """
        began = time.thread_time()
        try:
            with within(self._patterns_s):
                yield
        finally:
            self._patterns_s -= time.thread_time() - began


def find_steps(text_chars: int, wanted_chars: int) -> int:
    """Return the steps that it takes to look for a text in another one.

    Python compares each pair of characters of short texts, and each character of long ones once.
    """
    if text_chars < _SHORT_TEXT_CHARS:
        return 1 + text_chars * min(wanted_chars, _SHORT_TEXT_CHARS // 2) // 7500
    return 1 + text_chars // 80


def line_steps(text: str) -> int:
    """Return the steps that it takes to split a text into lines and to join them."""
    return 1 + len(text) // 200 + text.count("\n") // 15


def n_read(calls: Sequence[ToolCall]) -> int:
    """Return how many calls of a turn are read; models write fewer, but a server may send any number."""
    weights = accumulate(500 + weight_of(call.arguments) for call in calls[:MOST_CALLS])
    return sum(weight <= TURN_WEIGHT for weight in weights)


def weight_of(arguments: str) -> int:
    """Return the steps to read and check arguments; a weight of 3 is a step or less."""
    read = arguments[:MAX_ARGUMENT_BYTES]
    return len(read) + 80 * min(MAX_VALUES, sum(map(read.count, "[{,")))
