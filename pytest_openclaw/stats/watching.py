"""Whether a watched target got worse than its pooled baseline, asked anew after every run.

After each run the newest 1, 2, 4 … 32 runs, a window, are compared with the baseline. Where nothing has
changed, any runs of both could as well have been the window, so the chance of a window as bad as this one is
the share of all choices of so many runs that are as bad: an exact permutation test (Fisher 1935, "The Design
of Experiments", section 21; Pitman 1937, Suppl. J. Royal Stat. Soc. 4). Verdicts and harm are exchanged
prompt by prompt, as in `significance.exchange`. Times are exchanged by whole runs, since a busy hour slows
down all prompts together.

Each test has an equal part of the false alarms that a month may have. The expected number of false alarms is
the sum of the tests' levels, however tests depend on each other, and on the one baseline (linearity of
expectation). So the stated rate is a limit for samples of every size; simulated rates are below it, because
windows overlap and an exact chance has few values.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from math import comb, exp, log
from statistics import fmean, median
from typing import TYPE_CHECKING, Literal, NamedTuple

from pytest_openclaw.stats.rates import cluster_of, is_judged
from pytest_openclaw.stats.safety import did_harm

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from pytest_openclaw.types.records import Record

WINDOWS = (1, 2, 4, 8, 16, 32)
"""Runs that are taken together: great losses show in one run, small ones in many."""
MONTH_S = 30 * 86_400
MOST_PROMPTS = 5

MeasureName = Literal["passed", "unsafe", "first_token", "generation"]
Word = Literal["collecting", "not_worse", "worse", "no_verdict"]
PromptKey = tuple[str, str]


@dataclass(frozen=True, kw_only=True)
class WatchedRun:
    """The rows of one target in one run; texts may be left out."""

    run_id: str
    records: Sequence[Record]


@dataclass(frozen=True, kw_only=True)
class Look:
    """The window of the newest runs that differs most from the baseline in one measure.

    Attributes:
        n_runs: of the window, which begins with the run `since`.
        chance: of a window that is as bad, where nothing has changed.
        before, now: the rate of passed cells or of harm, 0 to 1; or the median time in ms.
        n_before, n_now: cells that these are of.
        prompts: ids of those that lost most.
    """

    measure: MeasureName
    n_runs: int
    since: str
    chance: float
    before: float
    now: float
    n_before: int
    n_now: int
    prompts: Sequence[str] = ()


@dataclass(frozen=True, kw_only=True)
class Finding:
    """A target that got worse in one measure; it remains until the user acknowledges it.

    Attributes:
        target: its label.
        run: the id of the run after which it was found.
        since_ms: when the window began, in ms since the epoch.
        limit: the chance below which a window is worse.
        called: whether the command of `--on-worse` has been called, if there was one.
    """

    target: str
    run: str
    since_ms: int
    limit: float
    look: Look
    called: bool = False


@dataclass(frozen=True, kw_only=True)
class WatchState:
    """What a watch has seen.

    Attributes:
        size: runs that the baseline has when it is complete.
        baseline, recent: ids of runs, oldest first; of those after the baseline only the newest are needed.
        asking: the id of the run that is being asked; after a kill the next invocation finds it here.
        n_compared: runs that were compared with this baseline.
        every_s: the schedule that the user gave last.
    """

    size: int
    baseline: tuple[str, ...] = ()
    recent: tuple[str, ...] = ()
    asking: str | None = None
    n_compared: int = 0
    every_s: float | None = None
    findings: tuple[Finding, ...] = ()

    @property
    def is_complete(self) -> bool:
        """Whether the baseline has all its runs."""
        return len(self.baseline) >= self.size


@dataclass(frozen=True, kw_only=True)
class WatchedTarget:
    """What the newest run says of a target.

    Attributes:
        reason: why there is no verdict.
        looks: of each measure the window that differs most from the baseline.
        n_cells, n_passed: of the newest run alone.
    """

    target: str
    word: Word
    n_cells: int
    n_passed: int
    reason: str | None = None
    looks: tuple[Look, ...] = ()


@dataclass(frozen=True, kw_only=True)
class Watched:
    """The result of an invocation.

    Attributes:
        run: the id of the newest run.
        limit: see `Finding`; None before the baseline is complete.
        every_s: the schedule that the limit rests on.
    """

    run: str
    state: WatchState
    targets: tuple[WatchedTarget, ...]
    limit: float | None
    every_s: float | None

    @property
    def word(self) -> Word:
        """The word for all targets."""
        words = {one.word for one in self.targets}
        order: tuple[Word, ...] = ("no_verdict", "collecting", "not_worse")
        return "worse" if self.state.findings else next(word for word in order if word in words)


class Stratum(NamedTuple):
    """Scores whose runs may be exchanged, lower is worse: those of a prompt, or of whole runs."""

    base: Sequence[int]
    window: Sequence[int]


def limit_of(false_alarms_per_month: float, every_s: float, n_measures: int) -> float:
    """Return the chance below which a window is worse.

    Args:
        false_alarms_per_month: expected where nothing changes, over all targets and measures together.
        every_s: from one run to the next.
        n_measures: of all targets.
    """
    return false_alarms_per_month * every_s / MONTH_S / (n_measures * len(WINDOWS))


def measures_of(base: Sequence[WatchedRun], *, slower: float | None) -> list[MeasureName]:
    """Return what can be compared with a baseline.

    Args:
        base: its runs.
        slower: see `looks`.
    """
    found: list[MeasureName] = [name for name, of in _CELLS.items() if any(_tallies(run, of) for run in base)]
    if slower is not None:
        found += [name for name, time in _TIMES.items() if any(_logs(run, time) for run in base)]
    return found


def looks(base: Sequence[WatchedRun], later: Sequence[WatchedRun], *, slower: float | None) -> list[Look]:
    """Return for each measure the window with the smallest chance; none without a run to compare.

    Args:
        base: the runs of the baseline.
        later: the runs to compare, oldest first.
        slower: a factor; times are worse if they are shown to be longer than by it. None compares no times.
    """
    found: list[Look] = []
    for name in measures_of(base, slower=slower):
        seen = [
            *(_cells_looks(name, base, later) if name in _CELLS else _times_looks(name, base, later, slower))
        ]
        # Of equal chances the longest window, which has the most to show.
        found += [min(reversed(seen), key=lambda look: look.chance)] if seen else []
    return found


def _windows(n_later: int) -> list[slice]:
    return [slice(n_later - n, None) for n in WINDOWS if n <= n_later]


def chance_of_less(strata: Sequence[Stratum]) -> float:
    """Return the chance that exchanged windows have no greater a sum of scores than these; 1 without any.

    Exact but for rounding: of each stratum how many choices of a window have which sum is counted in whole
    numbers, and the strata are independent.
    """
    pooled = [(sorted([*one.base, *one.window]), len(one.window)) for one in strata]
    least = sum(sum(values[:size]) for values, size in pooled)
    above = sum(sum(one.window) for one in strata) - least
    total = [1.0]
    for values, size in pooled:
        if values[0] < values[-1]:
            total = _convolved(total, _share_of_sums(tuple(values), size), above + 1)
    return min(1.0, sum(total))


@lru_cache(maxsize=4096)
def _share_of_sums(values: tuple[int, ...], size: int) -> list[float]:
    """Return with which chance `size` of the values have their smallest sum, one more, and so on.

    The number of choices for every sum is in one whole number, with enough bits for each of them.
    """
    bits = len(values) + 1
    ways = [1] + [0] * size
    for value in values:
        shift = (value - values[0]) * bits
        for chosen in range(size, 0, -1):
            ways[chosen] += ways[chosen - 1] << shift
    counts, mask = ways[size], (1 << bits) - 1
    counts >>= (sum(values[:size]) - size * values[0]) * bits
    n_all = comb(len(values), size)
    shares = []
    while counts:
        shares.append((counts & mask) / n_all)
        counts >>= bits
    return shares


def _convolved(one: Sequence[float], other: Sequence[float], length: int) -> list[float]:
    """Return the distribution of the sum of two, as far as its first values."""
    total = [0.0] * min(length, len(one) + len(other) - 1)
    for place, share in enumerate(one[: len(total)]):
        for step, more in enumerate(other[: len(total) - place]):
            total[place + step] += share * more
    return total


# --- verdicts and harm, prompt by prompt --------------------------------------------------------

_CELLS: Mapping[MeasureName, Callable[[Record], bool | None]] = {
    "passed": lambda record: record.objective_pass is True if is_judged(record) else None,
    "unsafe": lambda record: None if (harm := did_harm(record)) is None else not harm,
}
"""Whether a cell is as it should be; None if that is not known."""


class _CellCount(NamedTuple):
    n: int
    n_good: int


def _tallies(run: WatchedRun, is_good: Callable[[Record], bool | None]) -> dict[PromptKey, _CellCount]:
    """Count the cells of each prompt, with its harder forms and repeats, which resemble each other."""
    found: dict[PromptKey, _CellCount] = {}
    for record in run.records:
        if (good := is_good(record)) is not None:
            n, n_good = found.get(cluster_of(record), _CellCount(0, 0))
            found[cluster_of(record)] = _CellCount(n + 1, n_good + good)
    return found


def _cells_looks(
    measure: MeasureName, base: Sequence[WatchedRun], later: Sequence[WatchedRun]
) -> Iterator[Look]:
    before, after = ([_tallies(run, _CELLS[measure]) for run in runs] for runs in (base, later))
    for window in _windows(len(later)):
        strata, n_cells = _strata(before, after[window])
        if not strata:
            continue
        good = [sum(sum(one[side]) for one in strata.values()) / n for side, n in enumerate(n_cells)]
        yield Look(
            measure=measure,
            n_runs=len(after[window]),
            since=later[window][0].run_id,
            chance=chance_of_less([*strata.values()]),
            before=1 - good[0] if measure == "unsafe" else good[0],
            now=1 - good[1] if measure == "unsafe" else good[1],
            n_before=n_cells[0],
            n_now=n_cells[1],
            prompts=[prompt_id for _, prompt_id in _lost_most(strata)][:MOST_PROMPTS],
        )


def _strata(
    before: Sequence[Mapping[PromptKey, _CellCount]], now: Sequence[Mapping[PromptKey, _CellCount]]
) -> tuple[dict[PromptKey, Stratum], tuple[int, int]]:
    """Return the scores of each prompt, and the number of cells on both sides.

    A run without an answer to some cells of a prompt is no run of this prompt.
    """
    strata: dict[PromptKey, Stratum] = {}
    n_before = n_now = 0
    for key in dict.fromkeys(key for tallies in (*before, *now) for key in tallies):
        size = max(tallies[key].n for tallies in (*before, *now) if key in tallies)
        base, window = (
            [one.n_good for tallies in runs if (one := tallies.get(key)) and one.n == size]
            for runs in (before, now)
        )
        if base and window:
            strata[key] = Stratum(base, window)
            n_before, n_now = n_before + size * len(base), n_now + size * len(window)
    return strata, (n_before, n_now)


def _lost_most(strata: Mapping[PromptKey, Stratum]) -> list[PromptKey]:
    losses = {key: fmean(one.base) - fmean(one.window) for key, one in strata.items()}
    return sorted((key for key in losses if losses[key] > 0), key=lambda key: -losses[key])


# --- times, by whole runs -----------------------------------------------------------------------

_TIMES: Mapping[MeasureName, Callable[[Record], float | None]] = {
    "first_token": lambda record: record.ttft_ms,
    "generation": lambda record: 1000 / record.tokens_per_s if record.tokens_per_s else None,
}
"""To the first token, and of each further one, in ms."""


def _logs(run: WatchedRun, time: Callable[[Record], float | None]) -> dict[PromptKey, float]:
    """Return the mean logarithm of the times of each prompt's successful cells."""
    found: dict[PromptKey, list[float]] = {}
    for record in run.records:
        if record.success and (value := time(record)):
            found.setdefault(cluster_of(record), []).append(log(value))
    return {key: fmean(values) for key, values in found.items()}


def _times_looks(
    measure: MeasureName, base: Sequence[WatchedRun], later: Sequence[WatchedRun], slower: float | None
) -> Iterator[Look]:
    assert slower is not None, "times are compared only with a factor"
    before, after = ([_logs(run, _TIMES[measure]) for run in runs] for runs in (base, later))
    before = [logs for logs in before if logs]
    for window in _windows(len(later)):
        now = [logs for logs in after[window] if logs]
        if not now:
            continue
        allowed = [{key: value - log(slower) for key, value in logs.items()} for logs in now]
        ranks = _ranks([-excess for excess in _excesses([*before, *allowed])])
        times = [[exp(value) for logs in runs for value in logs.values()] for runs in (before, now)]
        yield Look(
            measure=measure,
            n_runs=len(now),
            since=later[window][0].run_id,
            chance=chance_of_less([Stratum(ranks[: len(before)], ranks[len(before) :])]),
            before=median(times[0]),
            now=median(times[1]),
            n_before=len(times[0]),
            n_now=len(times[1]),
        )


def _excesses(runs: Sequence[Mapping[PromptKey, float]]) -> Iterator[float]:
    """Yield by how much the prompts of each run take longer than usual: a median, which a few do not move."""
    keys = dict.fromkeys(key for logs in runs for key in logs)
    usual = {key: median(logs[key] for logs in runs if key in logs) for key in keys}
    for logs in runs:
        yield median(value - usual[key] for key, value in logs.items())


def _ranks(values: Sequence[float]) -> list[int]:
    """Return twice the rank of each value from the smallest, the mean rank for equal ones."""
    return [sum(other < value for other in values) * 2 + values.count(value) + 1 for value in values]
