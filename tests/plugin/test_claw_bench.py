"""The reference solutions of claw-bench, played in worlds: a test of worlds, Python in them, and graders."""

from hashlib import sha256
from importlib.metadata import PackageNotFoundError
from pathlib import Path

import pytest

from pytest_openclaw.parts.tasks.formats import installed_tasks
from tests.conftest import skip_or_fail

pytestmark = [pytest.mark.newest, pytest.mark.usefixtures("world_python")]

VERSION = "0.1.0"
SHA256 = "63f82f62dae6ba208b2368aadc8751492da153b912ed63258679bcfa02f99385"
"""Of the texts of all tasks, so that other tasks are noticed."""
KNOWN_FAILURES = {
    "code-010": "the solution imports requests, which is not in the standard library",
    "mem-010": "the package has no files of this task",
}
N_TASKS, N_BEFORE_MERGES = 222, 40


@pytest.fixture(scope="module")
def ids():
    try:
        folder = Path(installed_tasks("claw-bench"))
    except (pytest.UsageError, PackageNotFoundError):
        skip_or_fail(
            "claw-bench", f"claw-bench is not installed: pip install --no-deps claw-bench=={VERSION}"
        )
    digest = sha256()
    files = sorted(file for file in folder.rglob("*") if file.is_file() and "__pycache__" not in file.parts)
    for file in files:
        digest.update(file.relative_to(folder).as_posix().encode() + b"\0" + file.read_bytes() + b"\0")
    assert digest.hexdigest() == SHA256
    tasks = [file for file in files if file.name == "task.toml"]
    return [
        next(line for line in file.read_text().splitlines() if line.startswith("id")).split('"')[1]
        for file in tasks
    ]


def _failed(project, ids):
    """Play the solutions of these tasks, and return those that fail their own checks."""
    session = project.run(
        "--openclaw-tasks=claw-bench",
        "--openclaw-oracle",
        "--noconftest",  # the installed tasks may be below this repository, and its conftest.py with them
        f"--openclaw-prompts={','.join(ids)}",
        models=None,
        target=None,
        apart=True,
    )
    assert len(session.rows) == len(ids)
    assert {row["failure_type"] for row in session.rows} == {None}
    return {row["prompt_id"] for row in session.rows if not row["objective_pass"]}


def test_some_solutions_pass(project, ids):
    """Each is played in its world, without a request, and passes its own checks."""
    some = [*ids[:: len(ids) // N_BEFORE_MERGES]][:N_BEFORE_MERGES]

    assert len(some) == N_BEFORE_MERGES
    assert _failed(project, some) == KNOWN_FAILURES.keys() & {*some}


@pytest.mark.nightly
def test_all_solutions_pass(project, ids):
    """Only those fail that need a package from an index, or files that are not there."""
    assert len(ids) == N_TASKS
    assert _failed(project, ids) == KNOWN_FAILURES.keys()
