"""The comparison with a baseline, as `summary.json` has it → a chart, tables and sentences."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from pytest_openclaw.reports.html import charts
from pytest_openclaw.reports.html.words import NAME_WIDTH, Table
from pytest_openclaw.reports.numbers import DASH, one_line

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from pytest_openclaw.core.json_types import JsonObject
    from pytest_openclaw.reports.html.charts import Chart

_MEASURES = {"latency": "answer", "ttft": "TTFT", "output_tokens": "output tokens", "cost": "cost"}
_VERDICTS = (
    "target",
    "found",
    "before",
    "now",
    "points",
    "95 %",
    "prompts better",
    "worse",
    "p",
    "would have seen",
)
_RATIOS = ("target", "measured", "found", "now / before", "95 %", "prompts", "p")
_APART = ("target", "why", "what", "cells", "prompts")
_MOST_PROMPTS = 12


@dataclass(frozen=True, kw_only=True)
class Compared:
    """What a section shows of a comparison."""

    charts: Sequence[Chart]
    tables: Sequence[Table]
    notes: Sequence[tuple[str, str]]


def comparison_of(comparison: Mapping[str, Any]) -> Compared:
    """Return the comparison; what is missing in it is a dash."""
    targets = _objects(comparison.get("targets"))
    baseline = _word(comparison.get("baseline"))
    drawn = [row for one in targets if (row := _drawn(one))]
    tables = [
        Table(
            caption=f"Verdicts against {baseline}", head=_VERDICTS, rows=[*map(_verdicts, targets)], n_words=2
        ),
        Table(
            caption=f"Times, tokens and cost against {baseline}",
            head=_RATIOS,
            rows=[*_ratios(targets)],
            n_words=3,
        ),
        Table(
            caption="Set aside",
            head=_APART,
            rows=[*map(_apart, _objects(comparison.get("set_aside")))],
            n_words=5,
        ),
    ]
    notes = [("note", _word(note)) for note in comparison.get("notes") or ()]
    notes += [(_name(one), _word(note)) for one in targets for note in one.get("notes") or ()]
    return Compared(
        charts=[charts.differences("Passed now, less before", drawn)] if drawn else [],
        tables=[table for table in tables if table.rows],
        notes=notes,
    )


def _verdicts(one: JsonObject) -> list[str]:
    data = _object(one.get("verdicts"))
    n = data.get("n_cells")
    seen = data.get("could_see")
    return [
        _name(one),
        _word(data.get("word")),
        f"{_word(data.get('n_base'))}/{_word(n)}",
        f"{_word(data.get('n_candidate'))}/{_word(n)}",
        _points(data.get("difference")),
        _interval(data.get("interval_95"), _points),
        _word(data.get("n_better")),
        _word(data.get("n_worse")),
        _p(data.get("p_adjusted")),
        DASH if seen is None else f"a loss of {100 * seen:.0f}",
    ]


def _ratios(targets: Sequence[JsonObject]) -> Iterator[list[str]]:
    for one in targets:
        for name, title in _MEASURES.items():
            if data := _object(one.get(name)):
                yield [
                    _name(one),
                    title,
                    _word(data.get("word")),
                    _times(data.get("ratio")),
                    _interval(data.get("interval_95"), _times),
                    _word(data.get("n_prompts")),
                    _p(data.get("p_adjusted")),
                ]


def _apart(one: JsonObject) -> list[str]:
    prompts = [_word(name) for name in one.get("prompts") or ()]
    more = f" and {len(prompts) - _MOST_PROMPTS} more" if len(prompts) > _MOST_PROMPTS else ""
    return [
        _name(one),
        _word(one.get("reason")).replace("_", " "),
        _word(one.get("detail")),
        _word(one.get("n_cells")),
        f"{', '.join(prompts[:_MOST_PROMPTS])}{more}",
    ]


def _drawn(one: JsonObject) -> JsonObject | None:
    data = _object(one.get("verdicts"))
    difference, interval = data.get("difference"), _object(data.get("interval_95"))
    if difference is None:
        return None
    low, high = interval.get("low", difference), interval.get("high", difference)
    said = f"{_points(difference)} points, {_word(data.get('word'))}"
    return {"target": _name(one), "rate": difference, "low": low, "high": high, "shown": said}


def _name(one: JsonObject) -> str:
    target, base = (one_line(str(one.get(key) or DASH), NAME_WIDTH) for key in ("target", "base_target"))
    return target if base in (target, DASH) else f"{base} → {target}"


def _interval(value: Any, shown: Any) -> str:
    data = _object(value)
    return f"{shown(data.get('low'))} to {shown(data.get('high'))}" if data else DASH


def _points(value: float | None) -> str:
    return DASH if value is None else f"{100 * value:+.0f}"


def _times(value: float | None) -> str:
    return DASH if value is None else f"{value:.2f}"


def _p(value: float | None) -> str:
    if value is None:
        return DASH
    return "< 0.0001" if value < 0.0001 else f"{value:.2g}"


def _word(value: Any) -> str:
    return DASH if value is None or value == "" else one_line(str(value), 200)


def _object(value: Any) -> JsonObject:
    return value if isinstance(value, dict) else {}


def _objects(value: Any) -> list[JsonObject]:
    return [one for one in value if isinstance(one, dict)] if isinstance(value, list) else []
