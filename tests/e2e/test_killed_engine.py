"""The embedded engine is really killed during a run."""

from __future__ import annotations

import json
import os
import signal
import sys

import pytest

from tests.e2e.sessions import ENGINE, Ended, Project, Session, all_gone

pytestmark = [
    pytest.mark.engine,
    pytest.mark.skipif(sys.platform == "win32", reason="Windows has no such signals"),
]

SHORT = {"name": "short", "prompt": "Say hello.", "max_output_tokens": 3}
LONG = {"name": "long", "prompt": "Write a very long story about the sea.", "max_output_tokens": 120}
SUITE = [{"id": f"P{n}", **(LONG if n in {2, 4} else SHORT)} for n in range(1, 9)]
DIED = "llama_cpp: the embedded engine died while it was asked."
DIED_TWICE = "llama_cpp: the embedded engine died twice while serving"


def kill(session: Session, what: str) -> int:
    """Kill the only process of this kind under the session."""
    (pid,) = session.started(what)
    os.kill(pid, signal.SIGKILL)
    return pid


def faults(ended: Ended) -> dict[str, str]:
    """The fault messages in the rows, by cell."""
    rows = ended.run.rows_of("llama_cpp").items()
    return {name: row["fault_message"] for name, row in rows if row["availability_status"] != "ok"}


@pytest.mark.nightly
def test_a_killed_engine_is_restarted_once(project: Project, embedded_model: str) -> None:
    """Its cell is lost with the reason; when the engine dies again, no cell waits for a third one."""
    model = f"llama_cpp/{embedded_model}"
    project.suite(*SUITE)
    with project.start("--openclaw-retries=0", models=model) as session:
        session.wait_until(lambda: session.run.n_rows == 1)
        engines = {kill(session, ENGINE)}
        session.wait_until(lambda: session.run.n_rows == 3)
        engines.add(kill(session, ENGINE))
        ended = session.end()

    assert ended.status == 1, ended.text
    assert len(engines) == 2
    assert all_gone(engines | ended.engines)
    messages = faults(ended)
    assert (messages.pop("P2"), messages.pop("P4")) == (DIED, DIED)
    assert sorted(messages) == ["P5", "P6", "P7", "P8"]
    assert all(DIED_TWICE in text for text in messages.values())
    assert DIED_TWICE in " ".join(ended.text.split())
    assert "--openclaw-resume=run" in ended.text

    results = ended.run.path / "results.jsonl"
    answered = [
        line for line in results.read_bytes().splitlines() if json.loads(line)["availability_status"] == "ok"
    ]
    resumed = project.run("--openclaw-resume=last", models=model)
    assert (resumed.status, resumed.outcomes) == (0, {"passed": len(SUITE)}), resumed.text
    assert results.read_bytes().splitlines()[: len(answered)] == answered
    assert faults(resumed) == {}
    assert resumed.left == []
