"""A run directory read back: its rows as they stand on disk, its `config.json`, its `inventory.json`."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, cast

from pytest_openclaw.errors import OpenClawError
from pytest_openclaw.run.directory import RESULTS
from pytest_openclaw.schema import from_row

if TYPE_CHECKING:
    from pathlib import Path

    from pytest_openclaw.records import CellKey, JsonObject, Record


@dataclass(frozen=True, kw_only=True)
class StoredRow:
    """One line of `results.jsonl`, and what it says.

    Attributes:
        line: its bytes, without the line feed; written again, they are the same row byte for byte.
    """

    line: bytes
    record: Record


@dataclass(frozen=True, kw_only=True)
class StoredRun:
    """A run as it stands on disk.

    Attributes:
        rows: in the order of the file.
        torn: what stands after the last line feed and is no row: a killed run's last write.
    """

    path: Path
    config: JsonObject
    inventory: JsonObject
    rows: tuple[StoredRow, ...]
    torn: bytes = b""

    @property
    def run_id(self) -> str:
        """The run's id, which is the directory's name."""
        return self.path.name

    def latest(self) -> dict[CellKey, StoredRow]:
        """Return the last row of each cell."""
        return {row.record.key: row for row in self.rows}


def find_run(runs_dir: Path, name: str) -> Path:
    """Return the directory of a run: the one of that id, or with `last` the one that was written to last.

    Raises:
        OpenClawError: there is none.
    """
    if name != "last":
        if not (runs_dir / name / "config.json").is_file():
            raise OpenClawError(f"there is no run {name} in {runs_dir}")
        return runs_dir / name
    found = [
        results for results in runs_dir.glob(f"*/{RESULTS}") if (results.parent / "config.json").is_file()
    ]
    if not found:
        raise OpenClawError(f"there is no run in {runs_dir}")
    return max(found, key=lambda results: (results.stat().st_mtime_ns, results.parent.name)).parent


def load_run(path: Path) -> StoredRun:
    """Read a run directory.

    Raises:
        OpenClawError: it is none, or a file in it cannot be read; names file and line.
    """
    whole, _, torn = _bytes_of(path / RESULTS).rpartition(b"\n")
    lines = whole.split(b"\n") if whole else []
    rows = [_row(path / RESULTS, number, line) for number, line in enumerate(lines, 1)]
    if torn and (last := _complete(torn)):
        rows, torn = [*rows, last], b""
    return StoredRun(
        path=path,
        config=_object(path / "config.json"),
        inventory=_object(path / "inventory.json"),
        rows=tuple(rows),
        torn=torn,
    )


def _row(path: Path, number: int, line: bytes) -> StoredRow:
    try:
        return StoredRow(line=line, record=from_row(json.loads(line)))
    except (ValueError, TypeError, AttributeError) as error:
        raise OpenClawError(f"{path}: line {number} is no row of this format: {error}") from None


def _complete(line: bytes) -> StoredRow | None:
    """A last line that lacks nothing but its line feed."""
    try:
        return StoredRow(line=line, record=from_row(json.loads(line)))
    except (ValueError, TypeError, AttributeError):
        return None


def _object(path: Path) -> JsonObject:
    try:
        value = json.loads(_bytes_of(path))
    except ValueError as error:
        raise OpenClawError(f"{path} is no JSON: {error}") from None
    if not isinstance(value, dict):
        raise OpenClawError(f"{path} holds no JSON object")
    return cast("JsonObject", value)


def _bytes_of(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise OpenClawError(f"{path}: {error.strerror or error}; is {path.parent} a run directory?") from None
