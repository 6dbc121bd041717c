"""A run directory: created once, locked while its run is active, appended to row by row."""

from __future__ import annotations

import contextlib
import os
import shutil
from itertools import count
from typing import TYPE_CHECKING, Any

import msgspec

from pytest_openclaw.util.errors import OpenClawError
from pytest_openclaw.util.files import LockFile, check_regular, is_there, replacing
from pytest_openclaw.util.json_text import line_of
from pytest_openclaw.util.text import valid_value

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path
    from types import TracebackType


RESULTS = "results.jsonl"
SUMMARY = "summary.json"
INVENTORY = "inventory.json"
SURFACE = "surface.json"
CONFIG = "config.json"
LOCK = ".lock"


class RunDirectory:
    """`runs/<run_id>/`, open for writing by one process; use it with `with`.

    Raises:
        OpenClawError: on opening, if the directory exists already or belongs to an active run.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._lock = LockFile(path / LOCK)
        self._results: int | None = None
        self._is_new = True

    @classmethod
    def new(cls, runs_dir: Path, run_id: str, *, exactly: bool) -> RunDirectory:
        """Return the directory of a new run.

        Args:
            runs_dir: the folder of all runs; created if necessary.
            run_id: the preferred name.
            exactly: raise an error if the name is taken; otherwise `_2`, `_3` … is added.
        """
        runs_dir.mkdir(parents=True, exist_ok=True)
        for number in count(1):
            path = runs_dir / (run_id if number == 1 else f"{run_id}_{number}")
            try:
                path.mkdir()
            except FileExistsError:
                if exactly:
                    raise OpenClawError(_taken(path)) from None
                continue
            break
        return cls(path)

    @classmethod
    def reopen(cls, path: Path) -> RunDirectory:
        """Return the directory of a run to resume; opening it fails while the run is active."""
        directory = cls(path)
        directory._is_new = False
        return directory

    @property
    def run_id(self) -> str:
        """The run's id, which is the directory's name."""
        return self.path.name

    def __enter__(self) -> RunDirectory:
        check_regular(self.path / LOCK)
        try:
            self._lock.acquire()
        except TimeoutError:
            why = f"the run {self.path.name} in {self.path.parent} is still active in another session"
            raise OpenClawError(_taken(self.path) if self._is_new else f"{why}; wait until it ends") from None
        except OSError:
            self._remove_unbegun()
            raise
        try:
            if not self._is_new:
                for unfinished in self.path.glob(".*.tmp"):  # left by a killed run
                    unfinished.unlink()
            self._results = self._open_results()
        except BaseException:
            self._end()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        results, self._results = self._results, None
        try:
            if results is not None:
                with os.fdopen(results, "ab") as file:
                    os.fsync(file.fileno())
        finally:
            self._end()

    def append(self, row: dict[str, Any]) -> None:
        """Append a row as one line, in one write; a row that does not fit on the disk leaves nothing behind.

        Raises:
            OSError: the row cannot be written; earlier rows are kept.
        """
        assert self._results is not None, "the directory is open"
        line = line_of(row) + b"\n"
        n_bytes = os.fstat(self._results).st_size
        try:
            written = os.write(self._results, line)
            while written < len(line):
                written += os.write(self._results, line[written:])
        except OSError:
            os.ftruncate(self._results, n_bytes)
            raise

    def replace_rows(self, lines: Iterable[bytes]) -> None:
        """Replace all rows; the old file exists until the new one is complete and on disk.

        Raises:
            OSError: the new file cannot be written; the old one is untouched.
        """
        assert self._results is not None, "the directory is open"
        try:
            with replacing(self.path / RESULTS) as file:
                for line in lines:
                    file.write(line + b"\n")
                # Windows cannot replace an open file, and later rows must go to the new one.
                os.close(self._results)
                self._results = None
        finally:
            if self._results is None:
                self._results = self._open_results()

    def remove(self, *names: str) -> None:
        """Remove files that are out of date; a missing file is not an error."""
        for name in names:
            (self.path / name).unlink(missing_ok=True)

    def write_json(self, name: str, value: Any) -> None:
        """Write a whole file of JSON, atomically."""
        try:
            data = msgspec.json.encode(value)
        except UnicodeEncodeError:
            data = msgspec.json.encode(valid_value(value))
        with replacing(self.path / name) as file:
            file.write(msgspec.json.format(data, indent=2) + b"\n")

    def write_text(self, name: str, text: str) -> None:
        """Write a whole file atomically: a reader sees the old content or the new, never a part."""
        with replacing(self.path / name) as file:
            file.write(text.encode())

    def _open_results(self) -> int:
        check_regular(self.path / RESULTS)
        flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND | getattr(os, "O_BINARY", 0)
        return os.open(self.path / RESULTS, flags, 0o666)

    def _end(self) -> None:
        self._unlock()
        self._remove_unbegun()

    def _remove_unbegun(self) -> None:
        """Remove the directory of a new run that did not begin, so that its id is free."""
        results = self.path / RESULTS
        has_rows = is_there(results) and results.stat().st_size
        if self._is_new and not has_rows and not is_there(self.path / CONFIG):
            shutil.rmtree(self.path, ignore_errors=True)

    def _unlock(self) -> None:
        # Removed while locked: a process that waits for this file notices that it is gone, and does not lock
        # it while a third process locks a new one.
        with contextlib.suppress(OSError):  # Windows cannot remove an open file
            (self.path / LOCK).unlink()
        self._lock.release()
        with contextlib.suppress(OSError):
            if os.name == "nt":
                (self.path / LOCK).unlink()


def is_active(path: Path) -> bool:
    """Whether a run is writing into the directory now; the directory is not changed.

    Raises:
        OpenClawError: the lock is not a regular file.
    """
    lock = path / LOCK
    check_regular(lock)
    if not is_there(lock):  # the lock file of an active run exists while it is locked
        return False
    try:
        with LockFile(lock):
            return False
    except TimeoutError:
        return True


def _taken(path: Path) -> str:
    # A run that was killed before it wrote its config cannot be continued.
    resume = f"continue it with --openclaw-resume={path.name}"
    how = resume if is_there(path / CONFIG) else "remove its folder"
    where = f"the run {path.name} exists already in {path.parent}"
    return f"{where}; {how}, or change or omit --openclaw-run-id"
