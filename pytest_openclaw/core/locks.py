"""Lock files: one holder at a time, in this process or another, until it lets go or its process ends.

The package filelock does the same, but takes 30 ms to load and looks at each event that Python audits, which
is 30 µs of a cell.
"""

from __future__ import annotations

import os
import sys
import time
from typing import TYPE_CHECKING

from pytest_openclaw.core.private import FILE_MODE

if sys.platform == "win32":
    import msvcrt
else:
    import fcntl

if TYPE_CHECKING:
    from pathlib import Path
    from types import TracebackType

_POLL_S = 0.02
# A link there may lead to a file of another user; Windows has no such flag.
_FLAGS = os.O_RDWR | os.O_CREAT | getattr(os, "O_NOFOLLOW", 0)


class LockFile:
    """Use it with `with`; the file is created if necessary, and stays.

    Args:
        path: of the file.
        timeout_s: how long to wait for it; negative waits without a limit.

    Raises:
        TimeoutError: on entering, if another holder has it for so long.
        OSError: on entering, if the file cannot be opened.
    """

    def __init__(self, path: Path, *, timeout_s: float = -1) -> None:
        self._path = path
        self._timeout_s = timeout_s
        self._descriptor: int | None = None

    def acquire(self) -> None:
        """Take the lock; see the class."""
        latest = time.monotonic() + self._timeout_s
        while not self._is_taken():
            if self._timeout_s >= 0 and time.monotonic() >= latest:
                raise TimeoutError(f"{self._path} is locked")
            time.sleep(_POLL_S)

    def release(self) -> None:
        """Let go of the lock, if it is held."""
        descriptor, self._descriptor = self._descriptor, None
        if descriptor is None:
            return
        try:
            _unlock(descriptor)
        finally:
            os.close(descriptor)

    def __enter__(self) -> LockFile:
        self.acquire()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.release()

    def _is_taken(self) -> bool:
        """Take the lock if it is free, and return whether it was."""
        descriptor = os.open(self._path, _FLAGS, FILE_MODE)
        try:
            if _lock(descriptor) and self._is_there(descriptor):
                self._descriptor = descriptor
        finally:
            if self._descriptor is None:
                os.close(descriptor)
        return self._descriptor is not None

    def _is_there(self, descriptor: int) -> bool:
        """Whether the file still has its name: the last holder may have removed it while this one waited."""
        try:
            return os.path.samestat(os.fstat(descriptor), self._path.stat())
        except FileNotFoundError:
            return False


if sys.platform == "win32":

    def _lock(descriptor: int) -> bool:
        try:
            msvcrt.locking(descriptor, msvcrt.LK_NBLCK, 1)
        except PermissionError:
            return False
        return True

    def _unlock(descriptor: int) -> None:
        msvcrt.locking(descriptor, msvcrt.LK_UNLCK, 1)

else:

    def _lock(descriptor: int) -> bool:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        return True

    def _unlock(descriptor: int) -> None:
        # A forked process may have the file open, too; closing it here would not be enough.
        fcntl.flock(descriptor, fcntl.LOCK_UN)
