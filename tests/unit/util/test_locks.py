"""Lock files, between processes and within one."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from pytest_openclaw.util.files import LockFile

HOLDER = """
import sys
from pathlib import Path
from pytest_openclaw.util.files import LockFile

with LockFile(Path(sys.argv[1]), waits=True):
    print("held", flush=True)
    sys.stdin.readline()
"""


@pytest.mark.parametrize("ends", ["lets go", "is killed"])
def test_another_process_has_it_until_it_ends(tmp_path: Path, ends: str) -> None:
    """A lock of a living process cannot be taken; afterwards it can, also if that was killed."""
    path = tmp_path / "x.lock"
    with subprocess.Popen(
        [sys.executable, "-c", HOLDER, str(path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as holder:
        assert holder.stdout
        assert holder.stdout.readline().strip() == b"held"
        with pytest.raises(TimeoutError, match=r"x\.lock is locked"):
            LockFile(path).acquire()
        if ends == "is killed":
            holder.kill()
        else:
            holder.communicate(b"\n")
        holder.wait()

    with LockFile(path):
        assert path.exists()


def test_one_that_waits_gets_it(tmp_path: Path) -> None:
    """A second holder waits until the first one lets go."""
    first, second = LockFile(tmp_path / "x.lock"), LockFile(tmp_path / "x.lock", waits=True)
    first.acquire()
    waiting = threading.Thread(target=second.acquire)
    waiting.start()
    waiting.join(0.1)
    was_waiting = waiting.is_alive()
    first.release()
    waiting.join(60)

    assert (was_waiting, waiting.is_alive()) == (True, False)
    with pytest.raises(TimeoutError):
        LockFile(tmp_path / "x.lock").acquire()
    second.release()


@pytest.mark.skipif(os.name == "nt", reason="Windows cannot remove an open file")
def test_a_file_that_was_removed_is_made_anew(tmp_path: Path) -> None:
    """A holder that removes the file before it lets go leaves one lock for those that wait, not two."""
    path = tmp_path / "x.lock"
    first, second = LockFile(path), LockFile(path, waits=True)
    first.acquire()
    waiting = threading.Thread(target=second.acquire)
    waiting.start()
    path.unlink()
    first.release()
    waiting.join(60)

    with pytest.raises(TimeoutError):
        LockFile(path).acquire()
    second.release()
