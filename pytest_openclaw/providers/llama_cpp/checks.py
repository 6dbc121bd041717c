"""Explains why the engine cannot run here, in one sentence with a hint for each reason."""

from __future__ import annotations

import platform
import re
import signal
from pathlib import Path

from pytest_openclaw.providers.llama_cpp.weights import engine_is_installed, install_engine
from pytest_openclaw.util.errors import EngineError
from pytest_openclaw.util.signals import how_it_ended

_CPUINFO = Path("/proc/cpuinfo")
_ELSEWHERE = "Use a machine that has it, or a server of your own: --openclaw-models=ollama_openai/MODEL"
_NO_AVX2 = f"the embedded engine needs a CPU with AVX2, and this one has none. {_ELSEWHERE}"
_WINDOWS_ILLEGAL_INSTRUCTION = 0xC000001D
_LONGEST_LAST_WORDS = 300

_MISSING_LIBRARY = re.compile(r"(\S+\.so[.\d]*): cannot open shared object file")
_NO_MEMORY = re.compile(
    r"insufficient memory|cannot allocate memory|failed to allocate|MemoryError|bad_alloc", re.IGNORECASE
)
_BAD_WEIGHTS = re.compile(
    r"invalid magic|failed to read key-value|corrupted or incomplete|failed to load model", re.IGNORECASE
)
_BAD_PORT = re.compile(
    r"couldn't bind|failed to bind|address already in use|cannot assign requested address", re.IGNORECASE
)
# llama.cpp writes the reason first, then the callers: "0.00.027.335 E gguf_init: invalid magic".
_LOG_PREFIX = re.compile(r"^[\d.]+ E (?:\w+ +)?\w+: ")


def check_before_start(*, cpuinfo: str | None = None, machine: str | None = None) -> None:
    """Raise if the engine cannot run on this machine, as far as this is known without starting it.

    Args:
        cpuinfo: Linux's description of the processors; None reads it, and a system without it passes.
        machine: the processor's family as Python names it; None detects it.

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
    """Return in one sentence why the engine's process exited before it was ready.

    Args:
        returncode: of `subprocess`; negative for a signal.
        log: its standard error.
        weights: the model as the user named it.

    """
    if returncode in {-signal.Signals["SIGILL"], _WINDOWS_ILLEGAL_INSTRUCTION}:
        return _NO_AVX2
    if "libgomp" in log:
        return (
            "libgomp.so.1 is missing on this system. Install libgomp1, for example: apt-get install libgomp1"
        )
    if missing := _MISSING_LIBRARY.search(log):
        return f"{missing[1]} is missing on this system, and the embedded engine needs it. Install it."
    if "No module named 'xllamacpp'" in log:
        return f"the embedded engine is not installed. Run: {install_engine()}"
    if _NO_MEMORY.search(log) or returncode == -9:
        return f"there is not enough memory to load {weights}. Free some, or use a smaller model."
    if bad := _BAD_WEIGHTS.search(log):
        return (
            f"{weights} is no GGUF file that the engine can load ({_line_of(log, bad)}). Download it again."
        )
    if bad := _BAD_PORT.search(log):
        return f"the embedded engine got no port on 127.0.0.1 ({_line_of(log, bad)}). Is loopback up?"
    how = how_it_ended(returncode)
    return f"the embedded engine {how} before it was ready. Last words: {last_words(log)}"


def why_it_crashed(model: str, log: str) -> str:
    """Return the error for an engine that crashed again after its restart."""
    return f"the embedded engine died twice while serving {model}. Last words: {last_words(log)}"


def last_words(log: str) -> str:
    """Return the last meaningful line, at most 300 characters of it."""
    lines = [line.strip() for line in log.splitlines() if line.strip()]
    return lines[-1][-_LONGEST_LAST_WORDS:] if lines else "none"


def _line_of(log: str, found: re.Match[str]) -> str:
    """Return the whole line around a match, without llama.cpp's clock and function name."""
    start = log.rfind("\n", 0, found.start()) + 1
    line = log[start:].split("\n", 1)[0].strip()
    return _LOG_PREFIX.sub("", line)[:_LONGEST_LAST_WORDS]
