"""Our plugin as its users run it: `pytest` as a process on a suite of N prompts, in a project of its own."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from tests.performance import processes
from tests.performance.clients import answer_to, items, prompt_of
from tests.performance.processes import Cost, Memory
from tests.performance.runs import Run, Times
from tests.performance.serving import MockServer, RunFailed

# A validator that burns CPU time of this thread, to see whether it delays other clocks.
BURNING = """
import time
from dataclasses import dataclass
from typing import ClassVar

from pytest_openclaw import Verdict


@dataclass(frozen=True)
class ExactAfterWork:
    type: ClassVar[str] = "exact_after_work"
    value: str

    def check(self, reply):
        end = time.thread_time() + MS / 1000
        while time.thread_time() < end:
            pass
        return Verdict(passed=reply.text == self.value)


def pytest_openclaw_validators():
    return [ExactAfterWork]
"""

# As many items of an own class as there would be cells, which do nothing.
EMPTY = """
import pytest


class Nothing(pytest.Item):
    def runtest(self):
        pass


class Many(pytest.File):
    def collect(self):
        for i in range(int(self.path.read_text())):
            yield Nothing.from_parent(self, name=f"item-{i:06d}")


def pytest_collect_file(file_path, parent):
    if file_path.name == "many.txt":
        return Many.from_parent(parent, path=file_path)
"""


@dataclass(frozen=True)
class PluginRunner:
    """Sessions of our plugin.

    Args:
        folder: where projects may be made.
        server: who is asked.
        words: further words of the command line.
        burnt_ms: the CPU time that every validator burns.
        environ: added to the environment.
    """

    folder: Path
    server: MockServer
    words: tuple[str, ...] = ()
    burnt_ms: int = 0
    environ: Mapping[str, str] = field(default_factory=dict)

    @property
    def name(self) -> str:
        """Its row in the table."""
        burns = f"validators burn {self.burnt_ms} ms" if self.burnt_ms else ""
        return ", ".join(filter(None, ("pytest-openclaw", " ".join(self.words), burns)))

    def run(self, n: int, concurrency: int, behavior: str = "") -> Run:
        """Run a session; see `Runner.run`."""
        project, base = Project(self.folder, n, self.burnt_ms), self.server.base(behavior)
        project.forget()
        command = project.command(concurrency, *self.words)
        cost = processes.run(command, project.path, {**project.environ(base), **self.environ})
        return self._check(project, base, cost)

    def peak_memory(self, n: int, concurrency: int, behavior: str = "") -> Memory:
        """Run a session for its memory alone; raises as `run`."""
        project, base = Project(self.folder, n, self.burnt_ms), self.server.base(behavior)
        project.forget()
        memory = processes.peak_memory(project.command(concurrency), project.path, project.environ(base))
        self._check(project, base, Cost(0.0, 0.0, ""))
        return memory

    def first_row_s(self, n: int) -> float:
        """Return the seconds from the start of the process to its first row on disk; raises as `run`."""
        project, base = Project(self.folder, n, self.burnt_ms), self.server.base()
        project.forget()
        with tempfile.TemporaryFile() as out:
            began = time.perf_counter()
            process = processes.start(project.command(8), project.path, project.environ(base), out.fileno())
            while not _has_row(project.results) and process.poll() is None:
                time.sleep(0.001)
            waited_s = time.perf_counter() - began
            try:
                status = process.wait(processes.BOUND_S)
            except subprocess.TimeoutExpired:
                process.kill()
                status = process.wait()
        if status:
            raise RunFailed(f"the session ended with status {status}")
        self._check(project, base, Cost(0.0, 0.0, ""))
        return waited_s

    def _check(self, project: Project, base: str, cost: Cost) -> Run:
        """Return a session that has ended with status 0, if it counts."""
        n, log = project.n, self.server.log(base)
        log.require(n)
        rows = [json.loads(line) for line in project.results.read_text("utf-8").splitlines()]
        passed = [row for row in rows if row["objective_pass"] is True]
        times = {row["prompt_id"]: Times(row["ttft_ms"], row["e2e_ms"]) for row in passed}
        if not len(rows) == len(times) == n:
            raise RunFailed(f"{n} items: {len(rows)} rows, {len(passed)} passed")
        return Run(cost=cost, log=log, times=times)


def _has_row(results: Path) -> bool:
    try:
        return results.stat().st_size > 0  # a row is one write
    except FileNotFoundError:
        return False


@dataclass(frozen=True)
class Project:
    """A generated project with a suite of `n` prompts."""

    folder: Path
    n: int
    burnt_ms: int = 0

    @property
    def path(self) -> Path:
        """Where it is; it is made when it is first asked for."""
        path = self.folder / f"cells-{self.n}-{self.burnt_ms}"
        if path.exists():
            return path
        path.mkdir()
        (path / "pytest.ini").write_text("[pytest]\n")
        rule = "exact_after_work" if self.burnt_ms else "exact"
        prompts = [
            {"id": item, "prompt": prompt_of(item), "validator": {"type": rule, "value": answer_to(item)}}
            for item in items(self.n)
        ]
        self.suite.parent.mkdir()
        self.suite.write_text(json.dumps(prompts))
        if self.burnt_ms:
            (path / "conftest.py").write_text(BURNING.replace("MS", str(self.burnt_ms)))
        return path

    @property
    def suite(self) -> Path:
        """The file of prompts."""
        return self.path / "benchmarks" / "prompts_perf.json"

    @property
    def results(self) -> Path:
        """The file of rows."""
        return self.path / "runs" / "run" / "results.jsonl"

    def command(self, concurrency: int, *words: str) -> list[str]:
        """Return the command line of a session."""
        return [
            *pytest_command("benchmarks"), "--openclaw-models=ollama_openai/mock", "--openclaw-run-id=run",
            f"--openclaw-concurrency={concurrency}", *words,
        ]  # fmt: skip

    def environ(self, base: str) -> dict[str, str]:
        """Return the environment of a session."""
        return processes.environment(self.folder, OLLAMA_OPENAI_BASE=base)

    def forget(self) -> None:
        """Remove the last run."""
        shutil.rmtree(self.path / "runs", ignore_errors=True)


def pytest_command(*words: str) -> list[str]:
    """Return a plain command line."""
    return [sys.executable, "-m", "pytest", *words, "-p", "no:cacheprovider", "-q", "--tb=no"]


def empty_session_memory(folder: Path, n: int) -> Memory:
    """Return the memory of a session of `n` items that do nothing, without our plugin."""
    project = folder / f"empty-{n}"
    project.mkdir(exist_ok=True)
    (project / "pytest.ini").write_text("[pytest]\n")
    (project / "conftest.py").write_text(EMPTY)
    (project / "many.txt").write_text(str(n))
    command = pytest_command("many.txt", "-p", "no:openclaw")
    return processes.peak_memory(command, project, processes.environment(folder))


def collecting_s(folder: Path, n: int) -> float:
    """Return the seconds that it takes to collect `n` cells, from the start of the process to its end."""
    project = Project(folder, n)
    command = project.command(8, "--collect-only")
    cost = processes.run(command, project.path, project.environ("http://127.0.0.1:9/v1"))
    if cost.text.count("::item-") != n:
        raise RunFailed(f"{cost.text.count('::item-')} cells were collected, not {n}")
    return cost.wall_s


def plain_session(folder: Path, *words: str, environ: Mapping[str, str] | None = None) -> Cost:
    """Return what a session takes in a project that has one test and no benchmark."""
    project = folder / "plain"
    if not project.exists():
        project.mkdir()
        (project / "pytest.ini").write_text("[pytest]\n")
        (project / "test_one.py").write_text("def test_one():\n    assert True\n")
    return processes.run(
        pytest_command(*words), project, {**processes.environment(folder), **(environ or {})}
    )
