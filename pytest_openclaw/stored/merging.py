"""Merges several runs into one, as if a single run had measured everything; in any order.

A row is unchanged byte for byte, with the `run_id` of the run that measured it. `agreement.py` checks what
the runs have in common, `joining.py` joins their `config.json` and `inventory.json`.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from pytest_openclaw.core.errors import OpenClawError
from pytest_openclaw.core.text import first_few
from pytest_openclaw.stored.agreement import (
    MAX_SHOWN,
    check_agreement,
    check_shards,
    differing_servers,
    differing_settings,
)
from pytest_openclaw.stored.joining import join_configs, join_inventories, order_of
from pytest_openclaw.stored.rewriting import NewRun
from pytest_openclaw.types.settings import Gates
from pytest_openclaw.types.targets import CellKey

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pytest_openclaw.stored.parts import Part
    from pytest_openclaw.stored.reading import IndexedRow
    from pytest_openclaw.types.targets import Target

Prefer = Literal["newest", "oldest"]
Rows = dict[CellKey, "IndexedRow"]


@dataclass(frozen=True, kw_only=True)
class Merged:
    """The new run, and notes for the user."""

    new: NewRun
    notes: tuple[str, ...]


def merge_parts(
    parts: Sequence[Part], prefer: Prefer | None = None, *, allow_missing: bool = False
) -> Merged:
    """Return the merged run.

    Args:
        parts: one or more, in any order; a directory that is given twice is used once.
        prefer: which row to keep if a cell has different ones, by end time.
        allow_missing: merge shards even if others of their division are missing.

    Raises:
        OpenClawError: they did not measure the same thing, or a cell has different rows and `prefer` is
            None.
    """
    parts = sorted({part.run.path.resolve(): part for part in parts}.values(), key=lambda part: part.name)
    check_agreement(parts)
    missing_shards = check_shards(parts, allow_missing=allow_missing)
    order = order_of(parts)
    rows, notes = _joined_rows(parts, prefer)
    target_places = {target: place for place, target in enumerate(order.targets)}
    prompt_places = {prompt: place for place, prompt in enumerate(order.prompts)}
    ordered = sorted(
        rows,
        key=lambda key: (target_places[key.target], key.repeat, prompt_places[key.suite, key.prompt_id]),
    )
    n_rows = Counter(key.target for key in rows)
    n_selected = {target: _n_selected(target, parts, rows, n_rows[target]) for target in order.targets}
    gates = [part.gates for part in parts]
    same_gates = gates[0] if all(one == gates[0] for one in gates) else None
    new = NewRun(
        n_selected=n_selected,
        rows=[rows[key] for key in ordered],
        config=join_configs(parts, n_selected, order.prompts),
        inventory=join_inventories(parts),
        snapshots=[snapshot for part in parts for snapshot in part.snapshots],
        gates=same_gates or Gates(),
        surface=next((part.surface for part in parts if part.surface), None),
    )
    notes += missing_shards
    notes += [note for part in parts for note in part.shortcomings]
    notes += differing_servers(parts)
    notes += differing_settings(parts, "noted")
    if same_gates is None:
        notes.append("the gates differ, so that none is held over the whole")
    return Merged(new=new, notes=tuple(notes))


def _joined_rows(parts: Sequence[Part], prefer: Prefer | None) -> tuple[Rows, list[str]]:
    rows: Rows = {}
    repeated: set[CellKey] = set()
    for part in parts:
        for key, row in part.rows.items():
            if rows.setdefault(key, row) is not row:
                repeated.add(key)
    versions = {
        key: {part.rows[key].line: part.rows[key] for part in parts if key in part.rows} for key in repeated
    }
    contested = sorted((key for key, found in versions.items() if len(found) > 1), key=_cell_name)
    if contested and prefer is None:
        shown = [
            f"{_cell_name(key)} ({', '.join(part.name for part in parts if key in part.rows)})"
            for key in contested
        ]
        raise OpenClawError(
            f"different rows of one cell: {first_few(shown, MAX_SHOWN)}. "
            "Give --prefer=newest or --prefer=oldest, or leave one of the runs out."
        )
    notes = []
    if contested:
        notes.append(f"{_counted(len(contested))} different rows; the {prefer} is kept")
    if n_twice := len(repeated) - len(contested):
        notes.append(f"{_counted(n_twice)} the same row in several runs; it is kept once")
    choose = min if prefer == "oldest" else max
    for key, found in versions.items():
        rows[key] = choose(found.values(), key=_age)
    return rows, notes


def _age(row: IndexedRow) -> tuple[int, bytes]:
    return row.record.ended_at_ms, row.line


def _cell_name(key: CellKey) -> str:
    return f"{key.suite}::{key.name}"


def _counted(n: int) -> str:
    return "1 cell has" if n == 1 else f"{n} cells have"


def _n_selected(target: Target, parts: Sequence[Part], rows: Rows, n_rows: int) -> int:
    """Count the cells of a target that any part selected: those with rows, and those still to run.

    A part's config names its prompts and counts its cells. If the cells without a row are as many as the
    prompts without one, they are known, and a cell that another part has run is no longer missing. In a part
    that selected fewer (`-k` with a target's name) they may be any of these prompts; they are counted once.

    Args:
        target: whose cells are counted.
        parts: the runs.
        rows: of the merged run.
        n_rows: of the target.
    """
    known: set[CellKey] = set()
    possible: set[CellKey] = set()
    n_possible = n_unnamed = 0
    for part in parts:
        n_missing = part.n_selected.get(target, 0) - part.n_rows_of[target]
        if n_missing <= 0:
            continue
        unanswered = _cells_of(part, target) - part.rows.keys()
        if len(unanswered) <= n_missing:
            known |= unanswered - rows.keys()
            n_unnamed += n_missing - len(unanswered)
        else:
            possible |= unanswered - rows.keys()
            n_possible += n_missing
    return n_rows + len(known) + n_unnamed + min(n_possible, len(possible - known))


def _cells_of(part: Part, target: Target) -> set[CellKey]:
    return {
        CellKey(suite, prompt_id, target, repeat)
        for (suite, prompt_id), n_repeats in part.n_repeats_by_prompt.items()
        for repeat in range(1, n_repeats + 1)
    }
