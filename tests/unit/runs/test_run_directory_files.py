"""The run directory: whole files, whole lines, one writer."""

from __future__ import annotations

import errno
import json
import os
import subprocess
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


def test_files_go_out_with_unix_newlines(tmp_path: Path) -> None:
    """A page has the same bytes on every system."""
    with RunDirectory.new(tmp_path, "r", exactly=True) as run:
        run.write_text("summary.md", "a\nü\n")

    assert (run.path / "summary.md").read_bytes() == "a\nü\n".encode()


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
    (tmp_path / "runs" / "r" / "config.json").write_text("{}")
    with pytest.raises(OpenClawError, match="the run r exists already"):
        RunDirectory.new(tmp_path / "runs", "r", exactly=True)


@pytest.mark.parametrize(
    ("files", "is_free"),
    [
        pytest.param({}, True, id="empty"),
        pytest.param(
            {"results.jsonl": "", ".lock": "", ".config.json.tmp": "{"}, True, id="killed-as-it-began"
        ),
        pytest.param({"results.jsonl": "{}\n"}, False, id="with-a-row"),
        pytest.param({"notes.txt": ""}, False, id="with-a-file-of-the-users"),
    ],
)
def test_a_name_stays_free_until_a_run_has_started(
    tmp_path: Path, files: dict[str, str], is_free: bool
) -> None:
    """A directory of a run killed before its first file blocks no chosen name; anything else does."""
    (tmp_path / "r").mkdir()
    for name, text in files.items():
        (tmp_path / "r" / name).write_text(text)

    if is_free:
        with RunDirectory.new(tmp_path, "r", exactly=True) as run:
            run.append({"n": 1})
        assert _rows(tmp_path / "r") == [{"n": 1}]
    else:
        with pytest.raises(OpenClawError, match="the run r exists already"):
            RunDirectory.new(tmp_path, "r", exactly=True)


def test_of_two_that_begin_at_once_one_is_refused(tmp_path: Path) -> None:
    """The second one may come before the first has locked its directory, or after."""
    first, second = (RunDirectory.new(tmp_path, "r", exactly=True) for _ in range(2))

    with first:
        with pytest.raises(OpenClawError, match="the run r exists already"), second:
            pass
        with pytest.raises(OpenClawError, match="the run r exists already"):
            RunDirectory.new(tmp_path, "r", exactly=True)


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


def test_the_lock_dies_with_its_owner(tmp_path: Path) -> None:
    """A run whose process was killed can be opened by the next one; its rows are there."""
    script = (
        "import os, sys\nfrom pathlib import Path\nfrom pytest_openclaw.runs.directory import RunDirectory\n"
        "run = RunDirectory.new(Path(sys.argv[1]), 'r', exactly=True).__enter__()\n"
        "run.append({'n': 1})\nprint('ready', flush=True)\nsys.stdin.read()\n"
    )
    with subprocess.Popen(
        [sys.executable, "-c", script, str(tmp_path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as owner:
        assert owner.stdout is not None
        assert owner.stdout.readline().strip() == b"ready"
        with pytest.raises(OpenClawError), RunDirectory(tmp_path / "r"):
            pass
        owner.kill()
        owner.wait(120)

    with RunDirectory(tmp_path / "r") as run:
        run.append({"n": 2})

    assert _rows(run.path) == [{"n": 1}, {"n": 2}]


def test_what_cannot_be_opened_is_not_locked(tmp_path: Path) -> None:
    """If the rows' file cannot be opened, no lock is left."""
    run = RunDirectory.new(tmp_path, "r", exactly=True)
    (run.path / "results.jsonl").mkdir()

    with pytest.raises(OpenClawError, match=r"results\.jsonl is not a regular file"), run:
        pass

    (run.path / "results.jsonl").rmdir()
    with RunDirectory(run.path):
        pass
    assert not (run.path / ".lock").exists()
