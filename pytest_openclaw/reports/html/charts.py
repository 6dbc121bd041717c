"""The page's charts, drawn by Vega-Lite: made with Altair here, colored by the page for its theme.

Marks carry a style's name (`value`, `good`, …); which color that is, `assets/charts.js` reads from the
style sheet. Foreign texts are data and never part of an expression.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from pytest_openclaw.reports.html.library import altair
from pytest_openclaw.stats.percentiles import percentile

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from pytest_openclaw.core.json_types import JsonObject

N_BINS = 40
ROW_PX = 30
RIDGE_PX = 46
COLUMN_PX = 74
_TALLEST = 0.86
"""Of a target's strip; the rest keeps it from touching the next one."""
_MS = "datum.value >= 1000 ? datum.value / 1000 + ' s' : datum.value + ' ms'"


@dataclass(frozen=True, kw_only=True)
class Chart:
    """A chart as the page takes it.

    Attributes:
        description: what it shows, for readers who cannot see it; a table beside it has the figures.
        min_px: it is not drawn narrower, and scrolls on a small screen.
    """

    title: str
    description: str
    spec: JsonObject
    min_px: int = 0


def rates(title: str, rows: Sequence[Mapping[str, Any]], *, marks: Sequence[float] = ()) -> Chart:
    """Return a point and its 95 % interval for each target.

    Args:
        title: what the rates are of.
        rows: `target`, `rate`, `low`, `high`, `shown`.
        marks: rates at which something begins, such as a tier.
    """
    ticks = altair().Axis(format="%", title=None, values=[0, 0.2, 0.4, 0.5, 0.6, 0.8, 1])
    about = Chart(
        title=title, description=f"{title}: a point with its 95 % interval for each target.", spec={}
    )
    return _intervals(about, rows, ticks, domain=[0, 1], marks=marks)


def differences(title: str, rows: Sequence[Mapping[str, Any]]) -> Chart:
    """Return a point and its 95 % interval for each target, left of 0 if it has become worse.

    Args:
        title: what the differences are of.
        rows: as `rates` takes them, -1 to 1.
    """
    widest = max((abs(row[end]) for row in rows for end in ("low", "high")), default=0.0)
    reach = min(1.0, max(0.1, math.ceil(widest * 10) / 10))
    return _intervals(
        Chart(
            title=title,
            description=f"{title}: a point with its 95 % interval for each target, left of 0 if it is worse.",
            spec={},
        ),
        rows,
        altair().Axis(format="+%", title=None, tickCount=5),
        domain=[-reach, reach],
        marks=[0],
    )


def ridges(title: str, values: Mapping[str, Sequence[float]]) -> Chart:
    """Return how often each length of time occurred, target by target, with p50 and p95 marked.

    Args:
        title: what was timed.
        values: milliseconds by target; a target without any is left out.
    """
    alt = altair()
    timed = {target: [max(value, 1.0) for value in found] for target, found in values.items() if found}
    low, high = _span([value for found in timed.values() for value in found])
    bars, ticks = [], []
    for place, (target, found) in enumerate(timed.items()):
        bars += _bars(place, target, found, low, high)
        for q in (50, 95):
            at = percentile(found, q)
            shown_text = f"{at:.0f} ms"
            ticks.append(
                {
                    "at": at,
                    "top": place - _TALLEST,
                    "base": place,
                    "q": f"p{q}",
                    "shown": shown_text,
                    "target": target,
                }
            )
    axis = alt.Axis(values=_round_times(low, high), labelExpr=_MS, title=None, labelOverlap="greedy")
    x = alt.X("from:Q", scale=alt.Scale(type="log", domain=[low, high], nice=False), axis=axis)
    places = list(range(len(timed)))
    y = alt.Y(
        "base:Q",
        scale=alt.Scale(domain=[-0.98, len(timed) - 0.9], reverse=True, nice=False, zero=False),
        axis=alt.Axis(values=places, labelExpr="names[datum.value]", title=None, domain=False, ticks=False),
    )
    whose = alt.Tooltip("target:N")
    shape = (
        alt.Chart(alt.InlineData(values=bars))
        .mark_rect(style="ridge")
        .encode(
            x=x,
            x2="to:Q",
            y=y,
            y2="top:Q",
            tooltip=[whose, alt.Tooltip("shown:N", title="time"), alt.Tooltip("n:Q", title="cells")],
        )
    )
    dash = alt.StrokeDash("q:N", scale=alt.Scale(domain=["p50", "p95"], range=[[1, 0], [3, 2]]), legend=None)
    marked = (
        alt.Chart(alt.InlineData(values=ticks))
        .mark_rule(style="percentile")
        .encode(
            x="at:Q",
            y="base:Q",
            y2="top:Q",
            strokeDash=dash,
            tooltip=[whose, alt.Tooltip("q:N", title="percentile"), alt.Tooltip("shown:N", title="time")],
        )
    )
    chart = alt.layer(shape, marked).add_params(alt.param(name="names", value=list(timed)))
    spec = chart.properties(width="container", height=max(1, len(timed)) * RIDGE_PX)
    return Chart(
        title=title,
        description=f"{title}: how often each length of time occurred, on a logarithmic scale, target by "
        "target, with the median and the 95th percentile marked.",
        spec=_plain(spec),
    )


def shares(title: str, rows: Sequence[Mapping[str, Any]], columns: Sequence[str], row_title: str) -> Chart:
    """Return a table whose fields are filled by the share of a target's cells that they hold.

    Args:
        title: what is counted.
        rows: `target`, `column`, `shown` (the text in the field), `share` (0 to 1), `is_good`.
        columns: in their order.
        row_title: what `shown` is, in a tooltip.
    """
    alt = altair()
    y = _rows(alt, rows)
    x = alt.X(
        "column:N",
        sort=list(columns),
        title=None,
        scale=alt.Scale(domain=list(columns)),
        axis=alt.Axis(
            labelAngle=0, labelExpr="split(datum.label, '_')", labelPadding=6, domain=False, ticks=False
        ),
    )
    opacity = alt.Opacity("share:Q", scale=alt.Scale(domain=[0, 1], range=[0.04, 0.6]), legend=None)
    tooltip = [
        alt.Tooltip("target:N"),
        alt.Tooltip("column:N", title="kind"),
        alt.Tooltip("shown:N", title=row_title),
    ]
    good, bad = ([row for row in rows if row["is_good"] is kind] for kind in (True, False))
    fills = [
        alt.Chart(alt.InlineData(values=part))
        .mark_rect(style=style)
        .encode(x=x, y=y, opacity=opacity, tooltip=tooltip)
        for part, style in ((good, "good"), (bad, "bad"))
        if part
    ]
    texts = (
        alt.Chart(alt.InlineData(values=list(rows)))
        .mark_text(style="shown")
        .encode(x=x, y=y, text="shown:N", tooltip=tooltip)
    )
    spec = alt.layer(*fills, texts).properties(width="container", height=(ROW_PX + 4) * _n_targets(rows))
    return Chart(
        title=title,
        description=f"{title}: {row_title} for each target and kind.",
        spec=_plain(spec),
        min_px=160 + COLUMN_PX * len(columns),
    )


def curves(title: str, rows: Sequence[Mapping[str, Any]], axis_title: str) -> Chart:
    """Return a line for each target: its rate, with its interval, from the lightest load to the heaviest.

    Args:
        title: what the rate is of.
        rows: `target`, `load` (a number), `label` (the load in words), `rate`, `low`, `high`, `shown`.
        axis_title: what is put on.
    """
    alt = altair()
    labels = list(dict.fromkeys(row["label"] for row in sorted(rows, key=lambda row: row["load"])))
    targets = list(dict.fromkeys(row["target"] for row in rows))
    x = alt.X(
        "label:O",
        sort=labels,
        title=axis_title,
        scale=alt.Scale(type="band", paddingInner=0.5),
        axis=alt.Axis(labelAngle=0),
    )
    # Beside each other, because lines of equal rates would hide one another.
    offset = alt.XOffset("target:N", sort=targets, scale=alt.Scale(domain=targets, padding=1))
    axis = alt.Axis(format="%", title=None, values=[0, 0.25, 0.5, 0.75, 1])
    y = alt.Y("rate:Q", scale=alt.Scale(domain=[0, 1]), axis=axis)
    legend = alt.Legend(title=None, orient="bottom", columns=3, labelLimit=300, symbolLimit=0)
    scale = alt.Scale(domain=targets)
    tooltip = [
        alt.Tooltip("target:N"),
        alt.Tooltip("label:N", title=axis_title),
        alt.Tooltip("shown:N", title="right"),
    ]
    base = alt.Chart(alt.InlineData(values=list(rows))).encode(
        x=x, xOffset=offset, color=alt.Color("target:N", scale=scale, legend=legend), tooltip=tooltip
    )
    layers = [
        base.mark_line(style="curve").encode(y=y),
        base.mark_rule(style="curve-interval").encode(y=alt.Y("low:Q"), y2="high:Q"),
        base.mark_point(style="curve-point").encode(
            y="rate:Q", shape=alt.Shape("target:N", scale=scale, legend=legend)
        ),
    ]
    spec = alt.layer(*layers).properties(width="container", height=220)
    return Chart(
        title=title, description=f"{title}, by {axis_title}, a line for each target.", spec=_plain(spec)
    )


def _rows(alt: Any, rows: Sequence[Mapping[str, Any]]) -> Any:
    """A row for each target; layers with other targets would put them into an order of their own."""
    targets = list(dict.fromkeys(row["target"] for row in rows))
    axis = alt.Axis(domain=False, ticks=False)
    return alt.Y("target:N", sort=targets, scale=alt.Scale(domain=targets), title=None, axis=axis)


def _intervals(
    about: Chart, rows: Sequence[Mapping[str, Any]], axis: Any, *, domain: list[float], marks: Sequence[float]
) -> Chart:
    alt = altair()
    data = alt.InlineData(values=list(rows))
    y = _rows(alt, rows)
    x = alt.X("low:Q", scale=alt.Scale(domain=domain), axis=axis)
    tooltip = [alt.Tooltip("target:N"), alt.Tooltip("shown:N", title="passed")]
    at = alt.InlineData(values=[{"at": at} for at in marks])
    layers = [
        alt.Chart(at).mark_rule(style="mark").encode(x="at:Q"),
        alt.Chart(data).mark_rule(style="interval").encode(y=y, x=x, x2="high:Q", tooltip=tooltip),
        alt.Chart(data).mark_point(style="value").encode(y=y, x="rate:Q", tooltip=tooltip),
    ]
    spec = alt.layer(*layers[0 if marks else 1 :])
    spec = spec.properties(width="container", height=ROW_PX * _n_targets(rows))
    return replace(about, spec=_plain(spec))


def _n_targets(rows: Sequence[Mapping[str, Any]]) -> int:
    return len({row["target"] for row in rows})


def _plain(chart: Any) -> JsonObject:
    """The specification without Altair's own look, which would beat the page's."""
    spec: JsonObject = chart.to_dict()
    spec.pop("config", None)
    spec["autosize"] = {"type": "fit-x", "contains": "padding"}
    return spec


def _round_times(low: float, high: float) -> list[float]:
    """1, 2 and 5 of every power of ten in between; 1 alone, where there would be too many."""
    powers = range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
    leading = (1, 2, 5) if len(powers) < 5 else (1,)
    return [float(one * 10**power) for power in powers for one in leading if low <= one * 10**power <= high]


def _span(values: Sequence[float]) -> tuple[float, float]:
    low, high = min(values, default=1.0), max(values, default=10.0)
    return (low * 0.95, high * 1.05) if high > low * 1.2 else (low * 0.7, high * 1.4)


def _bars(place: int, target: str, values: Sequence[float], low: float, high: float) -> list[JsonObject]:
    width = math.log(high / low) / N_BINS
    counts: dict[int, int] = {}
    for value in values:
        bin_ = min(N_BINS - 1, int(math.log(value / low) / width))
        counts[bin_] = counts.get(bin_, 0) + 1
    most = max(counts.values())
    return [
        {
            "from": low * math.exp(bin_ * width),
            "to": low * math.exp((bin_ + 1) * width),
            "base": place,
            "top": place - _TALLEST * n / most,
            "n": n,
            "target": target,
            "shown": f"{low * math.exp(bin_ * width):.0f} to {low * math.exp((bin_ + 1) * width):.0f} ms",
        }
        for bin_, n in sorted(counts.items())
    ]
