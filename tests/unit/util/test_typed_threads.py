"""Values are converted in several threads: the receivers of all workers and the asker."""

import subprocess
import sys

TWO_THREADS = """
import sys, threading
from typing import TypedDict
from pytest_openclaw.util.typed import converted

sys.setswitchinterval(1e-6)
for i in range(200):
    inner = {f"key{n}": TypedDict(f"Inner{i}_{n}", {"words": "list[str] | None"}) | None for n in range(10)}
    kind = TypedDict(f"Outer{i}", inner)
    barrier = threading.Barrier(2)

    def convert():
        barrier.wait()
        converted({f"key{n}": None for n in range(10)}, kind)

    threads = [threading.Thread(target=convert) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
"""


def test_two_threads_may_convert_to_a_new_type_at_once():
    """The first conversions to a type do not meet; without the lock, msgspec crashes the process."""
    ended = subprocess.run([sys.executable, "-c", TWO_THREADS], capture_output=True, text=True, timeout=60)

    assert (ended.returncode, ended.stderr) == (0, "")
