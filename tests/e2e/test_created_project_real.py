"""The promise of `init`: `pytest benchmarks/` works in a fresh folder, with the embedded model."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.e2e.sessions import KEPT, SESSION_BOUND_S, RunFolder

pytestmark = pytest.mark.engine


def _done(folder: Path, *words: str) -> subprocess.CompletedProcess[str]:
    environ = {name: os.environ[name] for name in KEPT if name in os.environ}
    return subprocess.run(
        [sys.executable, "-m", *words],
        cwd=folder,
        env={**environ, "HOME": str(folder)},
        capture_output=True,
        encoding="utf-8",
        timeout=SESSION_BOUND_S,
    )


@pytest.mark.nightly
def test_the_first_run_of_a_fresh_folder(tmp_path: Path, embedded_model: str) -> None:
    """After `init`, `pytest benchmarks/` gives four replies, each with a verdict, and a summary."""
    done = _done(tmp_path, "pytest_openclaw", "init")
    session = _done(tmp_path, "pytest", "benchmarks/")
    shown = _done(tmp_path, "pytest_openclaw", "show", "last", "M1")

    assert (done.returncode, done.stderr) == (0, "")
    assert session.returncode in {0, 1}, session.stdout + session.stderr
    (path,) = (tmp_path / "runs").iterdir()
    rows = RunFolder(path).rows
    assert [(row["prompt_id"], row["availability_status"], row["provider"]) for row in rows] == [
        (prompt_id, "ok", "llama_cpp") for prompt_id in ("M1", "M2", "M3", "M4")
    ]
    assert rows[0]["objective_pass"] is True  # the model knows the capital of France
    assert all(row["objective_pass"] is not None for row in rows)
    assert (path / "summary.md").is_file()
    assert shown.returncode == 0
    assert rows[0]["raw_output"].strip() in shown.stdout
