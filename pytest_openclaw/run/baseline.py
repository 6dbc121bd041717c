"""A stored run as a comparison reads it: its rows without texts, its config, its inventory."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from pytest_openclaw.errors import OpenClawError
from pytest_openclaw.run.comparing import Measured
from pytest_openclaw.run.directory import RESULTS, is_living, living
from pytest_openclaw.run.reading import CONFIG, StoredRow, load_config, load_inventory, read_rows
from pytest_openclaw.run.stored.parts import is_finished, target_of
from pytest_openclaw.schema import check_types

if TYPE_CHECKING:
    from collections.abc import Iterable

    from pytest_openclaw.records import CellKey, JsonObject, Record, Target

LAST = "last"


def find_baseline(name: str, runs_dir: Path, *, besides: Path | None = None) -> Path:
    """Return the directory of the run that is to be compared with.

    Args:
        name: a path, an id in the folder of runs, or `last`: the one that was written to last, of those
            into which nobody is writing.
        runs_dir: the folder of runs.
        besides: a run that is not meant: the one that goes on.

    Raises:
        OpenClawError: there is none, or it is still under way.
    """
    if name == LAST:
        found = [
            results
            for results in runs_dir.glob(f"*/{RESULTS}")
            if (results.parent / CONFIG).is_file()
            and not (besides and results.parent.resolve() == besides.resolve())
            and not is_living(results.parent)
        ]
        newest = max(
            found, key=lambda results: (results.stat().st_mtime_ns, results.parent.name), default=None
        )
        if newest is None:
            raise OpenClawError(f"there is no other run in {runs_dir}")
        return newest.parent
    places = (Path(name).expanduser(), runs_dir / name)
    path = next((place for place in places if (place / CONFIG).is_file()), None)
    if path is None:
        raise OpenClawError(f"there is no run {name}, neither here nor in {runs_dir}")
    if besides and path.resolve() == besides.resolve():
        raise OpenClawError(f"{path.name} is the run that goes on; name the one to compare it with")
    if is_living(path):
        raise OpenClawError(living(path))
    return path


def read_measured(path: Path) -> Measured:
    """Read a run directory, one row in memory with its texts at a time.

    Raises:
        OpenClawError: it cannot be read, or holds what no run writes; names file and line.
    """
    records: dict[CellKey, Record] = {}
    for number, row in enumerate(read_rows(path / RESULTS), 1):
        if not isinstance(row, StoredRow):
            continue  # a killed run's last write
        try:
            check_types(row.record)
        except ValueError as error:
            raise OpenClawError(f"{path / RESULTS}: line {number} is no row of a run: {error}") from None
        records[row.record.key] = slim(row.record)
    config, inventory = load_config(path), load_inventory(path)
    try:
        _check(config, inventory)
        n_selected = _n_selected(path, config, records)
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        what = f"{type(error).__name__}: {error}"
        raise OpenClawError(
            f"{path}: config.json or inventory.json is not as a run writes it: {what}"
        ) from None
    return Measured(
        run_id=path.name,
        records=tuple(records.values()),
        config=config,
        inventory=inventory,
        n_selected=n_selected,
    )


def slim(record: Record) -> Record:
    """Return a row without what makes it large."""
    return replace(record, raw_output="", parsed_output=None, tool_call_details=(), turns=None, tool_notes=())


def _n_selected(path: Path, config: JsonObject, rows: Iterable[CellKey]) -> dict[Target, int]:
    """Count the cells of each target, but for those that a mark left out and those of a settled tier."""
    n_rows = Counter(key.target for key in rows)
    is_whole = is_finished(path, n_rows.total())
    return {
        target: n_rows[target] if is_whole or "settled_after" in entry else int(entry["n_cells"])
        for entry in config["targets"]
        for target in [target_of(entry)]
    }


def _check(config: JsonObject, inventory: JsonObject) -> None:
    for prompt in config["prompts"]:
        if not (isinstance(prompt["suite"], str) and isinstance(prompt["id"], str)):
            raise TypeError(f"a prompt is {prompt['suite']!r} {prompt['id']!r}")
    places = [inventory, *inventory.get("hosts", {}).values(), *inventory.get("parts", ())]
    for by_name in (config["providers"], *(place.get("targets", {}) for place in places)):
        for name, one in by_name.items():
            if not isinstance(one, dict):
                raise TypeError(f"{name} is {one!r}, not an object")
