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
import time
from collections import Counter
from typing import TYPE_CHECKING, TextIO

import pytest

from pytest_openclaw.reports.numbers import one_line, render_duration, render_usd

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Iterator, Mapping

LONGEST_NAME = 32
FEWEST_FOR_A_RATE = 3
EVERY_S = 0.5
FIRST_AFTER_S = 2.0
# ECMA-48 and the VT100: index (a row down, scrolling at the bottom, in the same column), cursor up, save the
# cursor, cursor down, first column … erase to the end of the row, restore the cursor.
_GO_BELOW = "\x1bD\x1b[A\x1b7\x1b[B\r"
_COME_BACK = "\x1b[K\x1b8"


class Progress:
    """Counts finished cells by endpoint; endpoints work in parallel.

    Args:
        n_selected: cells by target label.
        endpoints: the endpoint of each of these targets.
        now: seconds of a monotonic clock.
    """

    def __init__(
        self,
        n_selected: Mapping[str, int],
        endpoints: Mapping[str, str],
        now: Callable[[], float] = time.monotonic,
    ) -> None:
        self._endpoints = endpoints
        self._now = now
        self._n_left: Counter[str] = Counter()
        for target, n in n_selected.items():
            self._n_left[endpoints[target]] += n
        self._done: Counter[str] = Counter()
        self._n_kept = 0
        self._usd = 0.0
        self._waits: dict[str, tuple[str, float]] = {}
        self._began = now()
        self._received = dict.fromkeys(self._n_left, self._began)

    def note_wait(self, nodeid: str, why: str, seconds: float) -> None:
        """Show that a cell waits before it is sent again; any thread may call it."""
        self._waits[nodeid] = (one_line(why.rstrip("."), 2 * LONGEST_NAME), self._now() + seconds)

    def count(self, target: str, usd: float | None) -> None:
        """Count a cell that has a row."""
        endpoint = self._endpoints[target]
        self._n_left[endpoint] -= 1
        self._done[endpoint] += 1
        self._received[endpoint] = self._now()
        self._usd += usd or 0.0

    def leave_out(self, target: str, *, is_kept: bool = False) -> None:
        """Remove a cell from the count; `is_kept` if an earlier session has its row."""
        self._n_left[self._endpoints[target]] -= 1
        self._n_kept += is_kept

    def line(self, width: int, awaited: Mapping[str, str]) -> str:
        """Return the state of the run as one line."""
        now = self._now()
        done = self._done.total() + self._n_kept
        parts = [f"openclaw {done}/{done + self._n_left.total()}", *self._pace(now)]
        if self._usd:
            parts.append(render_usd(self._usd))
        since = {nodeid: self._received.get(endpoint, self._began) for endpoint, nodeid in awaited.items()}
        longest_first = sorted(since.items(), key=lambda one: one[1])
        cells = ", ".join(self._render(nodeid, now - began, now) for nodeid, began in longest_first)
        return one_line("; ".join(filter(None, (", ".join(parts), cells))), width)

    def _pace(self, now: float) -> Iterator[str]:
        n, seconds = self._done.total(), now - self._began
        if n < FEWEST_FOR_A_RATE or seconds <= 0:
            return
        per_s = n / seconds
        yield f"{per_s:.1f}/s" if per_s >= 1 else f"{per_s * 60:.1f}/min"
        # The slowest endpoint decides. The time is unknown until each endpoint has finished a cell.
        n_left = {endpoint: n for endpoint, n in self._n_left.items() if n}
        if n_left and all(self._done[endpoint] for endpoint in n_left):
            needs_s = [n * seconds / self._done[endpoint] for endpoint, n in n_left.items()]
            yield f"{render_duration(max(needs_s))} left"

    def _render(self, nodeid: str, seconds: float, now: float) -> str:
        name = one_line(nodeid.rpartition("::")[2], LONGEST_NAME)
        why, until = self._waits.get(nodeid, ("", 0.0))
        if until <= now:
            return f"{name} {render_duration(seconds)}"
        return f"{name} again in {render_duration(until - now)}: {why}"


def terminal_of(config: pytest.Config) -> TextIO | None:
    """Return a copy of the terminal, which pytest does not capture; None if the line must not be drawn.

    It must not under `-q`, in files, pipes and CI logs, on a terminal that cannot move its cursor, and under
    `-s`, where tests may write at any time.
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
    """

    def __init__(
        self,
        file: TextIO,
        text: Callable[[int], str],
        *,
        every_s: float = EVERY_S,
        first_after_s: float = FIRST_AFTER_S,
    ) -> None:
        self._file = file
        self._text = text
        self._every_s = every_s
        self._is_drawn = False
        self._lock = threading.RLock()
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, args=(first_after_s,), daemon=True)
        self._thread.start()

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtest_logstart(self) -> Generator[None, None, None]:
        """Erase the line meanwhile."""
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
            text = self._text(shutil.get_terminal_size().columns - 1)
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
