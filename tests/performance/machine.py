"""The conditions of the figures: the machine and the versions."""

from __future__ import annotations

import os
import platform
import subprocess
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from tests.performance.serving import ROOT

PACKAGES = (
    "pytest-openclaw", "pytest", "pytest-xdist", "httpx2", "aiohttp", "httptools", "uvloop",
)  # fmt: skip


def conditions() -> list[tuple[str, str]]:
    """Return name and value of everything that does not change during the measurement."""
    return [
        ("machine", f"{os.cpu_count()} cores, {cpu_model()}, {platform.system()} {platform.release()}"),
        ("Python", f"{platform.python_implementation()} {platform.python_version()}"),
        ("versions", ", ".join(filter(None, map(_version, PACKAGES)))),
        ("commit", _commit()),
    ]


def load() -> str:
    """Return the load average of the last minute."""
    return f"{os.getloadavg()[0]:.1f}"


def cpu_model() -> str:
    """Return the processor's name."""
    try:
        lines = Path("/proc/cpuinfo").read_text("utf-8").splitlines()
    except OSError:
        return platform.processor() or platform.machine()
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.machine()


def _version(package: str) -> str | None:
    try:
        return f"{package} {version(package)}"
    except PackageNotFoundError:
        return None


def _commit() -> str:
    try:
        command = ["git", "describe", "--always", "--dirty"]
        return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout.strip()
    except (OSError, subprocess.CalledProcessError):
        return "unknown"
