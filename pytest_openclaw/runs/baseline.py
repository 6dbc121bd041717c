"""Reads a stored run for a comparison: its rows without texts, its config, its inventory."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from pytest_openclaw.runs.directory import is_active, living
from pytest_openclaw.runs.reading import (
    CONFIG,
    is_finished,
    light_rows,
    load_config,
    load_inventory,
    runs_by_age,
    target_of,
)
from pytest_openclaw.stats.run_comparison import Measured
from pytest_openclaw.suites import is_wildcard
from pytest_openclaw.util.errors import OpenClawError
from pytest_openclaw.util.files import is_there
from pytest_openclaw.values.settings import LAST

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from pytest_openclaw.util.json_types import JsonObject
    from pytest_openclaw.values.requests import Target
    from pytest_openclaw.values.rows import Record


POOL = f"{LAST}:"
"""How a baseline of several runs begins."""
MOST_POOLED = 20


def find_baseline(name: str, runs_dir: Path, *, besides: Path | None = None) -> Path:
    """Return the directory of the run to compare with.

    Args:
        name: a path, an id in the folder of runs, or `last`: the newest run that is not active.
        runs_dir: the folder of runs.
        besides: a run to exclude: the one that continues.

    Raises:
        OpenClawError: there is no such run, or it is still active.

    """
    if name == LAST:
        newest = next(_finished_runs(runs_dir, besides), None)
        if newest is None:
            raise OpenClawError(f"there is no other run in {runs_dir}")
        return newest
    places = (Path(name).expanduser(), runs_dir / name)
    path = next((place for place in places if is_there(place / CONFIG)), None)
    if path is None:
        raise OpenClawError(f"there is no run {name}, neither here nor in {runs_dir}")
    if besides and path.resolve() == besides.resolve():
        raise OpenClawError(f"{path.name} is the run that goes on; name the one to compare it with")
    if is_active(path):
        raise OpenClawError(living(path))
    return path


def read_baseline(
    name: str, runs_dir: Path, *, besides: Path | None = None, targets: Sequence[Target] = ()
) -> Measured:
    """Read the run to compare with; for `last:N` the newest of N, with the others as its pool.

    Args:
        name: see `find_baseline`; or `last:N`.
        runs_dir: the folder of runs.
        besides: a run to exclude: the one that continues.
        targets: of the candidate; a pool has runs of any of them. Empty takes runs of any target.

    Raises:
        OpenClawError: there is no such run, or it cannot be read.

    """
    if not name.startswith(POOL):
        return read_measured(find_baseline(name, runs_dir, besides=besides))
    number = name.removeprefix(POOL)
    if not (number.isascii() and number.isdecimal() and 1 <= int(number) <= MOST_POOLED):
        raise OpenClawError(f"{name}: give a number of runs from 1 to {MOST_POOLED}, for example {POOL}5")
    pool: list[Measured] = []
    for path in _finished_runs(runs_dir, besides):
        if len(pool) == int(number):
            break
        asked = {target_of(entry) for entry in load_config(path)["targets"]}
        if not targets or any(is_wildcard(target) or target in asked for target in targets):
            pool.append(read_measured(path))
    if not pool:
        raise OpenClawError(f"there is no other run of these targets in {runs_dir}")
    return replace(pool[0], pool=tuple(pool[1:]))


def _finished_runs(runs_dir: Path, besides: Path | None) -> Iterator[Path]:
    """Yield the runs that are not active, newest first."""
    for path in runs_by_age(runs_dir):
        if not (besides and path.resolve() == besides.resolve()) and not is_active(path):
            yield path


def read_measured(path: Path) -> Measured:
    """Read a run directory, with the texts of one row in memory at a time.

    Raises:
        OpenClawError: it cannot be read or is malformed; the message names file and line.

    """
    # No comparison reads turns, and up to `MOST_POOLED` runs are in memory.
    records = [replace(one, turns=None) if one.turns else one for one in light_rows(path)]
    config = load_config(path)
    return Measured(
        run_id=path.name,
        records=tuple(records),
        config=config,
        inventory=load_inventory(path),
        n_selected=_n_selected(path, config, records),
    )


def _n_selected(path: Path, config: JsonObject, records: Iterable[Record]) -> dict[Target, int]:
    """Count the cells of each target, without those skipped by a mark or left out after a settled tier."""
    n_rows = Counter(record.target for record in records)
    is_whole = is_finished(path, n_rows.total())
    return {
        target: n_rows[target] if is_whole or "settled_after" in entry else entry["n_cells"]
        for entry in config["targets"]
        for target in [target_of(entry)]
    }
