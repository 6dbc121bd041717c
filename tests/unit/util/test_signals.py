"""Ctrl-C, SIGTERM and SIGHUP during a run."""

import os
import signal

import pytest

from pytest_openclaw.util.signals import held_signals, how_it_ended, interrupted_by_signals, session_ends


@pytest.mark.parametrize("name", ["SIGTERM", "SIGHUP"])
def test_a_signal_interrupts_as_ctrl_c_does(name):
    """It becomes a `KeyboardInterrupt`, by which pytest ends a session; then the handler is restored."""
    number = getattr(signal, name)
    before = signal.signal(number, signal.SIG_DFL)  # nohup ignores SIGHUP in all that it starts
    try:
        with pytest.raises(KeyboardInterrupt, match=name), interrupted_by_signals():
            os.kill(os.getpid(), number)
        assert signal.getsignal(number) is signal.SIG_DFL
    finally:
        signal.signal(number, before)


@pytest.mark.parametrize(
    ("status", "words"),
    [
        (0, "ended with exit status 0"),
        (-15, "was killed by SIGTERM"),
        (-250, "was killed by signal 250"),
        (143, "ended with exit status 143 (SIGTERM)"),
        (255, "ended with exit status 255"),
        (None, "closed its output"),
    ],
)
def test_how_it_ended(status, words):
    """The end of a process names the signal behind it."""
    assert how_it_ended(status) == words


def test_an_existing_handler_stays():
    """A handler of the user, or of another plugin, is not replaced."""
    received = []
    before = signal.signal(signal.SIGTERM, lambda number, frame: received.append(number))
    try:
        with interrupted_by_signals():
            os.kill(os.getpid(), signal.SIGTERM)
    finally:
        signal.signal(signal.SIGTERM, before)

    assert received == [signal.SIGTERM]


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM], ids=["ctrl-c", "sigterm"])
def test_a_held_signal_comes_afterwards(number):
    """What must happen whole does, and the signal interrupts what follows."""
    done = []

    def step():
        with interrupted_by_signals(), held_signals():
            os.kill(os.getpid(), number)
            done.append("whole")

    with pytest.raises(KeyboardInterrupt):
        step()

    assert done == ["whole"]


@pytest.mark.parametrize("first", [signal.SIGINT, None], ids=["interrupted", "ends-by-itself"])
def test_signals_change_nothing_while_a_session_ends(first):
    """A second Ctrl-C loses no summary; each session begins anew."""
    for _ in range(2):
        with interrupted_by_signals():
            if first is None:
                session_ends()
            else:
                with pytest.raises(KeyboardInterrupt):
                    os.kill(os.getpid(), first)
            os.kill(os.getpid(), signal.SIGINT)
            os.kill(os.getpid(), signal.SIGTERM)
