"""How often a target agrees with recorded sessions: by tool, by position, with an interval over sessions."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any

from pytest_openclaw.conclusions.summary import AddedTable, SummaryPart
from pytest_openclaw.stats.intervals import Cluster, cluster_interval, total_of

if TYPE_CHECKING:
    from collections.abc import Iterable

    from pytest_openclaw.util.files import JsonObject
    from pytest_openclaw.values.rows import Record

_INTRO = (
    "Steps of recorded sessions: agreement with the recorded model, which may be wrong, and not part of any "
    "tier. The 95 % intervals take the steps of a session as one cluster. A step whose recorded call failed, "
    "or to which the user objected, was not asked; pytest lists it as skipped."
)
POSITIONS = ("first", "second", "third", "later")
"""The position of a step after a message of the user."""


def agreement_of(records: Iterable[Record]) -> SummaryPart | None:
    """Return the part of a summary; None without answered steps."""
    groups: dict[str, list[Record]] = {}
    for record in records:
        is_step = record.suite.endswith(("manifest.json", ".jsonl"))
        if is_step and record.availability_status == "ok" and record.failure_type != "harness_error":
            groups.setdefault(record.target.label, []).append(record)
    if not groups:
        return None
    values = {label: _figures(rows) for label, rows in groups.items()}

    def table(caption: str, key: str) -> AddedTable:
        rates = {label: one.get(key, {caption: one}) for label, one in values.items()}
        names = dict.fromkeys(name for one in rates.values() for name in one)
        rows = [(name, *(_shown(one.get(name)) for one in rates.values())) for name in names]
        return AddedTable(caption=caption, head=("steps", *rates), rows=rows)

    words = [(label, word, n) for label, one in values.items() for word, n in one["differences"].items()]
    return SummaryPart(
        name="sessions",
        value=values,
        title="Agreement with recorded sessions",
        intro=_INTRO,
        tables=[
            table("all", "all"),
            table("by recorded tool", "tools"),
            table("by position after the user's message", "positions"),
            AddedTable(
                caption="what differs",
                head=("target", "difference", "steps"),
                rows=[(label, word, str(n)) for label, word, n in words],
            ),
        ],
        findings={label: f"agrees in {_shown(one, ' steps')}{_where(one)}" for label, one in values.items()},
    )


def _figures(rows: list[Record]) -> JsonObject:
    tools: dict[str, list[Record]] = {}
    positions: dict[str, list[Record]] = {name: [] for name in POSITIONS}
    for row in rows:
        tools.setdefault(row.category or "answer", []).append(row)
        positions[POSITIONS[min(int(row.prompt_id.rpartition(".")[2]), len(POSITIONS)) - 1]].append(row)
    missed = [row for row in rows if not row.objective_pass]
    where = Counter(row.category for row in missed).most_common(1)
    words = [(row.parsed_output or {}).get("agreement") or row.failure_type for row in missed]
    return {
        **_rate(rows),
        "n_sessions": len({row.suite for row in rows}),
        "tools": {name: _rate(its) for name, its in tools.items()},
        "positions": {name: _rate(its) for name, its in positions.items() if its},
        "differences": dict(Counter(map(str, words)).most_common()),
        "most_differences": where[0][0] if where else None,
    }


def _rate(rows: list[Record]) -> JsonObject:
    agrees: dict[str, list[bool]] = {}
    for row in rows:
        agrees.setdefault(row.suite, []).append(row.objective_pass is True)
    clusters = [Cluster(sum(its), len(its)) for its in agrees.values()]
    interval, total = cluster_interval(clusters), total_of(clusters)
    assert interval is not None, "there are steps"
    rate = {"rate": total.n_success / total.n, "low": interval.low, "high": interval.high}
    return {"n": total.n, "n_agree": total.n_success, **rate}


def _shown(rate: Any, what: str = "") -> str:
    if rate is None:
        return "–"
    return f"{rate['n_agree']} of {rate['n']}{what} ({rate['low'] * 100:.0f}–{rate['high'] * 100:.0f} %)"


def _where(figures: JsonObject) -> str:
    return f", most differences in {figures['most_differences']}" if figures["most_differences"] else ""
