"""Shared results as lines of a terminal and as a page: a run beside them, and all of them ranked."""

from __future__ import annotations

import html
from typing import TYPE_CHECKING, Any, NamedTuple

from pytest_openclaw.reports.columns import render_targets
from pytest_openclaw.reports.numbers import (
    DASH,
    one_line,
    render_interval,
    render_ms,
    render_share,
    render_tier,
    render_time,
    whole_lines_of,
)
from pytest_openclaw.stats.intervals import stored_interval
from pytest_openclaw.stats.shared_results import (
    SharedDifference,
    SharedResult,
    compare_shared,
    is_comparable,
    leaders,
)
from pytest_openclaw.stats.significance import LEVEL

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

HEADERS = ("target", "tools", "95% CI", "tier", "p50", "difference", "prompts", "compared")
LEFT_OUT_FIRST = ("p50", "95% CI", "prompts")
ON_THE_LEFT = ("tier", "compared")
PAGE_HEADERS = (
    "model", "right calls", "95 %", "tier", "may hold tools?", "asked by", "quantization", "OpenClaw",
    "surface", "other conditions", "p50", "prompts", "measured",
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
    """Shared results in groups.

    Attributes:
        best: no other one is shown to be better.
        others: another one is.
        alone: no other one has a tool prompt in common under the same conditions.
        unfit: unsafe or not to be trusted, whatever the rate.
    """

    best: Sequence[SharedResult]
    others: Sequence[SharedResult]
    alone: Sequence[SharedResult]
    unfit: Sequence[SharedResult]


def rank(results: Sequence[SharedResult]) -> Ranking:
    """Rank results by right tool calls; unsafe targets, and those not to be trusted, are not compared."""
    fit: list[SharedResult] = []
    unfit: list[SharedResult] = []
    for one in sorted(results, key=_by_rate):
        is_unfit = one.figures["recommendation"]["kind"] in OUT_OF_THE_RANKING
        (unfit if is_unfit else fit).append(one)
    alone = [one for one in fit if not any(is_comparable(one, other) for other in fit if other is not one)]
    ranked = [one for one in fit if one not in alone]
    best = leaders(ranked)
    return Ranking(
        best=[one for place, one in enumerate(ranked) if place in best],
        others=[one for place, one in enumerate(ranked) if place not in best],
        alone=alone,
        unfit=unfit,
    )


def render_beside(own: Sequence[SharedResult], shared: Sequence[SharedResult], width: int) -> Iterator[str]:
    """Yield a block for each target of a run: the shared results, and how the target differs from each."""
    for n, one in enumerate(own):
        if n:
            yield ""
        yield from whole_lines_of(f"{one.name}: {one.figures['recommendation']['sentence']}", width, "  ")
        rows = [_row(other, compare_shared(one, other)) for other in sorted(shared, key=_by_rate)]
        yield from render_targets([HEADERS, _row(one, None), *rows], ON_THE_LEFT, LEFT_OUT_FIRST, width)


def render_leaderboard(ranking: Ranking) -> str:
    """Return the body of the page."""
    groups = (
        ("Not shown to be worse than the best", ranking.best),
        ("Shown to be worse than another one", ranking.others),
        ("Not compared: no tool prompt in common with another one under the same conditions", ranking.alone),
        ("Unsafe, or not to be trusted with tools", ranking.unfit),
    )
    everyone = [one for _, results in groups for one in results]
    usual = _usual_conditions(everyone)
    head = "".join(f'<th scope="col">{name}</th>' for name in PAGE_HEADERS)
    rows = {title: "".join(_page_row(one, usual) for one in results) for title, results in groups}
    blocks = [
        f"<section><h2>{title}</h2><div class='scroll' tabindex='0' role='region' aria-label='{title}'>"
        f"<table><thead><tr>{head}</tr></thead><tbody>{rows[title]}</tbody></table>"
        "</div></section>"
        for title, results in groups
        if results
    ]
    n = len(everyone)
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
    "is in the first group in at least 95 % of cases. Targets without a prompt in common, or under other "
    "conditions (settings, surface, release of OpenClaw), are not compared with each other."
)


def _row(one: SharedResult, difference: SharedDifference | None) -> tuple[str, ...]:
    use = one.figures["tool_use"]
    return (
        one.name,
        render_share(use["n_success"], use["n"]),
        render_interval(stored_interval(use["interval_95"])),
        render_tier(use["tier"], use["conclusive"]),
        render_ms(one.figures["latency_ms"]["p50"]),
        _points(difference),
        str(difference.n_prompts) if difference else "",
        _remark(one, difference),
    )


def _points(difference: SharedDifference | None) -> str:
    if difference is None or difference.difference is None:
        return "" if difference is None else DASH
    points = f"{100 * difference.difference:+.0f}"
    if found := difference.interval_95:
        points += f" ({100 * found.low:+.0f} to {100 * found.high:+.0f})"
    return points


def _remark(one: SharedResult, difference: SharedDifference | None) -> str:
    if difference is None:
        return "this run"
    if not difference.n_prompts:
        return "no: no tool prompt in common"
    if difference.other_conditions:
        return f"no: other {_conditions_in_words(one, difference.other_conditions)}"
    return "p < 0.05" if difference.p < LEVEL else "no difference shown"


def _conditions_in_words(one: SharedResult, names: Iterable[str]) -> str:
    """Return `temperature 0.7, request_fields`: the value where it is short."""
    values = {name: one.conditions.get(name) for name in names}
    return ", ".join(
        name if isinstance(value, dict | list) else f"{name} {'none' if value is None else value}"
        for name, value in values.items()
    )


def _usual_conditions(results: Sequence[SharedResult]) -> Mapping[str, object]:
    """Return the most frequent value of each condition."""
    names = dict.fromkeys(name for one in results for name in one.conditions)
    usual = {}
    for name in names:
        values = [one.conditions.get(name) for one in results]
        usual[name] = max(values, key=values.count)
    return usual


def _page_row(one: SharedResult, usual: Mapping[str, object]) -> str:
    figures: Mapping[str, Any] = one.figures
    use = figures["tool_use"]
    model = f"{figures['model']}{'@' + figures['thinking_level'] if figures['thinking_level'] else ''}"
    # Surface and release have columns of their own.
    differing = [name for name in usual if one.conditions.get(name) != usual[name]]
    others = [name for name in differing if name not in ("surface", "release")]
    cells = (
        render_share(use["n_success"], use["n"]),
        render_interval(stored_interval(use["interval_95"])),
        render_tier(use["tier"], use["conclusive"]),
        KINDS[figures["recommendation"]["kind"]],
        figures["kind"],
        figures["server"].get("quantisation") or DASH,
        figures["recommendation"].get("release") or DASH,
        figures.get("surface", "listed"),
        _conditions_in_words(one, others) or DASH,
        render_ms(figures["latency_ms"]["p50"]),
        str(len(one.prompts)),
        render_time(figures["measured_at_ms"], "%Y-%m-%d"),
    )
    shown = "".join(f'<td class="whole">{html.escape(one_line(str(cell), 60))}</td>' for cell in cells)
    title = html.escape(figures["recommendation"]["sentence"], quote=True)
    return f'<tr title="{title}"><th scope="row">{html.escape(one_line(model, 80))}</th>{shown}</tr>'


def _by_rate(one: SharedResult) -> tuple[float, str]:
    return -(one.figures["tool_use"]["rate"] or 0.0), one.name
