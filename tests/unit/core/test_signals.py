"""Ctrl-C and SIGTERM during a run."""

from __future__ import annotations

import os
import signal
import threading
import time

import pytest

from pytest_openclaw.core.signals import (
    TerminatedBySIGTERM,
    ends,
    how_it_ended,
    interrupt_main_thread,
    interrupted_by_signals,
    is_ending,
    is_hurried,
    whole_step,
)


def test_sigterm_interrupts_as_ctrl_c_does() -> None:
    """It becomes a `KeyboardInterrupt`, by which pytest ends a session; then the handler is restored."""
    before = signal.getsignal(signal.SIGTERM)
    with pytest.raises(TerminatedBySIGTERM, match="SIGTERM"), interrupted_by_signals():
        os.kill(os.getpid(), signal.SIGTERM)

    assert issubclass(TerminatedBySIGTERM, KeyboardInterrupt)
    assert signal.getsignal(signal.SIGTERM) is before


@pytest.mark.parametrize(
    ("status", "words"),
    [
        pytest.param(0, "ended with exit status 0", id="in-order"),
        pytest.param(3, "ended with exit status 3", id="failed"),
        pytest.param(-15, "was killed by SIGTERM", id="killed"),
        pytest.param(-250, "was killed by signal 250", id="signal-without-a-name"),
        pytest.param(143, "ended with exit status 143 (SIGTERM)", id="handled-a-signal"),
        pytest.param(128, "ended with exit status 128", id="just-below-signals"),
        pytest.param(255, "ended with exit status 255", id="above-signals"),
        pytest.param(None, "closed its output", id="still-running"),
    ],
)
def test_how_it_ended(status: int | None, words: str) -> None:
    """The end of a process names the signal behind it."""
    assert how_it_ended(status) == words


def test_an_existing_handler_stays() -> None:
    """A handler of the user, or of another plugin, is not replaced."""
    received: list[int] = []
    before = signal.signal(signal.SIGTERM, lambda number, frame: received.append(number))
    try:
        with interrupted_by_signals():
            os.kill(os.getpid(), signal.SIGTERM)
    finally:
        signal.signal(signal.SIGTERM, before)

    assert received == [signal.SIGTERM]


def test_in_another_thread_nothing_is_changed() -> None:
    """Python allows signal handling only in the main thread."""
    handlers = []

    def run() -> None:
        with interrupted_by_signals():
            handlers.append(signal.getsignal(signal.SIGTERM))

    thread = threading.Thread(target=run)
    thread.start()
    thread.join()

    assert handlers == [signal.getsignal(signal.SIGTERM)]


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM], ids=["ctrl-c", "sigterm"])
def test_a_step_happens_whole(number: signal.Signals) -> None:
    """A signal in the middle of a step, or of a step within it, ends the session after it."""
    done = []

    def step() -> None:
        with whole_step:
            with whole_step:
                os.kill(os.getpid(), number)
                done.append("inner")
            done.append("outer")

    with pytest.raises(KeyboardInterrupt), interrupted_by_signals():
        step()

    assert done == ["inner", "outer"]
    with interrupted_by_signals(), whole_step:
        done.append("the next one")
    assert done[2:] == ["the next one"]


def test_an_error_in_a_step_is_raised_instead_of_the_signal() -> None:
    """An error in a step ends the session regardless; the signal is not raised later either."""

    def fail() -> None:
        with whole_step:
            os.kill(os.getpid(), signal.SIGINT)
            raise OSError("full")

    with interrupted_by_signals():
        with pytest.raises(OSError, match="full"):
            fail()
        with whole_step:
            pass


@pytest.mark.parametrize("within", [False, True], ids=["between-steps", "within-a-step"])
def test_an_ending_session_is_hurried_and_only_then_interrupted(within: bool) -> None:
    """Two signals after the ending began raise nothing, the third one does; a new session starts afresh."""

    def come(number: int) -> None:
        if not within:
            os.kill(os.getpid(), number)
            return
        with whole_step:
            os.kill(os.getpid(), number)

    with interrupted_by_signals():
        ends()
        assert not is_hurried()
        come(signal.SIGTERM)
        assert is_hurried()
        come(signal.SIGINT)
        with pytest.raises(KeyboardInterrupt):
            come(signal.SIGINT)

    with interrupted_by_signals():
        assert (is_ending(), is_hurried()) == (False, False)
        with pytest.raises(KeyboardInterrupt):
            come(signal.SIGINT)


def test_another_thread_can_interrupt_a_wait() -> None:
    """It ends the main thread's wait."""
    waiting = threading.Event()

    def interrupt() -> None:
        waiting.wait()
        time.sleep(0.1)  # a signal just before the wait would take effect after it
        interrupt_main_thread()

    def wait() -> None:
        waiting.set()
        threading.Event().wait(60)

    thread = threading.Thread(target=interrupt)
    thread.start()
    with pytest.raises(KeyboardInterrupt):
        wait()
    thread.join()
