"""A disk that is really full, a file that may really not grow, a folder that is really read-only."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.plugin.conftest import MODES_BY_NIGHT
from tests.plugin.school import NOOP, TEACHER, timeless

pytestmark = pytest.mark.newest

RUN_S = 600.0
MODELS = "--openclaw-models=teacher/a"
# Twenty rows of some 3.5 KB.
SUITE = {f"P{n}": (f"long {3000 + n}", NOOP) for n in range(1, 21)}
PYTEST = f"{sys.executable} -m pytest benchmarks -p no:cacheprovider -q"


@pytest.fixture
def folder(plain_project: Any) -> Path:
    """A project with a suite of long answers."""
    plain_project.pytester.makeconftest(TEACHER)
    plain_project.suite(SUITE)
    assert isinstance(plain_project.folder, Path)
    return plain_project.folder


def shell(folder: Path, script: str, *, own_mounts: bool = False) -> None:
    """Run a shell script in the project, with mounts of its own if needed."""
    words = ["unshare", "-rm"] if own_mounts else []
    done = subprocess.run(
        [*words, "sh", "-ec", script], cwd=folder, capture_output=True, text=True, timeout=RUN_S
    )
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.fixture
def _mounts(tmp_path: Path) -> None:
    if shutil.which("unshare") is None:
        pytest.skip("this system has no unshare, so that no small file system can be mounted")
    probe = ["unshare", "-rm", "mount", "-t", "tmpfs", "-o", "size=64k", "tmpfs", str(tmp_path)]
    done = subprocess.run(probe, capture_output=True, text=True)
    if done.returncode:
        pytest.skip(f"this kernel does not allow mounting a small file system: {done.stderr.strip()}")


def parsed(path: Path) -> list[Any]:
    """The rows of a file, each of which must be whole."""
    text = path.read_text("utf-8")
    assert text == "" or text.endswith("\n")
    return [json.loads(line) for line in text.splitlines()]


def holds(folder: Path, reason: str) -> None:
    """Check the files in `kept/` of a run that could not write, its resumption and a run with room."""
    kept = folder / "kept"
    before, after = parsed(kept / "first.jsonl"), parsed(kept / "r" / "results.jsonl")
    text = (kept / "first.txt").read_text()
    assert (kept / "first.status").read_text().strip() == "3", text
    assert reason in text
    assert "Every row before this is kept there; make room, then: pytest benchmarks" in text
    assert "--openclaw-resume=r" in text
    assert "INTERNALERROR" not in text
    assert "Traceback" not in text
    assert 0 < len(before) < 20
    assert (kept / "resumed.status").read_text().strip() == "0", (kept / "resumed.txt").read_text()
    assert after[: len(before)] == before
    assert sorted(row["prompt_id"] for row in after) == sorted(SUITE)
    assert [path.name for path in (kept / "r").iterdir() if path.name.startswith(".")] == []
    # `whole` was in a folder with enough room from the beginning.
    summaries = [
        timeless(json.loads((kept / name / "summary.json").read_text("utf-8"))) for name in ("r", "whole")
    ]
    assert summaries[0] == summaries[1]


FULL = """
mkdir runs kept; mount -t tmpfs -o size=56k tmpfs runs
{pytest} {models} {mode} --openclaw-run-id=r > kept/first.txt 2>&1 || echo $? > kept/first.status
cp runs/r/results.jsonl kept/first.jsonl
mount -o remount,size=4m runs
{pytest} {mode} --openclaw-resume=r > kept/resumed.txt 2>&1; echo $? > kept/resumed.status
{pytest} {models} --openclaw-run-id=whole > /dev/null
cp -r runs/r runs/whole kept
"""


@pytest.mark.usefixtures("_mounts")
@pytest.mark.parametrize("mode", MODES_BY_NIGHT)
def test_a_disk_that_is_full(folder: Path, mode: tuple[str, ...]) -> None:
    """On a file system of 56 KB the rows before the limit are complete; with more room the run resumes."""
    shell(folder, FULL.format(pytest=PYTEST, models=MODELS, mode=" ".join(mode)), own_mounts=True)

    holds(folder, "No space left on device")


READ_ONLY = """
mkdir runs; mount -t tmpfs -o size=1m tmpfs runs
{pytest} {models} --openclaw-run-id=r > /dev/null
mount -o remount,ro runs
{pytest} --openclaw-resume=r > resumed.txt 2>&1 || echo $? > resumed.status
{pytest} {models} > started.txt 2>&1 || echo $? > started.status
"""


@pytest.mark.nightly
@pytest.mark.usefixtures("_mounts")
def test_a_read_only_folder(folder: Path) -> None:
    """A read-only runs folder is a usage error, for a new run and for a resumed one."""
    shell(folder, READ_ONLY.format(pytest=PYTEST, models=MODELS), own_mounts=True)

    for name in ("resumed", "started"):
        text = (folder / f"{name}.txt").read_text()
        assert (folder / f"{name}.status").read_text().strip() == "4", text
        assert "runs: cannot write" in text
        assert "Traceback" not in text
