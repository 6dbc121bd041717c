"""The files of a run folder, which may come from elsewhere: opened without leaving it, parsed safely.

All readers of run folders open and parse files with this module. Only regular files are opened: no link is
followed, no pipe blocks, no device is read. Parsed values need no further check of their form: text is valid
UTF-8, numbers are finite, nesting is shallow.

Files for this user alone, whatever the umask: tokens, keys, prompts, configs, logs.

Lock files: one holder at a time, in this process or another, until it lets go or its process ends.

The package filelock does the same, but takes 30 ms to load and looks at each event that Python audits, which
is 30 µs of a cell.
"""

from __future__ import annotations

import codecs
import contextlib
import os
import stat
import sys
import time
from typing import IO, TYPE_CHECKING, Any, Literal, cast

import msgspec

from pytest_openclaw.util.errors import OpenClawError

if TYPE_CHECKING:
    from collections.abc import Iterator
    from io import BufferedWriter
    from pathlib import Path
    from typing import BinaryIO

JsonObject = dict[str, Any]

# Opening a pipe without a writer would block. Windows has only the third of these flags.
_FLAGS: int = sum(getattr(os, name, 0) for name in ("O_NOFOLLOW", "O_NONBLOCK", "O_BINARY"))

DEEPEST = 200
"""Levels. A row has at most 150; no function that walks over a value recurses too deeply at this limit."""


# --- opening ------------------------------------------------------------------------------------


def is_there(path: Path) -> bool:
    """Whether a folder has an entry of this name, of any kind."""
    return os.path.lexists(path)


def check_regular(path: Path) -> None:
    """Raise `OpenClawError` for a link, a pipe, a device or a folder; a missing file is accepted."""
    if is_there(path):
        _check_mode(path, path.lstat().st_mode)


def open_regular(path: Path, flags: int = os.O_RDONLY) -> int:
    """Return a descriptor of a regular file in a run folder, which itself may be a link."""
    check_regular(path)  # before opening, which a device may react to; on Windows the only check
    descriptor = os.open(path, flags | _FLAGS, 0o666)
    try:
        _check_mode(path, os.fstat(descriptor).st_mode)
    except BaseException:
        os.close(descriptor)
        raise
    return descriptor


def open_file(path: Path) -> BinaryIO:
    """Open a file of a run folder for reading; `OpenClawError` if it is missing or not a regular file."""
    try:
        return os.fdopen(open_regular(path), "rb")
    except OSError as error:
        where = f"{path}: {error.strerror or error}"
        raise OpenClawError(f"{where}; is {path.parent} a run directory?") from None


def read_file(path: Path) -> bytes:
    """Return a whole file; raises as `open_file`."""
    with open_file(path) as file:
        return file.read()


def read_lines(path: Path) -> Iterator[bytes]:
    """Yield lines with their line feeds; raises as `open_file`."""
    with open_file(path) as file:
        yield from file


@contextlib.contextmanager
def replacing(path: Path) -> Iterator[IO[bytes]]:
    """Write a whole file atomically: a reader sees the old content or the new, never a part."""
    temporary = path.with_name(f".{path.name}.tmp")
    temporary.unlink(missing_ok=True)
    try:
        # Created, because an existing link of this name could lead out of the folder.
        with temporary.open("xb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        temporary.replace(path)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise


def _check_mode(path: Path, mode: int) -> None:
    if not stat.S_ISREG(mode):
        raise OpenClawError(f"{path} is not a regular file in its folder, as the files of a run are")


# --- parsing ------------------------------------------------------------------------------------


def load_object(path: Path) -> JsonObject:
    """Return the JSON object in a file of a run folder; `OpenClawError` if it has none."""
    try:
        value = parse_json(read_file(path))
    except ValueError as error:
        raise OpenClawError(f"{path} is not JSON: {error}") from None
    if not isinstance(value, dict):
        raise OpenClawError(f"{path} is not a JSON object")
    return cast("JsonObject", value)


def parse_json(data: bytes | str) -> Any:
    """Return a JSON value; `ValueError` if it is malformed, or nested more deeply than a run writes."""
    raw = data.encode("utf-8", "replace") if isinstance(data, str) else data.removeprefix(codecs.BOM_UTF8)
    try:
        value = msgspec.json.decode(raw)
    except RecursionError:
        raise ValueError(_TOO_DEEP) from None
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise ValueError(str(error)) from None
    if raw.count(b"[") + raw.count(b"{") > DEEPEST and is_deeper(value, DEEPEST):
        raise ValueError(_TOO_DEEP)
    return value


_TOO_DEEP = f"it is nested more than {DEEPEST} levels deep"


def is_deeper(value: Any, levels: int) -> bool:
    """Whether objects and lists are nested in more than this many levels."""
    level = [value]
    for _ in range(levels):
        containers = (one for one in level if isinstance(one, dict | list))
        level = [inner for one in containers for inner in (one.values() if isinstance(one, dict) else one)]
    return any(isinstance(one, dict | list) for one in level)


# --- private files ------------------------------------------------------------------------------

FILE_MODE = 0o600
FOLDER_MODE = 0o700


def open_private(path: Path, mode: Literal["wb", "ab"]) -> BufferedWriter:
    """Open a file for writing; a new one is readable and writable by its owner only."""
    return open(path, mode, opener=lambda name, flags: os.open(name, flags, FILE_MODE))


def write_private(path: Path, data: bytes) -> None:
    """Write a whole file that no other user may read."""
    with open_private(path, "wb") as file:
        file.write(data)


# --- locks --------------------------------------------------------------------------------------

_POLL_S = 0.02
# A link there may lead to a file of another user; Windows has no such flag.
_LOCKS_FLAGS = os.O_RDWR | os.O_CREAT | getattr(os, "O_NOFOLLOW", 0)


class LockFile:
    """A lock, taken by `with` or by `acquire`; the file is created if necessary, and stays.

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
        if descriptor is not None:
            _unlock(descriptor)
            os.close(descriptor)

    def __enter__(self) -> LockFile:
        self.acquire()
        return self

    def __exit__(self, *_: object) -> None:
        self.release()

    def _is_taken(self) -> bool:
        """Take the lock if it is free, and return whether it was."""
        descriptor = os.open(self._path, _LOCKS_FLAGS, FILE_MODE)
        try:
            if _lock(descriptor) and self._is_there(descriptor):
                self._descriptor = descriptor
        finally:  # also after an error, such as that of a file system without locks
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
    import msvcrt

    def _lock(descriptor: int) -> bool:
        try:
            msvcrt.locking(descriptor, msvcrt.LK_NBLCK, 1)
        except PermissionError:
            return False
        return True

    def _unlock(descriptor: int) -> None:
        msvcrt.locking(descriptor, msvcrt.LK_UNLCK, 1)

else:
    import fcntl

    def _lock(descriptor: int) -> bool:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        return True

    def _unlock(descriptor: int) -> None:
        # A forked process may have the file open, too; closing it here would not be enough.
        fcntl.flock(descriptor, fcntl.LOCK_UN)
