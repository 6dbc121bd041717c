"""The folder that the processes of a run share."""

from __future__ import annotations

import contextlib
import os
import stat
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from pytest_openclaw.asking.shared_dir import SharedDir


@pytest.fixture
def temporary(tmp_path, monkeypatch):
    """The system's folder for temporary files, for this test."""
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    return tmp_path


def test_it_is_there_while_it_is_open(temporary):
    """The folder is in the temporary folder and is removed with all its files afterwards."""
    with SharedDir.create() as shared:
        (shared.path / "engine.json").write_text("{}")
        inside = shared.path.parent == temporary

    assert inside
    assert list(temporary.iterdir()) == []


def test_runs_do_not_meet(temporary):
    """Two concurrent runs have two folders."""
    with SharedDir.create() as one, SharedDir.create() as other:
        assert one.path != other.path


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no permission bits")
def test_no_other_user_may_enter(temporary):
    """Only its owner may read, write or enter it."""
    with SharedDir.create() as shared:
        assert stat.S_IMODE(shared.path.stat().st_mode) == 0o700


def test_removing_it_twice_is_no_error(temporary):
    """A missing folder is no error."""
    shared = SharedDir.create()
    shared.remove()
    shared.remove()

    assert list(temporary.iterdir()) == []


# --- on another machine -------------------------------------------------------------------------


def _in_another_process(code: str) -> subprocess.Popen[str]:
    """Start Python, which joins the folder `run` first and prints its path."""
    joins = f"""
import sys, tempfile
tempfile.tempdir = {tempfile.gettempdir()!r}
from pytest_openclaw.asking.shared_dir import SharedDir
shared = SharedDir.join("run")
print(shared.path, flush=True)
{code}
"""
    return subprocess.Popen(
        [sys.executable, "-c", joins], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )


def test_the_last_to_leave_removes_it(temporary):
    """Processes that join one name share one folder, which exists as long as one of them does."""
    shared = SharedDir.join("run")
    with _in_another_process("sys.stdin.read(); shared.remove()") as other:
        assert other.stdout.readline().strip() == str(shared.path)
        shared.remove()
        stayed = shared.path.is_dir()
        other.communicate()

    assert stayed
    assert list(temporary.iterdir()) == []


def test_a_killed_process_does_not_keep_the_folder(temporary):
    """A process that could not leave does not keep the folder."""
    shared = SharedDir.join("run")
    with _in_another_process("sys.stdin.read()") as other:
        other.stdout.readline()
        other.kill()

    shared.remove()

    assert list(temporary.iterdir()) == []


def test_other_names_do_not_meet(temporary):
    """The name of another run, or of another machine whose files are the same, is another folder."""
    with SharedDir.join("run north") as one, SharedDir.join("run south") as other:
        assert one.path != other.path


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no permission bits")
@pytest.mark.parametrize("made", ["open to all", "a link", "a file"])
def test_what_somebody_else_has_made_is_not_used(temporary, made):
    """A folder that others may enter, or anything else of that name, is not used: a new one is made."""
    with SharedDir.join("run") as shared:
        taken = shared.path
    if made == "open to all":
        taken.mkdir()
        taken.chmod(0o777)
    elif made == "a link":
        (temporary / "elsewhere").mkdir(mode=0o700)
        taken.symlink_to(temporary / "elsewhere")
    else:
        taken.touch()

    with SharedDir.join("run") as shared:
        assert shared.path != taken
        assert stat.S_IMODE(shared.path.stat().st_mode) == 0o700

    assert taken.exists()


OWNER = """
import sys, tempfile, time
tempfile.tempdir = sys.argv[1]
from pytest_openclaw.asking.shared_dir import SharedDir
shared = SharedDir.create()
print(shared.path, flush=True)
time.sleep(600)
"""


def test_what_a_killed_run_has_left_is_removed_by_a_later_one(temporary):
    """A living run keeps its folder however old it is, and so does one that has just started."""
    words = [sys.executable, "-c", OWNER, str(temporary)]
    folders = []
    with contextlib.ExitStack() as stack:
        for _ in range(3):
            process = stack.enter_context(subprocess.Popen(words, stdout=subprocess.PIPE, text=True))
            stack.callback(process.kill)
            folders.append((Path(process.stdout.readline().strip()), process))
        (killed, first), (new, second), (living, _) = folders
        for process in (first, second):
            process.kill()
            process.wait()
        for folder in (killed, living):
            os.utime(folder / "owner.lock", (0, 0))

        with SharedDir.create():
            left = {folder for folder in (killed, new, living) if folder.exists()}

    assert left == {new, living}
