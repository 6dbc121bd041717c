"""Whole pytest sessions as a user starts them, and the files that they write."""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

import pytest

from tests.e2e.processes import POLL_S, children, is_gone, wait_until
from tests.run_files import StoredRun

RUN = "run"
SESSION_BOUND_S = 600.0
ENGINE = "pytest_openclaw.providers.llama_cpp.server"
# What Python and the CLI need to start; everything else, above all keys, is left out.
KEPT = ("PATH", "LANG", "LC_ALL", "LD_LIBRARY_PATH", "DYLD_LIBRARY_PATH", "SYSTEMROOT")


class RunFolder(StoredRun):
    @property
    def n_rows(self):
        results = self.run_dir / "results.jsonl"
        return results.read_bytes().count(b"\n") if results.exists() else 0

    def rows_of(self, provider):
        rows = [row for row in self.rows if row["provider"] == provider]
        by_id = {row["prompt_id"]: row for row in rows}
        assert len(by_id) == len(rows), "a cell has one row"
        return by_id

    def group(self, provider):
        (group,) = (group for group in self.summary["groups"] if group["provider"] == provider)
        return group


@dataclass(frozen=True)
class Ended:
    """A session that has ended, with all engine processes that were seen, and the temporary files that it left."""

    status: int
    text: str
    run: RunFolder
    engines: frozenset[int]
    left: list[str]

    @property
    def outcomes(self):
        return pytest.RunResult.parse_summary_nouns(self.text.splitlines())


class Session:
    """A running session, the leader of its own process group as in a terminal; use it with `with`."""

    def __init__(self, command, cwd, environ, run):
        self.run = RunFolder(run)
        self._tmp = Path(environ["TMPDIR"])
        self._out = self._tmp.parent / "out.txt"
        with self._out.open("wb") as out:
            self.process = subprocess.Popen(
                command, cwd=cwd, env=dict(environ), stdin=subprocess.DEVNULL, stdout=out,
                stderr=subprocess.STDOUT, start_new_session=True,
            )  # fmt: skip
        self.engines = set()

    def started(self, what):
        return {pid for pid, command in children(self.process.pid) if what in command}

    def wait_until(self, condition):
        met = wait_until(lambda: bool(condition()) or self.process.poll() is not None)
        assert met, "it did not come about"
        assert self.process.poll() is None, f"the session has ended:\n{self._text()}"

    def end(self, *, within_s=SESSION_BOUND_S):
        deadline = time.monotonic() + within_s
        while self.process.poll() is None:
            assert time.monotonic() < deadline, f"the session hangs:\n{self._text()}"
            self.engines |= self.started(ENGINE)
            time.sleep(POLL_S)
        return Ended(
            status=self.process.returncode,
            text=self._text(),
            run=self.run,
            engines=frozenset(self.engines),
            left=sorted(path.name for path in self._tmp.iterdir() if not path.name.startswith("pytest-of-")),
        )

    def __enter__(self):
        return self

    def __exit__(self, *_):
        # A test failed before the session ended.
        if self.process.poll() is None:
            os.killpg(self.process.pid, signal.SIGKILL)
            self.process.wait()

    def _text(self):
        return self._out.read_text("utf-8", "replace")


@dataclass(frozen=True)
class Project:
    folder: Path
    environ: Mapping[str, str] = field(default_factory=dict)

    @classmethod
    def create(cls, folder, ini=""):
        for name in ("benchmarks", "home", "tmp"):
            (folder / name).mkdir(parents=True)
        (folder / "pytest.ini").write_text(f"[pytest]\nfilterwarnings = error\n{ini}", "utf-8")
        kept = {name: os.environ[name] for name in KEPT if name in os.environ}
        return cls(folder, kept | {"HOME": str(folder / "home"), "TMPDIR": str(folder / "tmp")})

    def where(self, **environ):
        return replace(self, environ={**self.environ, **environ})

    def suite(self, *prompts, name="prompts_real.json"):
        (self.folder / "benchmarks" / name).write_text(json.dumps(prompts), "utf-8")

    def start(self, *words, models, named=("benchmarks/",)):
        runs = self.folder / "runs"
        chosen = [f"--openclaw-models={models}", f"--openclaw-runs-dir={runs}", f"--openclaw-run-id={RUN}"]
        command = [sys.executable, "-m", "pytest", *named, "-p", "no:cacheprovider", *chosen, *words]
        return Session(command, self.folder, self.environ, runs / RUN)

    def run(self, *words, **how):
        with self.start(*words, **how) as session:
            return session.end()


def all_gone(pids):
    return wait_until(lambda: all(is_gone(pid) for pid in pids))
