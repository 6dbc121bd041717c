"""The hooks of the process in which reports arrive: rows to disk, progress, summary, exit status.

Shows failed cells in pytest's last lines: a line each, once, unless more is asked for.

Makes foreign text safe in pytest's output: tracebacks, reasons, captured output and logs, warnings.

Output for CI systems: properties in JUnit's XML; on GitHub a step summary and annotations.
"""

from __future__ import annotations

import os
import re
import shutil
import sys
import warnings
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any
from xml.etree import ElementTree

import pytest

from pytest_openclaw.options import SUITE_NAME
from pytest_openclaw.reports.ci_files import render_annotations, run_properties
from pytest_openclaw.session.cell_runs import OwnLink
from pytest_openclaw.session.items import hint_on_suites
from pytest_openclaw.session.repeat_threshold import SECTION
from pytest_openclaw.util.signals import session_ends
from pytest_openclaw.util.text import broken_between_words, counted, map_texts, printable
from pytest_openclaw.values.rows import PAYLOAD, KeptVerdict, Record

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Iterator, Mapping, Sequence

    from pytest_openclaw.session.composition import PluginSession
    from pytest_openclaw.session.owner import Owner
    from pytest_openclaw.stats.summary import Summary
    from pytest_openclaw.util.redact import Redactor
    from pytest_openclaw.values.requests import Target
    from pytest_openclaw.values.rows import Payload


TITLES = {"error": "ERRORS", "failed": "FAILURES"}
"""The categories of pytest's reports that are shortened, with the titles of pytest's own sections."""
SHORT_STYLES = {"auto", "line"}
USUAL_REPORT_CHARS = "fE"
"""Pytest's default for `-r`."""


class CellFailures:
    """Registered where reports arrive.

    Args:
        config: pytest's.
        targets: of the run; the lines name them if there are several.

    """

    def __init__(self, config: pytest.Config, targets: Sequence[Target]) -> None:
        self._config = config
        self._only = targets[0].label if len(targets) == 1 else None
        self._nodeids: set[str] = set()
        self._whole: dict[str, list[pytest.TestReport]] = {}

    def note(self, report: pytest.TestReport, payload: Payload) -> None:
        """Remember a report that is a missed cell or a fault; what broke in our own code is no such."""
        if report.failed and _is_plain(payload):
            self._nodeids.add(report.nodeid)

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_terminal_summary(
        self, terminalreporter: pytest.TerminalReporter
    ) -> Generator[None, object, object]:
        """Show the lines in place of pytest's sections, and give pytest's counts their reports back."""
        stats = terminalreporter.stats
        self._break_suite_errors(terminalreporter)
        self._whole = {kind: stats[kind] for kind in TITLES if kind in stats}
        if not self._config.getoption("no_summary", False):
            self._show(terminalreporter)
        try:
            return (yield)
        finally:
            stats.update(self._whole)

    @pytest.hookimpl(trylast=True, specname="pytest_terminal_summary")
    def pytest_terminal_summary_last(self, terminalreporter: pytest.TerminalReporter) -> None:
        """Leave cells out of pytest's short summary, unless `-r` asks for it: they have been shown."""
        terminalreporter.stats.update(self._whole)
        if self._config.option.reportchars == USUAL_REPORT_CHARS and self._style != "no":
            self._take_out(terminalreporter)

    @property
    def are_shown(self) -> bool:
        """Whether the missed cells are listed above the answer; a gate's misses fail no test and are not."""
        return bool(self._nodeids) and self._style != "no"

    @property
    def _style(self) -> str:
        style: str = self._config.option.tbstyle
        return style

    @property
    def _is_short(self) -> bool:
        """Whether nothing asks for more: neither `-v` nor `--tb`, nor the node id of a cell."""
        names_a_cell = any("::" in word for word in self._config.option.file_or_dir or ())
        return self._style in SHORT_STYLES and self._config.get_verbosity() <= 0 and not names_a_cell

    def _show(self, terminal: pytest.TerminalReporter) -> None:
        if self._style == "no":
            self._show_suite_errors(terminal)
        if not self._is_short:
            return
        for kind, reports in self._take_out(terminal).items():
            terminal.write_sep("=", TITLES[kind])
            # A fault's message ends in what to do, so nothing is left out of it.
            width = self._config.get_terminal_writer().fullwidth if kind == "failed" else None
            for report in reports:
                line = in_one_line(report, width, only=self._only)
                terminal.write_line(broken_between_words(line, _width(terminal)))
            if kind == "failed":
                first = reports[0].nodeid.rpartition("::")[2].partition("[")[0]
                terminal.write_line(f"in full: pytest-openclaw show last {first}, or pytest -v")

    def _show_suite_errors(self, terminal: pytest.TerminalReporter) -> None:
        """Show what is wrong in a suite whatever `--tb` says: it is no traceback."""
        errors = _suite_errors(terminal)
        if errors:
            terminal.write_sep("=", TITLES["error"])
        for report in errors:
            terminal.write_line(str(report.longrepr))

    def _break_suite_errors(self, terminal: pytest.TerminalReporter) -> None:
        """Set line breaks between words in what is wrong in a suite."""
        for report in _suite_errors(terminal):
            if isinstance(report.longrepr, str):  # from a worker
                report.longrepr = broken_between_words(report.longrepr, _width(terminal))
            elif isinstance(text := getattr(report.longrepr, "longrepr", None), str):
                vars(report.longrepr)["longrepr"] = broken_between_words(text, _width(terminal))

    def _take_out(self, terminal: pytest.TerminalReporter) -> dict[str, list[pytest.TestReport]]:
        """Remove the cells from pytest's reports, and return them."""
        taken = {}
        for kind in TITLES:
            reports = terminal.stats.get(kind, [])
            if cells := [report for report in reports if report.nodeid in self._nodeids]:
                taken[kind] = cells
                terminal.stats[kind] = [report for report in reports if report.nodeid not in self._nodeids]
        return taken


def _suite_errors(terminal: pytest.TerminalReporter) -> list[pytest.CollectReport]:
    return [
        report
        for report in terminal.stats.get("error", [])
        if report.when == "collect" and SUITE_NAME.match(report.nodeid.rpartition("/")[2])
    ]


def _width(terminal: pytest.TerminalReporter) -> int | None:
    """Return the columns of the terminal; None of a file or a pipe."""
    return terminal.config.get_terminal_writer().fullwidth if terminal.isatty else None


def in_one_line(report: pytest.TestReport, width: int | None, *, only: str | None) -> str:
    """Return a cell's id and why it failed.

    Args:
        report: the cell's.
        width: columns that it may take; None sets no limit.
        only: the run's only target, which is left out of the id.

    """
    from pytest_openclaw.reports.numbers import one_line

    name = report.nodeid.rpartition("::")[2]
    prompt_id = name.partition("[")[0]
    # The text of a suite's cell begins with id and name, which may be the same.
    text = next(_reasons(report), "failed").removeprefix(f"{prompt_id} ").removeprefix(f"{prompt_id}: ")
    text = "; ".join([text, *_repeats(report.longrepr)])
    line = printable(f"{name.replace(f'[{only}]', '')} {text}")
    return line if width is None else one_line(line, width)


def _reasons(report: pytest.TestReport) -> Iterator[str]:
    crash = getattr(report.longrepr, "reprcrash", None)
    for text in (getattr(crash, "message", ""), str(report.longrepr)):
        yield from (line.removeprefix("Missed: ").removeprefix("Failed: ") for line in text.splitlines()[:1])


def _repeats(longrepr: object) -> Iterator[str]:
    """Yield which repeats were missed, if the cell failed because too many were."""
    for name, content, _ in getattr(longrepr, "sections", ()):
        if name == SECTION:
            yield content
    if isinstance(longrepr, str):
        lines = longrepr.splitlines()[1:]
        yield from (line.removeprefix(f"  {SECTION} ") for line in lines if line.startswith(f"  {SECTION} "))


def _is_plain(outcome: object) -> bool:
    match outcome:
        case KeptVerdict():
            return not outcome.passed
        case Record():
            return outcome.failure_type != "harness_error"
    return False


_COLOR = re.compile(r"(\x1b\[(?:[0-7]|[34][0-7])m)")
"""The codes with which pytest colors the level of a log record."""


_ERROR = "ERROR: "
"""What pytest writes before a usage error."""


def in_whole_words(error: pytest.UsageError) -> pytest.UsageError:
    """Return a usage error of ours with line breaks for the terminal; another one unchanged."""
    place = error.__traceback__
    while place and place.tb_next:
        place = place.tb_next
    is_ours = place and place.tb_frame.f_globals["__name__"].startswith("pytest_openclaw.")
    if not is_ours or not sys.stderr.isatty():
        return error
    width = shutil.get_terminal_size().columns
    return pytest.UsageError(*(broken_between_words(str(text), width, len(_ERROR)) for text in error.args))


def make_printable(report: pytest.TestReport, config: pytest.Config) -> None:
    """Escape characters that a terminal or a CI system would act on: a test may quote a reply."""
    if isinstance(report.longrepr, tuple):  # location and reason of a skip
        path, line, reason = report.longrepr
        report.longrepr = (path, line, printable(reason, wraps=True))
    elif report.longrepr is not None:
        report.longrepr = _printable_longrepr(report, config)
    if why := getattr(report, "wasxfail", ""):
        report.wasxfail = printable(why, wraps=True)
    report.sections = [
        (name, _printable_log(text) if name.startswith("Captured log") else printable(text))
        for name, text in report.sections
    ]


def redact(report: pytest.TestReport, redactor: Redactor) -> None:
    """Remove secrets from a cell's report."""
    shown = str(report.longrepr) if report.longrepr is not None else ""
    if redactor.text(shown) != shown:
        # A location beside the text is kept; everything else becomes its text.
        report.longrepr = (
            redactor.value(report.longrepr) if isinstance(report.longrepr, tuple) else redactor.text(shown)
        )
    report.sections = [(redactor.text(name), redactor.text(text)) for name, text in report.sections]


def make_warning_printable(warning: warnings.WarningMessage, redactor: Redactor) -> None:
    """Remove secrets from a warning and make it printable; its category is unchanged."""
    text = str(warning.message)
    if (shown := printable(redactor.text(text))) != text:
        warning.message = UserWarning(shown)


def _printable_longrepr(report: pytest.TestReport, config: pytest.Config) -> Any:
    """Return the traceback with printable parts, still as the structure that xdist sends.

    A plain text would not do: pytest's last lines show the message alone, on CI in full.
    """
    data = config.hook.pytest_report_to_serializable(config=config, report=report)
    longrepr = map_texts(data["longrepr"], printable)
    if longrepr == data["longrepr"]:
        return report.longrepr
    made = config.hook.pytest_report_from_serializable(config=config, data={**data, "longrepr": longrepr})
    return made.longrepr


def _printable_log(text: str) -> str:
    parts = _COLOR.split(text)
    return "".join(part if _COLOR.fullmatch(part) else printable(part) for part in parts)


REPEAT_WITH_A_BRACKET = re.compile(r"\]-r[0-9]+\]\Z")
LARGEST_STEP_SUMMARY = 1_000_000
"""Bytes; GitHub rejects a step summary above 1 MiB."""


def complete_junit(xml: Path, summary: Summary, where: str) -> None:
    """Add the run's properties to JUnit's XML, which pytest writes before the summary is known.

    Repeats get their usual names: pytest 9.2 adds a bracket to `P1[…]-r2`.

    Raises:
        OSError: the file cannot be read or written.

    """
    tree = ElementTree.parse(xml)  # noqa: S314 - pytest has just written it
    suite = tree.getroot().find("testsuite")
    if suite is None:
        return
    properties = suite.find("properties")
    if properties is None:
        properties = ElementTree.Element("properties")
        suite.insert(0, properties)
    for name, value in run_properties(summary, where):
        ElementTree.SubElement(properties, "property", name=name, value=_valid(value))
    for case in suite.iterfind("testcase"):
        if REPEAT_WITH_A_BRACKET.search(name := case.get("name", "")):
            case.set("name", name.removesuffix("]"))
    tree.write(xml, encoding="utf-8", xml_declaration=True)


def write_step_summary(page: str) -> None:
    """Append the run's page to the step summary of GitHub, if this is a GitHub job.

    Raises:
        OSError: the file cannot be written.

    """
    if path := os.environ.get("GITHUB_STEP_SUMMARY"):
        with Path(path).open("ab") as file:
            file.write(page.encode()[:LARGEST_STEP_SUMMARY] + b"\n")


def annotate(summary: Summary, files: Mapping[str, Path]) -> Iterator[str]:
    """Yield the lines that GitHub shows as annotations; none elsewhere.

    Args:
        summary: the run's.
        files: the suites by their names in rows.

    """
    if os.environ.get("GITHUB_ACTIONS") != "true":
        return
    workspace = Path(os.environ.get("GITHUB_WORKSPACE") or Path.cwd()).resolve()
    texts: dict[str, str] = {}
    places: dict[tuple[str, str], tuple[str, int]] = {}
    for missed in summary.missed:
        path = files.get(missed.suite)
        if path is None:
            continue
        if missed.suite not in texts:
            texts[missed.suite] = path.read_text("utf-8", "replace")
        file = path.resolve()
        name = file.relative_to(workspace).as_posix() if file.is_relative_to(workspace) else str(path)
        places[missed.suite, missed.prompt_id] = (name, line_of(texts[missed.suite], missed.prompt_id))
    yield from render_annotations(summary, places)


def line_of(text: str, prompt_id: str) -> int:
    """Return the line of a suite, from 1, on which a prompt has its id; 1 if it is not found."""
    found = re.search(rf"""(?m)^.*?\bid["']?\s*[=:]\s*(["']){re.escape(prompt_id)}\1""", text)
    return text.count("\n", 0, found.start()) + 1 if found else 1


def _valid(text: str) -> str:
    """Remove characters that XML 1.0 does not allow."""
    return re.sub("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]", "�", text)


NO_VERDICT = 10
"""Exit status if a gate is set and the run has nothing to judge by it."""
_ENDED = {pytest.ExitCode.OK, pytest.ExitCode.TESTS_FAILED}
REPEAT = re.compile(r"\]-r[0-9]+\Z")


class ReportingHooks:
    """Registered in a plain session and in xdist's controller.

    Args:
        session: the plugin session.
        owner: of its run.

    Attributes:
        take_last: under xdist, records the rows that were under way; None in a plain session.
        failures: shows the cells that failed.

    """

    def __init__(self, session: PluginSession, owner: Owner) -> None:
        self.session = session
        self.owner = owner
        self._hint = ""
        self.failures = CellFailures(session.config, session.settings.targets)
        self.take_last: Callable[[], None] | None = None

    def pytest_report_header(self) -> str:
        """Show in one line what is measured."""
        from pytest_openclaw.reports.numbers import listed

        goes_on = ""
        if resumed := self.owner.resumed:
            n_kept = len(resumed.kept)
            kept = f"{counted(n_kept, 'cell')} kept"
            goes_on = f"; {resumed.path.name} goes on, {kept}"
        if shard := self.session.settings.shard:
            goes_on += f"; shard {shard}"
        labels = [target.label for target in self.session.settings.targets]
        width = self.session.config.get_terminal_writer().fullwidth
        return (
            f"openclaw: {listed(labels, max(width // 2, width - len('openclaw: ') - len(goes_on)))}{goes_on}"
        )

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtestloop(self, session: pytest.Session) -> None:
        """Start the run of the selected cells; under xdist they are known later."""
        stops = session.testsfailed and not session.config.option.continue_on_collection_errors
        if not self.session.sends or stops or self.take_last is not None:
            return
        link = self.session.cell_parts.link
        assert isinstance(link, OwnLink), "a plain session owns its run"
        self.owner.begin(link.cells, link.divided)

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Write the row before anything else is done with the report."""
        show_repeat(report)
        # Removed, because pytest keeps every report: ten thousand replies stay on disk only.
        payload = vars(report).pop(PAYLOAD, None)
        if payload and self.session.sends:
            self.failures.note(report, payload)
            self.owner.take(report, payload)

    def pytest_runtest_logfinish(self, nodeid: str) -> None:
        """Keep no reply longer than its item runs, in a worker too."""
        self.owner.asker.done(nodeid)

    @pytest.hookimpl(tryfirst=True)
    def pytest_keyboard_interrupt(self) -> None:
        """Send nothing more."""
        self.owner.asker.stop()

    @pytest.hookimpl(tryfirst=True)
    def pytest_sessionfinish(self, session: pytest.Session, exitstatus: int | pytest.ExitCode) -> None:
        """Send nothing more if the session was interrupted; the tests of xdist's workers end by it."""
        if exitstatus not in _ENDED or session.shouldstop or session.shouldfail:
            self.owner.asker.stop()

    @pytest.hookimpl(trylast=True, specname="pytest_sessionfinish")
    def pytest_sessionfinish_last(self, session: pytest.Session, exitstatus: int | pytest.ExitCode) -> None:
        """Write the summary and apply the gates; xdist's workers have exited by now."""
        owner = self.owner
        session_ends()
        owner.display.stop()
        if (run := owner.run) is None:
            if exitstatus == pytest.ExitCode.NO_TESTS_COLLECTED:
                self._hint = hint_on_suites(session.config)
            return
        if self.take_last:
            self.take_last()
        is_whole = exitstatus in _ENDED and not (session.shouldstop or session.shouldfail)
        owner.stop_asking(is_whole=is_whole)
        summary = owner.finish()
        # A passed gate has counted its target's faults as failed cells.
        held = {gate.target for gate in summary.gates}
        forgiven = sum(n for target, n in owner.n_faults_failed.items() if target in held)
        session.exitstatus = exit_status(
            int(exitstatus),
            gate_alone=self.session.settings.verdict == "gate",
            others_failed=session.testsfailed > owner.n_verdicts_failed + forgiven,
            gates=summary.verdict,
            # If every cell was skipped by a mark, no reply was expected.
            answered=bool(summary.n_answered or not summary.n_cells),
        )
        self._write_for_ci(summary, run.directory.path)

    def _write_for_ci(self, summary: Summary, run: Path) -> None:
        """Write the output for CI systems; a file that cannot be written is a warning."""
        config = self.session.config
        xml = config.getoption("xmlpath", None)
        try:
            if (
                xml
                and (
                    path := config.invocation_params.dir / Path(os.path.expandvars(xml)).expanduser()
                ).is_file()
            ):
                complete_junit(path, summary, str(run))
            write_step_summary((run / "summary.md").read_text("utf-8"))
        except OSError as error:
            warnings.warn(
                pytest.PytestWarning(f"openclaw: the output for CI cannot be written: {error}"), stacklevel=1
            )

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        """Show the table, the findings and the paths; GitHub's annotations and complaints in any case."""
        owner, session = self.owner, self.session
        summary, run = owner.summary, owner.run
        if self._hint:
            terminalreporter.write_line(self._hint)
        if summary is None or run is None or not (summary.n_rows or summary.gates):
            return
        from pytest_openclaw.providers.prices import Prices
        from pytest_openclaw.reports.terminal import colored_lines, render_complaints, title_of
        from pytest_openclaw.session.spending import notes_on_cost
        from pytest_openclaw.suites.load import is_suite_file

        page = run.directory.path / "summary.md"
        start = session.config.invocation_params.dir
        where = page.relative_to(start) if page.is_relative_to(start) else page
        width = session.config.get_terminal_writer().fullwidth
        # In pytest 9 each plugin has to respect `--no-summary`; pytest 8 does not call this hook then.
        if not session.config.getoption("no_summary", False):
            terminalreporter.write_sep("=", title_of(summary))
            prices = Prices(session.providers, session.settings)
            notes = notes_on_cost(prices, summary, is_resumed=owner.resumed is not None)
            command = owner.resume_command
            are_misses_shown = self.failures.are_shown
            for text, rest, color in colored_lines(
                summary, str(where), command, notes, width=width, are_misses_shown=are_misses_shown
            ):
                terminalreporter.write(text, **({color: True} if color else {}))
                terminalreporter.write_line(rest)
        files = {suite: session.config.rootpath / suite for suite in run.suites if is_suite_file(suite)}
        for line in annotate(summary, files):
            terminalreporter.write_line(line)
        complaints = session.cell_parts.redactor.value(run.plugins.complaints)
        for line in render_complaints(complaints, width):
            terminalreporter.write_line(line)


def show_repeat(report: pytest.TestReport) -> None:
    """Show the id of a repeat unchanged: pytest 9.2 adds a bracket to `P1[…]-r2`."""
    if not REPEAT.search(report.nodeid):
        return
    parsed: Any = getattr(report, "id", None)
    if parsed is not None and parsed.params is not None:
        names = tuple(report.nodeid.removeprefix(f"{parsed.path}::").split("::"))
        vars(report)["_id"] = replace(parsed, names=names, params=None)


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
