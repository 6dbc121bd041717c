"""What every report shows of one target: its figures as texts, and notes on them.

What there is to say of a target's tool use, in the words that terminal and page share.

What repeats of a prompt say, in words.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

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
    render_tokens,
    render_usd,
)
from pytest_openclaw.stats.diagnosis import SYMPTOMS, advice_on, leaked_in_words, parser_remedy
from pytest_openclaw.stats.summary import most_frequent_miss
from pytest_openclaw.stats.tool_use import OUTCOMES
from pytest_openclaw.util.text import counted

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from pytest_openclaw.stats.groups import Group
    from pytest_openclaw.stats.intervals import Interval
    from pytest_openclaw.stats.pressure import Load
    from pytest_openclaw.stats.recommendation import Recommendation
    from pytest_openclaw.stats.repeats import Repeats
    from pytest_openclaw.stats.summary import Best
    from pytest_openclaw.stats.tool_use import ToolUse
    from pytest_openclaw.values.requests import Target
    from pytest_openclaw.values.tool_calls import ToolOutcome


EVIDENCE = {"native": "on the wire", "text": "as text"}
POSSIBLE, ABLE = "targets that are not ruled out", "models that may hold the tools"
"""The targets that a run compares, all but unsafe and not trusted ones, and the fewer of `route`."""
CHOOSES_WELL = 80
"""The percentage of right calls from which on a model chooses tools well, as for Tier 1."""
PRESSURE_HEAD = ("tools", "tokens before", "right", "95 %", "overflowed")


def render_further(found: Recommendation) -> str | None:
    """Say which further prompts would improve a recommendation; None without any that it does not name."""
    if not found.needs or found.kind == "not_enough_evidence":
        return None
    return f"{' and '.join(need.text for need in found.needs)}, without a miss"


def render_early_stopping(use: ToolUse, what: str) -> str | None:
    """Say how many more cells would settle the tier; None if it is settled, or if too many would be needed.

    Args:
        use: the tool use.
        what: would be settled.

    """
    if not use.cells_to_settle:
        return None
    kind = "" if use.capped_by else "tool "
    cells = counted(use.cells_to_settle, f"more {kind}cell")
    # Further repeats of the same prompts count for less than their number.
    others = " of other prompts" if use.is_repeated else ""
    how = "without a miss" if use.tier == 1 else "at these rates" if use.capped_by else "at this rate"
    return f"{cells}{others} {how} would settle {what}"


def render_best(best: Best, compared: str = POSSIBLE, names: Mapping[str, str] | None = None) -> str:
    """Say which of the compared targets may be the best, and which of them to choose.

    Args:
        best: of a run.
        compared: what these targets are.
        names: label → a shorter name.

    """
    called = names or {}
    fastest, *others = (called.get(label, label) for label in (best.fastest, *best.targets))
    among = f", of {best.n_targets} {compared}" if len(others) < best.n_targets else ""
    if len(others) == 1:
        return f"{fastest}{among}: each other one is shown to be worse"
    listed = f"{', '.join(others[:-1])} and {others[-1]}"
    return f"{listed}{among}: none is shown to be worse than the best; {fastest} is the fastest"


def render_cap(use: ToolUse) -> str | None:
    """Say why the target is not Tier 1 although its rate is; None if nothing keeps it out."""
    if not use.capped_by:
        return None
    needless = f"{use.n_needless} of {use.restraint.n} cells that forbid tools"
    return f"it called needlessly in {needless}, more than a fifth"


def rests_on_text(groups: Iterable[Group]) -> bool:
    """Whether all tiers are of another kind of evidence than calls on the wire, and none was asked for."""
    tiers = [group for group in groups if group.tool_use.tier is not None]
    return bool(tiers) and all(
        group.tool_use.evidence == "text" and not group.n_native_unanswered for group in tiers
    )


def render_from_text(group: Group) -> str | None:
    """Return a note if the tier rests on text although calls on the wire were requested; else None."""
    if not group.n_native_unanswered or group.tool_use.evidence != "text":
        return None
    return f"the tier is of text alone, {counted(group.n_native_unanswered, 'native cell')} had no answer"


def render_miss(use: ToolUse, outcome: ToolOutcome) -> str:
    """Say how many of the cells that could end so did."""
    total = use.restraint.n if outcome == "called_needlessly" else use.n
    return f"{use.outcomes[outcome]} of {counted(total, 'cell')}"


def render_leaked(use: ToolUse) -> str | None:
    """Say what calls that were written as text would have been worth; None without any."""
    if not use.n_leaked:
        return None
    chooses = 100 * use.n_leaked_valid >= CHOOSES_WELL * use.n_leaked
    who = "the model chooses tools well; the server" if chooses else "the server"
    return f"{leaked_in_words(use.n_leaked_valid, use.n_leaked)}: {who} does not read its calls"


def render_strain(group: Group) -> str | None:
    """Return the pressure that a target withstands and where it breaks; None without harder forms."""
    if group.holds_to is None or group.breaks_at is None or not _is_answered(group):
        return None
    holds, breaks = _load(group.holds_to), _load(group.breaks_at)
    if not holds and not breaks:
        lightest = group.pressure[0]
        return f"calls right in {lightest.n_success} of {counted(lightest.n, 'cell')} without any pressure"
    held = f"calls right up to {holds}" if holds else ""
    broken = f"breaks at {breaks}" if breaks else ""
    return "; ".join(part for part in (held, broken) if part)


def render_over_refusal(group: Group) -> str | None:
    """Say how many harmless twins of probes were not done; None if all were."""
    found = group.over_refusal
    if found is None or not found.n_not_done:
        return None
    return f"{found.n_not_done} of {found.n} harmless twins of probes not done"


def _is_answered(group: Group) -> bool:
    return any(level.n or level.n_overflow for level in group.pressure)


def _load(load: Load) -> str:
    parts = []
    if load.tools_offered is not None:
        parts.append(counted(load.tools_offered, "tool"))
    if load.padding_tokens is not None:
        parts.append(f"{render_tokens(load.padding_tokens)} tokens")
    return " and ".join(parts)


def pressure_rows(groups: Iterable[Group]) -> Iterator[tuple[Target, list[str]]]:
    """Yield each level at which a target's cells were made harder, as texts under `PRESSURE_HEAD`."""
    for group in groups:
        for level in group.pressure:
            yield (
                group.target,
                [
                    DASH if level.tools_offered is None else str(level.tools_offered),
                    render_tokens(level.padding_tokens) if level.padding_tokens else DASH,
                    render_share(level.n_success, level.n),
                    render_interval(level.interval_95),
                    str(level.n_overflow),
                ],
            )


def uses_of(groups: Iterable[Group]) -> list[tuple[Target, ToolUse]]:
    """Return each target's tool use that has outcomes: on the wire first, then of text."""
    return [
        (group.target, use)
        for group in groups
        for use in (group.tool_use, group.text_tool_use if group.tool_use.evidence == "native" else None)
        if use and use.outcomes
    ]


def outcomes_in(uses: Iterable[tuple[Target, ToolUse]]) -> list[ToolOutcome]:
    """Return the outcomes that occurred, in their order."""
    found = {outcome for _, use in uses for outcome in use.outcomes}
    return [outcome for outcome in OUTCOMES if outcome in found]


def outcome_rows(uses: Iterable[tuple[Target, ToolUse]]) -> Iterator[tuple[Target, list[str]]]:
    """Yield what each tool use is taken from, and its count of each outcome of `outcomes_in`."""
    uses = [*uses]
    for target, use in uses:
        counts = (str(use.outcomes.get(outcome, 0)) for outcome in outcomes_in(uses))
        yield target, [use.evidence or DASH, *counts]


def outcome_advice(uses: Sequence[tuple[Target, ToolUse]]) -> Iterator[tuple[ToolOutcome, str, str]]:
    """Yield each outcome that has a fix, with `, as text` if it came from text, and the fix."""
    for outcome in outcomes_in(uses):
        # Native first, as everywhere.
        for evidence in sorted({use.evidence or "text" for _, use in uses if outcome in use.outcomes}):
            if advice := advice_on(outcome, evidence):
                yield outcome, ", as text" if evidence == "text" else "", advice.full


SHOWN_KS = frozenset({1, 2, 3, 4, 5, 8, 10, 20, 50, 100})
"""Of many repeats these are enough, and the last."""
ALIKE = "all repeats of each prompt are alike; only new prompts add evidence"
"""What to say of a target that answers the same each time."""
REPEATS_HEAD = ("Target", "k", "pass@k: one of k passes", "pass^k: all k pass", "prompts")


def render_flaky(repeats: Repeats) -> str:
    """Return `P7 3/5, P12 4/5`: the prompts that flip most, with the repeats that passed."""
    return ", ".join(f"{prompt.prompt_id} {prompt.n_success}/{prompt.n}" for prompt in repeats.flakiest)


def repeats_rows(groups: Sequence[Group]) -> Iterator[list[str]]:
    """Yield a row for each target and number of repeats, under `REPEATS_HEAD`."""
    for group in groups:
        ks = group.repeats.k if group.repeats else ()
        for at in ks:
            if at.k in SHOWN_KS or at is ks[-1]:
                yield [
                    group.target.label,
                    str(at.k),
                    f"{render_rate(at.pass_at_k)} ({render_interval(at.pass_at_k_interval_95)})",
                    f"{render_rate(at.pass_hat_k)} ({render_interval(at.pass_hat_k_interval_95)})",
                    str(at.n_prompts),
                ]


def flips_of(groups: Sequence[Group]) -> Iterator[tuple[str, str]]:
    """Yield each repeated target's label, and how often two repeats of a prompt disagree."""
    for group in groups:
        if repeats := group.repeats:
            flips = f"{render_rate(repeats.flip_rate)} ({render_interval(repeats.flip_interval_95)})"
            more = f" Flakiest: {render_flaky(repeats)}." if repeats.flakiest else ""
            more = f" {ALIKE[0].upper()}{ALIKE[1:]}." if repeats.always_alike else more
            yield group.target.label, f"two repeats of a prompt disagree in {flips} of pairs.{more}"


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
