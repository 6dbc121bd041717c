"""The session and its workers are really killed."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.plugin.killing import BEGIN, CELLS, HoldingServer, Lab

pytestmark = [
    pytest.mark.newest,
    pytest.mark.skipif(sys.platform == "win32", reason="Windows has no such signals"),
]

# All that may be in flight at once, so that a killed process always loses some.
HELD = ("ask 4", "ask 5", "ask 6", "ask 7")
TWO = "--openclaw-concurrency=2"


@pytest.fixture
def lab(tmp_path: Path) -> Iterator[Lab]:
    """A project whose server fails for one prompt, and delays others."""
    with HoldingServer() as server:
        server.unwell = {"ask 2"}
        server.hold(*HELD)
        yield Lab.create(tmp_path / "project", server)


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
