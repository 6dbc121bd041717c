"""SIGTERM while a run is under way."""

from __future__ import annotations

import os
import signal
import threading

import pytest

from pytest_openclaw.signals import TerminatedBySIGTERM, ended_by_sigterm


def test_sigterm_interrupts_as_ctrl_c_does() -> None:
    """It is a `KeyboardInterrupt`, which pytest ends a session by; afterwards all is as before."""
    before = signal.getsignal(signal.SIGTERM)
    with pytest.raises(TerminatedBySIGTERM, match="SIGTERM"), ended_by_sigterm():
        os.kill(os.getpid(), signal.SIGTERM)

    assert issubclass(TerminatedBySIGTERM, KeyboardInterrupt)
    assert signal.getsignal(signal.SIGTERM) is before


def test_who_handles_it_already_goes_on_doing_so() -> None:
    """A handler of the user's, or of another plugin, stays."""
    heard: list[int] = []
    before = signal.signal(signal.SIGTERM, lambda number, frame: heard.append(number))
    try:
        with ended_by_sigterm():
            os.kill(os.getpid(), signal.SIGTERM)
    finally:
        signal.signal(signal.SIGTERM, before)

    assert heard == [signal.SIGTERM]


def test_in_another_thread_nothing_is_changed() -> None:
    """Python lets the main thread alone handle signals."""
    handlers = []

    def run() -> None:
        with ended_by_sigterm():
            handlers.append(signal.getsignal(signal.SIGTERM))

    thread = threading.Thread(target=run)
    thread.start()
    thread.join()

    assert handlers == [signal.getsignal(signal.SIGTERM)]
