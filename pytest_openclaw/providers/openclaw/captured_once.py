"""The catalog of the installed OpenClaw: captured once per release, and kept in the user's cache."""

from __future__ import annotations

import hashlib
import json
import os
import sys
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

from pytest_openclaw.openclaw.captured import gather
from pytest_openclaw.openclaw.catalog import read_catalogue
from pytest_openclaw.providers.openclaw.capture import capture
from pytest_openclaw.providers.openclaw.installed import find_openclaw
from pytest_openclaw.util.errors import OpenClawError
from pytest_openclaw.util.files import FOLDER_MODE, write_private

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pytest_openclaw.openclaw.catalog import Catalogue

_NAME = "--openclaw-surface"


class NotCaptured(OpenClawError):
    """The installed OpenClaw does not start, sends nothing, or sends what is not known."""


def installed_catalogue(
    environ: Mapping[str, str], *, may_capture: bool, required: bool = False
) -> Catalogue | None:
    """Return the catalog of the installed OpenClaw; None if there is none, or it is not captured yet.

    Args:
        environ: used to find OpenClaw, its Node and the cache.
        may_capture: start OpenClaw if it was not captured before, which takes about a minute.
        required: raise an error where there is no OpenClaw.

    Raises:
        NotCaptured: it cannot be captured now.
        OpenClawError: it is required and not installed, or the cached catalog cannot be read.
        OSError: the cache cannot be written.

    """
    try:
        command = find_openclaw(environ, name=_NAME)
    except OpenClawError:
        if required:
            raise
        return None
    file = cache_folder(environ) / f"openclaw-{_installation(command)}.json"
    if not file.is_file():
        if not may_capture:
            return None
        _capture_into(file, environ)
    try:
        return read_catalogue(file)
    except ValueError as error:
        raise OpenClawError(f"{file} {error}; remove it") from None


def cache_folder(environ: Mapping[str, str]) -> Path:
    """Return our folder among the user's caches, as each system has it."""
    home = Path(environ.get("HOME") or environ.get("USERPROFILE") or "~").expanduser()
    usual = {"darwin": home / "Library" / "Caches", "win32": home / "AppData" / "Local"}
    named = environ.get("LOCALAPPDATA" if sys.platform == "win32" else "XDG_CACHE_HOME")
    return Path(named or usual.get(sys.platform, home / ".cache")) / "pytest-openclaw"


def _capture_into(file: Path, environ: Mapping[str, str]) -> None:
    try:
        found = capture(environ)
    except OpenClawError as error:
        raise NotCaptured(str(error)) from error
    release = f"openclaw-{found.release}"
    data = gather(found.sent, release=release, taken=f"{datetime.now(UTC):%Y-%m-%d}")
    file.parent.mkdir(mode=FOLDER_MODE, parents=True, exist_ok=True)
    unfinished = file.with_suffix(f".{os.getpid()}")
    write_private(unfinished, json.dumps(data, indent=1, ensure_ascii=False).encode())
    unfinished.replace(file)  # another session may be reading it


def _installation(command: tuple[str, ...]) -> str:
    """Return a hash of what is installed: an update changes the package's description, or the program."""
    facts = []
    for word in command:
        path = Path(word)
        if path.is_absolute() and path.is_file():
            real = path.resolve()
            status = real.stat()
            package = next(
                (one for folder in real.parents if (one := folder / "package.json").is_file()), None
            )
            text = package.read_text("utf-8", "replace") if package else ""
            facts.append([str(real), status.st_size, status.st_mtime_ns, text])
    return hashlib.sha256(json.dumps(facts).encode()).hexdigest()[:16]
