"""Test set-up of the plugin itself: `pytester` for its tests, and as many workers as they can use."""

import os

pytest_plugins = ("pytester",)


def pytest_xdist_auto_num_workers() -> int:
    """Return how many `-n logical` starts: these tests wait as much as they work."""
    return 2 * (os.cpu_count() or 1)
