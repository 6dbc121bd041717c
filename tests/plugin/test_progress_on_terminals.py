"""A session on a terminal: its screen during the run and afterwards."""

from __future__ import annotations

import os
import select
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pyte
import pytest

pytestmark = pytest.mark.newest

pty = pytest.importorskip("pty", reason="Windows has no pseudo-terminals of this kind")

ROWS, COLUMNS = 30, 80


class Watched:
    """A session on a terminal of 80 columns, with every state of its screen."""

    def __init__(self, arguments: Sequence[str], cwd: Path, **environ: str) -> None:
        self.screens: list[list[str]] = []
        self.bytes = b""
        screen = pyte.Screen(COLUMNS, ROWS)
        stream = pyte.ByteStream(screen)
        ours, theirs = pty.openpty()
        env = {**os.environ, "TERM": "xterm", "COLUMNS": str(COLUMNS), "LINES": str(ROWS), **environ}
        env = {name: value for name, value in env.items() if value}
        process = subprocess.Popen(
            [sys.executable, "-m", "pytest", *arguments],
            cwd=cwd,
            env=env,
            stdin=theirs,
            stdout=theirs,
            stderr=theirs,
        )
        os.close(theirs)
        deadline = time.monotonic() + 600
        while time.monotonic() < deadline:
            if not select.select([ours], [], [], 1)[0]:
                continue
            try:
                chunk = os.read(ours, 65536)
            except OSError:  # the other end is closed
                break
            self.bytes += chunk
            stream.feed(chunk)
            self.screens.append([row.rstrip() for row in screen.display if row.strip()])
        os.close(ours)
        self.status = process.wait(timeout=600)

    @property
    def lines(self) -> list[str]:
        """The texts of the live line, each once."""
        found = [row for screen in self.screens for row in screen if row.startswith("openclaw ")]
        return list(dict.fromkeys(found))


@pytest.fixture
def slow(plain_project: Any) -> Path:
    """A project whose twelve cells take six seconds."""
    plain_project.suite({f"P{n}": ("wait 0.5", {"type": "noop"}) for n in range(12)})
    folder: Path = plain_project.folder
    return folder


@pytest.mark.parametrize(
    "workers", ["-n0", pytest.param("-n2", marks=[pytest.mark.workers, pytest.mark.nightly])]
)
def test_it_shows_the_progress_and_is_gone_afterwards(slow: Path, workers: str) -> None:
    """The line is below pytest's rows while cells are running, and leaves no trace."""
    watched = Watched(
        ["benchmarks", "--openclaw-models=scripted/m", "--openclaw-concurrency=1", workers], slow, CI=""
    )

    assert watched.status == 0
    assert any("/12, 1 in flight" in line for line in watched.lines), watched.screens[-1]
    assert all(len(line) < COLUMNS for line in watched.lines)
    last = watched.screens[-1]
    assert not any(row.startswith("openclaw ") for row in last)
    assert last[-1].endswith("==")
    (dots,) = (row for row in last if "[100%]" in row)
    assert "............" in dots


@pytest.mark.parametrize(
    ("arguments", "environ"),
    [
        pytest.param(["-q"], {"CI": ""}, id="quiet", marks=pytest.mark.nightly),
        pytest.param(["-s"], {"CI": ""}, id="uncaptured", marks=pytest.mark.nightly),
        pytest.param([], {"CI": "true"}, id="ci"),
        pytest.param([], {"CI": "", "TERM": "dumb"}, id="dumb-terminal", marks=pytest.mark.nightly),
    ],
)
def test_it_keeps_quiet(slow: Path, arguments: list[str], environ: dict[str, str]) -> None:
    """If the output is no terminal, or lines cannot be erased, nothing is drawn."""
    watched = Watched(["benchmarks", "--openclaw-models=scripted/m", *arguments], slow, **environ)

    assert watched.status == 0
    assert watched.lines == []
    assert b"\x1bD" not in watched.bytes
