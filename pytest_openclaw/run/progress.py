"""A line now and then while a model is awaited: cells done, who is asked, for how long."""

from __future__ import annotations

import contextlib
import os
import sys
import threading
import time
from typing import TYPE_CHECKING, TextIO

from pytest_openclaw.reports.numbers import printable

if TYPE_CHECKING:
    from collections.abc import Callable

    import pytest

    from pytest_openclaw.run.waits import Wait

EVERY_S = 4.0
EVERY_S_IN_A_LOG = 30.0


def render_progress(*, done: int, total: int, asked: str, waited_s: float, wait: Wait | None = None) -> str:
    """Return the line; with a `wait`, it says why the cell is not being asked just now, and until when."""
    line = f"openclaw: {done}/{total} cells done, {asked or 'starting'}, waited {waited_s:.0f} s"
    if wait is None:
        return line
    return f"{line}; asked again in {wait.seconds:.0f} s, because {printable(wait.why).rstrip('.')}"


class Progress:
    """Writes to a copy of the terminal, which pytest's capturing of a running test does not reach.

    A thread, because the test thread waits and under xdist the controller does.
    """

    def __init__(self, file: TextIO, total: int, every_s: float, why: Callable[[str], Wait | None]) -> None:
        self._file = file
        self._total = total
        self._every_s = every_s
        self._why = why
        self._done = 0
        self._awaited: dict[str, float] = {}
        self._line_is_open = True
        self._began = time.monotonic()
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._tick, name="openclaw-progress", daemon=True)
        self._thread.start()

    @classmethod
    def of(cls, config: pytest.Config, total: int, why: Callable[[str], Wait | None]) -> Progress | None:
        """Return the progress of this session; None if it is to be quiet.

        Args:
            config: pytest's.
            total: cells of the run.
            why: gives the wait of an item, if it has one.
        """
        if (
            config.get_verbosity() < 0
            or config.option.collectonly
            or config.pluginmanager.get_plugin("terminalreporter") is None
        ):
            return None
        try:
            file = os.fdopen(os.dup(sys.stdout.fileno()), "w", encoding="utf-8", errors="replace")
        except (OSError, ValueError, AttributeError):
            return None  # in-process callers replace stdout by something without a descriptor
        return cls(file, total, EVERY_S if file.isatty() else EVERY_S_IN_A_LOG, why)

    def started(self, nodeid: str) -> None:
        """Await an item from now on."""
        self._awaited[nodeid] = time.monotonic()
        self._line_is_open = True

    def ended(self, nodeid: str) -> None:
        """Await an item no longer."""
        self._awaited.pop(nodeid, None)
        self._line_is_open = True

    def count(self) -> None:
        """Count a cell as done."""
        self._done += 1

    def leave_out(self) -> None:
        """Count a cell as none of the run's."""
        self._total -= 1

    def stop(self) -> None:
        """Write nothing more."""
        self._stop.set()
        self._thread.join(timeout=5)
        with contextlib.suppress(OSError):  # whoever read it has gone
            self._file.close()

    def _tick(self) -> None:
        while not self._stop.wait(self._every_s):
            # Workers ask side by side; the one that is awaited longest is the one to tell of.
            nodeid, since = next(iter(dict(self._awaited).items()), ("", self._began))
            line = render_progress(
                done=self._done,
                total=self._total,
                asked=nodeid.rpartition("::")[2],
                waited_s=time.monotonic() - since,
                wait=self._why(nodeid),
            )
            try:
                # pytest leaves its row of dots open, so this begins and ends a line of its own.
                self._file.write(f"\n{line}\n" if self._line_is_open else f"{line}\n")
                self._file.flush()
            except (OSError, ValueError):
                return  # whoever read it has gone
            self._line_is_open = False
