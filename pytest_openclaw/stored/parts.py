"""Reads and checks a stored run to be merged or judged again; no process may be writing it."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, replace
from functools import cached_property
from operator import attrgetter
from typing import TYPE_CHECKING, Any

from pytest_openclaw.asking.resources import parse_snapshot
from pytest_openclaw.core.errors import OpenClawError
from pytest_openclaw.core.files import is_there, load_object, read_file
from pytest_openclaw.core.schema_check import shown
from pytest_openclaw.recording.run_directory import is_active
from pytest_openclaw.stored.reading import StoredRun, load_run, load_surface, repeats_of, target_of
from pytest_openclaw.types.settings import gates_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from pathlib import Path

    from pytest_openclaw.core.json_types import JsonObject
    from pytest_openclaw.stored.reading import IndexedRow, RowIndex
    from pytest_openclaw.types.records import Record
    from pytest_openclaw.types.settings import Gates
    from pytest_openclaw.types.surface import Surface
    from pytest_openclaw.types.targets import CellKey, Target

PromptKey = tuple[str, str]
"""Suite and prompt id."""


@dataclass(frozen=True, kw_only=True)
class Snapshot:
    """A file with the machine's free resources.

    Attributes:
        target: its label.
        moment: `before` or `after`.
    """

    target: str
    moment: str
    values: JsonObject


@dataclass(frozen=True, kw_only=True)
class Part:
    """A stored run whose files are consistent, and that no process is writing.

    Attributes:
        n_selected: cells by target, in the order of its config.
        prompts: definitions by suite and id, in the order of its config.
        rows: the last row of each cell.
        snapshots: of its targets, in no order.
        gates: None if it is merged from runs with different ones.
        surface: on which its targets on `openclaw` were asked; None without any.
    """

    run: StoredRun
    n_selected: Mapping[Target, int]
    prompts: Mapping[PromptKey, JsonObject]
    rows: Mapping[CellKey, IndexedRow]
    snapshots: tuple[Snapshot, ...]
    gates: Gates | None
    surface: Surface | None = None

    @property
    def name(self) -> str:
        """Its name in messages: the path as the user gave it."""
        return str(self.run.path)

    @cached_property
    def measured(self) -> list[JsonObject]:
        """The settings of each run that it consists of: its own, unless it is merged."""
        config = self.run.config
        if "parts" in config:
            rescored = {"rescored": config["rescored"]} if "rescored" in config else {}
            return [{**entry, **rescored} for entry in config["parts"]]
        own = {name: value for name, value in config.items() if name not in ("models", "prompts")}
        counts = {"n_cells": self.n_cells, "n_rows": self.n_rows}
        return [{"run_id": config["run_id"], **counts, **own, "prompts": [list(key) for key in self.prompts]}]

    @property
    def n_cells(self) -> int:
        """Cells selected in all."""
        return sum(self.n_selected.values())

    @property
    def rows_in_order(self) -> list[IndexedRow]:
        """The last row of each cell, in the order of the file."""
        return sorted(self.rows.values(), key=attrgetter("number"))

    @property
    def n_rows(self) -> int:
        """Number of cells with a row."""
        return len(self.rows)

    @property
    def n_repeats_by_prompt(self) -> Mapping[PromptKey, int]:
        """The most repeats of each prompt: its own number, otherwise the run's."""
        own = self.fixed_repeats
        rows = (key.repeat for key in self.rows if (key.suite, key.prompt_id) not in own)
        others = max(repeats_of(self.run.config), *rows, 1)
        return {prompt: own.get(prompt, others) for prompt in self.prompts}

    @property
    def fixed_repeats(self) -> Mapping[PromptKey, int]:
        """The prompts that set their own number of repeats, which early stopping leaves alone."""
        repeats = ((prompt, entry.get("repeat")) for prompt, entry in self.prompts.items())
        return {prompt: n for prompt, n in repeats if isinstance(n, int)}

    def n_fixed_to_run(self, target: Target) -> int:
        """Count the fixed repeats of a target that have no row."""
        own = self.fixed_repeats
        n_rows = sum(key.target == target and (key.suite, key.prompt_id) in own for key in self.rows)
        return max(0, sum(own.values()) - n_rows)

    @property
    def records(self) -> list[Record]:
        """The last row of each cell in planned order, by target, prompt and repeat, and without its texts."""
        return in_planned_order((row.record for row in self.rows.values()), self.n_selected, self.prompts)

    @cached_property
    def n_rows_of(self) -> Counter[Target]:
        """Number of cells with a row."""
        return Counter(key.target for key in self.rows)

    @property
    def shortcomings(self) -> list[str]:
        """Sentences about what is missing from the run."""
        sentences = []
        if self.n_rows < self.n_cells:
            missing = f"{self.n_cells - self.n_rows} of its {self.n_cells} cells have no row"
            sentences.append(f"{self.name} is not finished: {missing}")
        if self.run.torn:
            sentences.append(f"{self.name}: the last line was torn when the run was killed, and is left out")
        return sentences


def in_planned_order(
    records: Iterable[Record], targets: Iterable[Target], prompts: Iterable[PromptKey]
) -> list[Record]:
    """Sort rows by target, prompt and repeat; workers finish cells in any order."""
    targets = {target: place for place, target in enumerate(targets)}
    prompts = {key: place for place, key in enumerate(prompts)}

    def place(record: Record) -> tuple[int, int, int]:
        prompt = prompts.get((record.suite, record.prompt_id), len(prompts))
        return targets.get(record.target, len(targets)), prompt, record.repeat

    return sorted(records, key=place)


def read_part(path: Path, *, even_active: bool = False, index: RowIndex | None = None) -> Part:
    """Read a run directory and check that it can be rewritten.

    Args:
        path: the directory.
        index: of the runs that are read together; it saves memory.
        even_active: accept a run that is still active, with its rows so far, for display.

    Raises:
        OpenClawError: it cannot be rewritten, or a run is writing there now; the message has the reason.
    """
    if is_active(path) and not even_active:
        raise OpenClawError(f"{path}: a run is writing there now. Wait until it ends, or end it.")
    run = load_run(path, index)
    if not run.inventory:  # the run was killed before it wrote one
        run = replace(run, inventory={"run_id": run.run_id, "targets": {}})
    rows = run.latest()
    n_selected = {target_of(entry): entry["n_cells"] for entry in run.config["targets"]}
    for target, n in Counter(key.target for key in rows).items():
        n_selected.setdefault(target, n)  # the target of a row that the config does not name
    part = Part(
        run=run,
        n_selected=n_selected,
        prompts={(entry["suite"], entry["id"]): entry for entry in run.config["prompts"]},
        rows=rows,
        snapshots=_snapshots(path, n_selected),
        gates=None if (gates := run.config["gates"]) is None else gates_of(gates),
        surface=load_surface(path),
    )
    if is_finished(path, part.n_rows):
        # The config also counts cells that a mark skipped later; a finished run lacks none.
        return replace(part, n_selected={target: part.n_rows_of[target] for target in n_selected})
    # A target with a settled tier lacks only fixed repeats, even if other targets continue.
    settled = {target_of(entry) for entry in run.config["targets"] if "settled_after" in entry}
    counts = {
        target: min(n, part.n_rows_of[target] + part.n_fixed_to_run(target)) if target in settled else n
        for target, n in n_selected.items()
    }
    return replace(part, n_selected=counts)


def is_finished(path: Path, n_rows: int) -> bool:
    """Whether a run with this number of rows is finished, so that no cell is missing.

    Raises:
        OpenClawError: its summary cannot be read.
    """
    file = path / "summary.json"
    if not is_there(file):
        return False
    summary = load_object(file)
    # A resumed run that was killed may have rows that are not in its old summary.
    return (summary.get("state"), summary.get("n_rows")) == ("finished", n_rows)


def is_python(definition: Mapping[str, Any]) -> bool:
    """Whether a prompt is a benchmark written in Python, which its own test judges."""
    validator = definition.get("validator")
    return isinstance(validator, dict) and validator.get("type") == "python"


def _snapshots(path: Path, n_selected: Mapping[Target, int]) -> tuple[Snapshot, ...]:
    snapshots = []
    labels = {target.label for target in n_selected}
    for file in sorted(path.glob("resources_*.txt")):
        try:
            snapshot = read_snapshot(read_file(file).decode())
        except ValueError as error:
            raise OpenClawError(f"{file} is no snapshot of this format: {error}") from None
        if snapshot.target not in labels:
            raise OpenClawError(f"{file} is of {shown(snapshot.target)}, which is no target of this run")
        snapshots.append(snapshot)
    return tuple(snapshots)


def read_snapshot(text: str) -> Snapshot:
    """Parse a snapshot file, including its heading.

    Raises:
        ValueError: it is not a snapshot.
    """
    heading = text.partition("\n")[0]
    target, comma, moment = heading.removeprefix("# ").rpartition(", ")
    if not (heading.startswith("# ") and comma and moment in {"before", "after"}):
        raise ValueError(f"its first line is no heading: {shown(heading)}")
    return Snapshot(target=target, moment=moment, values=parse_snapshot(text))
