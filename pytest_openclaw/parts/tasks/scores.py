"""The mean scores of tasks, by target and by category."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from statistics import fmean
from typing import Any

from pytest_openclaw.conclusions.summary import AddedTable, SummaryPart
from pytest_openclaw.stats.intervals import mean_difference_95
from pytest_openclaw.util.text import counted
from pytest_openclaw.values.rows import Record

_INTRO = (
    "Mean scores, 0 to 1, with their 95 % intervals over tasks, as if two more had been asked: one with the "
    "score 0, one with 1. Of hybrid tasks only the automated checks count. An unusable answer scores 0."
)
_TASK = re.compile(r"(?:^|/)(?:task\.toml|task_[^/]*\.md|scenarios/[^/]+/[^/]+\.yaml)\Z")


def scores_of(records: Iterable[Record]) -> SummaryPart | None:
    """Return the part of a summary; None without answered tasks."""
    rows: dict[tuple[str, str], list[Record]] = {}
    for record in records:
        if (
            _TASK.search(record.suite)
            and record.availability_status == "ok"
            and record.failure_type != "harness_error"
        ):
            rows.setdefault((record.target.label, record.category or "none"), []).append(record)
    if not rows:
        return None
    labels, categories = ([*dict.fromkeys(key[n] for key in rows)] for n in (0, 1))
    by_category = {key: _mean(its) for key, its in rows.items()}
    values = {
        label: {
            **_mean([row for key, its in rows.items() if key[0] == label for row in its]),
            "categories": {key[1]: its for key, its in by_category.items() if key[0] == label},
        }
        for label in labels
    }
    texts = {label: f"{m['score']:.2f} ({m['low']:.2f}–{m['high']:.2f})" for label, m in values.items()}
    shown = {key: f"{mean['score']:.2f}" for key, mean in by_category.items()}
    return SummaryPart(
        name="tasks",
        value=values,
        title="Tasks",
        intro=_INTRO,
        tables=[
            AddedTable(
                caption="Mean scores",
                head=("target", "tasks", "score"),
                rows=[(label, _count(values[label]), texts[label]) for label in labels],
            ),
            AddedTable(
                caption="Mean scores by category",
                head=("category", *labels),
                rows=[(one, *(shown.get((label, one), "–") for label in labels)) for one in categories],
            ),
        ],
        findings={
            label: f"mean score {text}, {counted(values[label]['n'], 'task')}"
            for label, text in texts.items()
        },
    )


def _count(mean: dict[str, Any]) -> str:
    hybrid = mean["without_judge"]
    return f"{mean['n']}, {hybrid} without their judge" if hybrid else str(mean["n"])


def _mean(rows: Sequence[Record]) -> dict[str, Any]:
    tasks: dict[str, list[float]] = {}
    hybrid = {row.suite for row in rows if (row.parsed_output or {}).get("without_judge")}
    for row in rows:
        tasks.setdefault(row.suite, []).append((row.parsed_output or {}).get("score", 0.0))
    scores = [*map(fmean, tasks.values())]
    # That interval is for values from -1 to 1.
    interval = mean_difference_95([(2 * score - 1, 1.0) for score in scores])
    assert interval is not None, "there are tasks"
    low, high = (interval.low + 1) / 2, (interval.high + 1) / 2
    score = {"score": fmean(scores), "low": low, "high": high}
    return {"n": len(scores), "without_judge": len(hybrid), **score}
