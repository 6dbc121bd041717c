"""Starts the engine's process and waits until it is ready."""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import TYPE_CHECKING, cast

from pytest_openclaw.core.errors import EngineError
from pytest_openclaw.core.private import open_private
from pytest_openclaw.providers.llama_cpp import checks
from pytest_openclaw.providers.llama_cpp.server import READY

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from pytest_openclaw.core.json_types import JsonObject

SERVER = (sys.executable, "-P", "-m", "pytest_openclaw.providers.llama_cpp.server")
"""The command that runs the engine; `-P` keeps the working folder's modules out of it."""

_POLL_S = 0.02
# What the system needs to find programs and libraries. OMP_*, LLAMA_*, GGML_* would shape answers or times.
_PASSED_ON = (
    *("PATH", "HOME", "LANG", "LC_ALL", "TMPDIR", "TEMP", "TMP"),
    *("LD_LIBRARY_PATH", "DYLD_LIBRARY_PATH", "SYSTEMROOT", "WINDIR", "PYTHONHOME", "CUDA_VISIBLE_DEVICES"),
)
# OpenMP's threads spin while they wait for each other. On a machine that does other work, the default spins
# against the very thread it waits for: medians are equal, but the longest of 20 answers took 15.6 s, not
# 1.5 s. Not spinning at all halves the speed.
_SPIN = {"GOMP_SPINCOUNT": "1000"}


async def start(
    command: Sequence[str],
    place: Path,
    *,
    environ: Mapping[str, str],
    weights: Path,
    alias: str,
    within_s: float,
) -> JsonObject:
    """Start an engine and return what its READY line says: `url`, `pid`, `lease_port`, `token`.

    If this is cancelled, the process is ended.

    Args:
        command: starts the engine.
        place: a path whose `.out` and `.log` siblings receive the output of the process.
        environ: the process gets a small part of it.
        weights: the file to load; messages do not contain its path.
        alias: the model as the user named it, for messages.
        within_s: seconds to become ready.

    Raises:
        EngineError: it could not be started, exited, or was not ready in time and was ended.
    """
    try:
        process = _spawn(command, place, child_environ(environ))
    except OSError as error:
        why = f"{error.filename}: {error.strerror}"
        raise EngineError(f"the embedded engine cannot be started: {why}") from error
    try:
        ready = await _wait_until_ready(process, place, weights, alias, within_s)
    except BaseException:
        process.kill()
        process.wait()
        raise
    # It continues after this process if others use it. If it exits first, its status must be collected.
    threading.Thread(target=process.wait, name="openclaw-engine-reaper", daemon=True).start()
    return ready


def child_environ(environ: Mapping[str, str]) -> dict[str, str]:
    """Return the engine's environment: what the system needs, our own import path, and how threads wait."""
    passed_on = {name: environ[name] for name in _PASSED_ON if name in environ}
    import_path = os.pathsep.join(path or str(Path.cwd()) for path in sys.path)
    return {**passed_on, **_SPIN, "PYTHONPATH": import_path}


def _spawn(command: Sequence[str], place: Path, environ: Mapping[str, str]) -> subprocess.Popen[bytes]:
    out, log = place.with_suffix(".out"), place.with_suffix(".log")
    with open_private(out, "wb") as out_file, open_private(log, "wb") as log_file:
        return subprocess.Popen(  # noqa: S603 - our own interpreter and module
            command,
            stdin=subprocess.DEVNULL,
            stdout=out_file,
            stderr=log_file,
            env=dict(environ),
            # Ctrl-C in a terminal is for the engine's users, which then end their leases.
            start_new_session=True,
            creationflags=getattr(subprocess, "CREATE_NEW_PROCESS_GROUP", 0),
        )


async def _wait_until_ready(
    process: subprocess.Popen[bytes], place: Path, weights: Path, alias: str, within_s: float
) -> JsonObject:
    deadline = time.monotonic() + within_s
    while True:
        returncode = process.poll()
        if ready := _ready_line(place.with_suffix(".out").read_text("utf-8", "replace")):
            return ready
        log = place.with_suffix(".log").read_text("utf-8", "replace").replace(str(weights), alias)
        if returncode is not None:
            raise EngineError(checks.why_it_ended(returncode, log, alias))
        if time.monotonic() > deadline:
            said = checks.last_words(log)
            raise EngineError(
                f"the embedded engine did not load {alias} within {within_s:g} s. Last words: {said}"
            )
        await asyncio.sleep(_POLL_S)


def _ready_line(out: str) -> JsonObject | None:
    for line in out.splitlines(keepends=True):
        if line.startswith(READY) and line.endswith("\n"):
            return cast("JsonObject", json.loads(line.removeprefix(READY)))
    return None
