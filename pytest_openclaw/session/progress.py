"""A line below pytest's own that shows how far a run is; only on a terminal.

pytest keeps writing to its unfinished row of dots, so this line is one row below: the cursor moves there and
back, and the line is erased before pytest writes.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import sys
import threading
from typing import TYPE_CHECKING, TextIO

import pytest

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Iterator

EVERY_S = 0.5
FIRST_AFTER_S = 2.0
# ECMA-48 and the VT100: index (a row down, scrolling at the bottom, in the same column), cursor up, save the
# cursor, cursor down, first column … erase to the end of the row, restore the cursor.
_GO_BELOW = "\x1bD\x1b[A\x1b7\x1b[B\r"
_COME_BACK = "\x1b[K\x1b8"


def terminal_of(config: pytest.Config) -> TextIO | None:
    """Return a copy of the terminal, which pytest does not capture; None if the line must not be drawn.

    It is not drawn under `-q`, in files, pipes and CI logs, on a terminal that cannot move its cursor, and
    under `-s`, where tests may write at any time.
    """
    if (
        config.get_verbosity() < 0
        or config.option.capture == "no"
        or config.pluginmanager.get_plugin("terminalreporter") is None
        or os.environ.get("CI")
        or os.environ.get("TERM", "dumb") == "dumb"
    ):
        return None
    try:
        file = os.fdopen(os.dup(sys.stdout.fileno()), "w", encoding="utf-8", errors="replace")
    except (OSError, ValueError, AttributeError):
        return None  # in-process callers replace stdout by something without a descriptor
    if file.isatty():
        return file
    file.close()
    return None


class LiveLine:
    """Redraws the line from a thread, because the test thread and xdist's controller block while they wait.

    Registered as a plugin, it keeps the line off the terminal while pytest writes there.

    Args:
        file: the terminal.
        n_in_flight: returns how many cells are in flight.
        total: cells of the run.
    """

    def __init__(
        self,
        file: TextIO,
        n_in_flight: Callable[[], int],
        total: int,
        *,
        every_s: float = EVERY_S,
        first_after_s: float = FIRST_AFTER_S,
    ) -> None:
        self.total = total
        self.done = self.failed = 0
        self._file = file
        self._n_in_flight = n_in_flight
        self._every_s = every_s
        self._is_drawn = False
        self._lock = threading.RLock()
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, args=(first_after_s,), daemon=True)
        self._thread.start()

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtest_logstart(self) -> Generator[None, None, None]:
        """Erase the line while pytest writes."""
        with self.away():
            return (yield)

    pytest_runtest_logfinish = pytest_runtest_logreport = pytest_runtest_logstart

    @contextlib.contextmanager
    def away(self) -> Iterator[None]:
        """Erase the line while other output is written to the terminal."""
        with self._lock:
            self._show("")
            yield

    @pytest.hookimpl(tryfirst=True)
    def pytest_sessionfinish(self) -> None:
        """Erase the line and end the thread."""
        self._stop.set()
        self._thread.join(timeout=5)
        with self._lock, contextlib.suppress(OSError, ValueError):  # the terminal is closed
            self._show("")
            self._file.close()

    def _run(self, first_after_s: float) -> None:
        pause_s = first_after_s
        while not self._stop.wait(pause_s):
            pause_s = self._every_s
            text = f"openclaw {self.done}/{self.total}, {self._n_in_flight()} in flight, {self.failed} failed"
            text = text[: shutil.get_terminal_size().columns - 1]
            with self._lock:
                if self._stop.is_set() or not self._show(text):
                    return

    def _show(self, text: str) -> bool:
        """Draw the line, or erase it if there is no text; return False if the terminal is closed."""
        if not text and not self._is_drawn:
            return True
        try:
            self._file.write(f"{_GO_BELOW}{text}{_COME_BACK}")
            self._file.flush()
        except (OSError, ValueError):
            return False
        self._is_drawn = bool(text)
        return True
