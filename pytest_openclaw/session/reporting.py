"""What pytest shows of cells: safe text, a line for each failed one, CI output, the exit status."""

from __future__ import annotations

import os
import re
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from pytest_openclaw.session.repeat_threshold import SECTION
from pytest_openclaw.util.text import map_texts, printable
from pytest_openclaw.values.rows import KeptVerdict, Record

if TYPE_CHECKING:
    import warnings
    from collections.abc import Generator, Iterator, Mapping, Sequence

    from pytest_openclaw.stats.summary import Summary
    from pytest_openclaw.util.redact import Redactor
    from pytest_openclaw.values.requests import Target
    from pytest_openclaw.values.rows import Payload

# --- text from tests and models -------------------------------------------------------------------

_COLOR = re.compile(r"(\x1b\[(?:[0-7]|[34][0-7])m)")
"""The codes with which pytest colors the level of a log record."""
_REPEAT = re.compile(r"\]-r[0-9]+\Z")


def clean_report(report: pytest.TestReport, redactor: Redactor, config: pytest.Config) -> None:
    """Remove secrets from a cell's report, and escape what a terminal or a CI system would act on."""

    def clean(text: str) -> str:
        return printable(redactor.text(text))

    def clean_log(text: str) -> str:
        return "".join(part if _COLOR.fullmatch(part) else clean(part) for part in _COLOR.split(text))

    if isinstance(report.longrepr, tuple):  # location and reason of a skip
        path, line, reason = report.longrepr
        report.longrepr = (path, line, printable(redactor.text(reason), wraps=True))
    elif report.longrepr is not None:
        # The structure that xdist sends: pytest's last lines show the message only.
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


def show_repeat(report: pytest.TestReport) -> None:
    """Show the id of a repeat unchanged: pytest 9.2 adds a bracket to `P1[…]-r2`."""
    parsed: Any = getattr(report, "id", None)
    if parsed is not None and parsed.params is not None and _REPEAT.search(report.nodeid):
        names = tuple(report.nodeid.removeprefix(f"{parsed.path}::").split("::"))
        vars(report)["_id"] = replace(parsed, names=names, params=None)


# --- failed cells in pytest's last lines ----------------------------------------------------------

TITLES = {"error": "ERRORS", "failed": "FAILURES"}
"""The categories of pytest's reports that are shortened, with the titles of pytest's own sections."""
USUAL_REPORT_CHARS = "fE"
"""Pytest's default for `-r`."""


class CellFailures:
    """Shows a line for each failed cell in place of pytest's sections, unless more is asked for."""

    def __init__(self, config: pytest.Config, targets: Sequence[Target]) -> None:
        self._config = config
        self._only = targets[0].label if len(targets) == 1 else None
        self._nodeids: set[str] = set()
        self._whole: dict[str, list[pytest.TestReport]] = {}

    def note(self, report: pytest.TestReport, payload: Payload) -> None:
        """Remember a report of a missed cell or a fault; an error in our own code has its traceback."""
        is_plain = (
            payload.failure_type != "harness_error"
            if isinstance(payload, Record)
            else isinstance(payload, KeptVerdict) and not payload.passed
        )
        if report.failed and is_plain:
            self._nodeids.add(report.nodeid)

    @property
    def are_shown(self) -> bool:
        """Whether the missed cells are listed above the answer; a gate's misses fail no test and are not."""
        return bool(self._nodeids) and self._config.option.tbstyle != "no"

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_terminal_summary(
        self, terminalreporter: pytest.TerminalReporter
    ) -> Generator[None, object, object]:
        """Show the lines in place of pytest's sections, and give pytest's counts their reports back."""
        stats = terminalreporter.stats
        self._whole = {kind: stats[kind] for kind in TITLES if kind in stats}
        if self._is_short:
            for kind, reports in self._take_out(stats).items():
                self._show(terminalreporter, kind, reports)
        try:
            return (yield)
        finally:
            stats.update(self._whole)

    @pytest.hookimpl(trylast=True, specname="pytest_terminal_summary")
    def pytest_terminal_summary_last(self, terminalreporter: pytest.TerminalReporter) -> None:
        """Put cells into pytest's short summary if `-r` asks for it."""
        if self._config.option.reportchars != USUAL_REPORT_CHARS:
            terminalreporter.stats.update(self._whole)

    @property
    def _is_short(self) -> bool:
        """Whether nothing asks for more: neither `-v` nor `--tb`, nor the node id of a cell."""
        option = self._config.option
        names_a_cell = any("::" in word for word in option.file_or_dir or ())
        is_usual = option.tbstyle in ("auto", "line") and self._config.get_verbosity() <= 0
        return is_usual and not names_a_cell and not getattr(option, "no_summary", False)

    def _take_out(self, stats: dict[str, list[pytest.TestReport]]) -> dict[str, list[pytest.TestReport]]:
        """Remove the cells from pytest's reports, and return them."""
        taken = {}
        for kind, reports in self._whole.items():
            if cells := [report for report in reports if report.nodeid in self._nodeids]:
                taken[kind] = cells
                stats[kind] = [report for report in reports if report.nodeid not in self._nodeids]
        return taken

    def _show(self, terminal: pytest.TerminalReporter, kind: str, reports: list[pytest.TestReport]) -> None:
        terminal.write_sep("=", TITLES[kind])
        # A fault's message ends in what to do, so nothing is left out of it.
        width = self._config.get_terminal_writer().fullwidth if kind == "failed" else None
        for report in reports:
            terminal.write_line(in_one_line(report, width, only=self._only))
        if kind == "failed":
            prompt, _, rest = reports[0].nodeid.rpartition("::")[2].partition("[")
            first = prompt + rest.rpartition("]")[2]  # `-r2` of a repeat
            terminal.write_line(f"in full: pytest-openclaw show last {first}, or pytest -v")


def in_one_line(report: pytest.TestReport, width: int | None, *, only: str | None) -> str:
    """Return a cell's id and why it failed."""
    from pytest_openclaw.reports.numbers import one_line

    name = report.nodeid.rpartition("::")[2]
    prompt_id = name.partition("[")[0]
    crash = getattr(report.longrepr, "reprcrash", None)
    said = (getattr(crash, "message", "") or str(report.longrepr) or "failed").splitlines()[0]
    for before in ("Missed: ", "Failed: ", f"{prompt_id} ", f"{prompt_id}: "):  # id and name may be the same
        said = said.removeprefix(before)
    line = printable(f"{name.replace(f'[{only}]', '')} {'; '.join([said, *_repeats(report.longrepr)])}")
    return line if width is None else one_line(line, width)


def _repeats(longrepr: object) -> Iterator[str]:
    """Yield which repeats were missed, if the cell failed because too many were."""
    for name, content, _ in getattr(longrepr, "sections", ()):
        if name == SECTION:
            yield content
    if isinstance(longrepr, str):
        lines = longrepr.splitlines()[1:]
        yield from (line.removeprefix(f"  {SECTION} ") for line in lines if line.startswith(f"  {SECTION} "))


# --- CI systems -----------------------------------------------------------------------------------

LARGEST_STEP_SUMMARY = 1_000_000
"""Bytes; GitHub rejects a step summary above 1 MiB."""


def write_for_ci(config: pytest.Config, summary: Summary, run: Path) -> None:
    """Add the run's properties to JUnit's XML, and its page to the step summary of a GitHub job.

    Raises:
        OSError: a file cannot be written.
    """
    from _pytest.junitxml import xml_key

    from pytest_openclaw.reports.ci_files import run_properties

    # pytest writes the file before the summary is known.
    if junit := config.stash.get(xml_key, None):
        for name, value in run_properties(summary, str(run)):
            junit.add_global_property(name, value)
        for case in junit.node_reporters_ordered:  # pytest 9.2 adds a bracket here too
            element = case.to_xml()
            if _REPEAT.search((name := element.get("name", ""))[:-1]):
                element.set("name", name.removesuffix("]"))
        junit.pytest_sessionfinish()
    if path := os.environ.get("GITHUB_STEP_SUMMARY"):
        page = (run / "summary.md").read_bytes()
        with Path(path).open("ab") as file:
            file.write(page[:LARGEST_STEP_SUMMARY] + b"\n")


def github_annotations(summary: Summary, files: Mapping[str, Path]) -> Iterator[str]:
    """Yield the lines that GitHub shows as annotations; none elsewhere."""
    from pytest_openclaw.reports.ci_files import render_annotations

    if os.environ.get("GITHUB_ACTIONS") != "true":
        return
    workspace = Path(os.environ.get("GITHUB_WORKSPACE") or Path.cwd()).resolve()
    places: dict[tuple[str, str], tuple[str, int]] = {}
    for missed in summary.missed_by_all:
        if path := files.get(missed.suite):
            file = path.resolve()
            name = file.relative_to(workspace).as_posix() if file.is_relative_to(workspace) else str(path)
            line = _line_of(path.read_text("utf-8", "replace"), missed.prompt_id)
            places[missed.suite, missed.prompt_id] = (name, line)
    yield from render_annotations(summary, places)


def _line_of(text: str, prompt_id: str) -> int:
    """Return the line of a suite, from 1, on which a prompt has its id; 1 if it is not found."""
    found = re.search(rf"""(?m)^.*?\bid["']?\s*[=:]\s*(["']){re.escape(prompt_id)}\1""", text)
    return text.count("\n", 0, found.start()) + 1 if found else 1


# --- the exit status ------------------------------------------------------------------------------

NO_VERDICT = 10
"""Exit status if a gate is set and the run has nothing to judge by it."""


def exit_status(
    pytest_status: int, *, gate_alone: bool, others_failed: bool, gates: str, answered: bool
) -> int:
    """Return the session's exit status.

    Args:
        pytest_status: pytest's own; an interruption, a usage error or an empty session keeps it.
        gate_alone: only gates and faults count, not failed verdicts.
        others_failed: something failed that is no verdict and that no gate has counted: a fault of a target
            without a gate, an error in a benchmark, another test, a collection.
        gates: the result of all gates together.
        answered: at least one cell has a reply.
    """
    if pytest_status not in {pytest.ExitCode.OK, pytest.ExitCode.TESTS_FAILED}:
        return pytest_status
    if gates == "failed":
        return int(pytest.ExitCode.TESTS_FAILED)
    if gates == "no_verdict":
        return NO_VERDICT
    if not answered:
        return int(pytest.ExitCode.TESTS_FAILED)
    if gate_alone:
        return int(pytest.ExitCode.TESTS_FAILED if others_failed else pytest.ExitCode.OK)
    return pytest_status
