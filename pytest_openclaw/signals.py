"""SIGTERM ends a run as Ctrl-C does: what was measured is kept, and the summary is written."""

from __future__ import annotations

import signal
import threading
from contextlib import contextmanager
from typing import TYPE_CHECKING, NoReturn

if TYPE_CHECKING:
    from collections.abc import Iterator
    from types import FrameType


class TerminatedBySIGTERM(KeyboardInterrupt):
    """Somebody asked this process to end: a time limit, a CI system, a shutdown."""


@contextmanager
def ended_by_sigterm() -> Iterator[None]:
    """Raise `TerminatedBySIGTERM` in the main thread on SIGTERM, unless somebody else handles it."""
    if (
        threading.current_thread() is not threading.main_thread()
        or signal.getsignal(signal.SIGTERM) is not signal.SIG_DFL
    ):
        yield
        return
    signal.signal(signal.SIGTERM, _end)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, signal.SIG_DFL)


def _end(number: int, frame: FrameType | None) -> NoReturn:  # noqa: ARG001 - what a handler is given
    raise TerminatedBySIGTERM("SIGTERM")
