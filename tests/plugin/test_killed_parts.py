"""The session and its workers are really killed."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.plugin.conftest import WORKERS
from tests.plugin.killing import BEGIN, CELLS, HoldingServer, Lab, all_gone

pytestmark = [
    pytest.mark.newest,
    pytest.mark.skipif(sys.platform == "win32", reason="Windows has no such signals"),
]

# All that may be in flight at once, so that a killed process always loses some.
HELD = ("ask 4", "ask 5", "ask 6", "ask 7")
# execnet would end a worker without a controller after five seconds, in which it might continue asking.
PATIENT = """
import execnet.gateway_base as base

def waitall(self, timeout=None, real=base.WorkerPool.waitall):
    return real(self, None)

base.WorkerPool.waitall = waitall
"""
TWO = "--openclaw-concurrency=2"


@pytest.fixture
def lab(tmp_path: Path) -> Iterator[Lab]:
    """A project whose server fails for one prompt, and delays others."""
    with HoldingServer() as server:
        server.unwell = {"ask 2"}
        server.hold(*HELD)
        yield Lab.create(tmp_path / "project", server)


@pytest.mark.parametrize(
    "mode",
    [
        pytest.param((), id="plain", marks=pytest.mark.nightly),
        pytest.param(WORKERS, id="workers", marks=pytest.mark.workers),
    ],
)
def test_kill_9_of_the_session(lab: Lab, whole: Any, mode: tuple[str, ...]) -> None:
    """Workers end with it, whatever they wait for; its rows stay, and the run resumes."""
    (lab.folder / "conftest.py").write_text(PATIENT)
    with lab.started(*BEGIN, TWO, *mode) as session:
        session.wait_for_rows(3)
        session.wait_until(lambda: lab.server.n_waiting == 2)
        started = session.processes()
        session.process.kill()
        assert all_gone(started)

    assert "Traceback" not in lab.text
    assert not (lab.folder / "runs" / "r" / "summary.json").exists()
    (lab.folder / "conftest.py").unlink()
    lab.goes_on(whole, mode)


@pytest.mark.nightly
@pytest.mark.workers
@pytest.mark.parametrize("dist", ["load", pytest.param("loadgroup", marks=pytest.mark.nightly)])
def test_kill_9_of_a_worker(lab: Lab, whole: Any, dist: str) -> None:
    """Its cells, in progress or only assigned, are asked by the worker that replaces it."""
    with lab.started(*BEGIN, TWO, "-n", "2", f"--dist={dist}") as session:
        # Which worker gets a slot first is open: one may have both for delayed prompts, with one row on disk.
        session.wait_for_rows(1)
        session.wait_until(lambda: lab.server.n_waiting == 2 and len(session.workers()) == 2)
        os.kill(min(session.workers()), signal.SIGKILL)
        session.wait_until(lambda: "node down" in lab.text)
        lab.server.let_go()
        assert session.end() == 1

    assert set(lab.server.calls().values()) == {1}
    assert "crashed while running" in lab.text
    assert sorted(lab.rows()) == CELLS
    assert lab.summary()["state"] == "finished"
    lab.goes_on(whole)


@pytest.mark.nightly
@pytest.mark.workers
def test_kill_9_of_a_worker_that_may_not_be_replaced(lab: Lab, whole: Any) -> None:
    """The other worker runs its cells, the run is marked incomplete, and can be resumed."""
    with lab.started(*BEGIN, TWO, "-n", "2", "--max-worker-restart=0") as session:
        session.wait_for_rows(3)
        session.wait_until(lambda: lab.server.n_waiting == 2)
        os.kill(min(session.workers()), signal.SIGKILL)
        session.wait_until(lambda: "crashed and worker restarting disabled" in lab.text)
        lab.server.let_go()
        assert session.end() == 1

    n_rows = len(lab.rows())
    assert 3 < n_rows < len(CELLS)
    assert "crashed and worker restarting disabled" in lab.text
    assert f"{n_rows} of {len(CELLS)} cells have a row" in lab.text
    assert lab.summary()["state"] == "interrupted"
    lab.goes_on(whole)
