"""Runs that are really killed or interrupted, in the middle, and resumed."""

import json
import os
import signal
import subprocess
import sys
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.e2e.processes import children, is_gone, wait_until
from tests.plugin.conftest import NOOP, YES
from tests.plugin.school import TEACHER, timeless

pytestmark = [
    pytest.mark.newest,
    pytest.mark.skipif(sys.platform == "win32", reason="Windows has no such signals"),
]

SUITE = {f"P{n}": (f"say {n}", YES if n % 2 else NOOP) for n in range(1, 7)}
MODELS = "--openclaw-models=teacher/a,teacher/b"
RUN_S = 600.0
BY_NIGHT = [pytest.mark.workers, pytest.mark.nightly]
WRITES_ITS_PID = """
def pytest_runtest_setup(item):
    if item.nodeid.endswith("P4[teacher/a]"):
        (FOLDER / "hanging.txt").write_text(str(os.getpid()))
"""


# A validator that never ends, the first time.
ENDLESS = """
import pytest_openclaw.judging.text as text

check = text.Noop.check

def endless(self, reply):
    if not (FOLDER / "judging.txt").exists():
        (FOLDER / "judging.txt").touch()
        while True:
            pass
    return check(self, reply)

text.Noop.check = endless
"""
# Stops where pytest begins to handle an interruption, until the test lets it continue.
STOPS = """
import time

def {hook}():
    if "PYTEST_XDIST_WORKER" not in os.environ:
        (FOLDER / "ending.txt").touch()
        while not (FOLDER / "go-on.txt").exists():
            time.sleep(0.01)
"""


@pytest.fixture
def folder(plain_project):
    plain_project.extend_conftest(TEACHER)
    plain_project.suite(SUITE)
    assert isinstance(plain_project.folder, Path)
    return plain_project.folder


def command(*words):
    return [sys.executable, "-m", "pytest", "benchmarks", "-p", "no:cacheprovider", *words]


@contextmanager
def started(folder, *words):
    """Start a session, in its own process group, as outside a worker; its output is in out.txt."""
    environ = {name: value for name, value in os.environ.items() if name != "PYTEST_XDIST_WORKER"}
    with (folder / "out.txt").open("wb") as out:
        process = subprocess.Popen(
            command(*words), cwd=folder, stdin=subprocess.DEVNULL, stdout=out, stderr=subprocess.STDOUT,
            env=environ, start_new_session=True,
        )  # fmt: skip
    try:
        yield process
    finally:
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()


def run(folder, *words):
    return subprocess.run(command(*words), cwd=folder, capture_output=True, text=True, timeout=RUN_S)


def rows(folder, name="r"):
    path = folder / "runs" / name / "results.jsonl"
    found = path.read_bytes().splitlines(keepends=True) if path.exists() else []
    return [line for line in found if line.endswith(b"\n")]


def processes(process):
    return {process.pid, *(pid for pid, _ in children(process.pid))}


def all_gone(pids):
    return wait_until(lambda: all(map(is_gone, pids)))


def add(folder, source):
    with (folder / "conftest.py").open("a") as conftest:
        conftest.write(source)


def is_asked(folder, word):
    path = folder / "asked.txt"
    return path.exists() and word in path.read_text().splitlines()


def keys(lines):
    return [(row["model"], row["prompt_id"]) for row in map(json.loads, lines)]


def summary(folder, name):
    return timeless(json.loads((folder / "runs" / name / "summary.json").read_text("utf-8")))


def continues(folder, kept, *mode):
    """Resume the run r, and check that nothing was lost, asked twice or counted twice."""
    asked = folder / "asked.txt"
    (folder / "hang.txt").unlink(missing_ok=True)
    answered = {f"{model} {SUITE[prompt_id][0]}" for model, prompt_id in keys(kept)}
    assert answered <= set(asked.read_text().splitlines())
    asked.write_text("")

    resumed = run(folder, "--openclaw-resume=last", *mode)

    assert resumed.returncode == 1, resumed.stdout + resumed.stderr
    assert rows(folder)[: len(kept)] == kept
    cells = sorted((model, prompt_id) for model in "ab" for prompt_id in SUITE)
    assert sorted(keys(rows(folder))) == cells
    calls = [word for word in asked.read_text().splitlines() if " say " in word]
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
        pytest.param(("-n", "2"), "4", id="workers", marks=BY_NIGHT),
        pytest.param((), "1", id="plain-first", marks=pytest.mark.nightly),
        pytest.param(("-n", "2"), "6", id="workers-last", marks=BY_NIGHT),
    ],
)
def test_kill_9_of_the_session(folder, mode, hanging):
    """Rows on disk stay there, the rest is asked, and the summary equals the summary of an uninterrupted run."""
    (folder / "hang.txt").write_text(f"a say {hanging}")
    with started(folder, "--openclaw-run-id=r", MODELS, *mode) as process:
        # Workers continue with other cells meanwhile.
        n_rows = min(int(hanging) - 1, 3)
        assert wait_until(lambda: is_asked(folder, f"a say {hanging}") and len(rows(folder)) >= n_rows)
        pids = processes(process)
        process.kill()
        process.wait()
        assert all_gone(pids)
    kept = rows(folder)

    assert not (folder / "runs" / "r" / "summary.json").exists()
    continues(folder, kept, *mode)


@pytest.mark.nightly
def test_kill_9_of_a_resumed_session(folder):
    """A run may be killed, resumed, and killed again, any number of times."""
    kept = []
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

    continues(folder, kept)


@pytest.mark.parametrize("may_be_replaced", [True, pytest.param(False, marks=pytest.mark.nightly)])
@pytest.mark.workers
def test_kill_9_of_a_worker(folder, may_be_replaced):
    """The others run its cells, none has two rows; a run that lacks one is marked and can be resumed."""
    (folder / "hang.txt").write_text("a say 4")
    add(folder, WRITES_ITS_PID)
    more = () if may_be_replaced else ("--max-worker-restart=0",)
    with started(folder, "--openclaw-run-id=r", MODELS, "-n", "2", *more) as process:
        worker = folder / "hanging.txt"
        # A cell that a test waits for is sent before others: the third may wait behind the one that hangs.
        assert wait_until(lambda: worker.exists() and bool(worker.read_text()) and len(rows(folder)) >= 2)
        assert wait_until(lambda: is_asked(folder, "a say 4"))
        os.kill(int(worker.read_text()), signal.SIGKILL)
        if not may_be_replaced:
            assert wait_until(lambda: "restarting disabled" in (folder / "out.txt").read_text())
        (folder / "hang.txt").unlink()
        assert process.wait(RUN_S) == 1
    kept = rows(folder)

    assert "crashed" in (folder / "out.txt").read_text()
    assert len(set(keys(kept))) == len(kept)
    assert (len(kept) == 12) is (summary(folder, "r")["state"] == "finished")
    assert len(kept) == 12 or not may_be_replaced
    continues(folder, kept, "-n", "2")


@pytest.mark.parametrize(
    ("mode", "n_answered", "n_unreported"),
    [
        # While the first test waits, this many cells are asked ahead of the others.
        pytest.param((), 10, 10, id="plain"),
        # It blocks one worker, which has one cell more; the other one has reported all others.
        pytest.param(("-n", "2"), 11, 1, id="workers", marks=BY_NIGHT),
        pytest.param(("-n", "2", "--dist=loadfile"), 10, 10, id="loadfile", marks=BY_NIGHT),
    ],
)
def test_an_interruption_keeps_what_was_answered(folder, mode, n_answered, n_unreported):
    """Replies that no test has taken yet become rows, in whatever process they are; nothing is lost."""
    (folder / "hang.txt").write_text("a say 1")
    words = ["--openclaw-run-id=r", "--openclaw-concurrency=4", MODELS, *mode]
    with started(folder, *words) as process:
        asked = folder / "asked.txt"
        # The provider records its request and answers in the same step, so nothing can come in between.
        assert wait_until(lambda: asked.exists() and asked.read_text().count(" say ") == n_answered + 1)
        assert wait_until(lambda: len(rows(folder)) == n_answered - n_unreported)
        process.send_signal(signal.SIGINT)
        assert process.wait(RUN_S) == 2
    kept = rows(folder)

    assert len(set(keys(kept))) == len(kept) == n_answered
    assert sum(not json.loads(row)["reported"] for row in kept) == n_unreported
    assert f"{n_answered} of 12 cells have a row" in (folder / "out.txt").read_text()
    continues(folder, kept, *mode)


@pytest.mark.parametrize(
    ("number", "mode", "hook"),
    [
        pytest.param(signal.SIGINT, ("-n", "2"), "", id="ctrl-c-workers", marks=pytest.mark.workers),
        pytest.param(signal.SIGTERM, (), "", id="sigterm", marks=pytest.mark.nightly),
        pytest.param(signal.SIGINT, (), "pytest_keyboard_interrupt", id="twice", marks=pytest.mark.nightly),
        pytest.param(signal.SIGINT, ("-n", "2"), "pytest_sessionfinish", id="twice-workers", marks=BY_NIGHT),
    ],
)
def test_a_signal_to_all_processes(folder, number, mode, hook):
    """As from a terminal or a time limit, and once again during the end: no row and no summary is lost."""
    (folder / "hang.txt").write_text("a say 4")
    if hook:
        add(folder, STOPS.format(hook=hook))
    with started(folder, "--openclaw-run-id=r", MODELS, *mode) as process:
        assert wait_until(lambda: len(rows(folder)) >= 2 and is_asked(folder, "a say 4"))
        before, pids = rows(folder), processes(process)
        os.killpg(process.pid, number)
        if hook:
            assert wait_until((folder / "ending.txt").exists)
            os.killpg(process.pid, number)
            (folder / "go-on.txt").touch()
        assert process.wait(RUN_S) == 2
        assert all_gone(pids)

    check_interrupted(folder, before, number)
    continues(folder, rows(folder), *mode)


@pytest.mark.parametrize("number", [pytest.param(signal.SIGINT, marks=pytest.mark.nightly), signal.SIGTERM])
def test_a_signal_while_a_reply_is_judged(folder, number):
    """Python code that never ends is interrupted where it is."""
    add(folder, ENDLESS)
    with started(folder, "--openclaw-run-id=r", MODELS) as process:
        assert wait_until((folder / "judging.txt").exists)
        before = rows(folder)
        process.send_signal(number)
        assert process.wait(RUN_S) == 2

    check_interrupted(folder, before, number)
    continues(folder, rows(folder))


@pytest.mark.parametrize("error", ["KeyboardInterrupt", "RuntimeError"])
def test_another_plugin_that_breaks_at_the_end(folder, error):
    """It may be a second Ctrl-C that stops it; the summary is written."""
    add(folder, f"def pytest_sessionfinish():\n    raise {error}")
    with started(folder, "--openclaw-run-id=r", MODELS) as process:
        assert process.wait(RUN_S) != 0

    assert summary(folder, "r")["n_rows"] == 12


def check_interrupted(folder, before, number):
    """Check that earlier rows are kept, and that the run says what happened and how to continue."""
    text, n_rows = (folder / "out.txt").read_text(), len(rows(folder))
    assert rows(folder)[: len(before)] == before
    assert (summary(folder, "r")["state"], summary(folder, "r")["n_rows"]) == ("interrupted", n_rows)
    assert f"{n_rows} of 12 cells have a row" in text
    assert ("SIGTERM" if number == signal.SIGTERM else "Interrupted: Ctrl-C") in text
    assert "Traceback" not in text
    assert "INTERNALERROR" not in text
    assert "--openclaw-resume=r" in text.split("\nnext ")[1]
