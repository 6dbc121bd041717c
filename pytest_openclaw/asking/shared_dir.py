"""The folder that all processes of a run on this machine share; `core/run_once.py` shares work there."""

from __future__ import annotations

import contextlib
import hashlib
import os
import shutil
import stat
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from pytest_openclaw.core.locks import LockFile
from pytest_openclaw.core.private import FILE_MODE, FOLDER_MODE

if TYPE_CHECKING:
    from types import TracebackType

_PREFIX = "pytest-openclaw-"
_MEMBER = "member-"
_OWNER = "owner.lock"
_NEW_S = 60.0
"""Seconds that a folder may exist without its lock after its creation."""


@dataclass(frozen=True, kw_only=True)
class SharedDir:
    """A folder of this run: made by the controller, or by the first of its workers on another machine.

    Only its owner can access it. A context manager: leaving it removes an unused folder.
    """

    path: Path
    owner: LockFile | None = None
    member: Path | None = None

    @classmethod
    def create(cls) -> SharedDir:
        """Create a folder with a random name in the system's temporary folder.

        Folders of killed runs are removed.
        """
        _sweep()
        path = Path(tempfile.mkdtemp(prefix=_PREFIX))
        owner = LockFile(path / _OWNER)
        owner.acquire()
        return cls(path=path, owner=owner)

    @classmethod
    def join(cls, name: str) -> SharedDir:
        """Enter the folder of all processes that join `name`; the last one to leave removes it.

        Args:
            name: of the run and the machine; the folder's own name is a hash of it.
        """
        digest = hashlib.sha256(name.encode("utf-8", "surrogatepass")).hexdigest()[:16]
        path = Path(tempfile.gettempdir()) / f"{_PREFIX}{digest}"
        while True:
            with contextlib.suppress(FileExistsError):
                path.mkdir(mode=FOLDER_MODE)
            try:
                if not _is_private(path):
                    return cls.create()
                member = path / f"{_MEMBER}{os.getpid()}"
                member.touch(FILE_MODE)
                return cls(path=path, member=member)
            except FileNotFoundError:
                continue  # the last member has just left

    def remove(self) -> None:
        """Leave the folder, and remove it with its content; missing files are no error."""
        if self.member:
            import psutil

            self.member.unlink(missing_ok=True)
            # The mark of a killed process.
            pids = (int(path.name.removeprefix(_MEMBER)) for path in self.path.glob(f"{_MEMBER}*"))
            if any(map(psutil.pid_exists, pids)):
                return
        if self.owner:
            self.owner.release()
        # On Windows the log of an engine that exits a moment later cannot be removed yet.
        shutil.rmtree(self.path, ignore_errors=True)

    def __enter__(self) -> SharedDir:
        return self

    def __exit__(
        self,
        exc_type: type[BaseException] | None,
        exc_value: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.remove()


def _sweep() -> None:
    for mark in Path(tempfile.gettempdir()).glob(f"{_PREFIX}*/{_OWNER}"):
        # A folder of another user cannot be opened, and another one may just have been removed.
        with contextlib.suppress(OSError):
            if _is_private(mark.parent) and time.time() - mark.stat().st_mtime > _NEW_S:
                with LockFile(mark, timeout_s=0):  # its owner has ended
                    shutil.rmtree(mark.parent, ignore_errors=True)


def _is_private(path: Path) -> bool:
    """Whether a folder is accessible to us alone: other users may have created one of that name."""
    status = path.lstat()
    if not stat.S_ISDIR(status.st_mode):
        return False
    return os.name != "posix" or (status.st_uid == os.getuid() and not status.st_mode & 0o077)
