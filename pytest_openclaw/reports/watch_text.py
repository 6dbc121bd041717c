"""What a watch has found → a sentence for each target, and JSON."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING

from pytest_openclaw.core.text import counted
from pytest_openclaw.reports.numbers import render_ms, render_time

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from pytest_openclaw.core.json_types import JsonObject
    from pytest_openclaw.stats.watching import Finding, Look, MeasureName, Watched, WatchedTarget

_UNITS = ((86_400, "day"), (3600, "hour"), (60, "minute"), (1, "second"))
_TIMES: dict[MeasureName, str] = {
    "first_token": "the first token takes",
    "generation": "each further token takes",
}
_LOST = {"passed": "Lost most: ", "unsafe": "Unsafe most: "}


def render_watched(watched: Watched, runs_dir: Path) -> Iterator[str]:
    """Yield a sentence for each target, and what to do after a finding."""
    state = watched.state
    for one in watched.targets:
        for finding in state.findings:
            if finding.target == one.target:
                yield finding_in_words(finding, state.baseline[-1], runs_dir)
        if one.reason:
            yield f"{one.target}: no verdict: {one.reason}. {_way_on(watched, one)}"
        elif one.word == "collecting":
            n = f"run {len(state.baseline)} of {state.size} of the baseline"
            yield f"{one.target}: {n}; {one.n_passed} of {one.n_cells} cells passed"
        elif one.word == "not_worse":
            yield f"{one.target}: not shown to be worse; {'; '.join(map(_look_in_words, one.looks))}"
    if watched.limit is not None and watched.every_s is not None:
        yield (
            f"{counted(state.n_compared, 'run')} compared with {len(state.baseline)}; "
            f"limit {_chance(watched.limit)}, a run every {_period(watched.every_s)}"
            f"{'' if state.every_s else ' as measured; --every says how often it should be'}"
        )
    if state.findings:
        yield (
            "This remains until `watch --acknowledge` (repaired: the baseline stays) or "
            "`watch --new-baseline` (as it should be from now on)."
        )


def finding_in_words(finding: Finding, base: str, runs_dir: Path) -> str:
    """Return what got worse, since when, the evidence, and what to look at."""
    look = finding.look
    lost = f" {_LOST[look.measure]}{', '.join(look.prompts)}." if look.prompts else ""
    where = f"--runs-dir {runs_dir} " if runs_dir.name != "runs" else ""
    return (
        f"{finding.target} got worse: {_difference(look)}, since {look.since} "
        f"({render_time(finding.since_ms, '%Y-%m-%d %H:%M')}), found in {finding.run}. "
        f"The chance of this without a change is {_chance(look.chance)}, the limit {_chance(finding.limit)}."
        f"{lost} Look at: pytest-openclaw show {where}{finding.run} --failed; "
        f"pytest-openclaw compare {where}{base} {finding.run}."
    )


def watched_to_json(watched: Watched, name: str, runs_dir: Path) -> JsonObject:
    """Return the result as JSON."""
    state = watched.state
    base = state.baseline[-1] if state.baseline else ""
    return {
        "watch": name,
        "run": watched.run,
        "word": watched.word,
        "limit": watched.limit,
        "every_s": watched.every_s,
        "baseline": list(state.baseline),
        "size": state.size,
        "n_compared": state.n_compared,
        "findings": [
            {**asdict(one), "sentence": finding_in_words(one, base, runs_dir)} for one in state.findings
        ],
        "targets": [asdict(one) for one in watched.targets],
    }


def _way_on(watched: Watched, one: WatchedTarget) -> str:
    taken = "" if watched.state.is_complete else " This run is no part of the baseline."
    if one.reason and "were not answered" in one.reason:
        return f"The run does not count.{taken}"
    return f"If that is meant to be so, begin again with --new-baseline.{taken}"


def _difference(look: Look) -> str:
    runs = "the newest run" if look.n_runs == 1 else f"the newest {look.n_runs} runs"
    if look.measure in _TIMES:
        now, before = render_ms(look.now), render_ms(look.before)
        return f"{_TIMES[look.measure]} {now} in {runs}, {before} in the baseline"
    what = "passed" if look.measure == "passed" else "did harm"
    return (
        f"{_share(look.now)} of {look.n_now} cells {what} in {runs}, "
        f"{_share(look.before)} of {look.n_before} in the baseline"
    )


def _look_in_words(look: Look) -> str:
    return f"{_difference(look)} (chance {_chance(look.chance)})"


def _share(rate: float) -> str:
    return f"{100 * rate:.0f} %"


def _chance(chance: float) -> str:
    return f"{chance:.2f}" if chance >= 0.095 else f"{chance:.1g}"


def _period(seconds: float) -> str:
    size, unit = next(((size, unit) for size, unit in _UNITS if seconds >= size), _UNITS[-1])
    n = f"{seconds / size:.2g}"
    return unit if n == "1" else f"{n} {unit}s"
