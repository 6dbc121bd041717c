"""The programs that are measured, each a process that asks for N answers: ours, a bare loop, other harnesses."""

import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path
from typing import NamedTuple

from tests.performance.server import RunFailed, Served, read_log

PYTEST = (sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "-q", "--tb=no")
BUSY = """
import time
def pytest_runtest_teardown():
    end = time.thread_time() + {seconds}
    while time.thread_time() < end:
        pass
"""


class Cost(NamedTuple):
    """Wall time, CPU time of the whole process tree, and the largest RSS of its first process."""

    wall_s: float
    cpu_s: float
    peak_mb: float


class Run(NamedTuple):
    """A run that counts: each item was asked once and answered right; `times` are ttft_ms, e2e_ms by item."""

    folder: Path
    cost: Cost
    log: Mapping[str, Served]
    times: Mapping[str, tuple[float, float]]


@dataclass(frozen=True)
class Program:
    """A command with `{base}`, `{level}` and `{folder}`; our tests compute for `busy_ms` after each cell."""

    name: str
    words: Sequence[str]
    busy_ms: float = 0.0


OPTIONS = ("--openclaw-models=ollama_openai/mock", "--openclaw-run-id=run", "--openclaw-concurrency={level}")
OURS = Program("pytest-openclaw", (*PYTEST, "prompts_perf.json", *OPTIONS))
PEERS, ARGUMENTS = str(Path(__file__).with_name("peers.py")), ("{base}", "{level}", "{folder}")
LOOP = Program("httpx2 loop", (sys.executable, PEERS, "httpx2", "", *ARGUMENTS))


def peer(name, command):
    """Return a harness of `peers.py`; `command` is promptfoo, or the Python that has the other harness."""
    asked = ("-c", f"from importlib.metadata import version; print(version({name!r}))")
    python, *question = [sys.executable, "--version"] if name == "promptfoo" else [command, *asked]
    version = subprocess.run([command, *question], stdout=subprocess.PIPE, text=True, check=True).stdout
    return Program(f"{name} {version.strip()}", (python, PEERS, name, command, *ARGUMENTS))


def execute(command, folder, **environ):
    """Run a program to its end, without the user's environment; `RunFailed` if it ends with an error."""
    kept = {name: os.environ[name] for name in ("PATH", "LANG", "LD_LIBRARY_PATH") if name in os.environ}
    environ = {**kept, "HOME": str(folder.parent), "TMPDIR": str(folder.parent), **environ}
    with tempfile.TemporaryFile() as out:
        began, none, peak_kb = time.perf_counter(), subprocess.DEVNULL, 0
        process = subprocess.Popen(command, cwd=folder, env=environ, stdin=none, stdout=out, stderr=out)
        while not (ended := os.wait4(process.pid, os.WNOHANG))[0]:  # `ru_maxrss` has the parent's memory, too
            status_text = Path(f"/proc/{process.pid}/status").read_text("utf-8")
            peak_kb = max([peak_kb, *map(int, status_text.partition("VmHWM:")[2].split()[:1])])
            time.sleep(0.002)
        wall_s = time.perf_counter() - began
        process.returncode = os.waitstatus_to_exitcode(ended[1])
        out.seek(0)
        if process.returncode:
            raise RunFailed(f"{command} ended with {process.returncode}: {out.read().decode()[-2000:]}")
    return Cost(wall_s, ended[2].ru_utime + ended[2].ru_stime, peak_kb / 1000)


@dataclass
class Bench:
    """The state that the measures share: the server's address, a folder for runs, and the programs in turn."""

    address: str
    home: Path
    programs: Sequence[Program]
    scale: float = 1.0
    numbers: Iterator[int] = field(default_factory=count)

    def n(self, full):
        return max(2, round(full * self.scale))

    def run(self, program, n, level, behavior=""):
        """Ask for `n` answers with `level` requests in flight; `RunFailed` if the run does not count."""
        base = f"run={next(self.numbers)}{behavior}"
        folder, url = self.home / base, f"{self.address}/{base}/v1"
        prompts = []
        for i in range(n):
            item, text = f"item-{i:06d}", f"HEARTBEAT_OK item-{i:06d}"
            rule = {"type": "exact", "value": text}
            prompts.append({"id": item, "prompt": f"Reply with exactly: {text}", "validator": rule})
        folder.mkdir()
        (folder / "prompts_perf.json").write_text(json.dumps(prompts))
        (folder / "pytest.ini").write_text("[pytest]\n")
        if program.busy_ms:
            (folder / "conftest.py").write_text(BUSY.format(seconds=program.busy_ms / 1000))
        command = [word.format(base=url, level=level, folder=folder) for word in program.words]
        cost, files = execute(command, folder, OLLAMA_OPENAI_BASE=url), folder.rglob("results.jsonl")
        rows = [json.loads(line) for one in files for line in one.read_bytes().splitlines()]
        times = {row["prompt_id"]: (row["ttft_ms"], row["e2e_ms"]) for row in rows if row["objective_pass"]}
        if rows and not len(rows) == len(times) == n:
            raise RunFailed(f"{n} items: {len(rows)} rows, {len(times)} passed")
        return Run(folder, cost, read_log(self.address, base, n), times)

    def plain_session(self, *words):
        folder = self.home / "plain"
        folder.mkdir(exist_ok=True)
        (folder / "test_one.py").write_text("def test_one():\n    assert True\n")
        return execute([*PYTEST, *words], folder)
