"""The state of a run while it runs: a live line below pytest's progress, or a line for each target that ends.

The live line is drawn only in a terminal where nothing but pytest's own reporter writes. It is erased before
the reporter writes, and the cursor returns to its place, so pytest's output is the same as without it.
"""

from __future__ import annotations

import os
import sys
import threading
import time
from collections import Counter
from contextlib import suppress
from statistics import median
from typing import TYPE_CHECKING, Any

import pytest

from pytest_openclaw.reports.numbers import one_line, render_duration
from pytest_openclaw.util.text import counted
from pytest_openclaw.values.rows import Record

if TYPE_CHECKING:
    from collections.abc import Generator, Mapping

    from pytest_openclaw.asking.asker import Asker
    from pytest_openclaw.values.prompts import Cell
    from pytest_openclaw.values.rows import LeftOut

TICK_S, LEAST_SENT, LEAST_NAME = 0.25, 3, 16  # seconds; cells for an estimate; columns of a name
# IND and RI make a row below the cursor without moving it; DECSC and DECRC return to the cursor's place.
DRAW, ERASE = "\x1bD\x1bM\x1b7\x1b[B\r{}\x1b[K\x1b8", "\x1b7\x1b[B\r\x1b[K\x1b8"


class Live:
    """Counts the cells of a run as they end, and shows the state of the latest one's target."""

    def __init__(self, config: pytest.Config, cells: Mapping[str, Cell], asker: Asker) -> None:
        self._reporter: Any = config.pluginmanager.get_plugin("terminalreporter")
        self._cells, self._waiting = cells, asker.waiting
        self._n = Counter(cell.target.label for cell in cells.values())
        self._ended: dict[str, dict[object, tuple[int, int] | None]] = {label: {} for label in self._n}
        self._n_missed: Counter[str] = Counter()
        self._label, self._prompt, self._shown = next(iter(self._n)), "", ""
        self._lock, self._is_over = threading.RLock(), threading.Event()
        is_usual = type(self._reporter) is pytest.TerminalReporter  # not one of another plugin
        is_drawn, is_quiet = is_usual and _may_draw(config, self._reporter), config.option.verbose < 0
        self._width = config.get_terminal_writer().fullwidth if is_usual and not (is_drawn or is_quiet) else 0
        if is_drawn:
            self._fd = os.dup(1)  # pytest redirects 1 while a test runs
            config.pluginmanager.register(self, "openclaw-live")
            threading.Thread(target=self._tick, name="openclaw-live", daemon=True).start()

    def take(self, payload: Record | LeftOut) -> None:
        """Count a cell that has ended; without a terminal, say when it was the last one of its target."""
        self._label = label = payload.target.label if isinstance(payload, Record) else payload.target
        ended, key = self._ended[label], (payload.suite, payload.prompt_id, payload.repeat)
        if key in ended:
            return  # another plugin has run it again
        with self._lock:
            ended[key] = None
            if isinstance(payload, Record) and payload.attempts:
                ended[key] = (payload.e2e_ms, payload.in_flight or 1)
                self._n_missed[label] += payload.objective_pass is False
        n_left = sum(len(self._ended[one]) < n for one, n in self._n.items())
        if self._width and n_left and len(ended) == self._n[label]:
            said = f"{counted(len(ended), 'cell')}, {self._n_missed[label]} missed"
            text = f": {said}; {counted(n_left, 'target')} left"
            self._reporter.write_line(f"{one_line(label, max(1, self._width - len(text)))}{text}")

    def _text(self, width: int) -> str:
        label, ended = self._label, self._ended[self._label]
        parts = [f"{len(ended)} of {self._n[label]}"]
        if waits := self._waiting.get(label):
            fault = waits.failure_type.replace("http_", "HTTP ").replace("_", " ")
            wait_s = max(0, waits.begins_at - time.perf_counter())
            parts.append(f"{fault}, try {waits.attempt} of {waits.of} in {wait_s:.0f} s")
        sent, n_left = [*filter(None, ended.values())], self._n[label] - len(ended)
        if n_left and len(sent) >= LEAST_SENT:
            ms = n_left * median(e2e_ms for e2e_ms, _ in sent) / median(n for _, n in sent)
            parts.append(f"about {render_duration(max(1, ms / 1000))} left")
        n_others = sum(not its for one, its in self._ended.items() if one != label)
        parts += [f"then {counted(n_others, 'target')}"] if n_others else []
        while (room := width - len(" · ".join(["", *parts]))) < LEAST_NAME and len(parts) > 1:
            parts.pop()
        return " · ".join([one_line(f"{label} {self._prompt}", max(1, room)), *parts])[:width]

    def _tick(self) -> None:
        while not self._is_over.wait(TICK_S):
            if self._lock.acquire(blocking=False):  # else the reporter writes
                self._draw()
                self._lock.release()

    def _draw(self) -> None:
        with suppress(OSError):  # the terminal is gone
            text = self._text(os.get_terminal_size(self._fd).columns - 1)
            if text != self._shown and not self._is_over.is_set():
                os.write(self._fd, DRAW.format(text).encode())
                self._shown = text

    def _erase(self) -> None:
        with suppress(OSError):
            if self._shown:
                os.write(self._fd, ERASE.encode())
        self._shown = ""

    @pytest.hookimpl(wrapper=True, optionalhook=True)
    def pytest_runtest_logreport(self) -> Generator[None, Any, Any]:
        """Erase the line while the reporter writes."""
        with self._lock:
            self._erase()
            try:
                return (yield)
            finally:
                self._reporter.flush()

    pytest_testnodedown = pytest_runtest_logreport  # of xdist

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_logstart(self, nodeid: str) -> Generator[None, Any, Any]:
        """Note which cell begins, and draw the line again."""
        if cell := self._cells.get(nodeid):
            self._label, self._prompt = cell.target.label, cell.prompt.id
        result = yield from self.pytest_runtest_logreport()
        with self._lock:
            self._draw()
        return result

    def pytest_sessionfinish(self) -> None:
        """Remove the line, also before a debugger or a message of pytest."""
        with self._lock:
            self._erase()
            self._is_over.set()

    pytest_enter_pdb = pytest_internalerror = pytest_keyboard_interrupt = pytest_sessionfinish


def _may_draw(config: pytest.Config, reporter: Any) -> bool:
    """Whether standard output is a terminal in which only pytest's reporter writes, and not a CI's log."""
    get, style = config.getoption, config.getini("console_output_style")
    if sys.platform == "win32" or not (reporter.isatty and os.isatty(1)):
        return False
    has_logs = config.pluginmanager.hasplugin("logging") and (
        get("log_cli_level") or config.getini("log_cli")
    )
    is_ours = get("capture", "no") in ("fd", "sys") and not (has_logs or get("setupshow", False))
    is_plain = os.environ.get("TERM", "dumb") == "dumb" or {"CI", "BUILD_NUMBER"} & os.environ.keys()
    return bool(is_ours and style != "classic" and not is_plain)
