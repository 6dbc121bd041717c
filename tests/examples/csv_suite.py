"""A format of suites: `questions.csv`, with an id, a question and the expected answer in each line."""

import csv
from collections.abc import Callable
from functools import partial
from pathlib import Path

from pytest_openclaw import Prompt, Suite, SuiteError, SummaryPart
from pytest_openclaw.judging.text import Exact
from pytest_openclaw.values.rows import Record


def pytest_openclaw_suite(path: Path) -> Callable[[str], Suite] | None:
    """Read our files."""
    return partial(read_questions, path) if path.name == "questions.csv" else None


def read_questions(path: Path, name: str) -> Suite:
    """Return the prompts of a file; an empty answer leaves one out."""
    prompts, left_out = [], {}
    for number, row in enumerate(csv.reader(path.read_text("utf-8").splitlines()), start=1):
        if len(row) != 3:
            raise SuiteError(f"{name}: line {number} has {len(row)} columns, not 3.")
        if row[2]:
            validator = Exact(value=row[2])
            prompts.append(Prompt(suite=name, id=row[0], name=row[0], prompt=row[1], validator=validator))
        else:
            left_out[row[0]] = "has no answer"
    return Suite(path=name, prompts=tuple(prompts), left_out=left_out)


def pytest_openclaw_summary(records: list[Record]) -> SummaryPart | None:
    """Add the cells that took more than 5 s to `summary.json` and to the reports."""
    n = sum(record.e2e_ms > 5000 for record in records)
    return SummaryPart(name="slow", value={"n": n}, title="Slow", intro=f"{n} cells took more than 5 s.")
