"""Why the engine cannot run here, each reason one clear sentence with its hint."""

from __future__ import annotations

import platform
import re
import signal
from pathlib import Path

from pytest_openclaw.core.errors import EngineError
from pytest_openclaw.core.signals import how_it_ended
from pytest_openclaw.providers.llama_cpp.weights import engine_is_installed, install_engine

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
# llama.cpp writes the reason first and who passed it on after it: "0.00.027.335 E gguf_init: invalid magic".
_LOG_PREFIX = re.compile(r"^[\d.]+ E (?:\w+ +)?\w+: ")


def check_before_start(*, cpuinfo: str | None = None, machine: str | None = None) -> None:
    """Raise if the engine cannot run on this machine, as far as that can be told without starting it.

    Args:
        cpuinfo: what Linux says of the processors; None reads it, and a system without it is not judged.
        machine: the processor's family as Python names it; None asks.

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
    """Say in one sentence why the engine's process ended before it was ready.

    Args:
        returncode: as `subprocess` gives it: negative is a signal.
        log: what it wrote to its standard error.
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
    """Say that the engine died again after it had been restarted once."""
    return f"the embedded engine died twice while serving {model}. Last words: {last_words(log)}"


def last_words(log: str) -> str:
    """Return the last line that says something, at most 300 characters of it."""
    lines = [line.strip() for line in log.splitlines() if line.strip()]
    return lines[-1][-_LONGEST_LAST_WORDS:] if lines else "none"


def _line_of(log: str, found: re.Match[str]) -> str:
    """The whole line around a match, without llama.cpp's clock and function name."""
    start = log.rfind("\n", 0, found.start()) + 1
    line = log[start:].split("\n", 1)[0].strip()
    return _LOG_PREFIX.sub("", line)[:_LONGEST_LAST_WORDS]
