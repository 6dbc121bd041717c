"""One run, from its first cell to its summary; the only holder of its state."""

from __future__ import annotations

import time
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING, Any, Literal

from pytest_openclaw.reports.markdown import render_markdown
from pytest_openclaw.run.inventory import collect_inventory
from pytest_openclaw.run.resources import collect_snapshot, render_snapshot
from pytest_openclaw.schema import from_row
from pytest_openclaw.settings import THINKING_ROOM_TOKENS
from pytest_openclaw.stats.findings import missed_by_all, slowest
from pytest_openclaw.stats.gates import check_gates, overall
from pytest_openclaw.stats.summary import Snapshots, Summary, group_records, summarise_group, summary_to_json

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pytest_openclaw.records import JsonObject, Record, Target
    from pytest_openclaw.run.directory import RunDirectory
    from pytest_openclaw.settings import Settings

Moment = Literal["before", "after"]

CONFIG_VERSION = 1


@dataclass(frozen=True, kw_only=True)
class Plan:
    """What a run is to ask.

    Attributes:
        n_selected: cells by target, targets in their order.
        prompts: the definition of every selected prompt, as far as it stands in a suite file.
        providers: what shapes a request, by provider.
    """

    n_selected: Mapping[Target, int]
    prompts: tuple[JsonObject, ...]
    providers: Mapping[str, JsonObject]

    @property
    def n_cells(self) -> int:
        """Cells selected in all."""
        return sum(self.n_selected.values())


class RunSession:
    """Collects the rows of a run and writes its directory; made where the reports arrive."""

    def __init__(self, directory: RunDirectory, settings: Settings, plan: Plan) -> None:
        self.directory = directory
        self.plan = plan
        self.records: list[Record] = []
        self._settings = settings
        self._prompts = list(plan.prompts)
        self._snapshots: dict[Target, Snapshots] = {}
        self._snapshots_of: dict[str, dict[Target, Snapshots]] = {}
        self._serving: dict[str, JsonObject] = {}
        self._hosts: dict[str, JsonObject] = {}
        self._host = collect_inventory()
        self._write_config()
        self._write_inventory()

    def add(self, payload: Mapping[str, Any]) -> Record:
        """Take what a report brought: the row first, to disk, then what came with it.

        Args:
            payload: `row`, the `host` that asked if it is not this one, and where they are due `before` and
                `after` (snapshots), `serving` (what the target's server says of itself) and `prompt` (a
                Python benchmark's definition).
        """
        row = payload["row"]
        host = row["host"] = payload.get("host", self.host)
        self.directory.append(row)
        # Ten thousand answers of 64 KiB are kept on disk, not here.
        record = replace(from_row(row), raw_output="", parsed_output=None, tool_call_details=())
        self.records.append(record)
        for moment in ("before", "after"):
            if snapshot := payload.get(moment):
                self._take_snapshot(record.target, moment, snapshot, host)
        if serving := payload.get("serving"):
            served = self._hosts[host]["targets"] if host in self._hosts else self._serving
            known = served.get(record.target.label, {})
            # The warm-up is told with a first fault, the server with a first answer, by each worker again.
            if told := {key: value for key, value in serving.items() if key not in known}:
                served[record.target.label] = {**known, **told}
                self._write_inventory()
        if (prompt := payload.get("prompt")) and prompt not in self._prompts:
            self._prompts.append(prompt)
            self._write_config()
        return record

    @property
    def host(self) -> str:
        """The name of this machine in rows."""
        name: str = self._host["host"]["name"]
        return name

    def meet(self, host: str, facts: JsonObject) -> None:
        """Take what another machine is, on which cells of this run are asked.

        Args:
            host: its name in rows.
            facts: as `collect_inventory` tells them, and its `providers`.
        """
        if host not in self._hosts:
            self._hosts[host] = {**facts, "targets": {}}
            self._write_inventory()

    def leave_out(self, label: str) -> None:
        """Forget one cell of a target: a mark or another plugin skipped it before it was asked."""
        n_selected = {target: n - (target.label == label) for target, n in self.plan.n_selected.items()}
        self.plan = replace(self.plan, n_selected=n_selected)

    def finish(self) -> Summary:
        """Write the summary of what has come so far, and return it."""
        groups_of = group_records(self.records)
        for target in groups_of:
            snapshots = self._snapshots.get(target, Snapshots())
            if snapshots.before and not snapshots.after:
                self._take_snapshot(target, "after", collect_snapshot(), self.host)
        groups = tuple(
            summarise_group(target, groups_of.get(target, ()), self._snapshots_for(target))
            for target in self.plan.n_selected
        )
        gates = check_gates(self._settings.gates, groups, self.plan.n_selected)
        summary = Summary(
            run_id=self.directory.run_id,
            state="finished" if len(self.records) >= self.plan.n_cells else "interrupted",
            generated_at_ms=time.time_ns() // 1_000_000,
            n_cells=self.plan.n_cells,
            n_rows=len(self.records),
            groups=groups,
            gates=gates,
            verdict=overall(gates),
            missed=missed_by_all(self.records),
            slowest=slowest(self.records),
        )
        self.directory.write_json("summary.json", summary_to_json(summary))
        self.directory.write_text("summary.md", render_markdown(summary))
        return summary

    def _take_snapshot(self, target: Target, moment: str, snapshot: JsonObject, host: str) -> None:
        is_here = host == self.host
        snapshots = self._snapshots if is_here else self._snapshots_of.setdefault(host, {})
        known = snapshots.get(target, Snapshots())
        if moment == "before" and known.before:
            return
        snapshots[target] = replace(known, **{moment: snapshot})
        where = "" if is_here else f"_{_safe(host)}"
        name = f"resources_{file_names(self.plan.n_selected)[target]}{where}_{moment}.txt"
        self.directory.write_text(name, render_snapshot(target.label, moment, snapshot))

    def _snapshots_for(self, target: Target) -> Snapshots:
        """Both of one machine: this one, or the first that asked."""
        places = (self._snapshots, *self._snapshots_of.values())
        return next((place[target] for place in places if target in place), Snapshots())

    def _write_config(self) -> None:
        settings = self._settings
        self.directory.write_json(
            "config.json",
            {
                "schema_version": CONFIG_VERSION,
                "run_id": self.directory.run_id,
                "models": list(dict.fromkeys(target.model for target in self.plan.n_selected)),
                "targets": [{**asdict(target), "n_cells": n} for target, n in self.plan.n_selected.items()],
                "providers": dict(self.plan.providers),
                "temperature": 0,
                "thinking_room_tokens": dict(THINKING_ROOM_TOKENS),
                "stream": settings.stream,
                "timeout_s": settings.timeout_s,
                "retries": settings.retries,
                "concurrency": asdict(settings.concurrency),
                "verdict": settings.verdict,
                "gates": asdict(settings.gates),
                "fail_unavailable": settings.fail_unavailable,
                "prompts": self._prompts,
            },
        )

    def _write_inventory(self) -> None:
        self.directory.write_json(
            "inventory.json",
            {
                "run_id": self.directory.run_id,
                **self._host,
                "targets": self._serving,
                **({"hosts": self._hosts} if self._hosts else {}),
            },
        )


def file_names(targets: Mapping[Target, int]) -> dict[Target, str]:
    """Return a name for each target that is safe in a file name; equal ones get a number."""
    names: dict[Target, str] = {}
    for target in targets:
        parts = (target.provider, target.model, target.thinking_level)
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
