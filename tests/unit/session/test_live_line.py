"""The line below pytest's own output, as a terminal shows it."""

from __future__ import annotations

import io
import os
import threading
import time
from collections.abc import Callable

import pyte
import pytest

from pytest_openclaw.session.progress import LiveLine

LINE = "openclaw 0/9, 1 in flight, 0 failed"


def _until(happened: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 120
    while not happened() and time.monotonic() < deadline:
        time.sleep(0.005)
    assert happened()


class Terminal(io.StringIO):
    """A screen of 10 rows and 40 columns with two writers: the line's file and pytest."""

    def __init__(self) -> None:
        super().__init__()
        self.screen = pyte.Screen(40, 10)
        self._stream = pyte.Stream(self.screen)
        self._whole = threading.Lock()  # the screen is not read while a line is half drawn

    def write(self, text: str) -> int:
        with self._whole:
            self._stream.feed(text.replace("\n", "\r\n"))
        return len(text)

    def close(self) -> None:
        """Stay open so that the test can read the screen."""

    @property
    def rows(self) -> list[str]:
        with self._whole:
            return [row.rstrip() for row in self.screen.display if row.strip()]


@pytest.fixture
def terminal() -> Terminal:
    """An empty terminal."""
    return Terminal()


@pytest.mark.parametrize("above", [0, 3, 9, 30], ids=lambda n: f"{n}-rows-above")
def test_it_is_below_and_leaves_the_cursor(terminal: Terminal, above: int) -> None:
    """Pytest continues in its row, also in the last row of the screen."""
    terminal.write("".join(f"row {n}\n" for n in range(above)) + "suite.toml ..")
    line = LiveLine(terminal, lambda: 1, 9, every_s=0.01, first_after_s=0)
    _until(lambda: terminal.rows[-1] == LINE)

    with line.away():
        terminal.write("F")
        away = terminal.rows
    _until(lambda: terminal.rows[-1] == LINE)

    assert terminal.rows[-2] == away[-1] == "suite.toml ..F"
    line.pytest_sessionfinish()
    assert terminal.rows == away


def test_a_new_row_of_pytest_is_not_written_over_the_line(terminal: Terminal) -> None:
    """No rest of a long line stays behind a short row."""
    terminal.write("suite.toml .")
    line = LiveLine(terminal, lambda: 1, 9, every_s=0.01, first_after_s=0)
    _until(lambda: len(terminal.rows) == 2)

    with line.away():
        terminal.write("\nb.toml F")
    line.pytest_sessionfinish()

    assert terminal.rows == ["suite.toml .", "b.toml F"]


@pytest.mark.parametrize("times", [1, 2])
def test_a_reader_who_has_left_is_no_error(times: int) -> None:
    """A closed pipe ends the line and nothing else, however often it is stopped."""
    reader, writer = os.pipe()
    os.close(reader)
    line = LiveLine(os.fdopen(writer, "w"), lambda: 1, 9, every_s=0.01, first_after_s=0)
    _until(lambda: not line._thread.is_alive())

    for _ in range(times):
        line.pytest_sessionfinish()

    with pytest.raises(OSError, match="Bad file descriptor"):
        os.fstat(writer)
