"""Runs that are really killed, in the middle, and resumed."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.processes import children, is_gone, wait_until
from tests.plugin.school import NOOP, TEACHER, YES, timeless

pytestmark = [
    pytest.mark.newest,
    pytest.mark.skipif(sys.platform == "win32", reason="Windows has no such signals"),
]

SUITE = {f"P{n}": (f"say {n}", YES if n % 2 else NOOP) for n in range(1, 7)}
MODELS = "--openclaw-models=teacher/a,teacher/b"
RUN_S = 600.0
WRITES_ITS_PID = """
def pytest_runtest_setup(item):
    if item.nodeid.endswith("P4[teacher/a]"):
        (FOLDER / "hanging.txt").write_text(str(os.getpid()))
"""


@pytest.fixture
def folder(plain_project: Any) -> Path:
    """A project whose provider records its requests."""
    plain_project.pytester.makeconftest(TEACHER)
    plain_project.suite(SUITE)
    assert isinstance(plain_project.folder, Path)
    return plain_project.folder


def command(*words: str) -> list[str]:
    """Return the command of a session as a user starts it."""
    return [sys.executable, "-m", "pytest", "benchmarks", "-p", "no:cacheprovider", *words]


@contextmanager
def started(folder: Path, *words: str) -> Iterator[subprocess.Popen[bytes]]:
    """Start a session, in its own process group; its output is in out.txt."""
    with (folder / "out.txt").open("wb") as out:
        process = subprocess.Popen(
            command(*words), cwd=folder, stdin=subprocess.DEVNULL, stdout=out, stderr=subprocess.STDOUT,
            start_new_session=True,
        )  # fmt: skip
    try:
        yield process
    finally:
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()


def run(folder: Path, *words: str) -> subprocess.CompletedProcess[str]:
    """Run a session to its end."""
    return subprocess.run(command(*words), cwd=folder, capture_output=True, text=True, timeout=RUN_S)


def rows(folder: Path, name: str = "r") -> list[bytes]:
    """The complete rows of a run."""
    path = folder / "runs" / name / "results.jsonl"
    found = path.read_bytes().splitlines(keepends=True) if path.exists() else []
    return [line for line in found if line.endswith(b"\n")]


def is_asked(folder: Path, word: str) -> bool:
    """Whether the provider has received this request."""
    path = folder / "asked.txt"
    return path.exists() and word in path.read_text().splitlines()


def keys(lines: list[bytes]) -> list[tuple[str, str]]:
    """The cells of some rows."""
    return [(row["model"], row["prompt_id"]) for row in map(json.loads, lines)]


def summary(folder: Path, name: str) -> Any:
    """The summary of a run, without what differs between any two runs."""
    return timeless(json.loads((folder / "runs" / name / "summary.json").read_text("utf-8")))


def goes_on(folder: Path, kept: list[bytes], *mode: str) -> None:
    """Resume the run r, and check that nothing was lost, asked twice or counted twice."""
    words = (folder / "asked.txt").read_text().splitlines()
    (folder / "hang.txt").unlink(missing_ok=True)
    asked_at_its_killing = set(words)
    asked_for = {f"{model} {SUITE[prompt_id][0]}" for model, prompt_id in keys(kept)}
    assert asked_for <= asked_at_its_killing
    (folder / "asked.txt").write_text("")

    resumed = run(folder, "--openclaw-resume=last", *mode)

    assert resumed.returncode == 1, resumed.stdout + resumed.stderr
    assert rows(folder)[: len(kept)] == kept
    cells = sorted((model, prompt_id) for model in "ab" for prompt_id in SUITE)
    assert sorted(keys(rows(folder))) == cells
    calls = [word for word in (folder / "asked.txt").read_text().splitlines() if " say " in word]
    assert sorted(calls) == sorted(
        f"{model} {SUITE[prompt_id][0]}" for model, prompt_id in set(cells) - set(keys(kept))
    )
    left = [path.name for path in (folder / "runs" / "r").iterdir() if path.name.startswith(".")]
    assert left == []
    assert run(folder, "--openclaw-run-id=whole", MODELS).returncode == 1
    assert summary(folder, "r") == summary(folder, "whole")


@pytest.mark.parametrize(
    ("mode", "hanging"),
    [
        pytest.param((), "4", id="plain"),
        pytest.param(("-n", "2"), "4", id="workers", marks=[pytest.mark.workers, pytest.mark.nightly]),
        pytest.param((), "1", id="plain-first", marks=pytest.mark.nightly),
        pytest.param((), "6", id="plain-last", marks=pytest.mark.nightly),
        pytest.param(("-n", "2"), "1", id="workers-first", marks=[pytest.mark.workers, pytest.mark.nightly]),
        pytest.param(("-n", "2"), "6", id="workers-last", marks=[pytest.mark.workers, pytest.mark.nightly]),
    ],
)
def test_kill_9_of_the_session(folder: Path, mode: tuple[str, ...], hanging: str) -> None:
    """Rows on disk stay there, the rest is asked, and the summary is that of an uninterrupted run."""
    (folder / "hang.txt").write_text(f"a say {hanging}")
    with started(folder, "--openclaw-run-id=r", MODELS, *mode) as process:
        # Workers continue with other cells meanwhile.
        n_rows = min(int(hanging) - 1, 3)
        assert wait_until(lambda: is_asked(folder, f"a say {hanging}") and len(rows(folder)) >= n_rows)
        workers = {pid for pid, _ in children(process.pid)}
        process.kill()
        process.wait()
        assert wait_until(lambda: all(is_gone(pid) for pid in workers))
    kept = rows(folder)

    assert not (folder / "runs" / "r" / "summary.json").exists()
    goes_on(folder, kept, *mode)


@pytest.mark.nightly
def test_kill_9_of_a_resumed_session(folder: Path) -> None:
    """A run may be killed, resumed, and killed again, any number of times."""
    kept: list[bytes] = []
    for hanging in ("2", "5"):
        (folder / "hang.txt").write_text(f"a say {hanging}")
        words = ["--openclaw-resume=r"] if kept else ["--openclaw-run-id=r", MODELS]
        with started(folder, *words) as process:
            assert wait_until(lambda n=hanging: is_asked(folder, f"a say {n}"))
            assert wait_until(lambda n=hanging: len(rows(folder)) >= int(n) - 1)
            process.kill()
        assert rows(folder)[: len(kept)] == kept
        kept = rows(folder)
        assert len(kept) >= int(hanging) - 1

    goes_on(folder, kept)


@pytest.mark.parametrize(
    "number",
    [signal.SIGINT, pytest.param(signal.SIGTERM, marks=pytest.mark.nightly)],
    ids=["SIGINT", "SIGTERM"],
)
@pytest.mark.parametrize(
    ("mode", "n_answered", "n_unreported"),
    [
        # While the first test waits, this many cells are asked ahead of the others.
        pytest.param((), 10, 10, id="plain"),
        # It blocks one worker, which has one cell more; the other one has reported all others.
        pytest.param(("-n", "2"), 11, 1, id="workers", marks=[pytest.mark.workers, pytest.mark.nightly]),
        pytest.param(
            ("-n", "2", "--dist=loadfile"),
            10,
            10,
            id="loadfile",
            marks=[pytest.mark.workers, pytest.mark.nightly],
        ),
    ],
)
def test_an_interruption_keeps_what_was_answered(
    folder: Path, mode: tuple[str, ...], n_answered: int, n_unreported: int, number: signal.Signals
) -> None:
    """Replies that no test has taken yet become rows, in whatever process they are; nothing is lost."""
    (folder / "hang.txt").write_text("a say 1")
    words = ["--openclaw-run-id=r", "--openclaw-concurrency=4", MODELS, *mode]
    with started(folder, *words) as process:
        asked = folder / "asked.txt"
        # The provider records its request and answers in the same step, so nothing can come in between.
        assert wait_until(lambda: asked.exists() and asked.read_text().count(" say ") == n_answered + 1)
        assert wait_until(lambda: len(rows(folder)) == n_answered - n_unreported)
        process.send_signal(number)
        assert process.wait(RUN_S) == 2
    kept = rows(folder)

    assert len(set(keys(kept))) == len(kept) == n_answered
    assert sum(not json.loads(row)["reported"] for row in kept) == n_unreported
    assert f"{n_answered} of 12 cells have a row" in (folder / "out.txt").read_text()
    goes_on(folder, kept, *mode)


@pytest.mark.workers
def test_kill_9_of_a_worker(folder: Path) -> None:
    """The run reports that a worker died; its cells are asked by the others, and none has two rows."""
    (folder / "hang.txt").write_text("a say 4")
    with (folder / "conftest.py").open("a") as conftest:
        conftest.write(WRITES_ITS_PID)
    with started(folder, "--openclaw-run-id=r", MODELS, "-n", "2") as process:
        worker = folder / "hanging.txt"
        # A cell that a test waits for is sent before others: the third may wait behind the one that hangs.
        assert wait_until(lambda: worker.exists() and bool(worker.read_text()) and len(rows(folder)) >= 2)
        assert wait_until(lambda: is_asked(folder, "a say 4"))
        os.kill(int(worker.read_text()), signal.SIGKILL)
        (folder / "hang.txt").unlink()
        assert process.wait(RUN_S) == 1
    kept = rows(folder)

    assert "crashed while running" in (folder / "out.txt").read_text()
    assert len(set(keys(kept))) == len(kept) == 12
    goes_on(folder, kept, "-n", "2")
