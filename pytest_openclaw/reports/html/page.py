"""The page itself: one file, whose own script and style are the only ones that its policy lets run.

The top of the page: which run this is.

The page around its cells, from top to bottom.

All runs of a folder → the data of one page: each target's rates over time.
"""

from __future__ import annotations

import base64
import hashlib
import html
from dataclasses import asdict
from datetime import UTC, datetime
from importlib import resources
from typing import TYPE_CHECKING, Any

from pytest_openclaw.reports.html.cells import cell_data
from pytest_openclaw.reports.html.comparison import changes_section
from pytest_openclaw.reports.html.pieces import TextPool, element, fill, named
from pytest_openclaw.reports.html.targets import (
    asked_section,
    findings_section,
    outcomes_section,
    pressure_section,
    repeats_section,
    roles_section,
    safety_section,
    targets_section,
    times_section,
    unanswered_section,
)
from pytest_openclaw.reports.numbers import DASH, one_line, render_time
from pytest_openclaw.stats.tiers import TIER_FLOORS

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from pytest_openclaw.reports.history_text import Entry
    from pytest_openclaw.reports.html.pieces import ShownRun
    from pytest_openclaw.util.json_types import JsonObject
    from pytest_openclaw.values.requests import Target


_RULINGS = {
    "passed": "all gates passed",
    "failed": "a gate failed",
    "no_verdict": "gates without a verdict",
    "not_gated": "no gates",
}


def header_of(run: ShownRun) -> JsonObject:
    """Return the top of the page.

    `ruling` is of all gates together, in a word; `facts` are the lines under the title, name and value.
    """
    summary = run.summary
    notes = [one_line(note, 300) for note in run.notes]
    if summary.state == "interrupted":
        notes.insert(0, f"Interrupted: {summary.n_rows} of {summary.n_cells} cells have a row.")
    if run.unshown:
        n_cells = len(run.cells) + len(run.unshown)
        notes.append(
            f"A sample: {len(run.cells):,} of {n_cells:,} cells can be opened below, for each target some of "
            "every way to end. All figures, tables and charts are of all cells."
        )
    began = min((record.started_at_ms for record, _ in run.pairs), default=summary.generated_at_ms)
    ended = max((record.ended_at_ms for record, _ in run.pairs), default=began)
    facts = [
        ("asked", f"{_time(began)} UTC, for {_duration(ended - began)}"),
        (
            "cells",
            f"{summary.n_rows:,} on {len(summary.groups)} target{'' if len(summary.groups) == 1 else 's'}",
        ),
    ]
    return {
        "run_id": one_line(summary.run_id, 80),
        "ruling": summary.verdict,
        "said": _RULINGS[summary.verdict],
        "facts": facts,
        "notes": notes,
    }


def _time(ms: int) -> str:
    return datetime.fromtimestamp(ms / 1000, UTC).strftime("%Y-%m-%d %H:%M")


def _duration(ms: int) -> str:
    minutes, seconds = divmod(max(0, ms) // 1000, 60)
    hours, minutes = divmod(minutes, 60)
    if hours:
        return f"{hours} h {minutes} min"
    return f"{minutes} min {seconds} s" if minutes else f"{seconds} s"


def sections_of(run: ShownRun) -> list[JsonObject]:
    """Return the sections in their order; empty ones are left out, and empty tables."""
    groups = run.summary.groups
    found = [
        targets_section(run.summary),
        findings_section(run.summary),
        changes_section(run),
        times_section(groups),
        repeats_section(groups),
        outcomes_section(groups),
        pressure_section(groups),
        safety_section(groups),
        roles_section(groups),
        unanswered_section(groups),
        asked_section(run.config, run.inventory),
    ]
    filled = [section.without_empty_tables() for section in found if section]
    return [asdict(section) for section in filled if not section.is_empty]


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


FIRST_WORDS = '<!doctype html>\n<html lang="en" data-made-by="pytest-openclaw">'
SCRIPTS = (
    "text.js", "dom.js", "theme.js", "data.js", "filter.js", "address.js", "panel.js", "matrix.js",
    "charts.js", "main.js",
)  # fmt: skip
INDEX_SCRIPTS = ("text.js", "dom.js", "theme.js", "charts.js", "index.js")


def render_page(run: ShownRun) -> str:
    """Return the page of a run."""
    title = f"{one_line(run.summary.run_id, 80)} · OpenClaw benchmark"
    return _framed(title, _asset("page.html"), SCRIPTS, _islands(run))


def render_index(history: Mapping[Target, Sequence[Entry]], links: Mapping[Path, str]) -> str:
    """Return the page of all runs of a folder.

    Args:
        history: by target, oldest first, with the figures of each suite.
        links: of each run's directory, the address that the page has for it.

    """
    return _framed(
        "All runs · OpenClaw benchmark",
        _asset("index.html"),
        INDEX_SCRIPTS,
        [element("page", index_data(history, links))],
    )


def _framed(title: str, body: str, scripts: Sequence[str], islands: Sequence[str]) -> str:
    script = "(() => {\n'use strict';\n" + "\n".join(_asset(name) for name in scripts) + "})();"
    style = _asset("page.css")
    return fill(
        {
            "first_words": FIRST_WORDS,
            "policy": _policy(script, style),
            "title": html.escape(title),
            "style": style,
            "body": body,
            "islands": "\n".join(islands),
            "script": script,
        },
        _asset("frame.html"),
    )


def _islands(run: ShownRun) -> list[str]:
    pool = TextPool()
    targets = [group.target for group in run.summary.groups]
    cells = cell_data(run.cells, run.prompts, targets, pool)
    page: dict[str, Any] = {
        "header": header_of(run),
        "sections": sections_of(run),
        "targets": [
            {"label": target.label, "provider": target.provider, "model": target.model,
             "level": target.thinking_level}
            for target in targets
        ],
        "reasons": cells.reasons,
        "prompts": cells.prompts,
        "fields": cells.fields,
        "columns": cells.columns,
        "baseline": run.earlier.run_id if run.earlier else None,
    }  # fmt: skip
    return [
        element("page", page),
        *(element("details", part, first=first) for first, part in cells.detail_chunks()),
        *(element("texts", part, first=first) for first, part in pool.chunks()),
    ]


def _policy(script: str, style: str) -> str:
    """Nothing is loaded, sent or framed; only script and style of the page are used."""
    return (
        f"default-src 'none'; script-src {_hash(script)}; style-src {_hash(style)}; base-uri 'none'; "
        "form-action 'none'"
    )


def _hash(text: str) -> str:
    digest = hashlib.sha256(text.encode()).digest()
    return f"'sha256-{base64.b64encode(digest).decode()}'"


def _asset(name: str) -> str:
    text = resources.files("pytest_openclaw.reports.html").joinpath("assets", name).read_text("utf-8")
    return text.replace("\r\n", "\n")
