"""Does work once for all processes of a run on this machine, and shares its result as JSON.

The processes share one folder, `ProviderSetup.shared_dir`; its locks end with the process that has them.
"""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import json
import os
import re
from typing import TYPE_CHECKING, cast

from pytest_openclaw.core.locks import LockFile
from pytest_openclaw.core.private import write_private

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable
    from pathlib import Path

    from pytest_openclaw.core.json_types import JsonObject

_POLL_S = 0.02


def once(shared_dir: Path, name: str, make: Callable[[], JsonObject]) -> JsonObject:
    """Run `make` once per run and machine for each `name`; share its JSON result.

    Args:
        shared_dir: the run's shared folder.
        name: any text; equal names share one result.
        make: returns plain JSON. Its exception is raised here; nothing is saved, and the next process tries.
    """
    path = path_of(shared_dir, name)
    with LockFile(path.with_suffix(".lock")):
        if not path.exists():
            write_json(path, make())
        return _load(path)


@contextlib.asynccontextmanager
async def locked(path: Path) -> AsyncIterator[None]:
    """Hold the lock file at `path`; waits without blocking the event loop, and without a limit."""
    lock = LockFile(path, timeout_s=0)
    while True:
        try:
            lock.acquire()
            break
        except TimeoutError:
            await asyncio.sleep(_POLL_S)
    try:
        yield
    finally:
        lock.release()


def read_json(path: Path) -> JsonObject | None:
    """Return the object that `write_json` wrote to `path`; None if there is none."""
    try:
        return _load(path)
    except FileNotFoundError:
        return None


def _load(path: Path) -> JsonObject:
    return cast("JsonObject", json.loads(path.read_text("utf-8")))


def write_json(path: Path, value: JsonObject) -> None:
    """Write `value` atomically."""
    unfinished = path.with_suffix(f".{os.getpid()}.tmp")
    write_private(unfinished, json.dumps(value, ensure_ascii=False).encode())
    unfinished.replace(path)


def path_of(shared_dir: Path, name: str) -> Path:
    """Return the path in the folder for a name, any text; different names never share one."""
    readable = re.sub(r"[^A-Za-z0-9]+", "-", name)[:40].strip("-")
    digest = hashlib.sha256(name.encode("utf-8", "surrogatepass")).hexdigest()[:12]
    return shared_dir / f"once-{readable}-{digest}.json"
