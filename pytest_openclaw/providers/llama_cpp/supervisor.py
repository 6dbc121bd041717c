"""Starts an engine, or joins the one that another process of the run has started.

All processes of a run share one folder, in which `engine-<key>.json` has the address of a model's engine,
`.lock` lets one process at a time start or check it, and `.out` and `.log` have its output.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from typing import TYPE_CHECKING, cast

from pytest_openclaw.core.errors import EngineCrashError, EngineError
from pytest_openclaw.core.run_once import locked, read_json, write_json
from pytest_openclaw.providers.llama_cpp import checks, leases
from pytest_openclaw.providers.llama_cpp.process import SERVER, start
from pytest_openclaw.providers.llama_cpp.server import DONE

if TYPE_CHECKING:
    import socket
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from pytest_openclaw.core.json_types import JsonObject

CONTEXT_TOKENS = 8192
READY_WITHIN_S = 300
MOST_CRASHES = 1


@dataclass(frozen=True, kw_only=True)
class EngineSpec:
    """The model and settings of an engine.

    Attributes:
        weights: an absolute path to a GGUF file.
        alias: the model's name in requests and replies, as the user wrote it.
        template: a chat template that replaces the one in the weights.
        context_tokens: the longest prompt and reply together.
        trained_tokens: those for which the model was trained; None leaves that to the weights. A longer
            context is stretched by YaRN.
    """

    weights: Path
    alias: str
    template: Path | None = None
    context_tokens: int = CONTEXT_TOKENS
    trained_tokens: int | None = None

    @property
    def key(self) -> str:
        """A short text, equal in every process and different for other specs."""
        parts = (self.weights, self.alias, self.template, self.context_tokens)
        return hashlib.sha256("\0".join(map(str, parts)).encode("utf-8", "surrogateescape")).hexdigest()[:12]

    @property
    def is_stretched(self) -> bool:
        """Whether the context is longer than that of the training."""
        return self.trained_tokens is not None and self.context_tokens > self.trained_tokens


@dataclass(frozen=True, kw_only=True)
class EngineHandle:
    """A running engine and this process's lease on it.

    Attributes:
        url: its base address, without a path.
        pid: its process.
        token: the key for its HTTP server.
    """

    url: str
    pid: int
    token: str
    lease: socket.socket

    @property
    def alive(self) -> bool:
        """Whether the engine is still running, without a request."""
        return leases.is_held(self.lease)

    async def release(self) -> None:
        """End the lease; if it was the last one, the engine has ended when this returns."""
        await leases.give_back(self.lease)


async def acquire(
    spec: EngineSpec,
    shared_dir: Path,
    *,
    environ: Mapping[str, str],
    command: Sequence[str] = SERVER,
) -> EngineHandle:
    """Return a handle on the run's engine for `spec`; start it if it is not running.

    A crashed engine is started once more; one that ended because it was unused, whenever it is needed.

    Args:
        spec: the model and settings.
        shared_dir: the run's folder, shared by all its processes.
        environ: the engine gets only what the system needs, nothing that could shape its answers.
        command: starts the engine; tests use others.

    Raises:
        EngineCrashError: it crashed again after its restart.
        EngineError: it cannot run here, or did not become ready.
    """
    place = shared_dir / f"engine-{spec.key}.json"
    async with locked(place.with_suffix(".lock")):
        known = read_json(place)
        if known and (handle := await _join(known)):
            return handle
        crashes = _crashes(place, known)
        _check(spec, place, crashes)
        ready = await start(
            (*command, *_arguments(spec)),
            place,
            environ=environ,
            weights=spec.weights,
            alias=spec.alias,
            within_s=READY_WITHIN_S,
        )
        write_json(place, {**ready, "crashes": crashes})
        handle = await _join(ready)
    if handle is None:
        raise EngineError(f"the embedded engine for {spec.alias} ended as soon as it was ready.")
    return handle


async def _join(known: JsonObject) -> EngineHandle | None:
    """Take a lease on the engine of a file or a READY line; None if it has ended."""
    try:
        lease = await leases.take_lease(known["lease_port"], known["token"])
    except TimeoutError:
        raise EngineError(
            f"the embedded engine (process {known['pid']}) hangs. End that process and run again."
        ) from None
    if lease is None:
        return None
    return EngineHandle(url=known["url"], pid=known["pid"], token=known["token"], lease=lease)


def _check(spec: EngineSpec, place: Path, crashes: int) -> None:
    """Raise if the engine cannot be started."""
    if crashes > MOST_CRASHES:
        log = _read(place.with_suffix(".log")).replace(str(spec.weights), spec.alias)
        raise EngineCrashError(checks.why_it_crashed(spec.alias, log))
    checks.check_before_start()


def _crashes(place: Path, known: JsonObject | None) -> int:
    """Count how often this engine has ended in this run, except because it was unused."""
    if known is None:
        return 0
    ended_by_itself = _read(place.with_suffix(".out")).endswith(f"{DONE}\n")
    return cast("int", known["crashes"]) + (0 if ended_by_itself else 1)


def _arguments(spec: EngineSpec) -> tuple[str, ...]:
    template = ("--chat-template", str(spec.template)) if spec.template else ()
    stretched = ("--trained-context", str(spec.trained_tokens)) if spec.is_stretched else ()
    return (
        *("--model", str(spec.weights)),
        *("--alias", spec.alias),
        *("--context", str(spec.context_tokens)),
        *("--ready-within-s", str(READY_WITHIN_S)),
        *template,
        *stretched,
    )


def _read(path: Path) -> str:
    return path.read_text("utf-8", "replace") if path.exists() else ""
