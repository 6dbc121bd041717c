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
    from pytest_openclaw.types.payloads import ReportPayload
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
        self._hosts: dict[str, JsonObject] = {}
        self._serving: dict[str, JsonObject] = {}
        self._served_before: dict[tuple[str, str], JsonObject] = {}
        self._snapshots: dict[str, dict[Target, Snapshots]] = {self.host: {}}
        self._asked: set[Target] = set()

    def take_over(self, inventory: JsonObject) -> None:
        """Continue from the inventory and snapshots that earlier sessions of a resumed run wrote.

        Raises:
            OpenClawError: a snapshot file is malformed.
        """
        apart = {"run_id", "targets", "hosts", "openclaw_release"}
        there = {key: value for key, value in inventory.items() if key not in apart}
        self._hosts = dict(inventory.get("hosts") or {})
        self._serving = dict(inventory.get("targets", {}))
        for host in (self.host, *self._hosts):
            served = self._hosts[host]["targets"] if host in self._hosts else self._serving
            for label, serving in served.items():
                if "server" in serving:
                    self._served_before[host, label] = serving["server"]
            self._snapshots[host] = {target: self._read_snapshots(target, host) for target in self._names}
        if there:
            others = there.pop("resumed_on", [])
            if self._here not in [there, *others]:
                others = [*others, self._here]
            self._here = {**there, "resumed_on": others} if others else there

    def meet(self, host: str, facts: JsonObject) -> None:
        """Add another machine that runs cells of this run.

        Args:
            host: its name in rows.
            facts: the result of its `collect_inventory`, and its `providers`.
        """
        if host not in self._hosts:
            self._hosts[host] = {**facts, "targets": {}}
            self.write()

    def take(self, target: Target, payload: ReportPayload) -> None:
        """Add the context of a target's row."""
        host = payload.host or self.host
        if target not in self._asked:
            # The "after" snapshot of an earlier session now precedes cells of this session.
            self._asked.add(target)
            for by_target in self._snapshots.values():
                if taken := by_target.get(target):
                    by_target[target] = replace(taken, after=None)
        for moment in MOMENTS:
            if snapshot := getattr(payload, moment):
                self._take_snapshot(target, moment, snapshot, host)
        if payload.serving:
            self._take_serving(target.label, payload.serving, host)

    def take_diagnosis(self, target: Target, evidence: JsonObject, host: str | None) -> None:
        """Add what the repeats of a target's cell have shown; write each request to a file of its own.

        Args:
            target: whose cell it is.
            evidence: of `diagnosing.Suspects`; one of an earlier session is replaced.
            host: the machine that sent them, by its name in rows; None is this one.
        """
        served = self._hosts[host]["targets"] if host in self._hosts else self._serving
        tries = []
        for one in evidence["tries"]:
            file = f"diagnosis_{self._names[target]}_{one['change']}.json"
            self._directory.write_json(file, one["body"])
            tries.append({**{key: value for key, value in one.items() if key != "body"}, "file": file})
        kept = {**evidence, "run_id": self._directory.run_id, "tries": tries}
        served[target.label] = {**served.get(target.label, {}), "diagnosis": kept}
        self.write()

    def end(self, targets: Iterable[Target]) -> None:
        """Take the "after" snapshots of this machine that these targets still lack."""
        for target in targets:
            taken = self._snapshots[self.host].get(target, Snapshots())
            if taken.before and not taken.after:
                self._take_snapshot(target, "after", collect_snapshot(), self.host)

    def snapshots_of(self, target: Target) -> Snapshots:
        """Return both snapshots from one machine, this one or the first that has any, and its server."""
        taken = (by_target[target] for by_target in self._snapshots.values() if target in by_target)
        found = next((snapshots for snapshots in taken if snapshots != Snapshots()), Snapshots())
        return found.with_server(self.inventory, target.label)

    @property
    def inventory(self) -> JsonObject:
        """The content of `inventory.json`."""
        return {
            "run_id": self._directory.run_id,
            "openclaw_release": self._release,
            **self._here,
            "targets": self._serving,
            **({"hosts": self._hosts} if self._hosts else {}),
        }

    def write(self) -> None:
        """Write `inventory.json`."""
        self._directory.write_json("inventory.json", self.inventory)

    def _take_snapshot(self, target: Target, moment: Moment, snapshot: JsonObject, host: str) -> None:
        by_target = self._snapshots.setdefault(host, {})
        known = by_target.get(target, Snapshots())
        if moment == "before" and known.before:
            return
        by_target[target] = (
            replace(known, before=snapshot) if moment == "before" else replace(known, after=snapshot)
        )
        text = render_snapshot(target.label, moment, snapshot)
        self._directory.write_text(self._file_of(target, host, moment), text)

    def _take_serving(self, label: str, serving: JsonObject, host: str) -> None:
        served = self._hosts[host]["targets"] if host in self._hosts else self._serving
        known = served.get(label, {})
        # The warm-up arrives with a first fault, the server with a first reply, and again from each worker.
        added = {key: value for key, value in serving.items() if key not in known}
        before = self._served_before.get((host, label))
        if before is not None and serving.get("server", before) != before:
            added["server_when_resumed"] = serving["server"]
        if added:
            served[label] = {**known, **added}
            self.write()

    def _read_snapshots(self, target: Target, host: str) -> Snapshots:
        found: dict[str, JsonObject] = {}
        for moment in MOMENTS:
            path = self._directory.path / self._file_of(target, host, moment)
            if not is_there(path):
                continue
            try:
                found[moment] = parse_snapshot(read_file(path).decode())
            except ValueError as error:
                raise OpenClawError(f"{path} is no snapshot ({error}); remove it") from None
        return Snapshots(before=found.get("before"), after=found.get("after"))

    def _file_of(self, target: Target, host: str, moment: Moment) -> str:
        where = "" if host == self.host else f"_{_safe(host)}"
        return f"resources_{self._names[target]}{where}_{moment}.txt"


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
