"""Rows → groups → the summary of a run; every number here can be recomputed from `results.jsonl`."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Literal

from pytest_openclaw.stats.groups import Group, group_to_json

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pytest_openclaw.core.json_types import JsonObject
    from pytest_openclaw.stats.best import Best
    from pytest_openclaw.stats.compared_runs import ComparedRuns
    from pytest_openclaw.stats.findings import ExpectedMiss, MissedPrompt
    from pytest_openclaw.stats.gates import GateResult
    from pytest_openclaw.types.records import Record

SUMMARY_VERSION = 1


@dataclass(frozen=True, kw_only=True)
class Budget:
    """Budget and spending of one session.

    Attributes:
        spent_usd: may exceed the budget by what was in flight when it was reached.
        n_not_asked: cells that were not asked, or not to their end, because the budget was spent.
    """

    budget_usd: float
    spent_usd: float
    n_not_asked: int


@dataclass(frozen=True, kw_only=True)
class Summary:
    """A run in figures: one group per target, and the rulings of the gates.

    Attributes:
        state: `interrupted` if some selected cells have no row.
        n_cells: cells selected.
        n_rows: rows in `results.jsonl`.
        n_rerun: cells that another plugin ran again; the first try counts.
        n_unrecorded_calls: at most so many calls of xdist's workers have no row, because the run was
            interrupted; always below the cells that have none.
        verdict: of all gates together.
        unmatched_gates: globs of gates that speak of no target of this run.
        missed: prompts that no target passed, and that some target was expected to.
        known_failures: prompts that a target was expected to miss.
        slowest: the successful row that took longest.
        budget: what the last session was allowed to spend, and has spent; None without a budget.
        best: the targets that may be the best with tools; None without two to compare.
        comparison: with the baseline; None without one.
        surface: what `config.json` says of the surface `openclaw`; None if no target was asked on it.
        surface_cost: the cells on `openclaw` beside those on `listed`, of the models asked on both.
    """

    run_id: str
    state: Literal["finished", "interrupted"]
    generated_at_ms: int
    n_cells: int
    n_rows: int
    groups: Sequence[Group]
    gates: Sequence[GateResult] = ()
    verdict: Literal["passed", "failed", "no_verdict", "not_gated"] = "not_gated"
    unmatched_gates: Sequence[str] = ()
    missed: Sequence[MissedPrompt] = ()
    known_failures: Sequence[ExpectedMiss] = ()
    slowest: Record | None = None
    best: Best | None = None
    comparison: ComparedRuns | None = None
    surface: JsonObject | None = None
    surface_cost: ComparedRuns | None = None
    n_unrecorded_calls: int = 0
    n_rerun: int = 0
    budget: Budget | None = None

    @property
    def n_answered(self) -> int:
        """Cells that a model answered."""
        return sum(group.n_ok for group in self.groups)

    @property
    def is_owing(self) -> bool:
        """Whether some cell has no answer yet, so that a resumed run would ask it."""
        return self.n_answered < self.n_cells


def summary_to_json(summary: Summary) -> JsonObject:
    """Return the summary as in `summary.json`."""
    return {
        "schema_version": SUMMARY_VERSION,
        "run_id": summary.run_id,
        "state": summary.state,
        "generated_at_ms": summary.generated_at_ms,
        "n_cells": summary.n_cells,
        "n_rows": summary.n_rows,
        "n_unrecorded_calls": summary.n_unrecorded_calls,
        "n_rerun": summary.n_rerun,
        "groups": [group_to_json(group) for group in summary.groups],
        "gates": [asdict(gate) for gate in summary.gates],
        "verdict": summary.verdict,
        "budget": summary.budget and asdict(summary.budget),
        "unmatched_gates": list(summary.unmatched_gates),
        "missed_by_all": [asdict(missed) for missed in summary.missed],
        "known_failures": [asdict(known) for known in summary.known_failures],
        "best": summary.best and asdict(summary.best),
        "comparison": summary.comparison and asdict(summary.comparison),
        "surface": summary.surface,
        "surface_cost": summary.surface_cost and asdict(summary.surface_cost),
    }
