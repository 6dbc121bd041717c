"""Engines without llama.cpp, for tests: each is a command, as `acquire` takes it.

`FAKE` grants leases and ends like the real one; the others fail in one way each.
"""

from __future__ import annotations

import contextlib
import sys
import time

import psutil

BOUND_S = 120.0

_FAKE = """
import json, os
from pytest_openclaw.providers.llama_cpp.leases import LeaseServer
server = LeaseServer("dummy")
ready = {"url": "http://127.0.0.1:9", "pid": os.getpid(), "lease_port": server.port, "token": "dummy"}
print("READY " + json.dumps(ready), flush=True)
server.serve_until_unused(120)
print("DONE", flush=True)
os._exit(0)
"""


def engine_of(code):
    """A command that runs this Python code as the engine."""
    return (sys.executable, "-P", "-c", code)


FAKE = engine_of(_FAKE)
NEVER_READY = engine_of(
    "import os, sys, time; print(os.getpid(), file=sys.stderr, flush=True); time.sleep(600)"
)


def dying(signal_name):
    """A command that is killed by a signal at once."""
    return engine_of(f"import os, signal; os.kill(os.getpid(), signal.{signal_name})")


def failing(words, status=1):
    """A command that writes this text to its standard error and ends."""
    return engine_of(f"import sys; print({words!r}, file=sys.stderr); sys.exit({status})")


def is_gone(pid):
    """Whether no such process runs any more; a zombie counts as gone."""
    try:
        return psutil.Process(pid).status() == psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return True


def wait_until(condition):
    """Wait for a condition with a generous time limit; False if it never became true."""
    deadline = time.monotonic() + BOUND_S
    while not (met := condition()) and time.monotonic() < deadline:
        time.sleep(0.02)
    return met


def end(pid):
    """End a fake engine that the test started, and wait until it is gone."""
    with contextlib.suppress(psutil.NoSuchProcess):
        psutil.Process(pid).kill()
    assert wait_until(lambda: is_gone(pid))
