"""Applies gates and a baseline to a stored run, as if it had been measured with them."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from pytest_openclaw.runs.directory import RunDirectory
from pytest_openclaw.runs.summaries import snapshots_of, stored_summary
from pytest_openclaw.stats.run_comparison import Measured, compare_runs
from pytest_openclaw.stats.summary import Budget, Summary, summarize_run, summary_to_json
from pytest_openclaw.values.settings import looks_of

if TYPE_CHECKING:
    from collections.abc import Collection

    from pytest_openclaw.runs.reading import Part
    from pytest_openclaw.runs.report_files import Plugins
    from pytest_openclaw.values.settings import Gates


def apply_gates(
    part: Part,
    gates: Gates,
    baseline: Measured | None,
    across: Collection[str],
    *,
    now_ms: int,
) -> Summary:
    """Return the run's summary with the results of gates and comparison.

    Args:
        part: the run.
        gates: to apply.
        baseline: the run to compare with.
        across: differences from the baseline to ignore.
        now_ms: for the summary's `generated_at_ms`.

    """
    written = stored_summary(part.run.path) or {}
    records = part.records
    candidate = Measured(
        run_id=part.run.run_id,
        records=tuple(records),
        config=part.run.config,
        inventory=part.run.inventory,
        n_selected=part.n_selected,
    )
    summary = summarize_run(
        records,
        part.n_selected,
        gates,
        {target: snapshots_of(part.snapshots, target) for target in part.n_selected},
        run_id=part.run.run_id,
        generated_at_ms=now_ms,
        looks=looks_of(part.run.config),
        surface=part.run.config.get("surface"),
        n_unrecorded_calls=written.get("n_unrecorded_calls", 0),
        comparison=compare_runs(baseline, candidate, across=across) if baseline else None,
    )
    # Only the old summary knows what the sessions spent.
    return replace(summary, budget=Budget(**written["budget"])) if written.get("budget") else summary


def write_gated(part: Part, summary: Summary, plugins: Plugins) -> None:
    """Rewrite summary and reports of a run; its rows and its config are unchanged.

    Raises:
        OpenClawError: a run is writing there now.
        OSError: it cannot be written.

    """
    with RunDirectory.reopen(part.run.path) as directory:
        directory.write_json("summary.json", summary_to_json(summary))
        plugins.write_reports(directory, summary)
