"""The line that shows how far a run is, where pytest writes on a terminal.

The progress of a run: cells done, cells awaited, time left, cost.

Only values; `live_line.py` shows them on a terminal.

A progress line below pytest's own, redrawn while replies are awaited; only on a terminal.

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
from dataclasses import dataclass
from typing import TYPE_CHECKING, TextIO

import pytest

from pytest_openclaw.reports.numbers import one_line, render_duration, render_usd

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Iterable, Iterator, Mapping

    from pytest_openclaw.values.protocols import Provider
    from pytest_openclaw.values.requests import Target


LONGEST_NAME = 32
FEWEST_FOR_A_RATE = 3
SMOOTHING = 0.2
"""The weight of the newest estimate of the end, so that one slow or quick cell does not move it much."""


@dataclass(frozen=True, kw_only=True)
class Wait:
    """A cell is sent again later.

    Attributes:
        why: the fault of its last attempt, as a sentence.
        seconds: until then, from now.

    """

    why: str
    seconds: float


@dataclass(frozen=True, kw_only=True)
class Awaited:
    """The cell of an endpoint that has been awaited longest.

    Attributes:
        wait: why its request is delayed; None if it is in flight.

    """

    nodeid: str
    seconds: float
    wait: Wait | None = None


class Progress:
    """Counts finished cells by endpoint; endpoints work in parallel.

    Args:
        n_selected: cells by target label.
        endpoints: the endpoint of each of these targets.
        now: seconds of a monotonic clock.

    """

    def __init__(
        self, n_selected: Mapping[str, int], endpoints: Mapping[str, str], now: Callable[[], float]
    ) -> None:
        self._endpoints = endpoints
        self._now = now
        self._n_left: Counter[str] = Counter()
        for target, n in n_selected.items():
            self._n_left[endpoints[target]] += n
        self._done: Counter[str] = Counter()
        self._n_kept = 0
        self._usd: float | None = None
        self._awaited: dict[str, float] = {}
        self._began = now()
        self._received = dict.fromkeys(self._n_left, self._began)
        self._end: float | None = None

    def started(self, nodeid: str) -> None:
        """Note that an item is awaited from now on."""
        self._awaited[nodeid] = self._now()

    def ended(self, nodeid: str) -> None:
        """Note that an item is no longer awaited."""
        self._awaited.pop(nodeid, None)

    def count(self, target: str, usd: float | None) -> None:
        """Count a cell that has a row."""
        endpoint = self._endpoints[target]
        self._n_left[endpoint] -= 1
        self._done[endpoint] += 1
        self._received[endpoint] = self._now()
        if usd is not None:
            self._usd = (self._usd or 0.0) + usd
        self._estimate()

    def _estimate(self) -> None:
        """Move the estimated end; endpoints work in parallel, so the slowest one decides it."""
        now = self._now()
        n_left = {endpoint: n for endpoint, n in self._n_left.items() if n}
        # Without a finished cell of an endpoint there is no estimate.
        if not n_left or not all(self._done[endpoint] for endpoint in n_left):
            return
        end = now + max(n * (now - self._began) / self._done[endpoint] for endpoint, n in n_left.items())
        self._end = end if self._end is None else self._end + SMOOTHING * (end - self._end)

    def count_kept(self, target: str) -> None:
        """Count a cell whose row is from an earlier session."""
        self._n_left[self._endpoints[target]] -= 1
        self._n_kept += 1

    def leave_out(self, target: str) -> None:
        """Remove a cell from the count."""
        self._n_left[self._endpoints[target]] -= 1

    def line(self, width: int, asked: Mapping[str, str] | None, why: Callable[[str], Wait | None]) -> str:
        """Return the state of the run as one line.

        Args:
            width: columns that it may take.
            asked: endpoint → its longest pending cell, where this process knows it; None shows the running
                items, one per xdist worker.
            why: returns the wait of an item, if it has one.

        """
        done = sum(self._done.values()) + self._n_kept
        parts = [f"openclaw {done}/{done + sum(self._n_left.values())}", *self._pace()]
        if self._usd:
            parts.append(render_usd(self._usd))
        awaited = ", ".join(_render_awaited(one) for one in self._longest(asked, why))
        return one_line(f"{', '.join(parts)}; {awaited}" if awaited else ", ".join(parts), width)

    def _pace(self) -> Iterable[str]:
        n, seconds = sum(self._done.values()), self._now() - self._began
        if n < FEWEST_FOR_A_RATE or seconds <= 0:
            return
        per_s = n / seconds
        yield f"{per_s:.1f}/s" if per_s >= 1 else f"{per_s * 60:.1f}/min"
        # Nothing is known while the cells take longer than estimated.
        if self._end is not None and any(self._n_left.values()) and (left_s := self._end - self._now()) > 0:
            yield f"{render_duration(left_s)} left"

    def _longest(
        self, asked: Mapping[str, str] | None, why: Callable[[str], Wait | None]
    ) -> Iterable[Awaited]:
        now = self._now()
        if asked is None:
            found = [(nodeid, now - since) for nodeid, since in dict(self._awaited).items()]
        else:
            found = [
                (nodeid, now - self._received.get(endpoint, self._began))
                for endpoint, nodeid in asked.items()
            ]
        for nodeid, seconds in sorted(found, key=lambda one: -one[1]):
            yield Awaited(nodeid=nodeid, seconds=seconds, wait=why(nodeid))


def _render_awaited(awaited: Awaited) -> str:
    name = one_line(awaited.nodeid.rpartition("::")[2], LONGEST_NAME)
    if awaited.wait is None:
        return f"{name} {render_duration(awaited.seconds)}"
    why = one_line(awaited.wait.why.rstrip("."), 2 * LONGEST_NAME)
    return f"{name} again in {render_duration(awaited.wait.seconds)}: {why}"


class ProgressDisplay:
    """Shows nothing until a run starts on a terminal; no other session has its hooks.

    Attributes:
        progress: what the line shows; None where there is none.

    Args:
        config: pytest's.
        providers: of the run's targets.
        awaited: returns, by endpoint, the item whose request has been in flight longest.

    """

    def __init__(
        self,
        config: pytest.Config,
        providers: Mapping[str, Provider],
        awaited: Callable[[], Mapping[str, str]],
    ) -> None:
        self.progress: Progress | None = None
        self._config = config
        self._providers = providers
        self._awaited = awaited
        self._waits: dict[str, tuple[str, float]] = {}
        self._line: LiveLine | None = None

    def start(self, n_selected: Mapping[Target, int]) -> None:
        """Show the line, if pytest writes on a terminal."""
        if (terminal := terminal_of(self._config)) is None:
            return
        endpoints = {target.label: self._providers[target.provider].endpoint for target in n_selected}
        n_by_label = {target.label: n for target, n in n_selected.items()}
        self.progress = progress = Progress(n_by_label, endpoints, time.monotonic)
        self._line = LiveLine(
            terminal,
            lambda width: progress.line(width, self._awaited(), self.wait_of),
        )
        self._config.pluginmanager.register(_LineHooks(progress, self._line), "openclaw-progress")

    def note_wait(self, nodeid: str, why: str, seconds: float) -> None:
        """Show that a cell waits before it is sent again; any thread may call it."""
        self._waits[nodeid] = (why, time.monotonic() + seconds)

    def wait_of(self, nodeid: str) -> Wait | None:
        """Return the wait of a cell, while it lasts."""
        why, until = self._waits.get(nodeid, ("", 0.0))
        left_s = until - time.monotonic()
        return Wait(why=why, seconds=left_s) if left_s > 0 else None

    def stop(self) -> None:
        """Remove the line for good."""
        if self._line:
            self._line.stop()


class _LineHooks:
    """Keeps the line off the terminal while pytest writes there, and up to date."""

    def __init__(self, progress: Progress, line: LiveLine) -> None:
        self._progress = progress
        self._line = line

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtest_logstart(self, nodeid: str) -> Generator[None, None, None]:
        """Note that an item is awaited."""
        self._progress.started(nodeid)
        with self._line.away():
            return (yield)

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtest_logfinish(self, nodeid: str) -> Generator[None, None, None]:
        """Note that an item is no longer awaited."""
        self._progress.ended(nodeid)
        with self._line.away():
            return (yield)

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtest_logreport(self) -> Generator[None, None, None]:
        """Do nothing else."""
        with self._line.away():
            return (yield)


EVERY_S = 0.5
FIRST_AFTER_S = 2.0
# ECMA-48 and the VT100: index (a row down, scrolling at the bottom, in the same column), cursor up, save the
# cursor, cursor down, first column … erase to the end of the row, restore the cursor.
_GO_BELOW = "\x1bD\x1b[A\x1b7\x1b[B\r"
_COME_BACK = "\x1b[K\x1b8"


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

    Args:
        file: the terminal; closed at the end.
        text: returns the line for a width in columns.

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
        self._thread = threading.Thread(
            target=self._run, args=(first_after_s,), name="openclaw-live-line", daemon=True
        )
        self._thread.start()

    @contextlib.contextmanager
    def away(self) -> Iterator[None]:
        """Erase the line while other output is written to the terminal."""
        with self._lock:
            self._show("")
            yield

    def stop(self) -> None:
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
