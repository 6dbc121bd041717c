"""Child processes of a session, and whether they have ended."""

import time

import psutil

#: only against hangs; no test asserts a speed
BOUND_S = 300.0
POLL_S = 0.02


def is_gone(pid):
    try:
        return psutil.Process(pid).status() == psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return True


def wait_until(condition, within_s=BOUND_S):
    """Wait for a condition with a generous time limit; False if it never became true."""
    deadline = time.monotonic() + within_s
    while not (met := condition()) and time.monotonic() < deadline:
        time.sleep(POLL_S)
    return met


def children(pid):
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
