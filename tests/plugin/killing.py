"""Sessions that are really killed: a server that can delay its answers, and the rows that a run must keep."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import psutil

from tests.conftest import NO_OTHER_PLUGINS
from tests.e2e.processes import children, is_gone, wait_until
from tests.e2e.sessions import KEPT
from tests.plugin.bad_servers import ModelServer
from tests.plugin.school import NOOP, YES, timeless
from tests.providers.servers.apis import Api
from tests.providers.servers.misbehaving import Script, Wait

RUN_S = 600.0
SUITE = {f"P{n}": (f"ask {n}", YES if n % 2 else NOOP) for n in range(1, 9)}
TARGETS = ("openai_responses/m", "ollama_openai/m")
BEGIN = (f"--openclaw-models={','.join(TARGETS)}", "--openclaw-run-id=r", "--openclaw-retries=0")
CELLS = sorted((target, prompt_id) for target in TARGETS for prompt_id in SUITE)
# The fields of a row that differ between any two runs: times and load.
OWN = {"run_id", "schema_version", "started_at_ms", "ended_at_ms", "e2e_ms", "ttft_ms", "ttfo_ms", "tokens_per_s", "queue_ms",
       "prompt_tokens_per_s", "in_flight", "cold_start", "host", "reported"}  # fmt: skip

Key = tuple[str, str]


class HoldingServer(ModelServer):
    """Answers "yes" and "no" in turn, but can delay some prompts and fail for others.

    Attributes:
        held: prompts whose answer waits for `let_go`.
        n_waiting: requests that wait for it.
        unwell: prompts that end in a fault.
    """

    def __init__(self) -> None:
        super().__init__({prompt: self._behave(prompt) for prompt, _ in SUITE.values()})
        self.held: set[str] = set()
        self.unwell: set[str] = set()
        self.n_waiting = 0
        self._gate = threading.Event()

    def hold(self, *prompts: str) -> None:
        """Answer these prompts no more until `let_go`."""
        self._gate = threading.Event()
        self.held = set(prompts)

    def let_go(self) -> None:
        """Answer all waiting and all later requests."""
        self.held = set()
        self._gate.set()
        self._left.clear()

    def is_asked(self, *prompts: str) -> bool:
        """Whether all of these prompts have been received."""
        return set(prompts) <= {asked.prompt for asked in self.asked}

    def calls(self) -> Counter[Key]:
        """Return the requests since the last call of this method."""
        ids = {prompt: prompt_id for prompt_id, (prompt, _) in SUITE.items()}
        calls = Counter((asked.target, ids[asked.prompt]) for asked in self.asked)
        self.asked.clear()
        return calls

    def _do(self, connection: Any, step: Any) -> bool:
        if not isinstance(step, Wait):
            return super()._do(connection, step)
        with self._mutex:
            self.n_waiting += 1
        try:
            return super()._do(connection, step)
        finally:
            with self._mutex:
                self.n_waiting -= 1

    def _behave(self, prompt: str) -> Any:
        def behave(api: Api) -> Script:
            if prompt in self.unwell:
                return Script.answer({"error": {"message": "out of order"}}, status=500)
            word = "yes" if int(prompt.split()[1]) % 3 else "no"
            answer = Script.stream(api.text(word), api.end())
            return Script((Wait(self._gate), *answer.steps)) if prompt in self.held else answer

        return behave


@dataclass(frozen=True)
class Lab:
    """A user's project whose built-in providers use one server on this machine."""

    folder: Path
    server: HoldingServer
    environ: Mapping[str, str] = field(default_factory=dict)

    @classmethod
    def create(cls, folder: Path, server: HoldingServer) -> Lab:
        for name in ("benchmarks", "home", "tmp"):
            (folder / name).mkdir(parents=True)
        (folder / "pytest.ini").write_text("[pytest]\nfilterwarnings = error\n")
        suite = [{"id": key, "prompt": text, "validator": rule} for key, (text, rule) in SUITE.items()]
        (folder / "benchmarks" / "prompts_a.json").write_text(json.dumps(suite))
        kept = {name: os.environ[name] for name in KEPT if name in os.environ}
        environ = kept | {
            "HOME": str(folder / "home"),
            "TMPDIR": str(folder / "tmp"),
            "PYTEST_ADDOPTS": NO_OTHER_PLUGINS,
            "PYTHONUNBUFFERED": "1",  # tests wait for lines of a session that itself waits
            "OLLAMA_OPENAI_BASE": server.url,
            "OPENAI_BASE_URL": server.url,
            "OPENAI_API_KEY": "dummy-key",
        }
        return cls(folder, server, environ)

    @contextmanager
    def started(self, *words: str, out: str = "out.txt") -> Iterator[UnderWay]:
        """Start a session, in its own process group as in a terminal; its output goes to a file."""
        with (self.folder / out).open("wb") as shown:
            process = subprocess.Popen(
                self._command(*words), cwd=self.folder, env=dict(self.environ),
                stdin=subprocess.DEVNULL, stdout=shown, stderr=subprocess.STDOUT, start_new_session=True,
            )  # fmt: skip
        try:
            yield UnderWay(self, process)
        finally:
            # If the test passes, no process of the group is left.
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()

    def run(self, *words: str) -> subprocess.CompletedProcess[str]:
        """Run a session to its end."""
        return subprocess.run(
            self._command(*words), cwd=self.folder, env=dict(self.environ),
            stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=RUN_S,
        )  # fmt: skip

    @staticmethod
    def _command(*words: str) -> list[str]:
        return [sys.executable, "-m", "pytest", "benchmarks", "-p", "no:cacheprovider", "-rA", *words]

    @property
    def text(self) -> str:
        """The output of the session that was started last."""
        return (self.folder / "out.txt").read_text("utf-8", "replace")

    def at_start(self, source: str) -> Lab:
        """Let every process that a session starts run this first."""
        (self.folder / "sitecustomize.py").write_text(source)
        return replace(self, environ={**self.environ, "PYTHONPATH": str(self.folder)})

    def lines(self, run: str = "r") -> list[bytes]:
        """The complete lines of a run's rows."""
        path = self.folder / "runs" / run / "results.jsonl"
        found = path.read_bytes().splitlines(keepends=True) if path.exists() else []
        return [line for line in found if line.endswith(b"\n")]

    def rows(self, run: str = "r") -> dict[Key, dict[str, Any]]:
        """The rows of a run by cell; each cell has exactly one."""
        rows = [json.loads(line) for line in self.lines(run)]
        by_cell = {(f"{row['provider']}/{row['model']}", row["prompt_id"]): row for row in rows}
        assert len(by_cell) == len(rows), "a cell has two rows"
        return by_cell

    def summary(self, run: str = "r") -> dict[str, Any]:
        value = json.loads((self.folder / "runs" / run / "summary.json").read_text("utf-8"))
        assert isinstance(value, dict)
        return value

    def result(self, run: str = "r") -> Any:
        """The result of a run, without what differs between any two runs."""
        rows = {key: {n: v for n, v in row.items() if n not in OWN} for key, row in self.rows(run).items()}
        return dict(sorted(rows.items())), timeless(self.summary(run))

    def goes_on(self, whole: Any, mode: Sequence[str] = ()) -> None:
        """Resume the last run, and check that nothing is lost, asked twice or counted twice.

        Args:
            whole: the result of an uninterrupted run.
            mode: plain or with workers.
        """
        self.server.unwell = set()
        self.server.let_go()
        before = self.lines()
        answered = [line for line in before if json.loads(line)["availability_status"] == "ok"]
        kept = {key for key, row in self.rows().items() if row["availability_status"] == "ok"}
        self.server.calls()

        resumed = self.run("--openclaw-resume=last", *mode)

        assert resumed.returncode == 1, resumed.stdout + resumed.stderr
        assert self.lines()[: len(answered)] == answered
        assert sorted(self.rows()) == CELLS
        assert self.server.calls() == Counter(set(CELLS) - kept)
        assert self.result() == whole
        left = [path.name for path in (self.folder / "runs" / "r").iterdir() if path.name.startswith(".")]
        assert left == []


@dataclass(frozen=True)
class UnderWay:
    """A running session."""

    lab: Lab
    process: subprocess.Popen[bytes]

    def wait_until(self, condition: Any) -> None:
        """Wait for a condition while the session runs."""
        met = wait_until(lambda: bool(condition()) or self.process.poll() is not None)
        assert met, f"it did not come about:\n{self.lab.text}"
        assert self.process.poll() is None, f"the session has ended:\n{self.lab.text}"

    def wait_for_rows(self, n: int) -> None:
        """Wait until this many rows are on disk."""
        self.wait_until(lambda: len(self.lab.lines()) >= n)

    def processes(self) -> set[int]:
        """All processes of this session, including itself."""
        return {self.process.pid, *(pid for pid, _ in children(self.process.pid))}

    def workers(self) -> set[int]:
        """The workers."""
        return {process.pid for process in psutil.Process(self.process.pid).children()}

    def end(self) -> int:
        """Wait for the end, and return the exit status."""
        return self.process.wait(RUN_S)


def all_gone(pids: set[int]) -> bool:
    """Whether all of these processes end within a generous time limit."""
    return wait_until(lambda: all(map(is_gone, pids)))


def whole_run(folder: Path) -> Any:
    """The result of a run without an interruption."""
    with HoldingServer() as server:
        lab = Lab.create(folder / "project", server)
        done = lab.run(*BEGIN)
        assert done.returncode == 1, done.stdout + done.stderr
        assert sorted(lab.rows()) == CELLS
        return lab.result()
