"""A comparison of two runs in words, and a note on the request of the surface `openclaw`."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from pytest_openclaw.reports.blocks import Finding
from pytest_openclaw.reports.numbers import one_line, words
from pytest_openclaw.stats.comparison import NO_DIFFERENCE
from pytest_openclaw.util.text import counted, first_few
from pytest_openclaw.values.requests import OPENCLAW

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pytest_openclaw.conclusions.summary import Summary
    from pytest_openclaw.stats.comparison import (
        ComparedRuns,
        Comparison,
        Reason,
        SetAside,
        VerdictChange,
    )
    from pytest_openclaw.stats.intervals import Interval


TITLES = {"latency": "latency", "ttft": "TTFT", "output_tokens": "output tokens", "cost": "cost"}
NOT_COMPARED = "no judged cell could be compared"
WIDTH = 100
MOST_PROMPTS = 8


def name_of(comparison: Comparison) -> str:
    """Return the name of a comparison: one target, or a pair of targets."""
    if comparison.base_target == comparison.target:
        return comparison.target
    return f"{comparison.base_target} -> {comparison.target}"


def in_short(comparison: Comparison) -> str:
    """Return the verdicts and the other differences: `31/36 -> 24/36, p 0.02; latency 1.40x (slower)`."""
    verdicts = comparison.verdicts
    passed = f"{_passed(verdicts)}, p {verdicts.p:.2g}" if verdicts.n_cells else NOT_COMPARED
    ratios = [
        f"{TITLES[name]} {ratio.ratio:.2f}x ({ratio.word})"
        for name, ratio in comparison.ratios.items()
        if ratio.word != NO_DIFFERENCE
    ]
    return "; ".join([passed, *ratios])


def notes_of(compared: ComparedRuns, option: str) -> Iterator[Finding]:
    """Yield why cells are set aside, and the notes; `option` is the option that compares such cells."""
    for cells in compared.set_aside:
        yield Finding(label="set aside", text=_set_aside(cells, option))
    yield from (Finding(label="note", text=note) for note in compared.notes)


def _set_aside(cells: SetAside, option: str) -> str:
    detail = f" ({cells.detail})" if cells.detail else ""
    word = words("across").get(cells.reason)
    across = f"; {option}={word} compares them" if word else ""
    named = first_few(cells.prompts, MOST_PROMPTS)
    how_many = counted(cells.n_cells, "cell")
    return f"{how_many} of {cells.target}: {words('set_aside')[cells.reason]}{detail}: {named}{across}"


def reasons_in_short(compared: ComparedRuns) -> str:
    """Return how many cells are set aside for each reason; empty if all are compared."""
    counts: Counter[Reason] = Counter()
    for cells in compared.set_aside:
        counts[cells.reason] += cells.n_cells
    reasons = words("set_aside")
    return ", ".join(f"{counted(n, 'cell')} {reasons[reason]}" for reason, n in counts.items())


def details_of(comparison: Comparison) -> Iterator[tuple[str, str]]:
    """Yield title and text of each change, with its interval and its p-value."""
    verdicts = comparison.verdicts
    if verdicts.n_cells and verdicts.difference is not None:
        change = f"{_points(verdicts.difference, verdicts.interval_95)}; p {verdicts.p:.2g}"
        yield "passed", f"{_passed(verdicts)}: {change}"
        yield "prompts", f"{verdicts.n_prompts}: {verdicts.n_better} better, {verdicts.n_worse} worse"
    else:
        yield "passed", NOT_COMPARED
    for name, ratio in comparison.ratios.items():
        interval = ratio.interval_95
        limits = f" (95 % {interval.low:.2f}x to {interval.high:.2f}x)" if interval else ""
        counts = f"{counted(ratio.n_prompts, 'prompt')}, p {ratio.p:.2g}"
        yield TITLES[name], f"{ratio.ratio:.2f}x{limits}, {ratio.word}; {counts}"
    if comparison.outcomes:
        changes = (f"{one.outcome} {one.n_base} -> {one.n_candidate}" for one in comparison.outcomes)
        yield "tool use", ", ".join(changes)
    yield from (("note", one_line(note, WIDTH)) for note in comparison.notes)


def _passed(verdicts: VerdictChange) -> str:
    return f"{verdicts.n_base}/{verdicts.n_cells} -> {verdicts.n_candidate}/{verdicts.n_cells}"


def _points(difference: float, interval: Interval | None) -> str:
    limits = f", 95 % {100 * interval.low:+.0f} to {100 * interval.high:+.0f}" if interval else ""
    return f"{100 * difference:+.0f} points{limits}"


def surface_note(summary: Summary) -> str:
    """Return a sentence on the request behind the tiers on `openclaw`; empty if no target has one."""
    if summary.surface is None:
        return ""
    groups = [group for group in summary.groups if group.surface == OPENCLAW]
    if not groups:
        return ""
    itself = first_few(sorted({group.provider for group in groups if group.is_openclaw}), MOST_PROMPTS)
    if all(group.is_openclaw for group in groups):
        return "openclaw is the request that the installed OpenClaw sends itself"
    captured = summary.surface["source"] == "captured"
    source = "captured from the installed OpenClaw" if captured else "a substitute in our own words"
    own = f"; {itself} sends the installed OpenClaw's own" if itself else ""
    return f"openclaw is the request of {summary.surface['release']}, {source}{own}"
