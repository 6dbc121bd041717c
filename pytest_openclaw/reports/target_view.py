"""What every report shows of one target: its figures as texts, and notes on them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

from pytest_openclaw.core.text import counted
from pytest_openclaw.reports.money import render_usd
from pytest_openclaw.reports.numbers import (
    DASH,
    one_line,
    render_count,
    render_interval,
    render_ms,
    render_range,
    render_rate,
    render_share,
    render_tier,
)
from pytest_openclaw.reports.repeats_text import ALIKE, render_flaky
from pytest_openclaw.reports.tool_use_text import (
    render_cap,
    render_early_stopping,
    render_from_text,
    render_leaked,
    render_miss,
    render_over_refusal,
    render_strain,
)
from pytest_openclaw.stats.advice import advice_on, parser_remedy
from pytest_openclaw.stats.diagnosis import SYMPTOMS
from pytest_openclaw.stats.findings import most_frequent_miss

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from pytest_openclaw.stats.groups import Group
    from pytest_openclaw.stats.intervals import Interval


class Figure(NamedTuple):
    """A figure, its 95 % interval, and how it is written."""

    value: float | None
    interval: Interval | None
    render: Callable[[float | None], str] = render_ms

    @property
    def short(self) -> str:
        """`1.1 s`, or `1.1 s?` without an interval."""
        text = self.render(self.value)
        return text if self.interval or text == DASH else f"{text}?"

    @property
    def full(self) -> str:
        """`1.1 s (0.9-1.4 s)`, or `1.1 s?` without an interval."""
        if self.value is None or self.interval is None:
            return self.short
        return f"{self.render(self.value)} ({render_range(self.interval, self.render)})"


class Miss(NamedTuple):
    """The most frequent failure of tool use, its count and its fix; empty without one."""

    outcome: str
    how_often: str
    advice: str


@dataclass(frozen=True, kw_only=True)
class TargetView:
    """A target as texts, a dash for what was not measured.

    Attributes:
        passed, tool_use: such as `7/8`.
        figures: `p50`, `p95`, `p99`, `TTFT` (its median), `TTFT p95`, `TTFT p99`, `tok/s`.
        notes: by label, those that apply.
    """

    passed: str
    pass_rate: str
    passed_interval: str
    tool_use: str
    tool_use_interval: str
    tier: str
    cost: str
    figures: Mapping[str, Figure]
    notes: Mapping[str, str]
    miss: Miss | None

    @property
    def passed_with_rate(self) -> str:
        """`7/8 (87 %)`."""
        return DASH if self.passed == DASH else f"{self.passed} ({self.pass_rate})"


def view_of(group: Group) -> TargetView:
    """Return what reports show of a target."""
    use, passed = group.tool_use, group.passed
    latency = {name: Figure(group.latency_ms[name], group.latency_intervals_95[name]) for name in _QUANTILES}
    ttft = {
        label: Figure(group.ttft_ms[name], group.ttft_intervals_95[name])
        for name, label in zip(_QUANTILES, ("TTFT", "TTFT p95", "TTFT p99"), strict=True)
    }
    notes = {
        "not tier 1": render_cap(use),
        "not conclusive": render_early_stopping(use, f"tier {use.tier}"),
        "text alone": render_from_text(group),
        "written calls": render_leaked(use),
        "context": render_strain(group),
        "over-refusal": render_over_refusal(group),
        "flaky": render_flaky(group.repeats) if group.repeats else None,
        "repeats": ALIKE if group.repeats and group.repeats.always_alike else None,
    }
    return TargetView(
        passed=render_share(passed.n_success, passed.n),
        pass_rate=render_rate(passed.rate),
        passed_interval=render_interval(passed.interval_95),
        tool_use=render_share(use.n_success, use.n),
        tool_use_interval=render_interval(use.interval_95),
        tier=render_tier(use.tier, use.conclusive),
        cost=render_usd(group.cost_usd),
        figures={
            **latency,
            **ttft,
            "tok/s": Figure(group.tokens_per_s, group.tokens_per_s_interval_95, render_count),
        },
        notes={label: text for label, text in notes.items() if text},
        miss=_miss(group),
    )


_QUANTILES = ("p50", "p95", "p99")


def _miss(group: Group) -> Miss | None:
    use = group.tool_use
    if not (outcome := most_frequent_miss(use)):
        return None
    how_often, diagnosis = render_miss(use, outcome), group.diagnosis
    if diagnosis and use.evidence == "native" and outcome in SYMPTOMS:
        return Miss(outcome, how_often, diagnosis.in_words)
    if outcome == "leaked_as_text":
        return Miss(outcome, how_often, parser_remedy(group.target.provider, group.server))
    advice = advice_on(outcome, use.evidence)
    return Miss(outcome, how_often, advice.short if advice else "")


def weight_row(group: Group) -> list[str]:
    """Return the speed of reading, a turn of OpenClaw and the context that it needs, and a solved task."""
    turn, solved = group.openclaw_turn, group.per_solved
    return [
        render_count(group.prompt_tokens_per_s),
        render_ms(turn.cold_ms) if turn else DASH,
        render_ms(turn.cached_ms) if turn else DASH,
        render_count(turn.context_tokens) if turn else DASH,
        render_count(turn.context_needed_tokens) if turn else DASH,
        f"{solved.n_solved}/{solved.n_tasks}" if solved else DASH,
        render_count(solved.tokens) if solved else DASH,
        DASH if solved is None or solved.turns is None else f"{solved.turns:.1f}",
        DASH if solved is None or solved.seconds is None else render_ms(solved.seconds * 1000),
        render_usd(solved.cost_usd) if solved else DASH,
    ]


def render_intervals(tool_use: Interval | None, figures: Mapping[str, Figure], width: int) -> str:
    """Return `95 %: tool use 0-17 %, p50 480-560 ms, …` of the figures that have one; empty if none has.

    A line has room for the first ones, if not for all.
    """
    parts = [f"tool use {render_interval(tool_use)}"] if tool_use else []
    for name in ("p50", "p95", "TTFT", "tok/s"):
        if (figure := figures.get(name)) and figure.interval:
            limits = render_range(figure.interval, figure.render)
            parts.append(f"{limits} tok/s" if name == "tok/s" else f"{name} {limits}")
    while len(text := f"95 %: {', '.join(parts)}") > width:
        parts.pop()
    return text if parts else ""


def unanswered(group: Group) -> Iterator[tuple[str, int, str]]:
    """Yield each failure type with its count and a reason."""
    for failure_type, n in group.failures.items():
        yield failure_type, n, group.reasons.get(failure_type, "the model gave no usable answer")


def unknown_endings(group: Group) -> str:
    """Return the finish words that are not known, with the number of their cells."""
    words = group.unknown_finish_reasons.items()
    listed = ", ".join(f"{one_line(word, 40)!r} ({counted(n, 'cell')})" for word, n in words)
    return f"{listed}, which no table of finish words has"
