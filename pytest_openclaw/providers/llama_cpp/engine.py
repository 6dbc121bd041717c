"""The embedded engine as a child process: started for a model, ended with the process that owns the run."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import sys
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from pytest_openclaw.providers.llama_cpp import checks
from pytest_openclaw.providers.llama_cpp.server import READY
from pytest_openclaw.util.errors import EngineCrashError, EngineError
from pytest_openclaw.util.files import open_private

if TYPE_CHECKING:
    from asyncio.subprocess import Process
    from collections.abc import AsyncIterator, Callable, Mapping, Sequence

SERVER = (sys.executable, "-P", "-m", "pytest_openclaw.providers.llama_cpp.server")
"""The command that runs the engine; `-P` keeps the working folder's modules out of it."""
CONTEXT_TOKENS = 8192
READY_WITHIN_S = 300
LAST_BREATH_S = 1.0

# What the system needs to find programs and libraries. OMP_*, LLAMA_*, GGML_* would shape answers or times.
_PASSED_ON = (
    *("PATH", "HOME", "LANG", "LC_ALL", "TMPDIR", "TEMP", "TMP"),
    *("LD_LIBRARY_PATH", "DYLD_LIBRARY_PATH", "SYSTEMROOT", "WINDIR", "PYTHONHOME", "CUDA_VISIBLE_DEVICES"),
)
# OpenMP's threads spin while they wait for each other. On a machine that does other work, the default spins
# against the very thread it waits for: medians are equal, but the longest of 20 answers took 15.6 s, not
# 1.5 s. Not spinning at all halves the speed.
_SPIN = {"GOMP_SPINCOUNT": "1000"}


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
        cache_prompt: whether requests use the prompt cache that do not say so themselves.

    """

    weights: Path
    alias: str
    template: Path | None = None
    context_tokens: int = CONTEXT_TOKENS
    trained_tokens: int | None = None
    cache_prompt: bool = False

    def arguments(self, ready_within_s: int) -> tuple[str, ...]:
        """Return the arguments of the engine's program."""
        stretched = self.trained_tokens is not None and self.context_tokens > self.trained_tokens
        return (
            *("--model", str(self.weights)),
            *("--alias", self.alias),
            *("--context", str(self.context_tokens)),
            *("--ready-within-s", str(ready_within_s)),
            *(("--chat-template", str(self.template)) if self.template else ()),
            *(("--trained-context", str(self.trained_tokens)) if stretched else ()),
            *(("--cache-prompt",) if self.cache_prompt else ()),
        )


@dataclass(frozen=True, kw_only=True)
class Engine:
    """A running engine.

    Attributes:
        url: its base address, without a path.
        token: the key for its HTTP server.
        log: the file with its standard error.

    """

    url: str
    token: str = field(repr=False)
    log: Path
    process: Process

    @property
    def pid(self) -> int:
        """Its process."""
        return self.process.pid

    @property
    def is_running(self) -> bool:
        """Whether it has not exited."""
        return self.process.returncode is None

    async def has_died(self) -> bool:
        """Whether it has exited; an exiting process may close its connections first."""
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(self.process.wait(), LAST_BREATH_S)
        return not self.is_running

    async def stop(self) -> None:
        """Kill it; it has nothing to save."""
        await _stop(self.process)


async def start_engine(
    spec: EngineSpec,
    log: Path,
    *,
    environ: Mapping[str, str],
    command: Sequence[str] = SERVER,
    ready_within_s: int = READY_WITHIN_S,
) -> Engine:
    """Start an engine and wait until it has loaded its model.

    Args:
        spec: the model and settings.
        log: a file for its standard error.
        environ: the engine gets only what the system needs, nothing that could shape its answers.
        command: starts the engine; tests use others.
        ready_within_s: seconds to load the weights.

    Raises:
        EngineError: it cannot run here, exited, or was not ready in time.

    """
    checks.check_before_start()
    with open_private(log, "wb") as log_file:
        try:
            process = await asyncio.create_subprocess_exec(
                *command,
                *spec.arguments(ready_within_s),
                stdin=asyncio.subprocess.PIPE,  # it exits at the end of its input
                stdout=asyncio.subprocess.PIPE,
                stderr=log_file,
                env=child_environ(environ),
                start_new_session=True,  # Ctrl-C in a terminal is for the session, which ends the engine
            )
        except OSError as error:
            why = f"{error.filename}: {error.strerror}"
            raise EngineError(f"the embedded engine cannot be started: {why}") from error
    try:
        async with asyncio.timeout(ready_within_s):
            ready = await _ready_line(process)
    except TimeoutError:
        ready = None
    except BaseException:
        await _stop(process)
        raise
    if ready is not None:
        return Engine(url=ready["url"], token=ready["token"], log=log, process=process)
    exited = process.returncode
    await _stop(process)
    text = _log_of(log, spec)
    if exited is not None:
        raise EngineError(checks.why_it_ended(exited, text, spec.alias))
    said = checks.last_words(text)
    raise EngineError(
        f"the embedded engine did not load {spec.alias} within {ready_within_s:g} s. Last words: {said}"
    )


async def _ready_line(process: Process) -> dict[str, str] | None:
    """Return the values of the line with which an engine says that it is ready; None if it exits first."""
    assert process.stdout is not None, "its output is a pipe"
    while line := await process.stdout.readline():
        if line.startswith(READY.encode()) and line.endswith(b"\n"):
            values: dict[str, str] = json.loads(line.removeprefix(READY.encode()))
            return values
    await process.wait()
    return None


async def _stop(process: Process) -> None:
    if process.returncode is None:
        process.kill()
    await process.wait()


def child_environ(environ: Mapping[str, str]) -> dict[str, str]:
    """Return the engine's environment: what the system needs, our own import path, and how threads wait."""
    passed_on = {name: environ[name] for name in _PASSED_ON if name in environ}
    import_path = os.pathsep.join(path or str(Path.cwd()) for path in sys.path)
    return {**passed_on, **_SPIN, "PYTHONPATH": import_path}


def _log_of(log: Path, spec: EngineSpec) -> str:
    return log.read_text("utf-8", "replace").replace(str(spec.weights), spec.alias)


class Engines:
    """Keeps one engine at a time, of the model in use; one that has crashed is started once more.

    Args:
        spec_of: returns the spec of a model, or raises `EngineError`.
        folder: for logs.
        environ: see `start_engine`.
        command: see `start_engine`.

    """

    def __init__(
        self,
        spec_of: Callable[[str], EngineSpec],
        folder: Path,
        environ: Mapping[str, str],
        command: Sequence[str] = SERVER,
    ) -> None:
        self._spec_of = spec_of
        self._folder = folder
        self._environ = environ
        self._command = command
        self._model = ""
        self._engine: Engine | None = None
        self._crashed: set[str] = set()
        self._n_users = 0
        self._idle = asyncio.Event()
        self._idle.set()
        self._switching = asyncio.Lock()

    @contextlib.asynccontextmanager
    async def serving(self, model: str) -> AsyncIterator[Engine]:
        """Keep an engine for `model` while the body runs.

        Raises:
            EngineCrashError: it has crashed again after its restart.
            EngineError: it cannot be started.

        """
        async with self._switching:
            engine = await self._engine_for(model)
            self._n_users += 1
            self._idle.clear()
        try:
            yield engine
        finally:
            self._n_users -= 1
            if not self._n_users:
                self._idle.set()

    async def aclose(self) -> None:
        """End the engine."""
        async with self._switching:
            await self._end()

    async def _engine_for(self, model: str) -> Engine:
        if self._engine and model == self._model and self._engine.is_running:
            return self._engine
        await self._idle.wait()  # two models at once would compete for processors and memory
        spec = self._spec_of(model)
        if self._engine and model == self._model:
            if model in self._crashed:
                raise EngineCrashError(checks.why_it_crashed(model, _log_of(self._engine.log, spec)))
            self._crashed.add(model)
        await self._end()
        log = self._folder / f"engine-{time.monotonic_ns()}.log"
        self._engine = await start_engine(spec, log, environ=self._environ, command=self._command)
        self._model = model
        return self._engine

    async def _end(self) -> None:
        if self._engine:
            await self._engine.stop()
        self._engine = None
