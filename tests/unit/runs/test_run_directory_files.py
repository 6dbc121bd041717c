"""The run directory: whole files, whole lines, one writer."""

from __future__ import annotations

import errno
import json
import os
import sys
from pathlib import Path
from typing import Any

import pytest

from pytest_openclaw.runs import directory
from pytest_openclaw.runs.directory import RunDirectory
from pytest_openclaw.util.errors import OpenClawError


def _rows(run: Path) -> list[Any]:
    return [json.loads(line) for line in (run / "results.jsonl").read_text("utf-8").splitlines()]


def test_rows_are_lines(tmp_path: Path) -> None:
    """Each row is one line of UTF-8, at once on disk, in the order of arrival."""
    with RunDirectory.new(tmp_path, "r", exactly=True) as run:
        run.append({"text": "grüße\n日本\u2028\x00"})
        seen = _raw(run)
        run.append({"n": 2})

    assert seen.count(b"\n") == 1
    assert _rows(run.path) == [{"text": "grüße\n日本\u2028\x00"}, {"n": 2}]


def _raw(run: RunDirectory) -> bytes:
    return (run.path / "results.jsonl").read_bytes()


def test_a_row_that_is_no_json_is_refused_whole(tmp_path: Path) -> None:
    """NaN and half surrogate pairs write nothing."""
    with RunDirectory.new(tmp_path, "r", exactly=True) as run:
        for value in (float("nan"), "\ud800", {1}):
            with pytest.raises((ValueError, TypeError)):
                run.append({"v": value})
        run.append({"v": 1})

    assert _rows(run.path) == [{"v": 1}]


def test_a_row_that_is_written_in_parts_is_whole(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """If the system writes fewer bytes than given, the rest is written again."""
    write = os.write
    with RunDirectory.new(tmp_path, "r", exactly=True) as run:
        monkeypatch.setattr(directory.os, "write", lambda descriptor, data: write(descriptor, data[:7]))
        run.append({"text": "x" * 100})
        monkeypatch.undo()

    assert _rows(run.path) == [{"text": "x" * 100}]


def test_a_full_disk_leaves_whole_rows(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A row that does not fit is removed; the rows before it, and those written later, are whole."""
    write = os.write
    left = [20]

    def full(descriptor: int, data: bytes) -> int:
        if not left[0]:
            raise OSError(errno.ENOSPC, "No space left on device")
        written = write(descriptor, data[: left[0]])
        left[0] -= written
        return written

    with RunDirectory.new(tmp_path, "r", exactly=True) as run:
        run.append({"n": 1})
        monkeypatch.setattr(directory.os, "write", full)
        with pytest.raises(OSError, match="No space left"):
            run.append({"text": "x" * 100})
        monkeypatch.undo()
        run.append({"n": 3})

    assert _rows(run.path) == [{"n": 1}, {"n": 3}]


def test_a_file_is_the_old_one_or_the_new_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A write that fails leaves the old file and nothing temporary."""
    with RunDirectory.new(tmp_path, "r", exactly=True) as run:
        run.write_json("config.json", {"n": 1})

        def full(descriptor: int) -> None:
            raise OSError(errno.ENOSPC, "No space left on device")

        monkeypatch.setattr(directory.os, "fsync", full)
        with pytest.raises(OSError, match="No space left"):
            run.write_json("config.json", {"n": 2})
        monkeypatch.undo()

        assert json.loads((run.path / "config.json").read_text()) == {"n": 1}
        assert sorted(path.name for path in run.path.iterdir()) == [".lock", "config.json", "results.jsonl"]


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no permission bits")
@pytest.mark.parametrize(("umask", "mode"), [(0o022, 0o644), (0o077, 0o600)])
def test_the_users_umask_counts(tmp_path: Path, umask: int, mode: int) -> None:
    """Files are as private as the user's umask says."""
    before = os.umask(umask)
    try:
        with RunDirectory.new(tmp_path, "r", exactly=True) as run:
            run.write_text("summary.md", "x")
    finally:
        os.umask(before)

    assert {path.name: path.stat().st_mode & 0o777 for path in run.path.iterdir()} == {
        "results.jsonl": mode,
        "summary.md": mode,
    }


def test_a_name_is_taken_once(tmp_path: Path) -> None:
    """A chosen name that exists is refused; a generated one gets a number."""
    assert [RunDirectory.new(tmp_path / "runs", "r", exactly=False).run_id for _ in range(3)] == [
        "r",
        "r_2",
        "r_3",
    ]
    for hint in ("remove its folder", "continue it with --openclaw-resume=r"):
        with pytest.raises(OpenClawError, match=f"the run r exists already .*{hint}"):
            RunDirectory.new(tmp_path / "runs", "r", exactly=True)
        (tmp_path / "runs" / "r" / "config.json").write_text("{}")


def test_a_second_writer_is_refused(tmp_path: Path) -> None:
    """While a run lives no other process opens its directory; afterwards no lock is left."""
    with RunDirectory.new(tmp_path, "r", exactly=True) as run:
        with pytest.raises(OpenClawError, match="the run r exists already"), RunDirectory(run.path):
            pass
        run.append({"n": 1})

    assert [path.name for path in run.path.iterdir()] == ["results.jsonl"]
    with RunDirectory(run.path) as again:
        again.append({"n": 2})
    assert _rows(run.path) == [{"n": 1}, {"n": 2}]
