"""The embedded engine as a child process: started for a model, ended with the process that owns the run."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import platform
import re
import signal
import sys
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from pytest_openclaw.providers.llama_cpp.server import READY
from pytest_openclaw.providers.llama_cpp.weights import engine_is_installed, install_engine
from pytest_openclaw.util.errors import EngineCrashError, EngineError
from pytest_openclaw.util.files import open_private
from pytest_openclaw.util.signals import how_it_ended

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
    """

    weights: Path
    alias: str
    template: Path | None = None
    context_tokens: int = CONTEXT_TOKENS
    trained_tokens: int | None = None

    def arguments(self, ready_within_s: int) -> list[str]:
        """Return the arguments of the engine's program."""
        arguments = ["--model", str(self.weights), "--alias", self.alias]
        arguments += ["--context", str(self.context_tokens), "--ready-within-s", str(ready_within_s)]
        if self.template:
            arguments += ["--chat-template", str(self.template)]
        if self.trained_tokens and self.context_tokens > self.trained_tokens:
            arguments += ["--trained-context", str(self.trained_tokens)]
        return arguments


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


class Engines:
    """Keeps one engine at a time, of the model in use; one that has crashed is started once more."""

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
                said = _last_words(_log_of(self._engine.log, spec))
                raise EngineCrashError(
                    f"the embedded engine died twice while serving {model}. Last words: {said}"
                )
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


# --- starting -----------------------------------------------------------------------------------


async def start_engine(
    spec: EngineSpec,
    log: Path,
    *,
    environ: Mapping[str, str],
    command: Sequence[str] = SERVER,
    ready_within_s: int = READY_WITHIN_S,
) -> Engine:
    """Start an engine and wait until it has loaded its model.

    Raises:
        EngineError: it cannot run here, exited, or was not ready in time.
    """
    check_before_start()
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
        raise EngineError(why_it_ended(exited, text, spec.alias))
    raise EngineError(
        f"the embedded engine did not load {spec.alias} within {ready_within_s:g} s. "
        f"Last words: {_last_words(text)}"
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


# --- why it cannot run here ---------------------------------------------------------------------

_CPUINFO = Path("/proc/cpuinfo")
_NO_AVX2 = (
    "the embedded engine needs a CPU with AVX2, and this one has none. "
    "Use a machine that has it, or a server of your own: --openclaw-models=ollama_openai/MODEL"
)
_WINDOWS_ILLEGAL_INSTRUCTION = 0xC000001D
_LONGEST_LAST_WORDS = 300
# llama.cpp writes the reason first, then the callers: "0.00.027.335 E gguf_init: invalid magic".
_LOG_PREFIX = re.compile(r"^[\d.]+ E (?:\w+ +)?\w+: ")
_ENDS = {
    "libgomp": (
        "libgomp.so.1 is missing on this system. Install libgomp1, for example: apt-get install libgomp1"
    ),
    r"(\S+\.so[.\d]*): cannot open shared object file": (
        "{found} is missing on this system, and the embedded engine needs it. Install it."
    ),
    "No module named 'xllamacpp'": "the embedded engine is not installed. Run: {install}",
    "insufficient memory|cannot allocate memory|failed to allocate|MemoryError|bad_alloc": (
        "there is not enough memory to load {weights}. Free some, or use a smaller model."
    ),
    "invalid magic|failed to read key-value|corrupted or incomplete|failed to load model": (
        "{weights} is not a GGUF file that the engine can load ({line}). Download it again."
    ),
    "couldn't bind|failed to bind|address already in use|cannot assign requested address": (
        "the embedded engine got no port on 127.0.0.1 ({line}). Is loopback up?"
    ),
}
"""Patterns of the engine's log → the sentence; the first one that is found counts."""


def check_before_start(*, cpuinfo: str | None = None, machine: str | None = None) -> None:
    """Raise if the engine cannot run on this machine, as far as this is known without starting it.

    Raises:
        EngineError: the package is not installed, or the CPU lacks AVX2.
    """
    if not engine_is_installed():
        raise EngineError(f"the embedded engine is not installed. Run: {install_engine()}")
    if (machine or platform.machine()).lower() not in {"x86_64", "amd64"}:
        return
    if cpuinfo is None:
        cpuinfo = _CPUINFO.read_text("utf-8", "replace") if _CPUINFO.exists() else ""
    flags = re.search(r"^flags\s*:(.*)$", cpuinfo, re.MULTILINE)
    if flags and "avx2" not in flags[1].split():
        raise EngineError(_NO_AVX2)


def why_it_ended(returncode: int, log: str, weights: str) -> str:
    """Return in one sentence why the engine's process exited before it was ready."""
    if returncode in {-signal.Signals["SIGILL"], _WINDOWS_ILLEGAL_INSTRUCTION}:
        return _NO_AVX2
    if returncode == -9:
        log = "cannot allocate memory"  # the system has killed it
    for pattern, sentence in _ENDS.items():
        if found := re.search(pattern, log, re.IGNORECASE):
            start = log.rfind("\n", 0, found.start()) + 1
            line = log[start:].split("\n", 1)[0].strip()
            return sentence.format(
                found=found[found.re.groups],
                install=install_engine(),
                weights=weights,
                line=_LOG_PREFIX.sub("", line)[:_LONGEST_LAST_WORDS],
            )
    how = how_it_ended(returncode)
    return f"the embedded engine {how} before it was ready. Last words: {_last_words(log)}"


def _last_words(log: str) -> str:
    """Return the last meaningful line, at most 300 characters of it."""
    lines = [line.strip() for line in log.splitlines() if line.strip()]
    return lines[-1][-_LONGEST_LAST_WORDS:] if lines else "none"
