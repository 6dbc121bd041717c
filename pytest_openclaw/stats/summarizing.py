"""A run's rows → its summary, for live, merged and rescored runs alike."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from pytest_openclaw.stats.best import best_of
from pytest_openclaw.stats.findings import known_failures, missed_by_all, slowest
from pytest_openclaw.stats.gates import check_gates, overall, unmatched
from pytest_openclaw.stats.groups import Snapshots, group_records, summarize_group
from pytest_openclaw.stats.summary import Summary
from pytest_openclaw.types.surface import SUBSTITUTE
from pytest_openclaw.types.targets import LISTED, OPENCLAW_ITSELF

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from pytest_openclaw.core.json_types import JsonObject
    from pytest_openclaw.stats.compared_runs import ComparedRuns
    from pytest_openclaw.types.records import Record
    from pytest_openclaw.types.settings import Gates
    from pytest_openclaw.types.targets import Target


def summarize_run(
    records: Sequence[Record],
    n_selected: Mapping[Target, int],
    gates: Gates,
    snapshots: Mapping[Target, Snapshots],
    *,
    run_id: str,
    generated_at_ms: int,
    looks: Sequence[int] = (),
    n_unrecorded_calls: int = 0,
    comparison: ComparedRuns | None = None,
    surface: JsonObject | None = None,
) -> Summary:
    """Return the figures of a run.

    Args:
        records: one a cell that has ended; texts may be left out.
        n_selected: cells by target, targets in the order to be shown; one without rows has a group too.
        gates: what each target must reach.
        snapshots: the machine before and after a target, as far as they were taken.
        run_id: the run's.
        generated_at_ms: now.
        looks: the repeats after which a conclusive tier ended them, or would have; none if their number was
            fixed.
        n_unrecorded_calls: calls of workers that may have no row, if cells are missing.
        comparison: with the baseline, if there is one.
        surface: what the config says of the surface `openclaw`.
    """
    groups_of = group_records(records)
    groups = tuple(
        summarize_group(
            target,
            groups_of.get(target, ()),
            snapshots.get(target, Snapshots()),
            n_targets=len(n_selected),
            looks=looks,
            n_missing=max(0, n - len(groups_of.get(target, ()))),
            is_substitute=bool(surface and surface.get("source") == SUBSTITUTE)
            and target.provider != OPENCLAW_ITSELF,
        )
        for target, n in n_selected.items()
    )
    n_cells = sum(n_selected.values())
    rulings = check_gates(gates, groups, n_selected, groups_of, comparison)
    return Summary(
        run_id=run_id,
        state="finished" if len(records) >= n_cells else "interrupted",
        generated_at_ms=generated_at_ms,
        n_cells=n_cells,
        n_rows=len(records),
        groups=groups,
        gates=rulings,
        verdict=overall(rulings),
        unmatched_gates=unmatched(gates, [*n_selected]),
        missed=missed_by_all(records),
        known_failures=known_failures(records),
        slowest=slowest(records),
        best=best_of(groups, groups_of),
        n_unrecorded_calls=max(0, min(n_unrecorded_calls, n_cells - len(records))),
        n_rerun=sum(bool(record.reruns) for record in records),
        comparison=comparison,
        surface=surface,
        surface_cost=_surface_cost(records, [*n_selected], run_id),
    )


def _surface_cost(records: Sequence[Record], targets: Sequence[Target], run_id: str) -> ComparedRuns | None:
    """Compare the cells of each target on a surface of OpenClaw with those on `listed`, pair by pair."""
    pairs = [(one.on(LISTED), one) for one in targets if one.surface != LISTED]
    both = [(one, other) for one, other in pairs if one in targets]
    if not both:
        return None
    from pytest_openclaw.stats.compared_runs import compare_records
    from pytest_openclaw.stats.pairing import Obstacles

    found = compare_records(records, records, both, Obstacles(with_answering_model=False), baseline=run_id)
    return replace(found, set_aside=())  # such as the prompts without tools
