"""The environment of a run: machines, their resources before and after, the targets' servers.

Writes `inventory.json`, `resources_<target>[_<host>]_<before|after>.txt`, and the requests of a diagnosis.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Literal

from pytest_openclaw.asking.resources import collect_snapshot, parse_snapshot, render_snapshot
from pytest_openclaw.core.errors import OpenClawError
from pytest_openclaw.core.files import is_there, read_file
from pytest_openclaw.recording.inventory import collect_inventory
from pytest_openclaw.stats.groups import Snapshots
from pytest_openclaw.types.targets import LISTED

if TYPE_CHECKING:
    from collections.abc import Iterable

    from pytest_openclaw.core.json_types import JsonObject
    from pytest_openclaw.recording.run_directory import RunDirectory
    from pytest_openclaw.types.targets import Target

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
