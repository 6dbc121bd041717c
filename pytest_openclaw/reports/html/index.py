"""All runs of a folder → the data of one page: each target's rates over time."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pytest_openclaw.reports.html.pieces import named
from pytest_openclaw.reports.numbers import DASH, one_line, render_time
from pytest_openclaw.stats.tiers import TIER_FLOORS

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from pytest_openclaw.core.json_types import JsonObject
    from pytest_openclaw.reports.history_text import Entry
    from pytest_openclaw.types.targets import Target

ALL_SUITES = ""


def index_data(history: Mapping[Target, Sequence[Entry]], links: Mapping[Path, str]) -> JsonObject:
    """Return what the page needs: the targets, each with its runs, oldest first.

    A run has its figures by suite; those of all suites together have the empty name.
    """
    suites = dict.fromkeys(suite for runs in history.values() for run in runs for suite in run.suites)
    return {
        "n_runs": len({run.path for runs in history.values() for run in runs}),
        "floors": [TIER_FLOORS[2], TIER_FLOORS[1]],
        "suites": list(suites),
        "surfaces": list(dict.fromkeys(target.surface for target in history)),
        "targets": [
            {"label": named(target), "surface": target.surface, "runs": [_run(run, links) for run in runs]}
            for target, runs in history.items()
        ],
    }


def _run(run: Entry, links: Mapping[Path, str]) -> JsonObject:
    return {
        "name": one_line(run.path.name, 80),
        "link": links[run.path],
        "day": render_time(run.ended_at_ms, "%Y-%m-%d %H:%M") if run.ended_at_ms else DASH,
        "note": ", ".join(run.notes),
        "is_other": bool(run.has_other_prompts),
        "figures": {suite: _figures(group) for suite, group in {ALL_SUITES: run.group, **run.suites}.items()},
    }


def _figures(group: Mapping[str, Any]) -> JsonObject:
    """Return how many cells have a row; of passed and of right tool cells the counts, rate and interval."""
    use = group["tool_use"]
    return {
        "n": group["n_total"],
        "passed": _rate(group["passed"]),
        "tools": {**_rate(use), "tier": use["tier"], "conclusive": use["conclusive"]},
    }


def _rate(rate: Mapping[str, Any]) -> JsonObject:
    interval = rate["interval_95"] or {"low": rate["rate"], "high": rate["rate"]}
    return {"n": rate["n"], "right": rate["n_success"], "rate": rate["rate"], **interval}
