"""A run directory read back: its rows as they stand on disk, its `config.json`, its `inventory.json`."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, cast

from pytest_openclaw.errors import OpenClawError
from pytest_openclaw.run.directory import RESULTS
from pytest_openclaw.schema import from_row

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from pytest_openclaw.records import CellKey, JsonObject, Record


CONFIG = "config.json"
INVENTORY = "inventory.json"


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
    found = [results for results in runs_dir.glob(f"*/{RESULTS}") if (results.parent / CONFIG).is_file()]
    newest = max(found, key=lambda results: (results.stat().st_mtime_ns, results.parent.name), default=None)
    if newest is None:
        raise OpenClawError(f"there is no run in {runs_dir}")
    if name == "last":
        return newest.parent
    if not (runs_dir / name / CONFIG).is_file():
        raise OpenClawError(f"there is no run {name} in {runs_dir}; the last one is {newest.parent.name}")
    return runs_dir / name


def load_run(path: Path) -> StoredRun:
    """Read a run directory.

    Raises:
        OpenClawError: it is none, or a file in it cannot be read; names file and line.
    """
    rows: list[StoredRow] = []
    torn = b""
    for found in read_rows(path / RESULTS):
        if isinstance(found, StoredRow):
            rows.append(found)
        else:
            torn = found
    return StoredRun(
        path=path,
        config=load_config(path),
        inventory=load_inventory(path),
        rows=tuple(rows),
        torn=torn,
    )


def read_rows(results: Path) -> Iterator[StoredRow | bytes]:
    """Yield the rows of a `results.jsonl`, one in memory at a time, and last what a killed run left of one.

    Raises:
        OpenClawError: the file cannot be read, or a line before the last one is no row; names the line.
    """
    try:
        with results.open("rb") as file:
            for number, line in enumerate(file, 1):
                if line.endswith(b"\n"):
                    yield _row(results, number, line[:-1])
                else:
                    yield _complete(line) or line
    except OSError as error:
        raise _unreadable(results, error) from None


def load_config(path: Path) -> JsonObject:
    """Return a run's `config.json`.

    Raises:
        OpenClawError: it cannot be read.
    """
    return _object(path / CONFIG)


def load_inventory(path: Path) -> JsonObject:
    """Return a run's `inventory.json`; an empty one if the run was killed before it wrote one.

    Raises:
        OpenClawError: it cannot be read.
    """
    return _object(path / INVENTORY) if (path / INVENTORY).exists() else {}


def repeats_of(config: JsonObject) -> int:
    """Return how often a run asks a prompt at most; of a merged one, its parts' most."""
    return max(one.get("repeat") or 1 for one in (config, *config.get("parts", ())))


def _row(path: Path, number: int, line: bytes) -> StoredRow:
    try:
        return StoredRow(line=line, record=from_row(json.loads(line)))
    except (ValueError, TypeError, AttributeError) as error:
        mend = "To do without it, remove the line."
        raise OpenClawError(f"{path}: line {number} is no row of this format: {error}. {mend}") from None


def _complete(line: bytes) -> StoredRow | None:
    """A last line that lacks nothing but its line feed."""
    try:
        return StoredRow(line=line, record=from_row(json.loads(line)))
    except (ValueError, TypeError, AttributeError):
        return None


def _object(path: Path) -> JsonObject:
    try:
        value = json.loads(path.read_bytes())
    except OSError as error:
        raise _unreadable(path, error) from None
    except ValueError as error:
        raise OpenClawError(f"{path} is no JSON: {error}") from None
    if not isinstance(value, dict):
        raise OpenClawError(f"{path} holds no JSON object")
    return cast("JsonObject", value)


def _unreadable(path: Path, error: OSError) -> OpenClawError:
    return OpenClawError(f"{path}: {error.strerror or error}; is {path.parent} a run directory?")
