"""Snapshots of the machine's free resources, before and after a target."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

import psutil

from pytest_openclaw.util.files import parse_json
from pytest_openclaw.util.schema_check import compile_schema, shown
from pytest_openclaw.util.signals import epoch_ms

if TYPE_CHECKING:
    from collections.abc import Callable

    from pytest_openclaw.util.json_types import JsonObject

T = TypeVar("T")

GIB = 1024**3
_FIGURE = compile_schema({"type": ["number", "null"]})
LOADS = ("load_1m", "load_5m", "load_15m")


def collect_snapshot() -> JsonObject:
    """Query memory, swap, load and the disk of the current folder.

    Returns:
        Bytes in `…_bytes`, load averages over 1, 5 and 15 min, `cpu_percent` since the last snapshot of
        this process; null where the system does not report it.

    """
    memory, swap = _asked(psutil.virtual_memory), _asked(psutil.swap_memory)
    space = _asked(lambda: psutil.disk_usage(str(Path.cwd())))
    load = _asked(psutil.getloadavg) or (None, None, None)
    pids = _asked(psutil.pids)
    return {
        "taken_at_ms": epoch_ms(),
        "memory_total_bytes": getattr(memory, "total", None),
        "memory_used_bytes": getattr(memory, "used", None),
        "memory_available_bytes": getattr(memory, "available", None),
        "swap_total_bytes": getattr(swap, "total", None),
        "swap_used_bytes": getattr(swap, "used", None),
        "disk_total_bytes": getattr(space, "total", None),
        "disk_used_bytes": getattr(space, "used", None),
        "disk_free_bytes": getattr(space, "free", None),
        **{name: value and round(value, 2) for name, value in zip(LOADS, load, strict=True)},
        "cpu_percent": _asked(lambda: psutil.cpu_percent(interval=None)),
        "processes": None if pids is None else len(pids),
    }


def _asked(question: Callable[[], T]) -> T | None:
    """Return the answer, or None if the system gives none: a container may hide values."""
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


def parse_snapshot(text: str) -> JsonObject:
    """Parse the text of `render_snapshot`.

    Raises:
        ValueError: it is not such a text, or a value is not a number.

    """
    snapshot: JsonObject = {}
    for line in text.splitlines()[1:]:
        words = line.split()
        if len(words) < 2:
            raise ValueError(f"no name and value in {shown(line)}")
        name, value = words[:2]
        snapshot[name] = None if value == "None" else parse_json(value)
        if misfit := _FIGURE(snapshot[name]):
            raise ValueError(f"{name}{misfit}")
    return snapshot
