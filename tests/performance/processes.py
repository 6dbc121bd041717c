"""Runs a program to its end and measures it: wall time, CPU, memory of the whole process tree."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import psutil

from tests.performance.serving import RunFailed

BOUND_S = 900.0
SAMPLE_S = 0.05
#: variables that Python needs to start; no others of the user's environment are passed on
KEPT = ("PATH", "LANG", "LC_ALL", "LD_LIBRARY_PATH", "DYLD_LIBRARY_PATH")


@dataclass(frozen=True)
class Cost:
    """The measured cost of a program.

    Attributes:
        wall_s: from its start to its end.
        cpu_s: user and system time of it and of all its children that were waited for.
        text: its output.
        peak_mb: the most memory (RSS) that it had, of one process.
    """

    wall_s: float
    cpu_s: float
    text: str
    peak_mb: float = 0.0


@dataclass(frozen=True)
class Memory:
    """The largest sums over a process tree at one moment.

    Attributes:
        pss_mb: shared pages counted in proportion; None if the system does not report it (not Linux).
        rss_mb: shared pages counted in every process that has them.
    """

    pss_mb: float | None
    rss_mb: float

    def above(self, less: Memory) -> tuple[float, str]:
        """Return by how many MB it is larger, and in which measure: PSS if both have it."""
        if self.pss_mb is None or less.pss_mb is None:
            return self.rss_mb - less.rss_mb, "RSS"
        return self.pss_mb - less.pss_mb, "PSS"


def environment(home: Path, **more: str) -> dict[str, str]:
    """Return an emptied environment."""
    kept = {name: os.environ[name] for name in KEPT if name in os.environ}
    return {**kept, "HOME": str(home), "TMPDIR": str(home), **more}


def start(command: Sequence[str], cwd: Path, environ: Mapping[str, str], out: int) -> subprocess.Popen[bytes]:
    """Start a program that prints into a file."""
    return subprocess.Popen(
        command, cwd=cwd, env=dict(environ), stdin=subprocess.DEVNULL, stdout=out, stderr=subprocess.STDOUT
    )


def run(command: Sequence[str], cwd: Path, environ: Mapping[str, str], status: int = 0) -> Cost:
    """Run a program to its end.

    Raises:
        RunFailed: it ended with another status, or not within a generous time limit.
    """
    with tempfile.TemporaryFile() as out:
        began = time.perf_counter()
        process = start(command, cwd, environ, out.fileno())
        bound = threading.Timer(BOUND_S, process.kill)
        bound.start()
        _, wait_status, used = os.wait4(process.pid, 0)
        wall_s = time.perf_counter() - began
        bound.cancel()
        process.returncode = os.waitstatus_to_exitcode(wait_status)
        out.seek(0)
        text = out.read().decode("utf-8", "replace")
    if process.returncode != status:
        raise RunFailed(f"{' '.join(command)} ended with status {process.returncode}:\n{text[-2000:]}")
    peak_mb = used.ru_maxrss / (1e6 if sys.platform == "darwin" else 1e6 / 1024)
    return Cost(wall_s=wall_s, cpu_s=used.ru_utime + used.ru_stime, text=text, peak_mb=peak_mb)


def peak_memory(command: Sequence[str], cwd: Path, environ: Mapping[str, str]) -> Memory:
    """Run a program to its end and return the memory of its process tree at the peak.

    The tree is sampled every 50 ms, which costs the program time: do not use times of such a run.

    Raises:
        RunFailed: it ended with another status than 0.
    """
    peak = Memory(pss_mb=None, rss_mb=0.0)
    with tempfile.TemporaryFile() as out:
        process = start(command, cwd, environ, out.fileno())
        root = psutil.Process(process.pid)
        deadline = time.monotonic() + BOUND_S
        while process.poll() is None:
            if time.monotonic() > deadline:
                process.kill()
            now = _memory_of(root)
            peak = Memory(
                pss_mb=max((m.pss_mb for m in (peak, now) if m.pss_mb is not None), default=None),
                rss_mb=max(peak.rss_mb, now.rss_mb),
            )
            time.sleep(SAMPLE_S)
        out.seek(0)
        text = out.read().decode("utf-8", "replace")
    if process.returncode:
        raise RunFailed(f"{' '.join(command)} ended with status {process.returncode}:\n{text[-2000:]}")
    return peak


def _memory_of(root: psutil.Process) -> Memory:
    pss = rss = 0.0
    has_pss = False
    try:
        tree = [root, *root.children(recursive=True)]
    except psutil.NoSuchProcess:
        tree = []
    for process in tree:
        try:
            rss += process.memory_info().rss
            for line in Path(f"/proc/{process.pid}/smaps_rollup").read_text("ascii").splitlines():
                if line.startswith("Pss:"):
                    pss, has_pss = pss + int(line.split()[1]) * 1024, True
        except (psutil.NoSuchProcess, OSError):
            continue  # the process has ended meanwhile, or the system has no such file
    return Memory(pss_mb=pss / 1e6 if has_pss else None, rss_mb=rss / 1e6)
