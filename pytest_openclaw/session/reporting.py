"""Reports of cells in pytest: safe text, lines for failed cells, repeats, CI output, the exit status."""

from __future__ import annotations

import os
import re
import shlex
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import pytest

from pytest_openclaw.suites.load import pass_text
from pytest_openclaw.util.text import in_order, map_texts, printable
from pytest_openclaw.values.parts import called
from pytest_openclaw.values.rows import KeptVerdict, Record

if TYPE_CHECKING:
    import warnings
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from pytest_openclaw.conclusions.summary import Summary
    from pytest_openclaw.util.redact import Redactor
    from pytest_openclaw.values.prompts import Cell
    from pytest_openclaw.values.requests import Target
    from pytest_openclaw.values.rows import Payload
    from pytest_openclaw.values.settings import Settings

# --- text from tests and models -------------------------------------------------------------------

_COLOR = re.compile(r"(\x1b\[(?:[0-7]|[34][0-7])m)")
"""The codes with which pytest colors the level of a log record."""


def clean_report(report: pytest.TestReport, redactor: Redactor, config: pytest.Config) -> None:
    """Remove secrets from a cell's report, and escape commands of terminals and CI systems."""

    def clean(text: str) -> str:
        return printable(redactor.text(text))

    def clean_log(text: str) -> str:
        return "".join(part if _COLOR.fullmatch(part) else clean(part) for part in _COLOR.split(text))

    if isinstance(report.longrepr, tuple):  # location and reason of a skip
        path, line, reason = report.longrepr
        report.longrepr = (path, line, printable(redactor.text(reason), wraps=True))
    elif report.longrepr is not None:
        # Clean the structure that xdist sends, because pytest's last lines show only its message.
        hook = config.hook
        data = hook.pytest_report_to_serializable(config=config, report=report)
        longrepr = map_texts(data["longrepr"], clean)
        if longrepr != data["longrepr"]:
            data = {**data, "longrepr": longrepr}
            report.longrepr = hook.pytest_report_from_serializable(config=config, data=data).longrepr
    if why := getattr(report, "wasxfail", ""):
        report.wasxfail = printable(redactor.text(why), wraps=True)
    report.sections = [
        (clean(name), clean_log(text) if name.startswith("Captured log") else clean(text))
        for name, text in report.sections
    ]


def clean_warning(warning: warnings.WarningMessage, redactor: Redactor) -> None:
    """Remove secrets from a warning and make it printable; its category is unchanged."""
    text = str(warning.message)
    if (shown := printable(redactor.text(text))) != text:
        warning.message = UserWarning(shown)


# --- failed cells in pytest's last lines ----------------------------------------------------------

_TITLES = {"error": "ERRORS", "failed": "FAILURES"}
"""The categories of pytest's reports that are shortened, with the titles of pytest's own sections."""
MOST_MISSES = 12
"""Lines of missed cells; `show --failed` has all."""
LONGEST_MISS = 300


class CellFailures:
    """Shows a line for each failed cell in place of pytest's sections, unless options request more."""

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

    @property
    def are_shown(self) -> bool:
        """Whether missed cells are listed above the summary; misses that fail no test are not."""
        return bool(self._causes) and self._config.option.tbstyle != "no"

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
        from pytest_openclaw.reports.numbers import lines_of, one_line

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
            (cause[0], rank, cause, names[0], f"{names[0]} {said}{f' (×{len(names)})' if names[1:] else ''}")
            for cause, same in alike.items()
            for rank, (said, names) in enumerate(same.items())
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
        said = (getattr(crash, "message", "") or str(report.longrepr) or "failed").splitlines()[0]
        # A message begins with only one of the last two, unless the id and the name are the same.
        for before in ("Missed: ", "Failed: ", f"{prompt_id} ", f"{prompt_id}: "):
            said = said.removeprefix(before)
        repeats = vars(report).get(_MISSED, "")
        return printable(f"{said}{repeats and f'; {repeats}'}")


# --- `pass = "4 of 5"` ----------------------------------------------------------------------------

# Misses are counted where all reports arrive, because the repeats of a prompt may run in different workers.
# Until then, a failed repeat is not reported as a failure, because `-x` would stop the worker.
_CLAIM = "openclaw_repeat"
"""The attribute of a failed repeat's report: prompt and target, repeat, threshold, how many may fail."""
_MISSED = "openclaw_missed"
"""The attribute of a failed report that says which repeats were missed."""
STRICT = "[XPASS(strict)] "
"""The beginning of pytest's message for a strict xfail that passed."""


def defer(report: pytest.TestReport, cell: Cell, n_selected: int) -> None:
    """Mark the report of a failed repeat; the session decides when it knows all repeats.

    Args:
        report: the report of the cell, failed or not.
        cell: the cell.
        n_selected: the repeats of its prompt on its target in this session; deselecting some does not lower
            the number that must pass.
    """
    prompt = cell.prompt
    if not report.failed or prompt.min_passes is None or prompt.repeat is None:
        return
    group = "\n".join((prompt.suite, prompt.id, cell.target.label))
    asked, allowed = pass_text(prompt.min_passes, prompt.repeat), max(0, n_selected - prompt.min_passes)
    vars(report)[_CLAIM] = [group, cell.repeat, asked, allowed]
    _forgive(report, "")


def passed_strictly(report: pytest.TestReport) -> bool:
    """Whether pytest reports a test as failed because it was expected to fail and passed."""
    return report.failed and isinstance(report.longrepr, str) and report.longrepr.startswith(STRICT)


class RepeatThreshold:
    """Counts the missed repeats of each prompt and target where reports arrive."""

    def __init__(self) -> None:
        self._missed: dict[str, set[int]] = {}

    def decide(self, report: pytest.TestReport) -> None:
        """Decide whether a repeat fails, before other plugins count it."""
        if claim := vars(report).pop(_CLAIM, None):
            group, repeat, asked, allowed = claim
            missed = self._missed.setdefault(group, set())
            missed.add(repeat)
            if len(missed) > allowed:
                _refuse(report, asked, allowed, missed)
            else:
                _forgive(report, f'miss {len(missed)} of the {allowed} that pass = "{asked}" allows')


def _forgive(report: pytest.TestReport, why: str) -> None:
    changed: Any = report
    changed.outcome, changed.wasxfail = "skipped", why


def _refuse(report: pytest.TestReport, asked: str, allowed: int, missed: set[int]) -> None:
    changed: Any = report
    changed.outcome = "failed"
    del changed.wasxfail
    text = f'missed {", ".join(f"r{repeat}" for repeat in sorted(missed))}; pass = "{asked}" allows {allowed}'
    vars(report)[_MISSED] = text
    changed.sections.append(("repeats", text))


# --- CI systems -----------------------------------------------------------------------------------

_LARGEST_STEP_SUMMARY = 1_000_000
"""Bytes; GitHub rejects a step summary above 1 MiB."""


def write_step_summary(run: Path) -> None:
    """Add the run's page to the step summary of a GitHub job; raise `OSError` if that is impossible."""
    if path := os.environ.get("GITHUB_STEP_SUMMARY"):
        page = (run / "summary.md").read_bytes()
        with Path(path).open("ab") as file:
            file.write(page[:_LARGEST_STEP_SUMMARY] + b"\n")


# --- the exit status ------------------------------------------------------------------------------


class SessionEnd(NamedTuple):
    """A session that has ended with a run.

    Attributes:
        is_answered: whether at least one cell has a reply.
        n_failed: failures of pytest.
        n_verdicts_failed: of them, cells with a verdict.
        n_faults_failed: of them, cells without a reply, by target.
    """

    summary: Summary
    settings: Settings
    is_answered: bool
    n_failed: int
    n_verdicts_failed: int
    n_faults_failed: Mapping[str, int]


def exit_status(pytest_status: int, ended: SessionEnd) -> int:
    """Return the session's exit status; an interruption, a usage error or an empty session keeps its own."""
    if pytest_status not in {pytest.ExitCode.OK, pytest.ExitCode.TESTS_FAILED}:
        return pytest_status
    for status in called("status"):
        if (found := status(ended)) is not None:
            return int(found)
    return pytest_status if ended.is_answered else int(pytest.ExitCode.TESTS_FAILED)
