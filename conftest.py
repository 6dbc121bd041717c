"""Test set-up of the plugin itself: `pytester` for its tests, and one worker for each core they may use."""

import os

pytest_plugins = ("pytester",)


def pytest_xdist_auto_num_workers() -> int:
    """Return how many workers `-n logical` starts: the cores that this process may use."""
    if hasattr(os, "process_cpu_count"):
        return os.process_cpu_count() or 1
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1
