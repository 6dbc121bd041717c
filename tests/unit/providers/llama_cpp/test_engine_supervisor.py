"""One engine for all processes of a run: started once, shared, restarted once, never left behind."""

from __future__ import annotations

import asyncio
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from fake_engine import BOUND_S, FAKE, dying, end, engine_of, is_gone, wait_until

from pytest_openclaw.core.errors import EngineCrashError, EngineError
from pytest_openclaw.core.run_once import read_json, write_json
from pytest_openclaw.providers.llama_cpp.supervisor import EngineSpec, acquire

pytestmark = pytest.mark.usefixtures("any_machine")

SPEC = EngineSpec(weights=Path("/models/a.gguf"), alias="a.gguf")
USER = """
import asyncio, json, sys, time
from pathlib import Path
from pytest_openclaw.providers.llama_cpp import checks
from pytest_openclaw.providers.llama_cpp.supervisor import EngineSpec, acquire
checks.check_before_start = lambda: None
spec = EngineSpec(weights=Path("/models/a.gguf"), alias="a.gguf")
handle = asyncio.run(acquire(spec, Path(sys.argv[1]), environ={}, command=json.loads(sys.argv[2])))
print(handle.pid, flush=True)
time.sleep(600)
"""


@pytest.fixture
def user(tmp_path):
    """Start another process that uses the engine; gives the process and the engine's pid."""
    import json

    started = []

    def start():
        command = [sys.executable, "-c", USER, str(tmp_path), json.dumps(FAKE)]
        process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        started.append(process)
        return process, int(process.stdout.readline())

    yield start
    for process in started:
        process.kill()
        process.communicate(timeout=BOUND_S)


def take(folder, command=FAKE, spec=SPEC):
    """Acquire an engine in a separate event loop."""
    return asyncio.run(acquire(spec, folder, environ={}, command=command))


def place(folder, spec=SPEC):
    """The file in which the run publishes its engine."""
    return folder / f"engine-{spec.key}.json"


def test_one_engine_for_many(tmp_path):
    """Users of one process, at the same time or later, get the same engine."""

    async def share():
        handles = await asyncio.gather(*(acquire(SPEC, tmp_path, environ={}, command=FAKE) for _ in range(3)))
        return [handle.pid for handle in handles], [await handle.release() for handle in handles]

    pids, _ = asyncio.run(share())

    assert len(set(pids)) == 1
    assert wait_until(lambda: is_gone(pids[0]))


def test_processes_share_one_engine_which_outlives_its_starter(tmp_path, user):
    """The process that started the engine may end first; the other one keeps it."""
    starter, pid = user()
    handle = take(tmp_path)
    starter.kill()
    starter.wait(BOUND_S)

    assert (handle.pid, handle.alive) == (pid, True)
    asyncio.run(handle.release())
    assert wait_until(lambda: is_gone(pid))


@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGINT, signal.SIGTERM])
def test_engine_ends_with_its_last_user(how, user):
    """However the user ends, the engine ends by itself."""
    process, pid = user()

    process.send_signal(how)

    assert wait_until(lambda: is_gone(pid))


def test_engine_has_a_session_of_its_own(tmp_path):
    """A terminal's Ctrl-C goes to its users, not to the engine."""
    import os

    handle = take(tmp_path)

    assert os.getsid(handle.pid) == handle.pid
    asyncio.run(handle.release())


def test_released_engine_is_gone_and_comes_back(tmp_path):
    """Releasing returns when the engine has ended; starting it again is no crash, however often."""
    pids = []
    for _ in range(3):
        handle = take(tmp_path)
        pids.append(handle.pid)
        asyncio.run(handle.release())
        assert wait_until(lambda: is_gone(pids[-1]))

    assert read_json(place(tmp_path))["crashes"] == 0


def test_crashed_engine_is_restarted_once(tmp_path):
    """After the first death it is restarted; after the second it is given up, with its last output."""
    first = take(tmp_path)
    end(first.pid)
    second = take(tmp_path)
    end(second.pid)
    place(tmp_path).with_suffix(".log").write_text("assert failed in /models/a.gguf\n")

    assert (first.alive, second.alive) == (False, False)
    for _ in range(2):
        with pytest.raises(EngineCrashError) as caught:
            take(tmp_path)
        assert str(caught.value) == (
            "the embedded engine died twice while serving a.gguf. Last words: assert failed in a.gguf"
        )
    first.lease.close()
    second.lease.close()


def test_file_of_an_engine_that_is_long_gone_is_replaced(tmp_path):
    """A file of a dead engine leads to a new engine."""
    write_json(place(tmp_path), {"url": "", "pid": 1, "lease_port": 1, "token": "old", "crashes": 0})

    handle = take(tmp_path)

    assert handle.alive
    assert read_json(place(tmp_path))["pid"] == handle.pid
    asyncio.run(handle.release())


@pytest.mark.parametrize(
    "other",
    [
        pytest.param(EngineSpec(weights=Path("/models/b.gguf"), alias="a.gguf"), id="weights"),
        pytest.param(EngineSpec(weights=Path("/models/a.gguf"), alias="./a.gguf"), id="alias"),
        pytest.param(
            EngineSpec(weights=Path("/models/a.gguf"), alias="a.gguf", template=Path("t")), id="template"
        ),
        pytest.param(
            EngineSpec(weights=Path("/models/a.gguf"), alias="a.gguf", context_tokens=4096), id="context"
        ),
    ],
)
def test_engines_that_serve_differently_are_different(other):
    """Each setting that affects a reply needs another engine; in every process a spec means one engine."""
    assert other.key != SPEC.key == EngineSpec(weights=Path("/models/a.gguf"), alias="a.gguf").key


def test_engine_that_cannot_start_is_an_error_each_time(tmp_path):
    """A failed start leaves nothing that a later attempt could trip over."""
    for _ in range(2):
        with pytest.raises(EngineError, match="needs a CPU with AVX2"):
            take(tmp_path, dying("SIGILL"))

    assert not place(tmp_path).exists()


def test_machine_that_cannot_run_it_is_reported_without_a_start(tmp_path, monkeypatch):
    """The result of the checks is reported before any process is started."""

    def complain():
        raise EngineError("no AVX2")

    monkeypatch.setattr("pytest_openclaw.providers.llama_cpp.checks.check_before_start", complain)

    with pytest.raises(EngineError, match="no AVX2"):
        take(tmp_path)
    assert {path.suffix for path in tmp_path.iterdir()} <= {".lock"}


def test_engine_that_dies_as_soon_as_it_is_ready(tmp_path):
    """A READY line alone is not enough, without a lease."""
    ready = '{"url": "", "pid": 1, "lease_port": 1, "token": "x"}'

    with pytest.raises(EngineError) as caught:
        take(tmp_path, engine_of(f"print('READY {ready}')"))

    assert str(caught.value) == "the embedded engine for a.gguf ended as soon as it was ready."
