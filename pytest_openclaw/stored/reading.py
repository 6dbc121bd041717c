"""Reads a run directory: its rows as they are on disk, its `config.json`, its `inventory.json`."""

from __future__ import annotations

import weakref
from array import array
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from pytest_openclaw.core.errors import OpenClawError
from pytest_openclaw.core.files import is_there, load_object, open_file, parse_json, read_lines
from pytest_openclaw.core.schema_check import shown
from pytest_openclaw.recording.run_directory import RESULTS, SURFACE
from pytest_openclaw.stats.light_records import LightRecords, without_texts
from pytest_openclaw.types.documents import check_object, load_document
from pytest_openclaw.types.rows import check_row, from_row
from pytest_openclaw.types.run_config import CONFIG_VERSION
from pytest_openclaw.types.settings import LAST
from pytest_openclaw.types.surface import surface_from_json
from pytest_openclaw.types.targets import Target

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path
    from typing import BinaryIO

    from pytest_openclaw.core.json_types import JsonObject
    from pytest_openclaw.types.records import Record
    from pytest_openclaw.types.surface import Surface
    from pytest_openclaw.types.targets import CellKey


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
    except (KeyError, TypeError) as error:
        raise OpenClawError(f"{file} is no surface ({type(error).__name__}: {error})") from None


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
        raise ValueError("it is no JSON object")
    check_row(row)
    return StoredRow(line=line, record=from_row(row))


def _complete(line: bytes) -> StoredRow | None:
    """Return a last line that lacks only its line feed; None if it is incomplete."""
    try:
        return parse_row(line)
    except ValueError:
        return None
