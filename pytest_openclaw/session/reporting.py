"""Reports of cells in pytest: safe text, repeats, output for CI systems, the exit status."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import pytest

from pytest_openclaw.reports.numbers import one_line
from pytest_openclaw.suites.load import pass_text
from pytest_openclaw.util.text import map_texts, printable
from pytest_openclaw.values.parts import called
from pytest_openclaw.values.prompts import Cell
from pytest_openclaw.values.rows import Record
from pytest_openclaw.values.settings import Settings

if TYPE_CHECKING:
    import warnings

    from pytest_openclaw.conclusions.summary import Summary
    from pytest_openclaw.util.redact import Redactor


# --- text from tests and models ---------------------------------------------------------------------

_COLOR = re.compile(r"(\x1b\[(?:[0-7]|[34][0-7])m)")
"""The codes with which pytest colors the level of a log record."""


def clean_report(report: pytest.TestReport, redactor: Redactor, config: pytest.Config) -> None:
    """Remove secrets from a cell's report, and escape commands of terminals and CI systems."""

    def clean(text: str) -> str:
        return printable(redactor.text(text))

    def safe(value: Any) -> Any:
        return value if (shown := clean(str(value))) == str(value) else shown

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
    report.user_properties = [(safe(name), safe(value)) for name, value in report.user_properties]
    if (context := getattr(report, "context", None)) is not None:  # of a subtest; frozen
        object.__setattr__(context, "msg", safe(context.msg))
        object.__setattr__(context, "kwargs", {name: safe(value) for name, value in context.kwargs.items()})
    report.sections = [
        (clean(name), clean_log(text) if name.startswith("Captured log") else clean(text))
        for name, text in report.sections
    ]


def mask_output(config: pytest.Config, redactor: Redactor) -> None:
    """Remove secrets from all that pytest shows, from `--debug`, and from the properties of the session."""
    places: list[tuple[Any, str]] = [(config.trace.root, "_writer")]
    places += [(plugin, "add_global_property") for plugin in config.pluginmanager.get_plugins()]
    if config.pluginmanager.has_plugin("terminalreporter"):
        places.append((config.get_terminal_writer(), "write"))
    for holder, name in places:
        if write := getattr(holder, name, None):
            vars(holder)[name] = lambda *said, to=write, **how: to(*map(redactor.text, map(str, said)), **how)


def clean_warning(warning: warnings.WarningMessage, redactor: Redactor) -> None:
    """Remove secrets from a warning and make it printable; its category is unchanged."""
    text = str(warning.message)
    if (shown := printable(redactor.text(text))) != text:
        warning.message = UserWarning(shown)


# --- `pass = "4 of 5"` ------------------------------------------------------------------------------

# Misses are counted where all reports arrive, because the repeats of a prompt may run in different workers.
# Until then, a failed repeat is not reported as a failure, because `-x` would stop the worker.
_CLAIM = "openclaw_repeat"
"""The attribute of a failed repeat's report: prompt and target, repeat, threshold, how many may fail."""
MISSED = "openclaw_missed"
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
            if len(missed) <= allowed:
                _forgive(report, f'miss {len(missed)} of the {allowed} that pass = "{asked}" allows')
                return
            changed: Any = report
            changed.outcome = "failed"
            del changed.wasxfail
            names = ", ".join(f"r{repeat}" for repeat in sorted(missed))
            text = f'missed {names}; pass = "{asked}" allows {allowed}'
            vars(report)[MISSED] = text
            changed.sections.append(("repeats", text))


def _forgive(report: pytest.TestReport, why: str) -> None:
    changed: Any = report
    changed.outcome, changed.wasxfail = "skipped", why


# --- CI systems -------------------------------------------------------------------------------------

_LARGEST_STEP_SUMMARY = 1_000_000
"""Bytes; GitHub rejects a step summary above 1 MiB."""


def write_step_summary(run: Path) -> None:
    """Add the run's page to the step summary of a GitHub job; raise `OSError` if that is impossible."""
    if path := os.environ.get("GITHUB_STEP_SUMMARY"):
        page = (run / "summary.md").read_bytes()
        with Path(path).open("ab") as file:
            file.write(page[:_LARGEST_STEP_SUMMARY] + b"\n")


# --- the exit status --------------------------------------------------------------------------------


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


# --- annotations on GitHub, properties in JUnit's XML -----------------------------------------------

MOST = 10
"""Annotations of each kind that GitHub shows for a step."""
LONGEST = 300


def render_annotations(summary: Summary) -> Iterator[str]:
    """Yield workflow commands: an error for each gate not passed, a warning for each missed prompt.

    https://docs.github.com/actions/reference/workflow-commands-for-github-actions
    """
    refused = (pair for annotations in called("annotations") for pair in annotations(summary))
    for title, text in islice(refused, MOST):
        yield _command("error", title, text)
    missed = list(summary.missed_by_all)
    shown = missed if len(missed) <= MOST else missed[: MOST - 1]
    for one in shown:
        title = f"{one.prompt_id} {one.prompt_name}: missed by all"
        yield _command("warning", title, one.violation or "no usable answer")
    if rest := len(missed) - len(shown):
        yield _command("warning", f"{rest} more prompts missed", "summary.md and report.html list them")


def _command(kind: str, title: str, text: str) -> str:
    title, text = (one_line(part, LONGEST).replace("%", "%25") for part in (title, text))
    return f"::{kind} title={title.replace(':', '%3A').replace(',', '%2C')}::{text}"


CELL_FIELDS = (
    *("availability_status", "failure_type", "objective_pass", "violation", "tool_outcome"),
    *("e2e_ms", "ttft_ms", "cost_usd"),
)
"""Fields of a row that people filter by; the name of the case has prompt and target."""


def cell_properties(outcome: Record | object) -> list[tuple[str, str]]:
    """Return a cell's properties, named as the fields of its row, without null."""
    return [
        (f"openclaw.{name}", _text(value))
        for name in CELL_FIELDS
        if isinstance(outcome, Record) and (value := getattr(outcome, name)) is not None
    ]


def _text(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float):
        return f"{value:.6g}"
    return printable(str(value))
