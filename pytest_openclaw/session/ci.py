"""Output for CI systems: properties in JUnit's XML; on GitHub a step summary and annotations."""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import TYPE_CHECKING
from xml.etree import ElementTree

from pytest_openclaw.reports.github import render_annotations
from pytest_openclaw.reports.junit import run_properties

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from pytest_openclaw.stats.summary import Summary

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
