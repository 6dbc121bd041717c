"""What a session shows in the terminal: state of the run, lines for failed cells, and the summary.

While a run runs, a live line is below pytest's progress, or a line is written for each target that ends. The
live line is drawn only in a terminal where nothing but pytest's own reporter writes. It is erased before the
reporter writes, and the cursor returns to its place, so pytest's output is the same as without it.
"""

from __future__ import annotations

import os
import re
import shlex
import sys
import threading
import time
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING, Any

import pytest

from pytest_openclaw.reports.numbers import lines_of, one_line, render_duration
from pytest_openclaw.session.reporting import MISSED, render_annotations
from pytest_openclaw.util.text import counted, in_order, printable
from pytest_openclaw.values.prompts import Cell
from pytest_openclaw.values.requests import Target
from pytest_openclaw.values.rows import KeptVerdict, LeftOut, Payload, Record

if TYPE_CHECKING:
    from pytest_openclaw.asking.asker import Asker
    from pytest_openclaw.conclusions.summary import Summary
    from pytest_openclaw.reports.blocks import SummaryFinding


# --- failed cells in pytest's last lines ----------------------------------------------------------

_TITLES = {"error": "ERRORS", "failed": "FAILURES"}
"""The categories of pytest's reports that are shortened, with the titles of pytest's own sections."""
MOST_MISSES = 12
"""Lines of missed cells; `show --failed` has all."""
LONGEST_MISS = 300


class EndSection:
    """The end of the output: a line for each failed cell, and the summary of the run.

    pytest's own sections about cells are shown only if options request more.
    """

    def __init__(self, config: pytest.Config, targets: Sequence[Target]) -> None:
        self._config = config
        self._is_only_target = len(targets) == 1
        self._causes: dict[str, tuple[bool, str, str]] = {}
        """Node id → whether the cell did no harm, its target, and how it ended."""

    def note(self, report: pytest.TestReport, payload: Payload) -> None:
        """Remember a report of a missed cell or a fault; an error in our own code has its traceback."""
        is_missed = isinstance(payload, KeptVerdict) and not payload.passed
        is_plain = isinstance(payload, Record) and payload.failure_type != "harness_error"
        if report.failed and (is_missed or is_plain):
            if isinstance(payload, Record):
                cause = "" if payload.harm else payload.tool_outcome or payload.failure_type or ""
                self._causes[report.nodeid] = (not payload.harm, payload.target.label, cause)
            else:
                self._causes[report.nodeid] = (True, payload.target, "")

    @contextmanager
    def shortened(self, terminalreporter: pytest.TerminalReporter) -> Iterator[None]:
        """Show the lines in place of pytest's sections, then restore the reports for pytest's counts."""
        stats = terminalreporter.stats
        whole = {kind: stats[kind] for kind in _TITLES if kind in stats}
        for kind, reports in whole.items() if self._is_short else ():
            if cells := [report for report in reports if report.nodeid in self._causes]:
                stats[kind] = [report for report in reports if report.nodeid not in self._causes]
                self._show(terminalreporter, kind, cells)
        try:
            yield
        finally:
            stats.update(whole)

    @property
    def _is_short(self) -> bool:
        """Whether no option requests more: no `-v`, `--tb` or `-r`, and not only node ids."""
        option = self._config.option
        names_cells = {"::" in word for word in option.file_or_dir or ()} == {True}
        is_usual = option.tbstyle in ("auto", "line") and option.reportchars == "fE"  # the default of -r
        is_quiet = self._config.get_verbosity() <= 0 and not getattr(option, "no_summary", False)
        return is_usual and is_quiet and not names_cells

    def _show(self, terminal: pytest.TerminalReporter, kind: str, reports: list[pytest.TestReport]) -> None:
        terminal.write_sep("=", _TITLES[kind])
        width = self._config.get_terminal_writer().fullwidth
        lines = self._joined(reports)
        if kind == "error":  # a fault's message ends with a hint, so it is not shortened
            for _, line in lines:
                terminal.write_line(line)
            return
        for _, line in lines[:MOST_MISSES]:
            for part in lines_of(one_line(line, LONGEST_MISS), width, "  "):
                terminal.write_line(part)
        if (rest := len(lines) - MOST_MISSES) > 0:
            terminal.write_line(f"and {rest} more: pytest-openclaw show last --failed")
        terminal.write_line(f"in full: pytest-openclaw show last {shlex.quote(lines[0][0])}, or pytest -v")

    def _joined(self, reports: Iterable[pytest.TestReport]) -> list[tuple[str, str]]:
        """Return name and line of each cell: harm first, then by target and cause.

        The first lines, which are shown, are from all targets and causes. Repeats that ended alike have one
        line.
        """
        causes, alike = self._causes, dict[tuple[bool, str, str], dict[str, list[str]]]()
        for report in sorted(reports, key=lambda report: (causes[report.nodeid], in_order(report.nodeid))):
            same = alike.setdefault(causes[report.nodeid], {})
            same.setdefault(self._in_one_line(report), []).append(self._name_of(report))
        ranked = sorted(
            (cause[0], rank, cause, names[0], f"{names[0]} {text}{f' (×{len(names)})' if names[1:] else ''}")
            for cause, same in alike.items()
            for rank, (text, names) in enumerate(same.items())
        )
        shown = sorted(ranked[:MOST_MISSES], key=lambda one: (one[2], one[1]))
        return [(name, line) for *_, name, line in (*shown, *ranked[MOST_MISSES:])]

    def _name_of(self, report: pytest.TestReport) -> str:
        """Return the shortest name of a cell that no other target of the run has."""
        name: str = report.nodeid.rpartition("::")[2]
        # `P1` of `P1[lab/m]`, and `P1-r2` of `P1[lab/m-r2]`.
        return re.sub(r"\[.*?(-r[0-9]+)?\]\Z", r"\1", name) if self._is_only_target else name

    def _in_one_line(self, report: pytest.TestReport) -> str:
        prompt_id = report.nodeid.rpartition("::")[2].partition("[")[0]
        crash = getattr(report.longrepr, "reprcrash", None)
        text = (getattr(crash, "message", "") or str(report.longrepr) or "failed").splitlines()[0]
        # A message begins with only one of the last two, unless the id and the name are the same.
        for before in ("Missed: ", "Failed: ", f"{prompt_id} ", f"{prompt_id}: "):
            text = text.removeprefix(before)
        repeats = vars(report).get(MISSED, "")
        return printable(f"{text}{repeats and f'; {repeats}'}")

    # --- the summary of the run ---

    def show_run(
        self,
        terminal: pytest.TerminalReporter,
        summary: Summary,
        paths: tuple[Path, str],
        notes: Sequence[SummaryFinding],
        complaints: Sequence[str],
    ) -> None:
        """Show table, findings, the page and the command that resumes the run.

        GitHub's annotations and broken plugins are shown even with `--no-summary`.
        """
        from pytest_openclaw.reports.blocks import SummaryFinding
        from pytest_openclaw.reports.terminal import finding_lines, render_terminal, title_of

        annotations = [*render_annotations(summary)]
        if not (summary.n_rows or annotations):  # no cell was asked, and none had to be
            return
        writer = self._config.get_terminal_writer()
        # In pytest 9 each plugin has to respect `--no-summary`; pytest 8 does not call this hook then.
        if not self._config.getoption("no_summary", False):
            (page, resume), start = paths, self._config.invocation_params.dir
            shown = str(page.relative_to(start) if page.is_relative_to(start) else page)
            # Misses that fail no test are not listed above the summary.
            are_shown = bool(self._causes) and self._config.option.tbstyle != "no"
            terminal.write_sep("=", title_of(summary))
            for line in render_terminal(
                summary,
                shown,
                resume,
                notes,
                width=writer.fullwidth,
                are_misses_shown=are_shown,
                paint=lambda text, color: writer.markup(text, **{color: True}),
            ):
                terminal.write_line(line)
        broken = [SummaryFinding(label="plugin broke", text=text) for text in complaints]
        lines = annotations if os.environ.get("GITHUB_ACTIONS") == "true" else []
        for line in (*lines, *finding_lines(broken, writer.fullwidth)):
            terminal.write_line(line)


# --- resuming ----------------------------------------------------------------------------------------

# Options that the run has stored, and options that would end a resumed run at its first kept failure.
_WITH_VALUE = re.compile(r"--openclaw-(models|providers|thinking|run-id|resume)|--maxfail")
_SWITCHES = {"-x", "--exitfirst", "--sw", "--stepwise"}


def resume_command(args: Sequence[str], run_id: str) -> str:
    """Return the command that continues a run: this session's own with `--openclaw-resume`."""
    kept: list[str] = []
    words = iter(args)
    for word in words:
        name, has_value, _ = word.partition("=")
        if _WITH_VALUE.fullmatch(name):
            if not has_value:
                next(words, None)
        elif word not in _SWITCHES:
            # Combined switches of pytest, such as -xq.
            kept.append(word.replace("x", "") if re.fullmatch(r"-[xvqsl]+", word) else word)
    return shlex.join(["pytest", *kept, f"--openclaw-resume={run_id}"])


# --- while the run runs ------------------------------------------------------------------------------

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
        self._lock, self.is_over = threading.RLock(), threading.Event()
        is_usual = type(self._reporter) is pytest.TerminalReporter  # not one of another plugin
        self._is_drawn = is_usual and _may_draw(config, self._reporter)
        has_lines = is_usual and not self._is_drawn and config.option.verbose >= 0
        self._width = config.get_terminal_writer().fullwidth if has_lines else 0
        self._is_hidden = not self._is_drawn
        if self._is_drawn:
            self._fd = os.dup(1)  # pytest redirects 1 while a test runs
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
            figures = f"{counted(len(ended), 'cell')}, {self._n_missed[label]} missed"
            text = f": {figures}; {counted(n_left, 'target')} left"
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
        while not self.is_over.wait(TICK_S):
            if self._lock.acquire(blocking=False):  # else the reporter writes
                self._draw()
                self._lock.release()

    def _draw(self) -> None:
        if self._is_hidden:
            return
        with suppress(OSError):  # the terminal is gone
            text = self._text(os.get_terminal_size(self._fd).columns - 1)
            if text != self._shown:
                os.write(self._fd, DRAW.format(text).encode())
                self._shown = text

    def _erase(self) -> None:
        with suppress(OSError):
            if self._shown:
                os.write(self._fd, ERASE.encode())
        self._shown = ""

    @contextmanager
    def quiet(self) -> Iterator[None]:
        """Erase the line while the reporter writes."""
        if not self._is_drawn:
            yield
            return
        with self._lock:
            self._erase()
            try:
                yield
            finally:
                self._reporter.flush()

    def begin(self, nodeid: str) -> None:
        """Note which cell begins, and draw the line again."""
        if cell := self._cells.get(nodeid):
            self._label, self._prompt = cell.target.label, cell.prompt.id
        with self._lock:
            self._is_hidden = not self._is_drawn
            self._draw()

    def hide(self) -> None:
        """Erase the line until a test begins: before a debugger, and before messages of pytest and xdist."""
        with self._lock:
            self._erase()
            self._is_hidden = True


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
