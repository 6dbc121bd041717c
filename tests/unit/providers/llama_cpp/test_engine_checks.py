"""Reasons why the engine cannot run here: each is one sentence with its hint."""

from __future__ import annotations

import pytest

from pytest_openclaw.providers.llama_cpp import engine
from pytest_openclaw.providers.llama_cpp.server import thread_count

NO_AVX2 = (
    "the embedded engine needs a CPU with AVX2, and this one has none. "
    "Use a machine that has it, or a server of your own: --openclaw-models=ollama_openai/MODEL"
)
NO_MEMORY = "there is not enough memory to load a.gguf. Free some, or use a smaller model."


@pytest.mark.parametrize(
    ("returncode", "log", "sentence"),
    [
        pytest.param(-4, "", NO_AVX2, id="SIGILL"),
        pytest.param(-9, "", NO_MEMORY, id="killed-by-the-system"),
        pytest.param(1, "0.00.003.532 E gguf_init_from_reader: invalid magic characters: 'hell'\nRuntimeError: Failed to init server.\n", "the embedded engine ended with exit status 1 before it had loaded a.gguf: gguf_init_from_reader: invalid magic characters: 'hell'", id="first-error"),
        pytest.param(-11, "", "the embedded engine was killed by SIGSEGV before it had loaded a.gguf: no reason given", id="signal-without-words"),
    ],
)  # fmt: skip
def test_why_it_ended(returncode, log, sentence):
    """The exit status and the error output become one sentence with the hint."""
    assert engine.why_it_ended(returncode, log, "a.gguf") == sentence


@pytest.mark.parametrize(
    ("available", "physical", "cpu_quota", "threads"),
    [
        pytest.param(8, 4, "", 4, id="one-a-core"),
        pytest.param(2, 4, "", 2, id="a-part-of-the-machine"),
        pytest.param(8, None, "", 8, id="cores-unknown"),
        pytest.param(64, 32, "200000 100000\n", 2, id="a-container-with-a-quota"),
        pytest.param(4, 4, "50000 100000\n", 1, id="less-than-one-cpu"),
        pytest.param(4, 4, "max 100000\n", 4, id="a-container-without-a-quota"),
    ],
)
def test_thread_count(available, physical, cpu_quota, threads):
    """More threads than cores slow llama.cpp down, so every limit counts."""
    assert thread_count(available, physical, cpu_quota) == threads
