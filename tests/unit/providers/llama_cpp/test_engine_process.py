"""Starting the engine's process: either it is ready, or there is one clear sentence and no process."""

from __future__ import annotations

import asyncio
from pathlib import Path

import psutil
import pytest
from fake_engine import FAKE, NEVER_READY, dying, end, engine_of, failing, is_gone, wait_until

from pytest_openclaw.core.errors import EngineError
from pytest_openclaw.providers.llama_cpp.process import child_environ, start


async def start_it(command, folder, within_s=60.0):
    """Start an engine and return the object of its READY line."""
    place = folder / "engine-x.json"
    return await start(
        command, place, environ={}, weights=Path("/private/a.gguf"), alias="a.gguf", within_s=within_s
    )


def pid_in(folder):
    """The process id that `NEVER_READY` writes to its log; None before it has."""
    log = folder / "engine-x.log"
    said = log.read_text() if log.exists() else ""
    return int(said) if said.endswith("\n") else None


def test_ready_line_is_returned(tmp_path):
    """An engine that prints READY is described by that line, and continues to run."""
    ready = asyncio.run(start_it(FAKE, tmp_path))

    assert set(ready) == {"url", "pid", "lease_port", "token"}
    assert not is_gone(ready["pid"])
    end(ready["pid"])


@pytest.mark.parametrize(
    ("command", "sentence"),
    [
        pytest.param(
            dying("SIGILL"),
            "the embedded engine needs a CPU with AVX2, and this one has none. Use a machine that has it, "
            "or a server of your own: --openclaw-models=ollama_openai/MODEL",
            id="no-avx2",
        ),
        pytest.param(
            dying("SIGKILL"),
            "there is not enough memory to load a.gguf. Free some, or use a smaller model.",
            id="killed",
        ),
        pytest.param(
            failing("ImportError: libgomp.so.1: cannot open shared object file: No such file or directory"),
            "libgomp.so.1 is missing on this system. Install libgomp1, for example: apt-get install libgomp1",
            id="no-libgomp",
        ),
        pytest.param(
            failing("first\nlast", status=7),
            "the embedded engine ended with exit status 7 before it was ready. Last words: last",
            id="another-reason",
        ),
        pytest.param(
            failing("cannot read /private/a.gguf"),
            "the embedded engine ended with exit status 1 before it was ready. Last words: cannot read a.gguf",
            id="private-path",
        ),
        pytest.param(
            engine_of("import sys; sys.stdout.write('READY {')"),
            "the embedded engine ended with exit status 0 before it was ready. Last words: none",
            id="half-a-ready-line",
        ),
    ],
)
def test_an_engine_that_ends_is_explained(command, sentence, tmp_path):
    """The reason of an early end is reported to the user in one sentence."""
    with pytest.raises(EngineError) as caught:
        asyncio.run(start_it(command, tmp_path))

    assert str(caught.value) == sentence


def test_a_command_that_is_not_there_is_explained(tmp_path):
    """An interpreter that cannot be run is an engine error too."""
    with pytest.raises(EngineError) as caught:
        asyncio.run(start_it((str(tmp_path / "no-python"),), tmp_path))

    assert str(caught.value) == (
        f"the embedded engine cannot be started: {tmp_path}/no-python: No such file or directory"
    )


def test_an_engine_that_is_never_ready_is_ended(tmp_path):
    """The wait is limited, the message says for how long, and no process is left."""
    with pytest.raises(EngineError) as caught:
        asyncio.run(start_it(NEVER_READY, tmp_path, within_s=6.0))

    pid = pid_in(tmp_path)
    assert str(caught.value) == f"the embedded engine did not load a.gguf within 6 s. Last words: {pid}"
    assert is_gone(pid)


def test_cancelled_start_ends_the_process(tmp_path):
    """Ctrl-C while the weights are loaded leaves no process behind."""

    async def give_up():
        starting = asyncio.create_task(start_it(NEVER_READY, tmp_path))
        while not pid_in(tmp_path):
            await asyncio.sleep(0.02)
        starting.cancel()
        await asyncio.wait([starting])
        return starting.cancelled()

    assert asyncio.run(give_up())
    assert is_gone(pid_in(tmp_path))


def test_engine_that_ends_later_is_no_zombie(tmp_path):
    """Its starter collects its status, so that the process table stays clean."""
    ready = asyncio.run(start_it(FAKE, tmp_path))
    end(ready["pid"])

    assert wait_until(lambda: not psutil.pid_exists(ready["pid"]))


def test_environment_of_the_user_does_not_shape_the_engine():
    """Proxies and variables of llama.cpp and OpenMP are removed; the library path is kept."""
    shaping = ("http_proxy", "ALL_PROXY", "OMP_NUM_THREADS", "LLAMA_ARG_CTX_SIZE", "GGML_X", "GOMP_SPINCOUNT")
    needed = {"PATH": "/bin", "LD_LIBRARY_PATH": "/opt/lib"}

    environ = child_environ({**dict.fromkeys(shaping, "x"), **needed})

    assert environ.pop("PYTHONPATH")
    assert environ == {**needed, "GOMP_SPINCOUNT": "1000"}
