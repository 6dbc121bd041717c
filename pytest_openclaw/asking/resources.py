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
LOADS = ("load_1m", "load_5m", "load_15m")


def collect_snapshot() -> JsonObject:
    """Query memory, swap, load and the disk of the current folder.

    Returns:
        Bytes in `…_bytes`, load averages over 1, 5 and 15 min, `cpu_percent` since the last snapshot of
        this process; null where the system does not report it.
    """
    memory, swap = _ask(psutil.virtual_memory), _ask(psutil.swap_memory)
    space = _ask(lambda: psutil.disk_usage(str(Path.cwd())))
    load = _ask(psutil.getloadavg) or (None, None, None)
    pids = _ask(psutil.pids)
    sizes = {
        f"{name}_{part}_bytes": getattr(found, part, None)
        for name, found, parts in (
            ("memory", memory, ("total", "used", "available")),
            ("swap", swap, ("total", "used")),
            ("disk", space, ("total", "used", "free")),
        )
        for part in parts
    }
    return {
        "taken_at_ms": epoch_ms(),
        **sizes,
        **{name: value and round(value, 2) for name, value in zip(LOADS, load, strict=True)},
        "cpu_percent": _ask(lambda: psutil.cpu_percent(interval=None)),
        "processes": None if pids is None else len(pids),
    }


def _ask(question: Callable[[], Any]) -> Any:
    """Return the answer, or None if the system does not report it, as in some containers."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", RuntimeWarning)
            return question()
    except (OSError, RuntimeError, psutil.Error):
        return None


def render_snapshot(target: str, moment: str, snapshot: JsonObject) -> str:
    """Return a snapshot as text: a `# target, moment` line, then one `name value` per line."""
    lines = [f"# {target}, {moment}"]
    for name, value in snapshot.items():
        human = f"  ({value / GIB:.1f} GiB)" if name.endswith("_bytes") and value is not None else ""
        lines.append(f"{name:<24}{value}{human}")
    return "\n".join(lines) + "\n"
