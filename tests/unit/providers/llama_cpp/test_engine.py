"""The engine's process: it is ready, or one sentence says why not; one model at a time."""

import asyncio
import json
import os
import signal
import subprocess
import sys
from contextlib import asynccontextmanager
from pathlib import Path
from unittest.mock import patch

import pytest

from pytest_openclaw.providers.llama_cpp import provider as checks
from pytest_openclaw.providers.llama_cpp.provider import LlamaCpp, child_environ, start_engine
from pytest_openclaw.providers.llama_cpp.server import thread_count
from pytest_openclaw.util.errors import EngineError
from pytest_openclaw.values.faults import CallFailed
from pytest_openclaw.values.protocols import ProviderSetup
from tests.e2e.processes import BOUND_S, is_gone, wait_until
from tests.unit.providers.llama_cpp.fake_engine import FAKE, engine_of, failing, never_ready

OWNER = """
import asyncio, json, sys
from pathlib import Path
from pytest_openclaw.providers.llama_cpp import provider as checks
checks.engine_is_installed = lambda: True
checks.find_weights = Path
checks.SERVER = json.loads(sys.argv[1])

async def own():
    engine = await checks.start_engine("a.gguf", {})
    print(engine.process.pid, flush=True)
    await asyncio.sleep(600)

asyncio.run(own())
"""


@pytest.fixture(autouse=True)
def _any_machine(monkeypatch):
    """This machine can run the engine, whatever is installed: the engines of these tests are fake."""
    monkeypatch.setattr(checks, "engine_is_installed", lambda: True)
    monkeypatch.setattr(checks, "find_weights", Path("/private").joinpath)


async def start(command, within_s=60):
    with patch.multiple(checks, SERVER=command, READY_WITHIN_S=within_s):
        return await start_engine("a.gguf", {})


@asynccontextmanager
async def open_engines():
    engines = LlamaCpp(ProviderSetup(name="llama_cpp"))
    with patch.object(checks, "SERVER", FAKE):
        try:
            yield engines
        finally:
            await engines.aclose()
            await engines.aclose()


async def served_by(engines, model):
    async with engines.serving(model) as engine:
        return engine.process.pid


def test_a_ready_engine_is_described():
    """It continues to run, in its own session, in which a terminal's Ctrl-C does not reach it."""

    async def use():
        engine = await start(FAKE)
        assert (engine.url, engine.token, engine.process.has_exited) == ("http://127.0.0.1:9", "dummy", False)
        assert os.getsid(engine.process.pid) == engine.process.pid
        await engine.process.stop()
        return engine

    engine = asyncio.run(use())

    assert engine.process.has_exited
    assert is_gone(engine.process.pid)


@pytest.mark.parametrize(
    ("command", "sentence"),
    [
        pytest.param(
            failing("cannot read /private/a.gguf"),
            " ended with exit status 1 before it had loaded a.gguf: cannot read a.gguf",
            id="private-path",
        ),
        pytest.param(
            engine_of("import sys; sys.stdout.write('READY {')"),
            " ended with exit status 0 before it had loaded a.gguf: no reason given",
            id="half-a-ready-line",
        ),
        pytest.param(
            ("/no/python",),
            ": the command '/no/python' cannot be started: No such file or directory",
            id="no-such-command",
        ),
    ],
)
def test_an_engine_that_ends_is_explained(command, sentence):
    """The reason of an early end is reported to the user in one sentence."""
    with pytest.raises(EngineError) as caught:
        asyncio.run(start(command))

    assert str(caught.value) == f"the embedded engine{sentence}"


def test_an_engine_that_is_never_ready_is_ended(tmp_path):
    """The wait is limited, the message says for how long, and no process is left."""
    with pytest.raises(EngineError) as caught:
        asyncio.run(start(never_ready(tmp_path / "pid"), within_s=6))

    pid = pid_in(tmp_path)
    assert str(caught.value) == f"the embedded engine did not load a.gguf within 6 s: {pid}"
    assert is_gone(pid)


def test_a_cancelled_start_ends_the_process(tmp_path):
    """Ctrl-C while the weights are loaded leaves no process behind."""

    async def give_up():
        starting = asyncio.create_task(start(never_ready(tmp_path / "pid")))
        while not pid_in(tmp_path):
            await asyncio.sleep(0.02)
        starting.cancel()
        await asyncio.wait([starting])
        return starting.cancelled()

    assert asyncio.run(give_up())
    assert is_gone(pid_in(tmp_path))


def pid_in(folder):
    file = folder / "pid"
    said = file.read_text() if file.exists() else ""
    return int(said) if said.endswith("\n") else None


@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGINT, signal.SIGTERM])
def test_the_engine_ends_with_its_owner(how):
    """However the process ends that has started the engine, the engine exits by itself."""
    command = [sys.executable, "-c", OWNER, json.dumps(FAKE)]
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, cwd=Path.cwd()
    ) as owner:
        pid = int(owner.stdout.readline())
        owner.send_signal(how)
        owner.wait(BOUND_S)

    assert wait_until(lambda: is_gone(pid))


def test_environment_of_the_user_does_not_shape_the_engine():
    """Proxies and variables of llama.cpp and OpenMP are removed; the library path is kept."""
    shaping = ("http_proxy", "ALL_PROXY", "OMP_NUM_THREADS", "LLAMA_ARG_CTX_SIZE", "GGML_X", "GOMP_SPINCOUNT")
    needed = {"PATH": "/bin", "LD_LIBRARY_PATH": "/opt/lib"}

    environ = child_environ({**dict.fromkeys(shaping, "x"), **needed})

    assert environ.pop("PYTHONPATH")
    assert environ == {**needed, "GOMP_SPINCOUNT": "1000"}


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
        pytest.param(7, "first\nlast", "the embedded engine ended with exit status 7 before it had loaded a.gguf: last", id="last-line"),
        pytest.param(1, "0.00.003.532 E gguf_init_from_reader: invalid magic characters: 'hell'\nRuntimeError: Failed to init server.\n", "the embedded engine ended with exit status 1 before it had loaded a.gguf: gguf_init_from_reader: invalid magic characters: 'hell'", id="first-error"),
        pytest.param(-11, "", "the embedded engine was killed by SIGSEGV before it had loaded a.gguf: no reason given", id="signal-without-words"),
    ],
)  # fmt: skip
def test_why_it_ended(returncode, log, sentence):
    """The exit status and the error output become one sentence with the hint."""
    assert checks.why_it_ended(returncode, log, "a.gguf") == sentence


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


@pytest.mark.parametrize(
    ("models", "n"),
    [
        pytest.param("aa", 1, id="kept-between-uses"),
        pytest.param("aba", 3, id="ended-before-the-next-starts"),
    ],
)
def test_one_engine_at_a_time(models, n):
    """A model's engine stays until another model is requested, or all is closed."""

    async def use():
        pids = []
        async with open_engines() as engines:
            for model in models:
                pids.append(await served_by(engines, model))
                assert [not is_gone(pid) for pid in pids] == [pid == pids[-1] for pid in pids]
        return pids

    pids = asyncio.run(use())

    assert len(set(pids)) == n
    assert is_gone(pids[-1])


def test_another_model_waits_until_the_engine_is_idle():
    """Uses of one model may overlap; a cancelled one does not keep the next model waiting."""

    async def hold(engines, go_on):
        async with engines.serving("a") as engine:
            await go_on.wait()
            return not engine.process.has_exited

    async def use():
        go_on = asyncio.Event()
        async with open_engines() as engines:
            first, second = (asyncio.create_task(hold(engines, go_on)) for _ in range(2))
            other = asyncio.create_task(served_by(engines, "b"))
            _, waiting = await asyncio.wait([other], timeout=1)
            first.cancel()
            go_on.set()
            return len(waiting), await second, await other

    n_waiting, was_kept, _ = asyncio.run(use())

    assert (n_waiting, was_kept) == (1, True)


def test_an_engine_that_does_not_start_leaves_others_usable():
    """After an engine that does not start, the same and others are tried as usual."""

    async def use():
        async with open_engines() as engines:
            for _ in range(2):
                with pytest.raises(CallFailed, match="exit status 3"):
                    await served_by(engines, "broken")
            await served_by(engines, "a")

    asyncio.run(use())


def test_a_crashed_engine_is_started_again():
    """The next request gets another engine."""

    async def use():
        async with open_engines() as engines:
            async with engines.serving("a") as engine:
                assert not await engine.has_died()
                os.kill(engine.process.pid, signal.SIGKILL)
                assert await engine.has_died()
            return engine.process.pid, await served_by(engines, "a")

    first, second = asyncio.run(use())

    assert first != second
