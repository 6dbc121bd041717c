"""Work done once for all processes of a run."""

from __future__ import annotations

import asyncio
import subprocess
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_openclaw.core.run_once import locked, once, read_json, write_json

WORKER = """
import os, sys, time
from pathlib import Path
from pytest_openclaw.core.run_once import once

def make():
    with open(sys.argv[1] + "/made", "a") as file:
        file.write("x")
    time.sleep(0.2)
    return {"pid": os.getpid()}

print(once(Path(sys.argv[1]), "warm-up llama_cpp/smollm2:135m", make)["pid"])
"""


def test_processes_share_one_result(tmp_path):
    """Of several processes one does the work, and all get its result."""
    workers = [
        subprocess.Popen([sys.executable, "-c", WORKER, str(tmp_path)], stdout=subprocess.PIPE, text=True)
        for _ in range(3)
    ]
    results = {worker.communicate(timeout=300)[0] for worker in workers}

    assert [worker.returncode for worker in workers] == [0, 0, 0]
    assert len(results) == 1
    assert (tmp_path / "made").read_text() == "x"


def test_a_failure_is_not_kept(tmp_path):
    """The exception of the work is raised, and the next process tries again."""

    def fail():
        raise ValueError("no server")

    with pytest.raises(ValueError, match="no server"):
        once(tmp_path, "warm-up", fail)

    assert once(tmp_path, "warm-up", lambda: {"ok": True}) == {"ok": True}
    assert once(tmp_path, "warm-up", fail) == {"ok": True}


def test_the_first_one_sees_what_the_others_will(tmp_path):
    """Every process gets the result in its JSON form."""
    assert once(tmp_path, "n", lambda: {"pair": (1, 2)}) == once(tmp_path, "n", dict) == {"pair": [1, 2]}


@given(names=st.lists(st.text(), unique=True, min_size=2, max_size=4))
def test_every_name_has_its_own_result(names, tmp_path_factory):
    """Different names never share a result, whatever their characters are."""
    folder = tmp_path_factory.mktemp("shared")
    for number, name in enumerate(names):
        once(folder, name, lambda number=number: {"number": number})

    assert [once(folder, name, dict)["number"] for name in names] == list(range(len(names)))


def test_an_empty_result_is_a_result(tmp_path):
    """{} is kept like any other object."""
    once(tmp_path, "n", dict)

    assert once(tmp_path, "n", lambda: {"made": "again"}) == {}


def test_json_that_is_not_there_is_none(tmp_path):
    """Reading before anything was written gives None."""
    assert read_json(tmp_path / "x.json") is None


def test_json_is_replaced_whole(tmp_path):
    """Writing leaves the new object and no other file."""
    write_json(tmp_path / "x.json", {"a": "ä"})
    write_json(tmp_path / "x.json", {"b": 2})

    assert read_json(tmp_path / "x.json") == {"b": 2}
    assert [path.name for path in tmp_path.iterdir()] == ["x.json"]


def test_lock_is_held_by_one_at_a_time(tmp_path):
    """Tasks that wait for the lock do not block the event loop, and get it one after the other."""
    events = []

    async def visit(name):
        async with locked(tmp_path / "x.lock"):
            events.append(f"{name} in")
            await asyncio.sleep(0.05)
            events.append(f"{name} out")

    async def both():
        await asyncio.gather(visit("a"), visit("b"))

    asyncio.run(both())

    assert events in (["a in", "a out", "b in", "b out"], ["b in", "b out", "a in", "a out"])
