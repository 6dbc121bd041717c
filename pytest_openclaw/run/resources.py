"""What the machine had to spare, before and after a target."""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING

import psutil

if TYPE_CHECKING:
    from pytest_openclaw.records import JsonObject

GIB = 1024**3


def collect_snapshot() -> JsonObject:
    """Ask the machine for its memory, swap, load and the disk of the current folder.

    Returns:
        Bytes in `…_bytes`, load averages over 1, 5 and 15 min, `cpu_percent` since the last snapshot of
        this process; null where the system does not say.
    """
    memory, swap, space = psutil.virtual_memory(), psutil.swap_memory(), psutil.disk_usage(str(Path.cwd()))
    load = psutil.getloadavg()
    return {
        "taken_at_ms": time.time_ns() // 1_000_000,
        "memory_total_bytes": memory.total,
        "memory_used_bytes": memory.used,
        "memory_available_bytes": memory.available,
        "swap_total_bytes": swap.total,
        "swap_used_bytes": swap.used,
        "disk_total_bytes": space.total,
        "disk_used_bytes": space.used,
        "disk_free_bytes": space.free,
        "load_1m": round(load[0], 2),
        "load_5m": round(load[1], 2),
        "load_15m": round(load[2], 2),
        "cpu_percent": psutil.cpu_percent(interval=None),
        "processes": len(psutil.pids()),
    }


def render_snapshot(target: str, moment: str, snapshot: JsonObject) -> str:
    """Return a snapshot as text: a `# target, moment` line, then one `name value` a line."""
    lines = [f"# {target}, {moment}"]
    for name, value in snapshot.items():
        human = f"  ({value / GIB:.1f} GiB)" if name.endswith("_bytes") else ""
        lines.append(f"{name:<24}{value}{human}")
    return "\n".join(lines) + "\n"
