"""Reasons why the engine cannot run here: each is one sentence with its hint."""

from __future__ import annotations

import contextlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_openclaw.providers.llama_cpp import engine
from pytest_openclaw.providers.llama_cpp.server import thread_count
from pytest_openclaw.util.errors import EngineError

INSTALL = engine.install_engine()
NO_AVX2 = (
    "the embedded engine needs a CPU with AVX2, and this one has none. "
    "Use a machine that has it, or a server of your own: --openclaw-models=ollama_openai/MODEL"
)
OLD_CPU = "processor\t: 0\nflags\t\t: fpu sse4_2 avx f16c\nbugs\t\t: spectre_v1\n"
NEW_CPU = "processor\t: 0\nflags\t\t: fpu sse4_2 avx f16c avx2 bmi2\nbugs\t\t: spectre_v1\n"


@pytest.mark.parametrize(
    ("is_installed", "cpuinfo", "machine", "message"),
    [
        pytest.param(True, OLD_CPU, "x86_64", NO_AVX2, id="no-avx2"),
        pytest.param(True, OLD_CPU, "AMD64", NO_AVX2, id="no-avx2-on-windows"),
        pytest.param(True, NEW_CPU, "x86_64", None, id="has-avx2"),
        pytest.param(True, OLD_CPU, "aarch64", None, id="another-family"),
        pytest.param(True, "", "AMD64", None, id="a-system-that-does-not-say"),
        pytest.param(False, NEW_CPU, "x86_64", f"the embedded engine is not installed. Run: {INSTALL}", id="not-installed"),
    ],
)  # fmt: skip
def test_before_the_start(is_installed, cpuinfo, machine, message, monkeypatch):
    """What is missing is reported before the start; no machine is refused on a guess."""
    monkeypatch.setattr(engine, "engine_is_installed", lambda: is_installed)

    said = contextlib.nullcontext() if message is None else pytest.raises(EngineError)
    with said as caught:
        engine.check_before_start(cpuinfo=cpuinfo, machine=machine)

    assert message is None or str(caught.value) == message


@pytest.mark.parametrize(
    ("returncode", "log", "sentence"),
    [
        pytest.param(-4, "", NO_AVX2, id="SIGILL"),
        pytest.param(0xC000001D, "", NO_AVX2, id="illegal-instruction-on-windows"),
        pytest.param(
            1,
            "ImportError: libgomp.so.1: cannot open shared object file: No such file or directory\n",
            "libgomp.so.1 is missing on this system. Install libgomp1, for example: apt-get install libgomp1",
            id="libgomp",
        ),
        pytest.param(
            1,
            "ImportError: libstdc++.so.6: cannot open shared object file: No such file or directory\n",
            "libstdc++.so.6 is missing on this system, and the embedded engine needs it. Install it.",
            id="another-library",
        ),
        pytest.param(
            1,
            "ModuleNotFoundError: No module named 'xllamacpp'\n",
            f"the embedded engine is not installed. Run: {INSTALL}",
            id="package-gone",
        ),
        pytest.param(
            -9,
            "",
            "there is not enough memory to load a.gguf. Free some, or use a smaller model.",
            id="killed-by-the-system",
        ),
        pytest.param(
            1,
            "0.00.226.036 E ggml_aligned_malloc: insufficient memory (attempted to allocate 180.00 MB)\n"
            "0.00.226.311 E cmn  common_init_: failed to load model 'a.gguf'\n",
            "there is not enough memory to load a.gguf. Free some, or use a smaller model.",
            id="no-memory",
        ),
        pytest.param(
            1,
            "0.00.003.532 E gguf_init_from_reader: invalid magic characters: 'hell', expected 'GGUF'\n"
            "0.00.003.654 E cmn  common_init_: failed to load model '/x/a.gguf'\n"
            "RuntimeError: Failed to init server, please check the input params.\n",
            "a.gguf is not a GGUF file that the engine can load "
            "(invalid magic characters: 'hell', expected 'GGUF'). Download it again.",
            id="not-a-gguf",
        ),
        pytest.param(
            1,
            "0.00.001 E srv    start: couldn't bind HTTP server socket, hostname: 127.0.0.1, port: 0\n",
            "the embedded engine got no port on 127.0.0.1 "
            "(couldn't bind HTTP server socket, hostname: 127.0.0.1, port: 0). Is loopback up?",
            id="no-port",
        ),
        pytest.param(
            3,
            "Traceback\nValueError: what\n\n",
            "the embedded engine ended with exit status 3 before it was ready. Last words: ValueError: what",
            id="anything-else",
        ),
        pytest.param(
            -11,
            "",
            "the embedded engine was killed by SIGSEGV before it was ready. Last words: none",
            id="signal-without-words",
        ),
    ],
)
def test_why_it_ended(returncode, log, sentence):
    """The exit status and the error output become one sentence with the hint."""
    assert engine.why_it_ended(returncode, log, "a.gguf") == sentence


@given(returncode=st.integers(-64, 255), log=st.text())
def test_every_end_has_a_sentence(returncode, log):
    """However it ends, there is a sentence of bounded length."""
    sentence = engine.why_it_ended(returncode, log, "a.gguf")

    assert 0 < len(sentence) < 500 + len(log)
    assert "\n" not in sentence.replace(log, "")


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
