"""Ctrl-C and SIGTERM, once and again while the first is being handled, in sessions that use a server."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.plugin.killing import BEGIN, CELLS, HoldingServer, Lab, UnderWay, all_gone

pytestmark = [
    pytest.mark.newest,
    pytest.mark.skipif(sys.platform == "win32", reason="Windows has no such signals"),
]

TWO = "--openclaw-concurrency=2"

# Stops where pytest begins to handle an interruption, until the test lets it continue.
STOPS = """
import os, pathlib, time

FOLDER = pathlib.Path(__file__).parent

def {hook}():
    if "PYTEST_XDIST_WORKER" not in os.environ:
        (FOLDER / "ending.txt").touch()
        while not (FOLDER / "go-on.txt").exists():
            time.sleep(0.01)
"""
# A plugin's validator that never ends, the first time.
ENDLESS = """
import pathlib
import pytest_openclaw.judging.text as text

JUDGING = pathlib.Path(__file__).parent / "judging.txt"
check = text.Noop.check

def endless(self, reply):
    if not JUDGING.exists():
        JUDGING.touch()
        while True:
            pass
    return check(self, reply)

text.Noop.check = endless
"""


@pytest.fixture
def lab(tmp_path: Path) -> Iterator[Lab]:
    """A project whose server fails for one prompt, and delays another one."""
    with HoldingServer() as server:
        server.unwell = {"ask 2"}
        server.hold("ask 4")
        yield Lab.create(tmp_path / "project", server)


def waits(lab: Lab, session: UnderWay) -> set[int]:
    """Wait until some cells have ended and one is waiting; return all processes of the session."""
    session.wait_for_rows(3)
    session.wait_until(lambda: lab.server.is_asked("ask 4"))
    return session.processes()


def check_kept(lab: Lab, kept: list[bytes], *, cause: str = "Interrupted: Ctrl-C") -> None:
    """Check that earlier rows are kept, and that the run says what happened and how to continue."""
    assert lab.lines()[: len(kept)] == kept
    n_rows = len(lab.rows())
    assert (lab.summary()["state"], lab.summary()["n_rows"]) == ("interrupted", n_rows)
    assert f"{n_rows} of {len(CELLS)} cells have a row" in lab.text
    assert cause in lab.text
    assert "Traceback" not in lab.text
    assert "INTERNALERROR" not in lab.text
    assert "--openclaw-resume=r" in lab.text.split("\nnext ")[1]


@pytest.mark.parametrize(
    ("number", "mode"),
    [
        pytest.param(signal.SIGINT, (), id="ctrl-c-plain", marks=pytest.mark.nightly),
        pytest.param(signal.SIGTERM, (), id="sigterm-plain", marks=pytest.mark.nightly),
        pytest.param(signal.SIGINT, ("-n", "2"), id="ctrl-c-workers", marks=pytest.mark.workers),
    ],
)
def test_once(lab: Lab, whole: Any, number: signal.Signals, mode: tuple[str, ...]) -> None:
    """A signal to the whole group, as from a terminal or a time limit: the run ends and can be resumed."""
    with lab.started(*BEGIN, TWO, *mode) as session:
        started = waits(lab, session)
        kept = lab.lines()
        os.killpg(session.process.pid, number)
        assert session.end() == 2, lab.text
        assert all_gone(started)

    check_kept(lab, kept, cause="SIGTERM" if number == signal.SIGTERM else "Interrupted: Ctrl-C")
    lab.goes_on(whole)


@pytest.mark.parametrize(
    "number",
    [pytest.param(signal.SIGINT, marks=pytest.mark.nightly), signal.SIGTERM],
    ids=["ctrl-c", "sigterm"],
)
def test_while_a_reply_is_judged(lab: Lab, whole: Any, number: signal.Signals) -> None:
    """Python code that never ends is interrupted where it is."""
    lab.server.hold()
    (lab.folder / "conftest.py").write_text(ENDLESS)
    with lab.started(*BEGIN) as session:
        session.wait_until((lab.folder / "judging.txt").exists)
        started, kept = session.processes(), lab.lines()
        session.process.send_signal(number)
        assert session.end() == 2, lab.text
        assert all_gone(started)

    check_kept(lab, kept, cause="SIGTERM" if number == signal.SIGTERM else "Interrupted: Ctrl-C")
    (lab.folder / "conftest.py").unlink()
    lab.goes_on(whole)


@pytest.mark.parametrize(
    ("hook", "mode"),
    [
        pytest.param("pytest_keyboard_interrupt", (), id="plain", marks=pytest.mark.nightly),
        pytest.param(
            "pytest_sessionfinish",
            ("-n", "2"),
            id="workers",
            marks=[pytest.mark.workers, pytest.mark.nightly],
        ),
    ],
)
def test_ctrl_c_twice(lab: Lab, whole: Any, mode: tuple[str, ...], hook: str) -> None:
    """The second one, at any moment of the ending, loses neither a row nor the summary."""
    (lab.folder / "conftest.py").write_text(STOPS.format(hook=hook))
    with lab.started(*BEGIN, TWO, *mode) as session:
        started = waits(lab, session)
        kept = lab.lines()
        os.killpg(session.process.pid, signal.SIGINT)
        session.wait_until((lab.folder / "ending.txt").exists)
        os.killpg(session.process.pid, signal.SIGINT)
        (lab.folder / "go-on.txt").touch()
        assert session.end() == 2, lab.text
        assert all_gone(started)

    check_kept(lab, kept)
    (lab.folder / "conftest.py").unlink()
    lab.goes_on(whole)
