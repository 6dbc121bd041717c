"""The line that is written while a model is awaited."""

from __future__ import annotations

import io
import os
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from pytest_openclaw.run.progress import Progress, render_progress
from pytest_openclaw.run.waits import Wait, Waits, find_wait


def _until(happened: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 20
    while not happened() and time.monotonic() < deadline:
        time.sleep(0.005)
    assert happened()


class Terminal(io.StringIO):
    """Keeps what was written when it is closed."""

    text = ""

    def close(self) -> None:
        self.text = self.getvalue()
        super().close()


def test_the_line() -> None:
    """It says how far the run is, who is awaited and for how long."""
    assert (
        render_progress(done=3, total=36, asked="P4[p/m]", waited_s=12.4)
        == "openclaw: 3/36 cells done, P4[p/m], waited 12 s"
    )
    assert (
        render_progress(done=0, total=1, asked="", waited_s=0)
        == "openclaw: 0/1 cells done, starting, waited 0 s"
    )


def test_the_line_of_a_cell_that_is_asked_again_later() -> None:
    """It says why, without what a terminal would obey, and when."""
    wait = Wait(why="openai_responses: HTTP 429: slow down\x1b[2J.", seconds=7.6)

    assert (
        render_progress(done=3, total=36, asked="P4[p/m]", waited_s=12.4, wait=wait)
        == "openclaw: 3/36 cells done, P4[p/m], waited 12 s; asked again in 8 s, because "
        "openai_responses: HTTP 429: slow down\\x1b[2J"
    )


def test_a_wait_is_looked_up_when_it_is_told(tmp_path: Path) -> None:
    """What any process of the run has told stands in the line, for as long as it lasts."""
    terminal = Terminal()
    progress = Progress(terminal, 9, 0.01, lambda nodeid: find_wait(tmp_path, nodeid))
    progress.started("s.toml::P1[p/m]")

    Waits(tmp_path).add("s.toml::P1[p/m]", Wait(why="busy", seconds=0.5))

    _until(lambda: "because busy" in terminal.getvalue())
    _until(lambda: terminal.getvalue().endswith("s\n"))
    progress.stop()


def test_waits_that_are_over_are_forgotten(tmp_path: Path) -> None:
    """Each cell has its own; the file holds those that last."""
    waits = Waits(tmp_path)
    waits.add("a", Wait(why="busy", seconds=-1))
    waits.add("b", Wait(why="full", seconds=60))
    waits.add("c", Wait(why="slow", seconds=60))

    assert find_wait(tmp_path, "a") is None
    found = find_wait(tmp_path, "b")
    assert found is not None
    assert found.why == "full"
    assert 50 < found.seconds <= 60
    assert "busy" not in "".join(path.read_text() for path in tmp_path.iterdir())


def test_it_tells_of_the_cell_that_is_awaited_longest() -> None:
    """Of those asked side by side, the oldest is named; what has ended is not."""
    terminal = Terminal()
    progress = Progress(terminal, 9, 0.01, lambda nodeid: None)

    progress.started("s.toml::P1[p/m]")
    progress.started("s.toml::P2[p/m]")
    _until(lambda: "P1[p/m]" in terminal.getvalue())
    progress.count()
    progress.ended("s.toml::P1[p/m]")
    _until(lambda: "1/9 cells done, P2[p/m]" in terminal.getvalue())
    progress.stop()

    assert "s.toml" not in terminal.text


def test_nothing_is_written_after_the_stop() -> None:
    """The terminal is pytest's again."""
    terminal = Terminal()
    progress = Progress(terminal, 1, 0.01, lambda nodeid: None)
    _until(lambda: terminal.getvalue() != "")
    progress.stop()

    assert terminal.closed
    assert not progress._thread.is_alive()


@pytest.mark.parametrize("times", [1, 2])
def test_a_reader_who_has_left_is_no_error(times: int) -> None:
    """A closed pipe ends the lines and nothing else, however often it is stopped."""
    reader, writer = os.pipe()
    os.close(reader)
    progress = Progress(os.fdopen(writer, "w"), 1, 0.01, lambda nodeid: None)
    _until(lambda: not progress._thread.is_alive())

    for _ in range(times):
        progress.stop()

    with pytest.raises(OSError, match="Bad file descriptor"):
        os.fstat(writer)
