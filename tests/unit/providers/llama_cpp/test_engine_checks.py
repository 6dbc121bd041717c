"""Reasons why the engine cannot run here: each is one sentence with its hint."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_openclaw.providers.llama_cpp import checks
from pytest_openclaw.util.errors import EngineError

INSTALL = checks.install_engine()
NO_AVX2 = (
    "the embedded engine needs a CPU with AVX2, and this one has none. "
    "Use a machine that has it, or a server of your own: --openclaw-models=ollama_openai/MODEL"
)
OLD_CPU = "processor\t: 0\nflags\t\t: fpu sse4_2 avx f16c\nbugs\t\t: spectre_v1\n"
NEW_CPU = "processor\t: 0\nflags\t\t: fpu sse4_2 avx f16c avx2 bmi2\nbugs\t\t: spectre_v1\n"


@pytest.fixture
def installed(monkeypatch):
    """The engine's package is installed."""
    monkeypatch.setattr(checks, "engine_is_installed", lambda: True)


@pytest.mark.parametrize("machine", ["x86_64", "AMD64"])
def test_cpu_without_avx2_is_reported_before_the_start(machine, installed):
    """The engine's package is compiled for AVX2, so a CPU without it gets a message."""
    with pytest.raises(EngineError) as caught:
        checks.check_before_start(cpuinfo=OLD_CPU, machine=machine)

    assert str(caught.value) == NO_AVX2


@pytest.mark.parametrize(
    ("cpuinfo", "machine"),
    [
        pytest.param(NEW_CPU, "x86_64", id="has-avx2"),
        pytest.param(OLD_CPU, "aarch64", id="another-family"),
        pytest.param("", "AMD64", id="a-system-that-does-not-say"),
    ],
)
def test_cpu_that_may_do(cpuinfo, machine, installed):
    """No machine is refused on a guess."""
    checks.check_before_start(cpuinfo=cpuinfo, machine=machine)


def test_missing_package_is_reported_before_the_start(monkeypatch):
    """Without the engine's package the message is the command that installs it."""
    monkeypatch.setattr(checks, "engine_is_installed", lambda: False)

    with pytest.raises(EngineError) as caught:
        checks.check_before_start(cpuinfo=NEW_CPU, machine="x86_64")

    assert str(caught.value) == f"the embedded engine is not installed. Run: {INSTALL}"


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
            "a.gguf is no GGUF file that the engine can load "
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
        pytest.param(
            -250,
            "",
            "the embedded engine was killed by signal 250 before it was ready. Last words: none",
            id="signal-without-name",
        ),
    ],
)
def test_why_it_ended(returncode, log, sentence):
    """The exit status and the error output become one sentence with the hint."""
    assert checks.why_it_ended(returncode, log, "a.gguf") == sentence


def test_why_it_crashed():
    """A second death is reported with the model and the engine's last output."""
    log = "0.1 I all is well\nGGML_ASSERT(n > 0) failed\n"

    assert checks.why_it_crashed("smollm2:135m", log) == (
        "the embedded engine died twice while serving smollm2:135m. Last words: GGML_ASSERT(n > 0) failed"
    )


@given(returncode=st.integers(-64, 255), log=st.text())
def test_every_end_has_a_sentence(returncode, log):
    """However it ends, there is a sentence of bounded length."""
    sentence = checks.why_it_ended(returncode, log, "a.gguf")

    assert 0 < len(sentence) < 500 + len(log)
    assert "\n" not in sentence.replace(log, "")
