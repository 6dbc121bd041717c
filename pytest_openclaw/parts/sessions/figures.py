"""How often a target agrees with recorded sessions, and finishes replays, with intervals over sessions."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from typing import Any

from pytest_openclaw.conclusions.summary import AddedTable, SummaryPart
from pytest_openclaw.stats.intervals import Cluster, cluster_interval, total_of
from pytest_openclaw.util.files import JsonObject
from pytest_openclaw.util.text import counted
from pytest_openclaw.values.rows import Record

_INTRO = (
    "Agreement with the recorded model, which may be wrong; it is in no tier. The 95 % intervals take "
    "the steps of a session as one cluster. The rate is over steps with a recorded call; where a text is "
    "recorded, the candidate agrees if it calls no tool. A step whose recorded call failed, or to which the "
    "user objected, was not asked; pytest lists it as skipped. A replay is finished if every recorded call "
    "that may change something was made; without any, if it was answered."
)
ANSWER = "answer"
"""The category of a text."""
_CAPTIONS = {
    "all": "steps with a recorded call",
    "tools": "by recorded tool",
    "positions": "by position after the user's message",
    "replays": "finished replays, by the first tool that changes something",
    "differences": "what differs",
}
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
    parts = {label: {"all": {"all": one} if one["n"] else {}, **one} for label, one in values.items()}
    tables = [
        AddedTable(
            caption=caption,
            head=("steps", *values),
            rows=[
                (name, *(_shown(one[key].get(name)) for one in parts.values()))
                for name in dict.fromkeys(name for one in parts.values() for name in one[key])
            ],
        )
        for key, caption in _CAPTIONS.items()
    ]
    return SummaryPart(
        name="sessions",
        value=values,
        title="Agreement with recorded sessions",
        intro=_INTRO,
        tables=[table for table in tables if table.rows],
        findings={label: "; ".join(_sentences(one)) for label, one in values.items()},
    )


def _figures(rows: list[Record]) -> JsonObject:
    steps = [row for row in rows if "." in row.prompt_id]  # a replay has the number of a message
    calls = [row for row in steps if row.category != ANSWER]
    replays = [row for row in rows if "." not in row.prompt_id]
    works = [row for row in replays if row.category != ANSWER]
    done = [row.parsed_output or {} for row in works if row.objective_pass]
    n_steps = {name: sum(one.get(name, 0) for one in done) for name in ("steps", "recorded_steps")}
    words = (
        str((row.parsed_output or {}).get("agreement") or row.failure_type)
        for row in rows
        if not row.objective_pass
    )
    where = Counter(row.category for row in calls if not row.objective_pass).most_common(1)
    return {
        **(_rate(calls) or {"n": 0, "n_agree": 0, "rate": None, "low": None, "high": None}),
        "n_sessions": len({row.suite for row in rows}),
        "tools": _rates(steps, lambda row: row.category or ANSWER),
        "positions": _rates(
            calls, lambda row: POSITIONS[min(int(row.prompt_id.rpartition(".")[2]), len(POSITIONS)) - 1]
        ),
        "replays": _rates(replays, lambda row: row.category or ANSWER),
        "replayed": _rate(works) and {**(_rate(works) or {}), **n_steps},
        "differences": dict(Counter(words).most_common()),
        "most_differences": where[0][0] if where else None,
    }


def _rates(rows: list[Record], key: Callable[[Record], str]) -> JsonObject:
    groups: dict[str, list[Record]] = {}
    for row in rows:
        groups.setdefault(key(row), []).append(row)
    return {name: _rate(groups[name]) for name in sorted(groups, key=[*POSITIONS, *groups].index)}


def _rate(rows: list[Record]) -> JsonObject | None:
    agrees: dict[str, list[bool]] = {}
    for row in rows:
        agrees.setdefault(row.suite, []).append(row.objective_pass is True)
    clusters = [Cluster(sum(its), len(its)) for its in agrees.values()]
    if (interval := cluster_interval(clusters)) is None:
        return None
    n_agree, n = total_of(clusters)
    return {"n": n, "n_agree": n_agree, "rate": n_agree / n, "low": interval.low, "high": interval.high}


def _shown(rate: Any, what: str = "") -> str:
    if not isinstance(rate, dict):
        return "–" if rate is None else str(rate)
    return f"{rate['n_agree']} of {rate['n']}{what} ({rate['low'] * 100:.0f}–{rate['high'] * 100:.0f} %)"


def _sentences(figures: JsonObject) -> Iterable[str]:
    tool, answers = figures["most_differences"], figures["tools"].get(ANSWER)
    if figures["n"]:
        yield f"agrees in {_shown(figures, ' steps')}" + (f", most differences in {tool}" if tool else "")
    if answers:
        yield f"calls no tool in {answers['n_agree']} of {answers['n']} recorded answers"
    if replayed := figures["replayed"]:
        steps = f"{counted(replayed['steps'], 'step')} (recorded: {replayed['recorded_steps']})"
        work = _shown(replayed, " of the user's messages")
        yield f"makes every recorded change of {work}" + (f", in {steps}" if replayed["n_agree"] else "")
    if only_read := figures["replays"].get(ANSWER):
        yield f"answers {only_read['n_agree']} of {only_read['n']} messages without a change"
