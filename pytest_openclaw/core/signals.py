"""Ctrl-C and SIGTERM end a run alike: what was measured is kept, and the summary is written.

The first one ends the session. While it ends, the next one ends its waiting, and only a third one ends it in
the middle of what it does.
"""

from __future__ import annotations

import _thread
import signal
import threading
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator
    from types import FrameType, TracebackType


MOST_PATIENCE = 2
"""Signals that do no more than hurry a session that ends: a second Ctrl-C loses no summary."""
_ENDING = frozenset({1, 2, 9, 15})
"""SIGHUP, SIGINT, SIGKILL and SIGTERM: no program ends itself by them. Windows does not name them all."""


class TerminatedBySIGTERM(KeyboardInterrupt):
    """Somebody asked this process to end: a time limit, a CI system, a shutdown."""

    __module__ = "builtins"  # pytest shows the whole name


class Interrupted(KeyboardInterrupt):
    """Ctrl-C. Of an exception with another name pytest shows no line of code that was interrupted."""

    __module__ = "builtins"


class _WholeStep:
    """See `whole_step`."""

    def __init__(self) -> None:
        self._depth = 0
        self._came: int | None = None
        self.is_ending = False
        self.n_while_ending = 0

    def __enter__(self) -> None:
        self._depth += 1

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._depth -= 1
        if self._depth or self._came is None:
            return
        came, self._came = self._came, None
        if error is None:  # else that ends the session
            self._note(came)

    def receive(self, number: int, frame: FrameType | None) -> None:  # noqa: ARG002 - what a handler is given
        """Raise for a signal, at once or at the end of the step that is under way."""
        if self._depth:
            self._came = number
        else:
            self._note(number)

    def _note(self, number: int) -> None:
        if self.is_ending:
            self.n_while_ending += 1
        if not 1 <= self.n_while_ending <= MOST_PATIENCE:
            raise TerminatedBySIGTERM("SIGTERM") if number == signal.SIGTERM else Interrupted("Ctrl-C")


#: A context in which Ctrl-C and SIGTERM wait: what happens in it happens whole. For the main thread, and
#: for what never waits; it holds where `interrupted_by_signals` is in force.
whole_step = _WholeStep()


@contextmanager
def interrupted_by_signals() -> Iterator[None]:
    """Raise `KeyboardInterrupt` in the main thread on Ctrl-C and SIGTERM, but never within a `whole_step`.

    A signal that somebody else handles stays theirs. Once the session `ends`, the next ones raise nothing
    but make `is_hurried` true.
    """
    usual: dict[int, Any] = {signal.SIGINT: signal.default_int_handler, signal.SIGTERM: signal.SIG_DFL}
    if threading.current_thread() is not threading.main_thread():
        usual = {}
    taken = [number for number, handler in usual.items() if signal.getsignal(number) is handler]
    if taken:
        whole_step.is_ending = False
        whole_step.n_while_ending = 0
    for number in taken:
        signal.signal(number, whole_step.receive)
    try:
        yield
    finally:
        for number in taken:
            signal.signal(number, usual[number])


def how_it_ended(status: int | None) -> str:
    """Return the end of a process in words, with the signal that caused it.

    Args:
        status: the exit status as `subprocess` gives it: the negative number of the signal, or 128 plus that
            number from a program that handles the signal; None if the process has closed its output only.
    """
    if status is None:
        return "closed its output"
    if status < 0:
        return f"was killed by {_signal_name(-status) or f'signal {-status}'}"
    name = _signal_name(status - 128)
    return f"ended with exit status {status}" + (f" ({name})" if name else "")


def was_ended_from_outside(status: int | None) -> bool:
    """Whether a signal that ends programs caused the end, as a user, a supervisor or the kernel sends it.

    Args:
        status: see `how_it_ended`.
    """
    if status is None:
        return False
    return (-status if status < 0 else status - 128) in _ENDING


def ends() -> None:
    """Say that the session ends by itself from now on, interrupted or not."""
    whole_step.is_ending = True


def is_ending() -> bool:
    """Whether the session ends by itself, so that there is nothing to interrupt any more."""
    return whole_step.is_ending


def is_hurried() -> bool:
    """Whether a signal has come since the session began to end: nothing is waited for any longer."""
    return whole_step.n_while_ending > 0


def interrupt_main_thread() -> None:
    """Raise `KeyboardInterrupt` in the main thread, even if it waits; call it in another one."""
    if hasattr(signal, "pthread_kill"):
        ident = threading.main_thread().ident
        assert ident is not None, "it has been started"
        signal.pthread_kill(ident, signal.SIGINT)
    else:
        _thread.interrupt_main()


def _signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return ""
