"""One run, from its first cell to its summary; the only holder of its state."""

from __future__ import annotations

from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING, Any, Literal

from pytest_openclaw.clock import epoch_ms
from pytest_openclaw.errors import OpenClawError
from pytest_openclaw.reports.markdown import render_markdown
from pytest_openclaw.run.inventory import collect_inventory
from pytest_openclaw.run.resources import collect_snapshot, parse_snapshot, render_snapshot
from pytest_openclaw.schema import from_row
from pytest_openclaw.settings import THINKING_ROOM_TOKENS
from pytest_openclaw.signals import whole_step
from pytest_openclaw.stats.summarising import summarise_run
from pytest_openclaw.stats.summary import Snapshots, Summary, summary_to_json

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pytest_openclaw.records import CellKey, JsonObject, Record, Target
    from pytest_openclaw.run.directory import RunDirectory
    from pytest_openclaw.run.resume import Kept
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
        cells: the selected ones, as far as their prompts are known.
        has_python: whether `prompts` and `cells` hold the Python benchmarks too.
    """

    n_selected: Mapping[Target, int]
    prompts: tuple[JsonObject, ...]
    providers: Mapping[str, JsonObject]
    cells: frozenset[CellKey] = frozenset()
    has_python: bool = False

    @property
    def n_cells(self) -> int:
        """Cells selected in all."""
        return sum(self.n_selected.values())


@dataclass(frozen=True, kw_only=True)
class Earlier:
    """What the sessions before have left of a run that is resumed.

    Attributes:
        config, inventory: its files.
        kept: the rows that stay.
    """

    config: JsonObject
    inventory: JsonObject
    kept: Kept


class RunSession:
    """Collects the rows of a run and writes its directory; made where the reports arrive.

    Attributes:
        host: the name of this machine in rows.

    Raises:
        OSError: on making, if the directory cannot be written; a resumed run's rows are all there then.
    """

    def __init__(
        self, directory: RunDirectory, settings: Settings, plan: Plan, earlier: Earlier | None = None
    ) -> None:
        self.directory = directory
        self.plan = plan
        self.records: list[Record] = []
        self._settings = settings
        self._n_selected = plan.n_selected
        self._prompts = list(plan.prompts)
        self._snapshots: dict[Target, Snapshots] = {}
        self._asked: set[Target] = set()
        self._serving: dict[str, JsonObject] = {}
        self._served_before: dict[str, JsonObject] = {}
        self._snapshots_of: dict[str, dict[Target, Snapshots]] = {}
        self._hosts: dict[str, JsonObject] = {}
        self._host = collect_inventory()
        self.host: str = self._host["host"]["name"]
        if earlier:
            self._take_over(earlier)
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
        # Ten thousand answers of 64 KiB are kept on disk, not here.
        record = replace(from_row(row), raw_output="", parsed_output=None, tool_call_details=())
        with whole_step:  # else the summary might not count a row that is there
            self.directory.append(row)
            self.records.append(record)
        if record.target not in self._asked:
            # What an earlier session took after it is not after it any more.
            self._asked.add(record.target)
            if taken := self._snapshots.get(record.target):
                self._snapshots[record.target] = replace(taken, after=None)
        for moment in ("before", "after"):
            if snapshot := payload.get(moment):
                self._take_snapshot(record.target, moment, snapshot, host)
        if serving := payload.get("serving"):
            served = self._hosts[host]["targets"] if host in self._hosts else self._serving
            known = served.get(record.target.label, {})
            # The warm-up is told with a first fault, the server with a first answer, by each worker again.
            told = {key: value for key, value in serving.items() if key not in known}
            before = self._served_before.get(record.target.label)
            if before is not None and serving.get("server", before) != before:
                told["server_when_resumed"] = serving["server"]
            if told:
                served[record.target.label] = {**known, **told}
                self._write_inventory()
        if (prompt := payload.get("prompt")) and prompt not in self._prompts:
            # In a resumed run its tags may be others than before.
            same = (prompt["suite"], prompt["id"])
            self._prompts = [known for known in self._prompts if (known["suite"], known["id"]) != same]
            self._prompts.append(prompt)
            self._write_config()
        return record

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

    def finish(self, n_unrecorded_calls: int = 0) -> Summary:
        """Write the summary of what has come so far, and return it.

        Args:
            n_unrecorded_calls: calls of workers that may have no row, if cells are missing.
        """
        records = self._in_order()
        for target in dict.fromkeys(record.target for record in records):
            snapshots = self._snapshots.get(target, Snapshots())
            if snapshots.before and not snapshots.after:
                self._take_snapshot(target, "after", collect_snapshot(), self.host)
        summary = summarise_run(
            records,
            self.plan.n_selected,
            self._settings.gates,
            {target: self._snapshots_for(target) for target in self.plan.n_selected},
            run_id=self.directory.run_id,
            generated_at_ms=epoch_ms(),
            n_unrecorded_calls=n_unrecorded_calls,
        )
        self.directory.write_json("summary.json", summary_to_json(summary))
        self.directory.write_text("summary.md", render_markdown(summary))
        return summary

    def _take_over(self, earlier: Earlier) -> None:
        """Go on with a run: keep its rows on disk, and what was known of its targets."""
        if not earlier.kept.is_whole:
            self.directory.keep_rows(earlier.kept.lines)
        # They told of rows that may be asked again now.
        self.directory.remove("summary.json", "summary.md")
        self.records += earlier.kept.records
        prompts = {(prompt["suite"], prompt["id"]): prompt for prompt in earlier.config.get("prompts", ())}
        prompts |= {(prompt["suite"], prompt["id"]): prompt for prompt in self._prompts}
        self._prompts = list(prompts.values())
        for target, name in file_names(self.plan.n_selected).items():
            self._snapshots[target] = self._read_snapshots(name)
        apart = {"run_id", "targets", "hosts"}
        host = {key: value for key, value in earlier.inventory.items() if key not in apart}
        self._hosts = dict(earlier.inventory.get("hosts", {}))
        self._serving = dict(earlier.inventory.get("targets", {}))
        self._served_before = {
            label: serving["server"] for label, serving in self._serving.items() if "server" in serving
        }
        if host:
            others = host.pop("resumed_on", [])
            if self._host not in [host, *others]:
                others = [*others, self._host]
            self._host = {**host, "resumed_on": others} if others else host

    def _read_snapshots(self, name: str) -> Snapshots:
        found: dict[str, JsonObject] = {}
        for moment in ("before", "after"):
            path = self.directory.path / f"resources_{name}_{moment}.txt"
            if not path.exists():
                continue
            try:
                found[moment] = parse_snapshot(path.read_text("utf-8"))
            except ValueError as error:
                raise OpenClawError(f"{path} is no snapshot ({error}); remove it") from None
        return Snapshots(**found)

    def _in_order(self) -> list[Record]:
        """Return the rows as the run was planned; workers and resumed runs end cells in any order."""
        places = {(prompt["suite"], prompt["id"]): n for n, prompt in enumerate(self.plan.prompts)}
        targets = {target: n for n, target in enumerate(self._n_selected)}

        def place(record: Record) -> tuple[int, int, str, str, int]:
            suite, prompt_id = record.suite, record.prompt_id
            planned = places.get((suite, prompt_id), len(places))
            return (
                targets.get(record.target, len(targets)),
                planned,
                suite,
                prompt_id,
                record.repeat,
            )

        return sorted(self.records, key=place)

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
        taken = (place[target] for place in places if target in place)
        return next((snapshots for snapshots in taken if snapshots != Snapshots()), Snapshots())

    def _write_config(self) -> None:
        settings = self._settings
        self.directory.write_json(
            "config.json",
            {
                "schema_version": CONFIG_VERSION,
                "run_id": self.directory.run_id,
                "models": list(dict.fromkeys(target.model for target in self._n_selected)),
                "targets": [{**asdict(target), "n_cells": n} for target, n in self._n_selected.items()],
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
