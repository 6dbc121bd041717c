"""Ctrl-C, SIGTERM and SIGHUP, which end a run alike: all rows are kept, and the summary is written.

Also a clock that does not jump: setting the system's clock during a run does not affect rows.
"""

from __future__ import annotations

import signal
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any

ENDING_S = 30.0
"""The time in which further signals are ignored, so that a second Ctrl-C loses no summary."""
_ENDING = frozenset({1, 2, 9, 15})
"""SIGHUP, SIGINT, SIGKILL and SIGTERM: programs do not end themselves by them. Windows lacks some names."""


class Interrupted(KeyboardInterrupt):
    """Such a signal; pytest shows the interrupted line of code only for a plain `KeyboardInterrupt`."""

    __module__ = "builtins"  # pytest shows the whole name


class _Handler:
    """Raises in the main thread for the first signal."""

    def __init__(self) -> None:
        self.ends_until = 0.0
        self._is_held = False
        self._waiting: int | None = None

    def receive(self, number: int, frame: FrameType | None = None) -> None:  # noqa: ARG002 - a handler's arguments
        if self._is_held:
            self._waiting = number
        elif time.monotonic() >= self.ends_until:
            self.ends_until = time.monotonic() + ENDING_S
            raise Interrupted("Ctrl-C" if number == signal.SIGINT else _signal_name(number))

    @contextmanager
    def held(self) -> Iterator[None]:
        self._is_held = True
        try:
            yield
        finally:
            self._is_held = False
            waiting, self._waiting = self._waiting, None
        if waiting is not None:
            self.receive(waiting)


_handler = _Handler()
held_signals = _handler.held
"""A context of the main thread in which signals wait: a row is written and counted, or neither."""


@contextmanager
def interrupted_by_signals() -> Iterator[None]:
    """Raise `KeyboardInterrupt` in the main thread on the first Ctrl-C, SIGTERM or SIGHUP.

    A signal with another handler keeps it.
    """
    usual: dict[int, Any] = {signal.SIGINT: signal.default_int_handler, signal.SIGTERM: signal.SIG_DFL}
    if sys.platform != "win32":
        usual[signal.SIGHUP] = signal.SIG_DFL  # the terminal was closed; nohup ignores it
    if threading.current_thread() is not threading.main_thread():
        usual = {}
    taken = [number for number, handler in usual.items() if signal.getsignal(number) is handler]
    _handler.ends_until = 0.0
    for number in taken:
        signal.signal(number, _handler.receive)
    try:
        yield
    finally:
        for number in taken:
            signal.signal(number, usual[number])


def session_ends() -> None:
    """Ignore signals for a while: the session ends, and its summary is written."""
    _handler.ends_until = time.monotonic() + ENDING_S


def how_it_ended(status: int | None) -> str:
    """Return in words how a process ended, with the signal that caused it.

    Args:
        status: as in `subprocess`: the negative number of the signal, or 128 plus the number from a program
            that handles the signal; None if the process has only closed its output.
    """
    if status is None:
        return "closed its output"
    if status < 0:
        return f"was killed by {_signal_name(-status) or f'signal {-status}'}"
    name = _signal_name(status - 128)
    return f"ended with exit status {status}" + (f" ({name})" if name else "")


def was_ended_from_outside(status: int | None) -> bool:
    """Whether a process was ended by a signal of a user, a supervisor or the kernel."""
    return status is not None and (-status if status < 0 else status - 128) in _ENDING


def _signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return ""


_ZERO_S = time.time() - time.perf_counter()
"""The zero of `time.perf_counter`, by the system's clock when this module was loaded."""


def epoch_ms(moment_s: float | None = None) -> int:
    """Return a value of `time.perf_counter`, or the current time, as ms since the epoch."""
    return int((_ZERO_S + (time.perf_counter() if moment_s is None else moment_s)) * 1000)
