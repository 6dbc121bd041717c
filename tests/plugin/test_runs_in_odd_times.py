"""A clock that is set forth and back during a run, and two runs in one folder at one time."""

from __future__ import annotations

import json
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.plugin.conftest import MODES_BY_NIGHT
from tests.plugin.killing import BEGIN, CELLS, HoldingServer, Lab

pytestmark = [
    pytest.mark.newest,
    pytest.mark.skipif(sys.platform == "win32", reason="Windows has no such signals"),
]

HOUR_MS = 3_600_000
# Each process finds the clock two days before that of the previous process, and every reading of the
# clock moves it by an hour, forth and back.
JUMPS = """
import os, pathlib, time

def jumping(real=time.time, looks=[0]):
    looks[0] += 1
    return real() - 2 * 86400 * started + 3600 * (looks[0] % 2)

descriptor = os.open(pathlib.Path(__file__).with_name("started.txt"), os.O_WRONLY | os.O_CREAT | os.O_APPEND)
os.write(descriptor, b".")
started = os.fstat(descriptor).st_size
os.close(descriptor)
time.time = jumping
"""


@pytest.fixture
def lab(tmp_path: Path) -> Iterator[Lab]:
    """A project whose server delays some prompts."""
    with HoldingServer() as server:
        server.hold("ask 4", "ask 5", "ask 6", "ask 7")
        yield Lab.create(tmp_path / "project", server)


@pytest.mark.nightly
@pytest.mark.parametrize("mode", MODES_BY_NIGHT)
def test_a_clock_that_jumps(lab: Lab, whole: Any, mode: tuple[str, ...]) -> None:
    """All processes of a session use one clock: rows stay in order, no time is negative, the run resumes."""
    jumping = lab.at_start(JUMPS)
    with jumping.started(*BEGIN, "--openclaw-concurrency=2", *mode) as session:
        session.wait_for_rows(3)
        session.wait_until(lambda: lab.server.n_waiting == 2)
        lab.server.let_go()
        assert session.end() == 1, lab.text

    n_started = (lab.folder / "started.txt").stat().st_size
    assert n_started == (3 if mode else 1)
    rows = [json.loads(line) for line in lab.lines()]
    asked = [row for row in rows if row["attempts"]]
    for row in asked:
        assert 0 <= row["e2e_ms"] <= row["ended_at_ms"] - row["started_at_ms"] + 2
    times = [row[name] for row in rows for name in ("started_at_ms", "ended_at_ms")]
    assert max(times) - min(times) < HOUR_MS / 2
    assert max(times) <= lab.summary()["generated_at_ms"]
    assert all(0 <= group["wall_clock_ms"] < HOUR_MS / 2 for group in lab.summary()["groups"])
    if not mode:
        starts = [row["started_at_ms"] for row in asked if row["provider"] == asked[0]["provider"]]
        assert starts == sorted(starts)
    jumping.goes_on(whole, mode)
    assert all(group["wall_clock_ms"] >= 0 for group in lab.summary()["groups"])


@pytest.mark.nightly
def test_two_runs_at_once_in_one_folder(lab: Lab, whole: Any) -> None:
    """Each has its own folder and is complete; a run cannot be resumed while it lives, only afterwards."""
    models = BEGIN[0]
    with lab.started(models) as one, lab.started(models, out="other.txt") as other:
        for session in (one, other):
            session.wait_until(
                lambda: len(_runs(lab)) == 2 and all(len(lab.lines(r)) >= 3 for r in _runs(lab))
            )
        first, second = _runs(lab)
        refused = [lab.run(f"--openclaw-resume={name}") for name in (first, second, "last")]
        lab.server.let_go()
        assert (one.end(), other.end()) == (1, 1), lab.text

    for attempt in refused:
        assert attempt.returncode == 4
        assert "is still under way in another session" in attempt.stdout + attempt.stderr
    assert _runs(lab) == [first, second]
    assert lab.result(first) == lab.result(second) == whole
    assert lab.server.calls() == Counter(CELLS + CELLS)
    before = {path: path.read_bytes() for name in (first, second) for path in _kept(lab, name)}
    results = {name: lab.folder / "runs" / name / "results.jsonl" for name in (first, second)}
    last = max(results, key=lambda name: (results[name].stat().st_mtime_ns, name))  # they may end in one tick

    resumed = lab.run("--openclaw-resume=last")

    assert resumed.returncode == 1
    assert f"{last} continues, {len(CELLS)} cells kept" in resumed.stdout
    assert lab.server.calls() == Counter()
    assert {path: path.read_bytes() for path in before} == before
    assert lab.result(last) == whole


def _runs(lab: Lab) -> list[str]:
    """The runs in their order."""
    return sorted(path.name for path in (lab.folder / "runs").glob("*"))


def _kept(lab: Lab, name: str) -> list[Path]:
    return [lab.folder / "runs" / name / file for file in ("results.jsonl", "config.json")]
