"""A stored run that is to be merged or judged anew: read, checked, and nobody is writing there."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from pytest_openclaw.asking.resources import parse_snapshot
from pytest_openclaw.core.errors import OpenClawError
from pytest_openclaw.core.files import is_there, load_object, read_file
from pytest_openclaw.core.schema_check import shown
from pytest_openclaw.recording.run_directory import is_living
from pytest_openclaw.stored.reading import StoredRow, StoredRun, load_run, repeats_of, target_of
from pytest_openclaw.types.settings import gates_of

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from pytest_openclaw.core.json_types import JsonObject
    from pytest_openclaw.types.records import Record
    from pytest_openclaw.types.settings import Gates
    from pytest_openclaw.types.targets import CellKey, Target

PromptKey = tuple[str, str]
"""Suite and prompt id."""


@dataclass(frozen=True, kw_only=True)
class Snapshot:
    """A file of what the machine had to spare.

    Attributes:
        target: its label.
        moment: `before` or `after`.
    """

    target: str
    moment: str
    values: JsonObject


@dataclass(frozen=True, kw_only=True)
class Part:
    """A stored run whose files fit each other, and into which nobody is writing.

    Attributes:
        n_selected: cells by target, in the order of its config.
        prompts: definitions by suite and id, in the order of its config.
        rows: those that count, by cell: its last.
        snapshots: of its targets, in no order.
        gates: None where it has merged runs with different ones.
    """

    run: StoredRun
    n_selected: Mapping[Target, int]
    prompts: Mapping[PromptKey, JsonObject]
    rows: Mapping[CellKey, StoredRow]
    snapshots: tuple[Snapshot, ...]
    gates: Gates | None

    @property
    def name(self) -> str:
        """What messages call it: its path, as the user gave it."""
        return str(self.run.path)

    @property
    def n_cells(self) -> int:
        """Cells selected in all."""
        return sum(self.n_selected.values())

    @property
    def rows_in_order(self) -> list[StoredRow]:
        """Rows that count, in the order of the file."""
        counting = {id(row) for row in self.rows.values()}
        return [row for row in self.run.rows if id(row) in counting]

    @property
    def n_rows(self) -> int:
        """Rows that count."""
        return len(self.rows)

    @property
    def n_repeats_by_prompt(self) -> Mapping[PromptKey, int]:
        """How often each prompt was to be asked at most: by its own word, else by the run's."""
        own = self.fixed_repeats
        rows = (key.repeat for key in self.rows if (key.suite, key.prompt_id) not in own)
        others = max(repeats_of(self.run.config), *rows, 1)
        return {prompt: own.get(prompt, others) for prompt in self.prompts}

    @property
    def fixed_repeats(self) -> Mapping[PromptKey, int]:
        """The prompts that say themselves how often they are asked, whatever the targets' tiers are."""
        told = ((prompt, entry.get("repeat")) for prompt, entry in self.prompts.items())
        return {prompt: n for prompt, n in told if isinstance(n, int)}

    def n_fixed_to_run(self, target: Target) -> int:
        """Cells of such prompts that have no row, of one target."""
        own = self.fixed_repeats
        n_rows = sum(key.target == target and (key.suite, key.prompt_id) in own for key in self.rows)
        return max(0, sum(own.values()) - n_rows)

    @property
    def records(self) -> list[Record]:
        """The rows that count, as the run was planned: by target, prompt and repeat."""
        targets = {target: place for place, target in enumerate(self.n_selected)}
        prompts = {key: place for place, key in enumerate(self.prompts)}

        def place(record: Record) -> tuple[int, int, int]:
            prompt = prompts.get((record.suite, record.prompt_id), len(prompts))
            return targets.get(record.target, len(targets)), prompt, record.repeat

        return sorted((row.record for row in self.rows.values()), key=place)

    def n_rows_of(self, target: Target) -> int:
        """Rows that count, of one target."""
        return sum(key.target == target for key in self.rows)

    @property
    def shortcomings(self) -> list[str]:
        """What is missing from it, in words."""
        told = []
        if self.n_rows < self.n_cells:
            missing = f"{self.n_cells - self.n_rows} of its {self.n_cells} cells have no row"
            told.append(f"{self.name} is not finished: {missing}")
        if self.run.torn:
            told.append(f"{self.name}: the last line was torn when the run was killed, and is left out")
        return told


def read_part(path: Path, *, even_living: bool = False) -> Part:
    """Read a run directory, and check that it can be rewritten.

    Args:
        path: the directory.
        even_living: take a run that is under way as far as it has come, to be looked at.

    Raises:
        OpenClawError: it cannot, or a run is writing there now; the text says why.
    """
    if is_living(path) and not even_living:
        raise OpenClawError(f"{path}: a run is writing there now. Wait until it ends, or end it.")
    run = load_run(path)
    if not run.inventory:  # killed before there was one
        run = replace(run, inventory={"run_id": run.run_id, "targets": {}})
    rows = run.latest()
    n_selected = {target_of(entry): entry["n_cells"] for entry in run.config["targets"]}
    for target, n in Counter(key.target for key in rows).items():
        n_selected.setdefault(target, n)  # of a row whose target the config does not name
    part = Part(
        run=run,
        n_selected=n_selected,
        prompts={(entry["suite"], entry["id"]): dict(entry) for entry in run.config["prompts"]},
        rows=rows,
        snapshots=_snapshots(path, n_selected),
        gates=None if (gates := run.config["gates"]) is None else gates_of(gates),
    )
    if is_finished(path, part.n_rows):
        # The config counts cells that a mark left out later; a finished run lacks none.
        return replace(part, n_selected={target: part.n_rows_of(target) for target in n_selected})
    # Nor does a target whose tier was settled, but for what is asked in any case, though others may go on.
    settled = {target_of(entry) for entry in run.config["targets"] if "settled_after" in entry}
    counts = {
        target: min(n, part.n_rows_of(target) + part.n_fixed_to_run(target)) if target in settled else n
        for target, n in n_selected.items()
    }
    return replace(part, n_selected=counts)


def is_finished(path: Path, n_rows: int) -> bool:
    """Whether a run of so many rows has ended, so that none of its cells is missing.

    Raises:
        OpenClawError: its summary cannot be read.
    """
    file = path / "summary.json"
    if not is_there(file):
        return False
    summary = load_object(file)
    # A resumed run that was killed may have rows that its old summary does not know.
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
    """Return what a snapshot's file says, its heading included.

    Raises:
        ValueError: it is no such file.
    """
    heading = text.partition("\n")[0]
    target, comma, moment = heading.removeprefix("# ").rpartition(", ")
    if not (heading.startswith("# ") and comma and moment in {"before", "after"}):
        raise ValueError(f"its first line is no heading: {shown(heading)}")
    return Snapshot(target=target, moment=moment, values=parse_snapshot(text))
