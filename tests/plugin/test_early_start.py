"""The process that asks starts before the session has loaded its modules, and never outlives it."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import psutil
import pytest

pytestmark = pytest.mark.skipif(os.name != "posix", reason="sockets are inherited")
CELL = {"P1": ("say yes", {"type": "noop"})}
NOTE = """
import subprocess

_start = subprocess.Popen.__init__

def _note(self, *args, **named):
    _start(self, *args, **named)
    if "asker_process" in str(args):
        with open({path!r}, "a") as file:
            file.write(str(self.pid) + "\\n")

subprocess.Popen.__init__ = _note
"""
# The asker that has been started must have ended by the first test.
LOOK = """
import psutil

def pytest_runtest_setup(item):
    with open({path!r}) as file:
        assert not any(map(psutil.pid_exists, map(int, file)))
"""


def _noting(project: Any) -> Path:
    """Have every process of a session write the ids of the askers that it starts into the file that is returned."""
    path: Path = project.folder / "askers.txt"
    project.extend_conftest(NOTE.format(path=str(path)))
    project.suite(CELL)
    return path


def _pids(path: Path) -> list[int]:
    return [int(line) for line in path.read_text().split()]


@pytest.mark.under_workers
def test_all_processes_of_a_session_use_the_one_that_is_started_first(
    project: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also in xdist's controller, which asks nothing itself; at the end it is gone."""
    askers = _noting(project)
    monkeypatch.setenv("OLLAMA_OPENAI_BASE", "http://127.0.0.1:9/v1")

    session = project.run(models="ollama_openai/m", apart=True)

    assert [row["failure_type"] for row in session.rows] == ["connect_error"]
    (pid,) = _pids(askers)
    assert not psutil.pid_exists(pid)


def test_a_session_that_is_refused_leaves_none(plain_project: Any) -> None:
    """It was started before the mistake was found."""
    askers = _noting(plain_project)

    session = plain_project.run("--openclaw-prompts=P99", models="ollama_openai/m", apart=True)

    assert session.status == pytest.ExitCode.USAGE_ERROR
    (pid,) = _pids(askers)
    assert not psutil.pid_exists(pid)


def test_it_ends_where_plugins_alone_are_asked(plain_project: Any) -> None:
    """Their providers are asked in a thread of the session."""
    askers = _noting(plain_project)
    plain_project.extend_conftest(LOOK.format(path=str(askers)))

    session = plain_project.run(apart=True)

    session.outcomes(passed=1)


@pytest.mark.parametrize("word", ["--collect-only", "--openclaw-dry-run"])
def test_a_session_that_sends_nothing_starts_none(plain_project: Any, word: str) -> None:
    """Listing and forecasting cost no process."""
    askers = _noting(plain_project)

    plain_project.run(word, models="ollama_openai/m", apart=True)

    assert not askers.exists()
