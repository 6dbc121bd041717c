"""Child processes of a session, and whether they have ended."""

import time
from collections.abc import Callable, Iterator

import psutil

#: only against hangs; no test asserts a speed
BOUND_S = 300.0
POLL_S = 0.02


def is_gone(pid: int) -> bool:
    """Whether no such process runs any more; a zombie counts as gone."""
    try:
        return psutil.Process(pid).status() == psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return True


def wait_until(condition: Callable[[], bool], within_s: float = BOUND_S) -> bool:
    """Wait for a condition with a generous time limit; False if it never became true."""
    deadline = time.monotonic() + within_s
    while not (met := condition()) and time.monotonic() < deadline:
        time.sleep(POLL_S)
    return met


def children(pid: int) -> Iterator[tuple[int, str]]:
    """Yield the process and the command line of all descendants of a process."""
    try:
        found = psutil.Process(pid).children(recursive=True)
    except psutil.NoSuchProcess:
        return
    for process in found:
        try:
            yield process.pid, " ".join(process.cmdline())
        except (psutil.NoSuchProcess, psutil.ZombieProcess):
            continue  # it has ended meanwhile
