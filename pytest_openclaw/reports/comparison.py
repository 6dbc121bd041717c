"""Two runs compared, in words, and what OpenClaw's own request costs each model."""

from __future__ import annotations

import textwrap
from collections import Counter
from typing import TYPE_CHECKING

from pytest_openclaw.reports.numbers import one_line
from pytest_openclaw.util.text import counted, first_few
from pytest_openclaw.values.requests import OPENCLAW, OPENCLAW_ITSELF

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from pytest_openclaw.stats.comparison import (
        ComparedRuns,
        Comparison,
        RatioChange,
        Reason,
        SetAside,
        VerdictChange,
    )
    from pytest_openclaw.stats.intervals import Interval
    from pytest_openclaw.stats.summary import Summary


REASONS: Mapping[Reason, str] = {
    "only_in_baseline": "only in the baseline",
    "only_in_candidate": "only in the candidate",
    "asked_differently": "asked differently",
    "on_another_surface": "asked on another surface",
    "served_differently": "served differently",
    "prompt_changed": "the prompt has changed",
    "validator_changed": "the validator has changed",
    "not_answered_in_baseline": "not answered in the baseline",
    "not_answered_in_candidate": "not answered in the candidate",
}
ACROSS: Mapping[Reason, str] = {
    "asked_differently": "settings",
    "on_another_surface": "surface",
    "served_differently": "serving",
    "prompt_changed": "prompt",
    "validator_changed": "validator",
}
"""What looks across a difference."""
TITLES = {"latency": "latency", "ttft": "TTFT", "output_tokens": "output tokens", "cost": "cost"}
UNLIKE = "two models of equal rates that fail on other prompts are called different in up to 6 % of runs"
"""Of repeats: the test takes a prompt's cells to be as likely in both runs."""
SAME, NOT_COMPARED = "no difference seen", "no judged cell could be compared"
WIDTH = 100
MOST_PROMPTS = 8
TITLE_WIDTH = 15


def render_comparison(compared: ComparedRuns, width: int = WIDTH) -> Iterator[str]:
    """Yield everything, each fact on a line, or on more where the terminal is narrower."""
    facts: list[tuple[str, str]] = []
    for comparison in compared.targets:
        facts.append(("", f"{name_of(comparison)}: {comparison.verdicts.word}"))
        facts += ((f"  {title:<{TITLE_WIDTH}}", text) for title, text in details_of(comparison))
    if not compared.targets:
        facts.append(("", "no target is in both runs; --target BASE=CANDIDATE says which to compare"))
    facts += (("set aside: ", set_aside_in_words(apart, "--across")) for apart in compared.set_aside)
    facts += (("note: ", note) for note in compared.notes)
    for label, text in facts:
        indent = " " * max(2, len(label) if label.startswith(" ") else 2)
        yield from textwrap.wrap(
            f"{label}{text}", width, subsequent_indent=indent, break_long_words=False, break_on_hyphens=False
        )


def name_of(comparison: Comparison) -> str:
    """Return the name of a comparison: one target, or a pair of targets."""
    if comparison.base_target == comparison.target:
        return comparison.target
    return f"{comparison.base_target} -> {comparison.target}"


def in_short(comparison: Comparison) -> str:
    """Return the verdicts and what else differs: `31/36 -> 24/36, p 0.02; 1.4x slower`."""
    verdicts = comparison.verdicts
    passed = f"{_passed(verdicts)}, p {render_p(verdicts.p_adjusted)}" if verdicts.n_cells else NOT_COMPARED
    ratios = [ratio_in_words(name, ratio) for name, ratio in comparison.ratios.items() if _differs(ratio)]
    return "; ".join([passed, *ratios, *_changed_outcomes(comparison)])


def _changed_outcomes(comparison: Comparison) -> Iterator[str]:
    """Yield `more bad_arguments: 1 -> 9 of 40 tool cells`."""
    for one in comparison.outcomes:
        if one.word != SAME:
            counts = f"{one.n_base} -> {one.n_candidate} of {one.n_cells} tool cells"
            yield f"{one.word} {one.outcome}: {counts}"


def set_aside_in_words(apart: SetAside, option: str) -> str:
    """Return why cells are not compared, and which; `option` looks across a difference."""
    detail = f" ({apart.detail})" if apart.detail else ""
    across = f"; {option}={ACROSS[apart.reason]} compares them" if apart.reason in ACROSS else ""
    named = first_few(apart.prompts, MOST_PROMPTS)
    cells = counted(apart.n_cells, "cell")
    return f"{cells} of {apart.target}: {REASONS[apart.reason]}{detail}: {named}{across}"


def reasons_in_short(compared: ComparedRuns) -> str:
    """Return how many cells are set aside for each reason; nothing if none is."""
    counts: Counter[Reason] = Counter()
    for apart in compared.set_aside:
        counts[apart.reason] += apart.n_cells
    return ", ".join(f"{counted(n, 'cell')} {REASONS[reason]}" for reason, n in counts.items())


def render_p(p: float) -> str:
    """Return `0.02`, `0.0004`, `< 0.0001`, without making a larger p one below 0.05."""
    if p < 0.0001:
        return "< 0.0001"
    digits = next(digits for digits in (2, 3, 4) if p >= 10**-digits)
    if p < 0.05 <= round(p, digits):
        digits += 1
    return f"{p:.{digits}f}"


def ratio_in_words(name: str, ratio: RatioChange) -> str:
    """Return `1.4x slower`, `TTFT 2.0x slower`, `1.2x more output tokens`."""
    if not _differs(ratio):
        return f"{SAME}: {_times(ratio.ratio)}"
    factor = _times(ratio.ratio if ratio.ratio >= 1 else 1 / ratio.ratio)
    if name == "output_tokens":
        return f"{factor} {ratio.word} output tokens"
    return f"TTFT {factor} {ratio.word}" if name == "ttft" else f"{factor} {ratio.word}"


def details_of(comparison: Comparison) -> Iterator[tuple[str, str]]:
    """Yield what has changed and how sure that is: title and text."""
    verdicts = comparison.verdicts
    if verdicts.n_cells and verdicts.difference is not None:
        change = f"{_signed(verdicts.difference)} points, 95 % {_range(verdicts.interval_95)}"
        yield "passed", f"{_passed(verdicts)}: {change}; p {render_p(verdicts.p_adjusted)}"
        yield "prompts", f"{verdicts.n_prompts}: {verdicts.n_better} better, {verdicts.n_worse} worse"
    else:
        yield "passed", NOT_COMPARED
    for name, ratio in comparison.ratios.items():
        limits = f", 95 % {_times(ends[0])} to {_times(ends[1])}" if (ends := _ends(ratio)) else ""
        p = render_p(ratio.p_adjusted)
        said = ratio_in_words(name, ratio).removeprefix("TTFT ")
        yield TITLES[name], f"{said}{limits}; {ratio.n_prompts} prompts, p {p}"
    yield from (("tool use", changed) for changed in _changed_outcomes(comparison))
    if comparison.base_target != comparison.target and verdicts.n_cells > verdicts.n_prompts:
        yield "note", UNLIKE
    yield from (("note", one_line(note, WIDTH)) for note in comparison.notes)


def _passed(verdicts: VerdictChange) -> str:
    return f"{verdicts.n_base}/{verdicts.n_cells} -> {verdicts.n_candidate}/{verdicts.n_cells}"


def _ends(ratio: RatioChange) -> tuple[float, float] | None:
    """Return the ends of the interval, inverted where the words are: 0.5 to 0.8 is 1.25 to 2 times faster."""
    if ratio.interval_95 is None:
        return None
    low, high = ratio.interval_95.low, ratio.interval_95.high
    return (1 / high, 1 / low) if _differs(ratio) and ratio.ratio < 1 else (low, high)


def _differs(ratio: RatioChange) -> bool:
    return ratio.word != SAME


def _times(ratio: float) -> str:
    return f"{ratio:.2f}x" if 0.095 <= ratio < 1.995 else f"{ratio:.2g}x" if ratio < 100 else f"{ratio:.0f}x"


def _signed(rate: float) -> str:
    return f"{rate * 100:+.0f}"


def _range(interval: Interval | None) -> str:
    return f"{_signed(interval.low)} to {_signed(interval.high)}" if interval else "unknown"


def surface_note(summary: Summary) -> str:
    """Return which request the tiers on `openclaw` rest on; empty if no target was asked there."""
    if summary.surface is None:
        return ""
    targets = (group.target for group in summary.groups)
    providers = {target.provider for target in targets if target.surface == OPENCLAW}
    if not providers:
        return ""
    if providers == {OPENCLAW_ITSELF}:
        return "openclaw is the request that the installed OpenClaw sends itself"
    captured = summary.surface["source"] == "captured"
    source = "captured from the installed OpenClaw" if captured else "a substitute in our own words"
    itself = f"; {OPENCLAW_ITSELF} sends the installed OpenClaw's own" if OPENCLAW_ITSELF in providers else ""
    return f"openclaw is the request of {summary.surface['release']}, {source}{itself}"


def surface_costs(summary: Summary) -> Iterator[tuple[str, str]]:
    """Yield each model that was asked on `listed` and on `openclaw`, with the difference as a sentence."""
    for one in summary.surface_cost.targets if summary.surface_cost else ():
        found = one.verdicts
        if not found.n_cells or found.difference is None:  # no cell has an answer on both
            continue
        between = found.range_95
        interval = f" (95 %: {_signed(between.low)} to {_signed(between.high)})" if between else ""
        text = f"{found.n_base} of {found.n_cells} cells on listed, {found.n_candidate} on openclaw"
        changed = ", ".join(
            f"{its.outcome} {its.n_base} to {its.n_candidate}"
            for its in one.outcomes
            if its.n_base != its.n_candidate
        )
        points = f"{_signed(found.difference)} points{interval}"
        yield one.base_target, f"{text}: {points}{'; ' if changed else ''}{changed}"
