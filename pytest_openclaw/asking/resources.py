"""Snapshots of the machine's free resources, before and after a target."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import TYPE_CHECKING, Any

import psutil

from pytest_openclaw.util.signals import epoch_ms

if TYPE_CHECKING:
    from collections.abc import Callable

    from pytest_openclaw.util.files import JsonObject

GIB = 1024**3
BEFORE, AFTER = "resources_before", "resources_after"
"""The names of a target's snapshots among its facts."""


def collect_snapshot() -> JsonObject:
    """Query memory, swap, load and the disk of the current folder; null where the system does not report it.

    `cpu_percent` is the mean since this process took its last snapshot.
    """
    return {
        "taken_at_ms": epoch_ms(),
        "memory_total_bytes": _query(lambda: psutil.virtual_memory().total),
        "memory_available_bytes": _query(lambda: psutil.virtual_memory().available),
        "swap_used_bytes": _query(lambda: psutil.swap_memory().used),
        "disk_free_bytes": _query(lambda: psutil.disk_usage(str(Path.cwd())).free),
        "load_1m": _query(lambda: round(psutil.getloadavg()[0], 2)),
        "cpu_percent": _query(lambda: psutil.cpu_percent(interval=None)),
    }


def _query(read: Callable[[], Any]) -> Any:
    """Return a figure, or None if the system does not report it, as in some containers."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", RuntimeWarning)
            return read()
    except (OSError, RuntimeError, psutil.Error):
        return None


def render_snapshot(target: str, moment: str, snapshot: JsonObject) -> str:
    """Return a snapshot as text: a `# target, moment` line, then one `name value` per line."""
    lines = [f"# {target}, {moment}"]
    for name, value in snapshot.items():
        human = f"  ({value / GIB:.1f} GiB)" if name.endswith("_bytes") and value is not None else ""
        lines.append(f"{name:<24}{value}{human}")
    return "\n".join(lines) + "\n"
