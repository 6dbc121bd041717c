"""Shared results as lines of a terminal and as a page: a run beside them, and all of them ranked."""

from __future__ import annotations

import html
from typing import TYPE_CHECKING, Any, NamedTuple

from pytest_openclaw.reports.columns import kept_columns, render_columns
from pytest_openclaw.reports.numbers import (
    DASH,
    columns,
    one_line,
    render_interval,
    render_ms,
    render_tier,
    render_time,
    whole_lines_of,
)
from pytest_openclaw.stats.intervals import Interval
from pytest_openclaw.stats.shared_results import SharedDifference, SharedResult, compare_shared, leaders
from pytest_openclaw.stats.significance import LEVEL

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

HEADERS = ("target", "tools", "95% CI", "tier", "p50", "difference", "prompts", "compared")
LEFT_OUT_FIRST = ("p50", "95% CI", "prompts")
ON_THE_LEFT = (True, False, False, True, False, False, False, True)
PAGE_HEADERS = (
    "model", "asked by", "quantization", "OpenClaw", "surface", "may hold tools?", "right calls", "95 %",
    "tier", "p50", "prompts", "measured",
)  # fmt: skip
KINDS = {
    "trusted": "trusted",
    "trusted_with": "with some tools",
    "not_trusted": "not trusted",
    "unsafe": "unsafe",
    "not_enough_evidence": "not enough evidence",
}
OUT_OF_THE_RANKING = ("unsafe", "not_trusted")


class Ranking(NamedTuple):
    """Results that no other one is shown to be better than, the others, and those that no rate makes good."""

    best: Sequence[SharedResult]
    others: Sequence[SharedResult]
    unfit: Sequence[SharedResult]


def rank(results: Sequence[SharedResult]) -> Ranking:
    """Rank results by right tool calls; unsafe targets, and those not to be trusted, are not compared."""
    fit = sorted(
        (one for one in results if one.figures["recommendation"]["kind"] not in OUT_OF_THE_RANKING),
        key=_by_rate,
    )
    best = leaders(fit)
    return Ranking(
        best=[one for place, one in enumerate(fit) if place in best],
        others=[one for place, one in enumerate(fit) if place not in best],
        unfit=sorted(
            (one for one in results if one.figures["recommendation"]["kind"] in OUT_OF_THE_RANKING),
            key=_by_rate,
        ),
    )


def render_beside(own: Sequence[SharedResult], shared: Sequence[SharedResult], width: int) -> Iterator[str]:
    """Yield a block for each target of a run: the shared results, and how the target differs from each."""
    for n, one in enumerate(own):
        if n:
            yield ""
        yield from whole_lines_of(f"{one.name}: {one.figures['recommendation']['sentence']}", width, "  ")
        rows = [_row(other, compare_shared(one, other)) for other in sorted(shared, key=_by_rate)]
        table = [HEADERS, _row(one, None), *rows]
        longest = max(columns(row[0]) for row in table)
        kept = kept_columns(table, LEFT_OUT_FIRST, width, min(longest, 24))
        yield from render_columns(
            [[row[n] for n in kept] for row in table],
            [ON_THE_LEFT[n] for n in kept],
            most=longest,
            width=width,
        )


def render_leaderboard(ranking: Ranking) -> str:
    """Return the body of the page."""
    groups = (
        ("Not shown to be worse than the best", ranking.best),
        ("Shown to be worse than another one", ranking.others),
        ("Unsafe, or not to be trusted with tools", ranking.unfit),
    )
    head = "".join(f'<th scope="col">{name}</th>' for name in PAGE_HEADERS)
    blocks = [
        f"<section><h2>{title}</h2><div class='scroll' tabindex='0' role='region' aria-label='{title}'>"
        f"<table><thead><tr>{head}</tr></thead><tbody>{''.join(map(_page_row, results))}</tbody></table>"
        "</div></section>"
        for title, results in groups
        if results
    ]
    n = sum(len(results) for _, results in groups)
    return (
        '<header class="top"><div class="title"><p class="kicker">OpenClaw benchmark</p>'
        f"<h1>{n} shared result{'' if n == 1 else 's'}</h1></div>"
        '<div class="tools"><div class="theme" role="group" aria-label="Colors">'
        '<button type="button" data-theme-is="light">Light</button>'
        '<button type="button" data-theme-is="auto">Auto</button>'
        '<button type="button" data-theme-is="dark">Dark</button></div></div></header>\n<main>\n'
        + "\n".join(blocks)
        + f'\n<p class="intro">{_METHOD}</p>\n</main>'
    )


_METHOD = (
    "A target is shown to be worse if another one made more right calls on the prompts that both were asked. "
    f"The test is a sign-flip test over prompts, at {LEVEL:g} divided by the number of others: the true best "
    "is in the first group in at least 95 % of cases. Targets without a prompt in common are not compared."
)


def _row(one: SharedResult, difference: SharedDifference | None) -> tuple[str, ...]:
    use = one.figures["tool_use"]
    return (
        one.name,
        f"{use['n_success']}/{use['n']}" if use["n"] else DASH,
        render_interval(_interval(use["interval_95"])),
        render_tier(use["tier"], use["conclusive"]),
        render_ms(one.figures["latency_ms"]["p50"]),
        _points(difference),
        str(difference.n_prompts) if difference else "",
        _remark(difference),
    )


def _points(difference: SharedDifference | None) -> str:
    if difference is None or difference.difference is None:
        return "" if difference is None else DASH
    points = f"{100 * difference.difference:+.0f}"
    if found := difference.interval_95:
        points += f" ({100 * found.low:+.0f} to {100 * found.high:+.0f})"
    return points


def _remark(difference: SharedDifference | None) -> str:
    if difference is None:
        return "this run"
    if not difference.n_prompts:
        return "no: no tool prompt in common"
    if difference.other_conditions:
        return f"other {', '.join(difference.other_conditions)}"
    return "p < 0.05" if difference.p < LEVEL else "no difference shown"


def _page_row(one: SharedResult) -> str:
    figures: Mapping[str, Any] = one.figures
    use = figures["tool_use"]
    model = f"{figures['model']}{'@' + figures['thinking_level'] if figures['thinking_level'] else ''}"
    cells = (
        figures["kind"],
        figures["server"].get("quantisation") or DASH,
        figures["recommendation"].get("release") or DASH,
        figures.get("surface", "listed"),
        KINDS[figures["recommendation"]["kind"]],
        f"{use['n_success']}/{use['n']}" if use["n"] else DASH,
        render_interval(_interval(use["interval_95"])),
        render_tier(use["tier"], use["conclusive"]),
        render_ms(figures["latency_ms"]["p50"]),
        str(len(one.prompts)),
        render_time(figures["measured_at_ms"], "%Y-%m-%d"),
    )
    shown = "".join(f"<td>{html.escape(one_line(str(cell), 60))}</td>" for cell in cells)
    title = html.escape(figures["recommendation"]["sentence"], quote=True)
    return f'<tr title="{title}"><th scope="row">{html.escape(one_line(model, 80))}</th>{shown}</tr>'


def _by_rate(one: SharedResult) -> tuple[float, str]:
    return -(one.figures["tool_use"]["rate"] or 0.0), one.name


def _interval(stored: Mapping[str, float] | None) -> Interval | None:
    return Interval(low=stored["low"], high=stored["high"]) if stored else None
