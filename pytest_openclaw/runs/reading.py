"""Reads run directories: rows, `config.json`, `inventory.json`; finds runs, and the baseline of a comparison.

A row of a `StoredRun` keeps its figures in memory and its texts on disk, so that a run of a million cells
fits into memory.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, fields
from functools import cached_property, partial
from operator import attrgetter
from pathlib import Path
from typing import Any

from pytest_openclaw.runs.directory import CONFIG, INVENTORY, RESULTS, SURFACE, is_active
from pytest_openclaw.runs.rows import figures_in
from pytest_openclaw.util.errors import OpenClawError
from pytest_openclaw.util.files import MOST_BYTES, JsonObject, is_there, load_object, open_file, parse_json
from pytest_openclaw.util.typed import shown
from pytest_openclaw.values.requests import CellKey, PromptKey, Target, target_of
from pytest_openclaw.values.rows import Record, from_row
from pytest_openclaw.values.run_files import ConfigFile, InventoryFile, MeasuredRun, checked, load_document
from pytest_openclaw.values.settings import CONFIG_VERSION, LAST
from pytest_openclaw.values.tool_calls import Surface

# --- rows -----------------------------------------------------------------------------------------

LEFT_OUT: dict[str, Any] = {
    "raw_output": "", "parsed_output": None, "tool_call_details": (), "images": None, "turns": None,
    "written_calls": None,
    "extra": {},
}  # fmt: skip
"""The texts of a record, with the values that replace them: no figure depends on them."""
_KEPT = tuple(one.name for one in fields(Record) if one.name not in LEFT_OUT)
_kept_of = attrgetter(*_KEPT)


def without_texts(record: Record, shared: dict[Any, Any]) -> Record:
    """Return a record without the texts of `LEFT_OUT`, except its `figures_in`.

    Args:
        record: as in its row.
        shared: holds equal values of records once, so that a record takes about a kilobyte.
    """
    kept = [
        shared.setdefault(value, value) if type(value) in (str, tuple) else value
        for value in _kept_of(record)
    ]
    return Record(
        **dict(zip(_KEPT, kept, strict=True)),
        **{**LEFT_OUT, "parsed_output": figures_in(record.parsed_output)},
    )


@dataclass(frozen=True, slots=True)
class StoredRow:
    """A row of a run: its record without texts, and position and hash of its line, without the line feed."""

    record: Record
    results: Path
    start: int
    n_bytes: int
    hash: int

    @property
    def line(self) -> bytes:
        """The bytes of the row, to be written again; raises `OpenClawError` if they are others now."""
        with open_file(self.results) as file:
            file.seek(self.start)
            line = file.read(self.n_bytes)
        if hash(line) != self.hash:
            raise OpenClawError(f"{self.results} has changed while it was read")
        return line

    @property
    def whole(self) -> Record:
        """The whole record, read from the file; raises as `line` does."""
        return from_row(parse_json(self.line))


def read_rows(results: Path) -> Iterator[tuple[bytes, Record]]:
    """Yield the lines of a `results.jsonl` with their records, one in memory at a time.

    An incomplete last line, the last write of a killed run, is left out.

    Raises:
        OpenClawError: the file cannot be read, or a line is malformed; the message names the line.
    """
    with open_file(results) as file:
        for number, line in enumerate(iter(partial(file.readline, MOST_BYTES), b""), 1):
            try:
                row = parse_json(line)
                if not isinstance(row, dict):
                    raise ValueError("it is not a JSON object")
                yield line, from_row(row)
            except ValueError as error:
                if not line.endswith(b"\n") and len(line) < MOST_BYTES:
                    return
                raise OpenClawError(
                    f"{results}: line {number} is not a row of this format: {error}. "
                    "To do without it, remove the line."
                ) from None


# --- a run ----------------------------------------------------------------------------------------


@dataclass(frozen=True, kw_only=True)
class StoredRun(MeasuredRun):
    """A run on disk, with consistent files; its `records` are in planned order: by target, prompt and repeat.

    Attributes:
        rows: the last row of each cell, in the order of the file.
        n_selected: the number of cells of each target, in the order of the config, without cells that are no
            longer needed, as after a settled tier.
    """

    path: Path
    rows: Mapping[CellKey, StoredRow]

    @property
    def name(self) -> str:
        """The run's name in messages: the path as the user gave it."""
        return str(self.path)

    @cached_property
    def prompts(self) -> Mapping[PromptKey, JsonObject]:
        """The definitions by suite and id, in the order of the config."""
        return {(entry["suite"], entry["id"]): entry for entry in self.config["prompts"]}

    @cached_property
    def surface(self) -> Surface | None:
        """The surface of the targets on `openclaw`; None without such targets."""
        return load_surface(self.path)

    @property
    def n_cells(self) -> int:
        """The number of selected cells."""
        return sum(self.n_selected.values())

    @property
    def shortcomings(self) -> list[str]:
        """Sentences about missing rows."""
        if (n_missing := self.n_cells - len(self.rows)) == 0:
            return []
        missing = f"{n_missing} of its {self.n_cells} cells have no row"
        return [f"{self.name} is not finished: {missing}"]


def load_run(path: Path, *, even_active: bool = False, shared: dict[Any, Any] | None = None) -> StoredRun:
    """Read a run directory.

    Args:
        path: the directory.
        even_active: whether a run may be writing there.
        shared: for several runs in memory; see `without_texts`.

    Raises:
        OpenClawError: the path is not a run directory, a run is writing there now, or a file cannot be read;
            the message names file and line.
    """
    if is_active(path) and not even_active:
        raise OpenClawError(f"{path}: a run is writing there now. Wait until it ends, or end it.")
    rows: dict[CellKey, StoredRow] = {}
    shared = {} if shared is None else shared
    start = 0
    for line, record in read_rows(path / RESULTS):
        rows.pop(record.key, None)
        plain = line.removesuffix(b"\n")
        row = StoredRow(without_texts(record, shared), path / RESULTS, start, len(plain), hash(plain))
        rows[row.record.key] = row
        start += len(line)
    config = load_config(path)
    n_rows = Counter(key.target for key in rows)
    entries = {target_of(entry): entry["n_cells"] for entry in config["targets"]}
    n_selected = {target: max(n, n_rows[target]) for target, n in entries.items()}
    n_selected = {**n_rows, **n_selected} if n_rows.keys() - n_selected.keys() else n_selected
    prompts = [(entry["suite"], entry["id"]) for entry in config["prompts"]]
    return StoredRun(
        run_id=path.name,
        path=path,
        config=config,
        inventory=load_inventory(path),
        rows=rows,
        records=in_planned_order((row.record for row in rows.values()), n_selected, prompts),
        n_selected=n_selected,
    )


def in_planned_order(
    records: Iterable[Record], targets: Iterable[Target], prompts: Iterable[PromptKey]
) -> tuple[Record, ...]:
    """Sort rows by target, prompt and repeat; workers finish cells in any order."""
    target_indices = {target: index for index, target in enumerate(targets)}
    prompt_indices = {key: index for index, key in enumerate(prompts)}

    def planned(record: Record) -> tuple[int, int, int]:
        prompt = prompt_indices.get((record.suite, record.prompt_id), len(prompt_indices))
        return target_indices.get(record.target, len(target_indices)), prompt, record.repeat

    return tuple(sorted(records, key=planned))


# --- its files ------------------------------------------------------------------------------------


def load_config(path: Path) -> JsonObject:
    """Return a run's `config.json`; raise `OpenClawError` if this version cannot read it."""
    config = load_object(path / CONFIG)
    if (version := config.get("schema_version")) != CONFIG_VERSION:
        raise OpenClawError(
            f"{path / CONFIG}: its schema_version is {shown(version)}; this version reads {CONFIG_VERSION}. "
            "Name the folder of a run of pytest-openclaw, such as runs/last"
        )
    checked(path / CONFIG, ConfigFile, config)
    return config


def load_inventory(path: Path) -> JsonObject:
    """Return a run's `inventory.json`, or an empty one if the run was killed before it wrote the file."""
    if not is_there(file := path / INVENTORY):
        return {"run_id": path.name, "targets": {}}
    inventory = load_object(file)
    checked(file, InventoryFile, inventory)
    return inventory


def load_surface(path: Path) -> Surface | None:
    """Return the surface in a run's `surface.json`; None if no target was asked on `openclaw`."""
    if not is_there(file := path / SURFACE):
        return None
    surface: Surface = load_document(file, Surface)
    return surface


def repeats_of(config: JsonObject) -> int:
    """Return the largest number of repeats in a run, or in any part of a merged run."""
    return max(one.get("repeat") or 1 for one in (config, *config.get("parts", ())))


# --- finding runs ---------------------------------------------------------------------------------


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


def find_run(runs_dir: Path, name: str) -> Path:
    """Return the directory of the run with this id, or of the newest run for `last`.

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
