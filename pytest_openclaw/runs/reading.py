"""Reads a run directory: its rows as they are on disk, its `config.json`, its `inventory.json`.

Records without their texts: a run of a million cells fits into memory.

Reads and checks a stored run to be merged or judged again; no process may be writing it.
"""

from __future__ import annotations

import weakref
from array import array
from collections import Counter
from dataclasses import dataclass, fields, replace
from functools import cached_property
from operator import attrgetter
from typing import TYPE_CHECKING, Any

from pytest_openclaw.asking.resources import parse_snapshot
from pytest_openclaw.runs.directory import RESULTS, SURFACE, is_active
from pytest_openclaw.stats.tool_use import bare_turns
from pytest_openclaw.util.errors import OpenClawError
from pytest_openclaw.util.files import is_there, load_object, open_file, parse_json, read_file, read_lines
from pytest_openclaw.util.typed import shown
from pytest_openclaw.values.requests import Target
from pytest_openclaw.values.rows import Record, from_row
from pytest_openclaw.values.run_files import check_object, load_document
from pytest_openclaw.values.settings import CONFIG_VERSION, LAST, gates_of
from pytest_openclaw.values.tool_calls import surface_from_json

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping
    from pathlib import Path
    from typing import BinaryIO

    from pytest_openclaw.util.json_types import JsonObject
    from pytest_openclaw.values.requests import CellKey
    from pytest_openclaw.values.settings import Gates
    from pytest_openclaw.values.tool_calls import Surface


LEFT_OUT: dict[str, Any] = {
    "raw_output": "", "parsed_output": None, "tool_call_details": (), "tool_notes": (), "images": None,
    "extra": {},
}  # fmt: skip
"""The texts, with the values that they have here: no figure depends on them."""
_APART = {*LEFT_OUT, "turns", "reruns"}
_KEPT = tuple(one.name for one in fields(Record) if one.name not in _APART)
_kept_of = attrgetter(*_KEPT)


def without_texts(record: Record) -> Record:
    """Return a record without what is `LEFT_OUT`; of turns it keeps what became of each call."""
    return replace(record, **LEFT_OUT, turns=bare_turns(record.turns))


class LightRecords:
    """Makes records without texts that share equal values: each takes about a kilobyte."""

    def __init__(self) -> None:
        self._known: dict[Any, Any] = {}

    def of(self, record: Record) -> Record:
        """Return `without_texts(record)`."""
        share, turns = self._known.setdefault, bare_turns(record.turns)
        kept = [share(value, value) if type(value) in (str, tuple) else value for value in _kept_of(record)]
        return Record(
            **dict(zip(_KEPT, kept, strict=True)),
            **LEFT_OUT,
            turns=turns and share(repr(turns), turns),
            reruns=record.reruns,
        )


CONFIG = "config.json"
INVENTORY = "inventory.json"


@dataclass(frozen=True, kw_only=True)
class StoredRow:
    """One line of `results.jsonl`, and its record.

    Attributes:
        line: its bytes, without the line feed; written again, they are the same row byte for byte.

    """

    line: bytes
    record: Record


class IndexedRow:
    """A line of `results.jsonl` that stays in its file; `record` has its figures, without texts."""

    __slots__ = ("_index", "number")

    def __init__(self, index: RowIndex, number: int) -> None:
        self._index = index
        self.number = number

    @property
    def record(self) -> Record:
        """The record without what `light_records.LEFT_OUT` names."""
        return self._index.records[self.number]

    @property
    def line(self) -> bytes:
        """Its bytes, without the line feed; raises OpenClawError if the file cannot be read any more."""
        return self._index.line(self.number)

    @property
    def whole(self) -> Record:
        """The whole record, read from the file."""
        return from_row(parse_json(self.line))


class RowIndex:
    """The rows of runs that are read together: their records without texts, and where their lines are.

    Equal definitions of prompts, which each part of a run has, are kept once, too.
    """

    def __init__(self) -> None:
        self.records: list[Record] = []
        self._light = LightRecords()
        self._files: list[Path] = []
        self._file_numbers = array("I")
        self._starts = array("q")
        self._lengths = array("I")
        self._opened: dict[int, BinaryIO] = {}
        self._definitions: dict[tuple[str, str], JsonObject] = {}
        weakref.finalize(self, _close_all, self._opened)

    def read(self, results: Path) -> tuple[tuple[IndexedRow, ...], bytes]:
        """Read a `results.jsonl`; return its rows, and the incomplete row of a killed run.

        Raises:
            OpenClawError: as `read_rows` does.

        """
        self._files.append(results)
        first, start, torn = len(self.records), 0, b""
        for found in read_rows(results):
            if isinstance(found, StoredRow):
                self.records.append(self._light.of(found.record))
                self._file_numbers.append(len(self._files) - 1)
                self._starts.append(start)
                self._lengths.append(len(found.line))
                start += len(found.line) + 1
            else:
                torn = found
        return tuple(IndexedRow(self, number) for number in range(first, len(self.records))), torn

    def line(self, number: int) -> bytes:
        """Return the bytes of a row, without its line feed.

        Raises:
            OpenClawError: the file cannot be read any more.

        """
        file = self._open(self._file_numbers[number])
        file.seek(self._starts[number])
        return file.read(self._lengths[number])

    def definition(self, entry: JsonObject) -> JsonObject:
        """Return a prompt's definition, or the equal one of a run that was read before."""
        key = (entry["suite"], entry["id"])
        known = self._definitions.setdefault(key, entry)
        # Their order is that of the file that is written.
        return known if known == entry and [*known] == [*entry] else entry

    def _open(self, number: int) -> BinaryIO:
        if number not in self._opened:
            if len(self._opened) >= MOST_OPEN:
                self._opened.pop(next(iter(self._opened))).close()
            self._opened[number] = open_file(self._files[number])
        return self._opened[number]


MOST_OPEN = 100
"""Files that an index keeps open; a process may often have 256."""


def _close_all(opened: dict[int, BinaryIO]) -> None:
    for file in opened.values():
        file.close()


@dataclass(frozen=True, kw_only=True)
class StoredRun:
    """A run as it is on disk.

    Attributes:
        rows: in the order of the file.
        torn: an incomplete row after the last line feed, the last write of a killed run.

    """

    path: Path
    config: JsonObject
    inventory: JsonObject
    rows: tuple[IndexedRow, ...]
    torn: bytes = b""

    @property
    def run_id(self) -> str:
        """The run's id, which is the directory's name."""
        return self.path.name

    def latest(self) -> dict[CellKey, IndexedRow]:
        """Return the last row of each cell."""
        return {row.record.key: row for row in self.rows}


def find_run(runs_dir: Path, name: str) -> Path:
    """Return the directory of the run with that id, or with `last` of the newest one.

    Raises:
        OpenClawError: there is no such run.

    """
    newest = next(iter(runs_by_age(runs_dir)), None)
    if newest is None:
        raise OpenClawError(f"there is no run in {runs_dir}")
    if name == LAST:
        return newest
    if not is_run(runs_dir / name):
        raise OpenClawError(f"there is no run {name} in {runs_dir}; the last one is {newest.name}")
    return runs_dir / name


def is_run(path: Path) -> bool:
    """Whether a folder is a run directory."""
    return is_there(path / CONFIG)


def runs_by_age(runs_dir: Path) -> list[Path]:
    """Return the directories of runs, most recently written first."""
    found = [
        (results.lstat().st_mtime_ns, results.parent.name, results.parent)
        for results in runs_dir.glob(f"*/{RESULTS}")
        if is_run(results.parent)
    ]
    return [path for _, _, path in sorted(found, reverse=True)]


def load_run(path: Path, index: RowIndex | None = None) -> StoredRun:
    """Read a run directory.

    Args:
        path: the directory.
        index: of runs that are read together.

    Raises:
        OpenClawError: it is not one, or a file in it cannot be read; the message names file and line.

    """
    index = index or RowIndex()
    rows, torn = index.read(path / RESULTS)
    config = load_config(path)
    prompts = [index.definition(entry) for entry in config["prompts"]]
    return StoredRun(
        path=path,
        config={**config, "prompts": prompts},
        inventory=load_inventory(path),
        rows=rows,
        torn=torn,
    )


def read_rows(results: Path) -> Iterator[StoredRow | bytes]:
    """Yield the rows of a `results.jsonl` one at a time, and last the incomplete row of a killed run.

    Raises:
        OpenClawError: the file cannot be read, or a line before the last one is malformed; the message
            names the line.

    """
    for number, line in enumerate(read_lines(results), 1):
        if line.endswith(b"\n"):
            yield _row(results, number, line[:-1])
        else:
            yield _complete(line) or line


def light_rows(path: Path) -> list[Record]:
    """Return the last row of each cell, without texts, so that a large run takes little memory.

    The incomplete last row of a killed run is left out.

    Raises:
        OpenClawError: a line is not a row.

    """
    latest: dict[CellKey, Record] = {}
    for found in read_rows(path / RESULTS):
        if isinstance(found, StoredRow):
            latest[found.record.key] = without_texts(found.record)
    return list(latest.values())


def load_config(path: Path) -> JsonObject:
    """Return a run's `config.json`.

    Raises:
        OpenClawError: it cannot be read, or has another format than this version reads.

    """
    config = load_object(path / CONFIG)
    version = config.get("schema_version")
    if version is None:
        raise OpenClawError(
            f"{path / CONFIG} has no schema_version, so it is not of a run of pytest-openclaw; "
            "name the folder of one, such as runs/last"
        )
    if version != CONFIG_VERSION:
        raise OpenClawError(
            f"{path / CONFIG}: its schema_version is {shown(version)}; this version reads {CONFIG_VERSION}"
        )
    check_object(path / CONFIG, "config", config)
    return config


def load_inventory(path: Path) -> JsonObject:
    """Return a run's `inventory.json`; an empty one if the run was killed before it wrote one.

    Raises:
        OpenClawError: it cannot be read.

    """
    return load_document(path / INVENTORY, "inventory") if is_there(path / INVENTORY) else {}


def load_surface(path: Path) -> Surface | None:
    """Return the surface in a run's `surface.json`; None if no target was asked on it.

    Raises:
        OpenClawError: it cannot be read.

    """
    if not is_there(file := path / SURFACE):
        return None
    try:
        return surface_from_json(load_object(file))
    except ValueError as error:
        raise OpenClawError(f"{file} is not a surface: {error}") from None


def target_of(entry: Mapping[str, Any]) -> Target:
    """Return a target from its entry in `config.json` or `summary.json`."""
    return Target(
        provider=entry["provider"],
        model=entry["model"],
        thinking_level=entry["thinking_level"],
        surface=entry["surface"],
    )


def repeats_of(config: JsonObject) -> int:
    """Return the most repeats of a prompt in a run; in a merged one, the most of its parts."""
    return max(one.get("repeat") or 1 for one in (config, *config.get("parts", ())))


def _row(path: Path, number: int, line: bytes) -> StoredRow:
    try:
        return parse_row(line)
    except ValueError as error:
        hint = "To do without it, remove the line."
        raise OpenClawError(f"{path}: line {number} is no row of this format: {error}. {hint}") from None


def parse_row(line: bytes) -> StoredRow:
    """Parse a line of `results.jsonl`.

    Raises:
        ValueError: it is not a row, or has values that no run writes.

    """
    row = parse_json(line)
    if not isinstance(row, dict):
        raise ValueError("it is not a JSON object")
    return StoredRow(line=line, record=from_row(row))


def _complete(line: bytes) -> StoredRow | None:
    """Return a last line that lacks only its line feed; None if it is incomplete."""
    try:
        return parse_row(line)
    except ValueError:
        return None


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
