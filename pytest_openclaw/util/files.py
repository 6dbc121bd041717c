"""Opens and parses the files of run folders, which may come from elsewhere; installed and private files.

All readers of run folders use this module. It opens only regular files. Parsed values need no further check
of their form: text is valid UTF-8, numbers are finite, nesting is limited.

A lock file has one holder at a time, in any process, until the holder releases it or its process ends.
"""

from __future__ import annotations

import codecs
import contextlib
import os
import stat
import sys
import time
from collections.abc import Iterator
from importlib import metadata
from pathlib import Path
from typing import IO, Any, BinaryIO, cast

import msgspec

from pytest_openclaw.util.errors import OpenClawError

JsonObject = dict[str, Any]

DEEPEST = 200
"""The most levels of a value. A row has at most 150, and recursive functions can handle this number."""
MOST_BYTES = 512 << 20  # of a file with one value, or of a row

_AT_ONCE = getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0)

# --- opening ------------------------------------------------------------------------------------


def is_there(path: Path) -> bool:
    """Whether a folder has an entry of this name, of any kind."""
    return os.path.lexists(path)


def check_regular(path: Path) -> None:
    """Raise `OpenClawError` for a link, a pipe, a device or a folder; a missing file is accepted."""
    if is_there(path) and not stat.S_ISREG(path.lstat().st_mode):
        raise OpenClawError(f"{path} is not a regular file in its folder")


def open_file(path: Path) -> BinaryIO:
    """Open a file of a run folder; raise `OpenClawError` if it is missing or not a regular file."""
    check_regular(path)
    try:
        # A link or a pipe that took its place since then is not followed or waited for.
        return open(path, "rb", opener=lambda name, flags: os.open(name, flags | _AT_ONCE))
    except OSError as error:
        where = f"{path}: {error.strerror or error}"
        raise OpenClawError(f"{where}; is {path.parent} a run directory?") from None


def read_whole(path: Path, *, most_bytes: int) -> bytes:
    """Return the content of a file; raise `OpenClawError` as `open_file`, or if it is too large."""
    with open_file(path) as file:
        data = file.read(most_bytes + 1)
    if len(data) > most_bytes:
        raise OpenClawError(f"{path} has more than {most_bytes / (1 << 20):g} MiB")
    return data


@contextlib.contextmanager
def replacing(path: Path) -> Iterator[IO[bytes]]:
    """Write a whole file atomically: a reader sees the old content or the new, never a part."""
    temporary = path.with_name(f".{path.name}.tmp")
    try:
        temporary.unlink(missing_ok=True)
        # "x" creates the file: an existing link of this name could lead out of the folder.
        with temporary.open("xb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        temporary.replace(path)
    except BaseException as error:
        with contextlib.suppress(OSError):
            temporary.unlink(missing_ok=True)
        if isinstance(error, OSError):
            error.filename = str(path)
        raise


# --- parsing ------------------------------------------------------------------------------------


def load_object(path: Path) -> JsonObject:
    """Return the JSON object in a file of a run folder; raise `OpenClawError` if there is no object."""
    try:
        value = parse_json(read_whole(path, most_bytes=MOST_BYTES))
    except ValueError as error:
        raise OpenClawError(f"{path} is not JSON: {error}") from None
    if not isinstance(value, dict):
        raise OpenClawError(f"{path} is not a JSON object")
    return cast("JsonObject", value)


def parse_json(data: bytes | str) -> Any:
    """Return a JSON value; raise `ValueError` if it is malformed or nested more deeply than a run's files."""
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


# --- installed files ------------------------------------------------------------------------------


def install_command(extra: str) -> str:
    """Return the command that adds an extra to the installed copy, wherever that copy came from."""
    return f'pip install "pytest-openclaw[{extra}]"'


def packaged_file(distribution: str, name: str) -> Path | None:
    """Return the path of an installed distribution's file; None without it. Nothing is imported."""
    try:
        files = metadata.files(distribution) or []
    except metadata.PackageNotFoundError:
        return None
    paths = (Path(str(file.locate())) for file in files if file.name == name)
    return next((path.resolve() for path in paths if path.is_file()), None)


# --- private files ------------------------------------------------------------------------------

FILE_MODE = 0o600
FOLDER_MODE = 0o700


def cache_folder() -> Path:
    """Return our folder in the system's folder for the user's caches."""
    usual = {"darwin": "Library/Caches", "win32": "AppData/Local"}.get(sys.platform, ".cache")
    named = os.environ.get("LOCALAPPDATA" if sys.platform == "win32" else "XDG_CACHE_HOME")
    return Path(named or Path.home() / usual) / "pytest-openclaw"


def write_private(path: Path, data: bytes) -> None:
    """Write a whole file that no other user may read."""
    with open(path, "wb", opener=lambda name, flags: os.open(name, flags | _AT_ONCE, FILE_MODE)) as file:
        file.write(data)


# --- locks --------------------------------------------------------------------------------------

_POLL_S = 0.02


@contextlib.contextmanager
def locked(path: Path, *, waits: bool = False, removes: bool = False) -> Iterator[None]:
    """Have the lock of a file, which is created if necessary, in a `with` block.

    Args:
        path: the file.
        waits: whether to wait for another holder.
        removes: whether to remove the file at the end.

    Raises:
        TimeoutError: on entering, if another holder has the lock and `waits` is False.
        OSError: on entering, if the file cannot be opened.
    """
    while (descriptor := _open_locked(path)) is None:
        if not waits:
            raise TimeoutError(f"{path} is locked")
        time.sleep(_POLL_S)
    try:
        yield
    finally:
        # Removed while locked: a process that waits for this file notices that it is gone, and does not lock
        # it while a third process locks a new one. Windows cannot remove an open file.
        with contextlib.suppress(OSError):
            if removes:
                path.unlink()
        _unlock(descriptor)
        os.close(descriptor)
        with contextlib.suppress(OSError):
            if removes and os.name == "nt":
                path.unlink()


def _open_locked(path: Path) -> int | None:
    """Open a file with its lock; None if another holder has it."""
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT | _AT_ONCE, FILE_MODE)
    is_ours = False
    try:
        # The last holder may have removed the file while this one waited.
        is_ours = _lock(descriptor) and os.path.samestat(os.fstat(descriptor), path.stat())
    except FileNotFoundError:
        pass
    finally:  # also after an error, such as on a file system without locks
        if not is_ours:
            os.close(descriptor)
    return descriptor if is_ours else None


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
        # A forked process may also have the file open, so closing it here would not be enough.
        fcntl.flock(descriptor, fcntl.LOCK_UN)
