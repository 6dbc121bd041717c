"""Compares two runs: whether a target is better or worse, and how times, tokens and cost have changed.

Only cells that were answered in both runs are compared. Prompts are a sample of a user's questions, so a
prompt counts once, however often it was repeated.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from math import exp, log
from statistics import fmean, median
from typing import Literal, NamedTuple

from pytest_openclaw.stats.intervals import (
    Difference,
    Interval,
    cluster_of,
    has_passed,
    is_judged,
    mean_difference_95,
    percentile_interval,
    sign_flip,
)
from pytest_openclaw.stats.tool_use import OUTCOMES
from pytest_openclaw.values.requests import PromptKey, Target
from pytest_openclaw.values.rows import Record
from pytest_openclaw.values.tool_calls import ToolOutcome

# --- significance -----------------------------------------------------------------------------------

NoDifference = Literal["no difference seen"]
NO_DIFFERENCE: NoDifference = "no difference seen"


def adjusted_together(totals: Sequence[Sequence[int]]) -> list[Difference]:
    """Test each target, and adjust its two-sided p for all tests; a target without prompts has no test.

    Holm (1979, Scand. J. Stat. 6), for each direction separately: if nothing has changed, the chance that any
    test is negative with p below `LEVEL` is at most half of `LEVEL`, and so is the chance of a positive one.
    """
    found = [sign_flip(each) for each in totals]
    n_tests = sum(bool(each) for each in totals)
    adjusted = [Difference(0, 1.0)] * len(found)
    for sign in (-1, 1):
        largest = 0.0
        ranked = sorted((test.p, index) for index, test in enumerate(found) if test.sign == sign)
        for rank, (p, index) in enumerate(ranked):
            largest = max(largest, min(1.0, (n_tests - rank) * p))
            adjusted[index] = Difference(sign, largest)
    return adjusted


# --- the cells that are compared --------------------------------------------------------------------

Reason = Literal[
    "only_in_baseline",
    "only_in_candidate",
    "asked_differently",
    "on_another_surface",
    "served_differently",
    "prompt_changed",
    "validator_changed",
    "not_answered_in_baseline",
    "not_answered_in_candidate",
]


class Obstacle(NamedTuple):
    """Why cells are not compared: the reason, and the values that differ."""

    reason: Reason
    detail: str = ""


Obstacles = Mapping["Target | PromptKey", Obstacle]
"""Differences outside the rows of two runs, by the candidate's target, or by a prompt's suite and id."""


def _obstacle(obstacles: Obstacles, same_model: bool, old: Record, new: Record) -> Obstacle | None:
    """Return why two rows of one cell are not compared."""
    if found := obstacles.get(new.target) or obstacles.get((old.suite, old.prompt_id)):
        return found
    if not _is_answered(old):
        return Obstacle("not_answered_in_baseline")
    if not _is_answered(new):
        return Obstacle("not_answered_in_candidate")
    models = old.effective_model, new.effective_model
    if same_model and all(models) and models[0] != models[1]:
        return Obstacle("served_differently", f"answered by {models[0]} -> {models[1]}")
    return None


@dataclass(frozen=True, kw_only=True)
class SetAside:
    """Cells of one target that are not compared.

    Attributes:
        target: its label, in the run that has these cells.
        prompts: their ids, each once, in order.
    """

    target: str
    reason: Reason
    detail: str
    n_cells: int
    prompts: tuple[str, ...]


Pair = tuple["Record", "Record"]
"""The rows of a cell in the baseline and in the candidate."""


class _Paired(NamedTuple):
    """The cells of one target in both runs.

    Attributes:
        pairs: answered in both.
        open: the baseline's rows of cells that the candidate has not answered, or may still ask.
    """

    pairs: list[Pair]
    open: list[Record]
    set_aside: list[SetAside]


def _pair(
    base: Iterable[Record],
    candidate: Iterable[Record],
    between: Callable[[Record, Record], Obstacle | None],
    *,
    is_unfinished: bool,
) -> _Paired:
    """Pair the cells of a target by suite, prompt id and repeat; a cell's last row counts."""
    before, after = (
        {(row.suite, row.prompt_id, row.repeat): row for row in rows} for rows in (base, candidate)
    )
    pairs: list[Pair] = []
    still_open: list[Record] = []
    apart: defaultdict[Obstacle, list[Record]] = defaultdict(list)
    for key in dict.fromkeys([*before, *after]):
        old, new = before.get(key), after.get(key)
        if old is None:
            apart[Obstacle("only_in_candidate")].append(after[key])
        elif new is None:
            apart[Obstacle("only_in_baseline")].append(old)
            if is_unfinished and _is_answered(old):
                still_open.append(old)
        elif found := between(old, new):
            apart[found].append(new)
            if found.reason == "not_answered_in_candidate":
                still_open.append(old)
        else:
            pairs.append((old, new))
    return _Paired(pairs, still_open, [_set_aside(why, rows) for why, rows in apart.items()])


def _is_answered(record: Record) -> bool:
    return record.availability_status == "ok"


def _set_aside(obstacle: Obstacle, records: Sequence[Record]) -> SetAside:
    return SetAside(
        target=records[0].target.label,
        reason=obstacle.reason,
        detail=obstacle.detail,
        n_cells=len(records),
        prompts=tuple(dict.fromkeys(record.prompt_id for record in records)),
    )


# --- verdicts ---------------------------------------------------------------------------------------

Word = Literal["better", "worse", NoDifference, "not compared"]
_WORDS: Mapping[int, Word] = {1: "better", -1: "worse", 0: NO_DIFFERENCE}


@dataclass(frozen=True, kw_only=True)
class VerdictChange:
    """How verdicts have changed, over the judged cells that were answered in both runs.

    Attributes:
        n_prompts: the units of the test, each with its harder forms and repeats.
        n_cells: pairs of cells, of which `n_base` and `n_candidate` passed.
        difference: the candidate's rate less the baseline's, -1 to 1.
        interval_95: of the difference over all possible prompts; it contains 0 if no difference is seen.
        n_better, n_worse: prompts with more, or fewer, cells that pass now.
        p: two-sided, adjusted for all compared targets.
        if_failed: the word if all of the `n_open` cells had failed.
        n_open: cells that the candidate has not answered, or may still ask.
    """

    n_prompts: int
    n_cells: int
    n_base: int
    n_candidate: int
    difference: float | None
    interval_95: Interval | None
    n_better: int
    n_worse: int
    p: float
    word: Word
    if_failed: Word
    n_open: int


class _Count(NamedTuple):
    """The judged cells of one prompt, and how many of them passed in each run."""

    n: int
    n_base: int
    n_candidate: int

    @property
    def change(self) -> int:
        return self.n_candidate - self.n_base


def _verdict_changes(paired: Sequence[_Paired]) -> list[VerdictChange]:
    """Compare the verdicts of each target; their tests are adjusted together."""
    open_cells = [[row for row in one.open if is_judged(row)] for one in paired]
    counts = [_counts(one.pairs) for one in paired]
    if_failed = [_counts(one.pairs, failed) for one, failed in zip(paired, open_cells, strict=True)]
    tests, worst = (
        adjusted_together([[one.change for one in each] for each in of]) for of in (counts, if_failed)
    )
    return [
        VerdictChange(
            n_prompts=len(each),
            n_cells=(n_cells := sum(one.n for one in each)),
            n_base=sum(one.n_base for one in each),
            n_candidate=sum(one.n_candidate for one in each),
            difference=sum(one.change for one in each) / n_cells if n_cells else None,
            interval_95=_interval(each, test.significant),
            n_better=sum(one.change > 0 for one in each),
            n_worse=sum(one.change < 0 for one in each),
            p=test.p,
            word=_WORDS[test.significant] if each else "not compared",
            if_failed=_WORDS[at_worst.significant] if each else "not compared",
            n_open=len(of_target),
        )
        for each, test, at_worst, of_target in zip(counts, tests, worst, open_cells, strict=True)
    ]


def _interval(counts: Sequence[_Count], significant: int) -> Interval | None:
    """Return the interval of the difference, cut so that it contains 0 if and only if no difference is seen.

    The cut makes the interval miss the truth in at most one more of forty cases.
    """
    found = mean_difference_95([(one.change, one.n) for one in counts])
    if found is None:
        return None
    if not significant:
        return Interval(low=min(found.low, 0.0), high=max(found.high, 0.0))
    if significant > 0:
        return Interval(low=max(found.low, 0.0), high=found.high)
    return Interval(low=found.low, high=min(found.high, 0.0))


def _counts(pairs: Iterable[Pair], failed: Iterable[Record] = ()) -> list[_Count]:
    """Count the judged cells by prompt; `failed` are rows of the baseline whose cells now count as failed."""
    judged = [(one, has_passed(two)) for one, two in pairs if is_judged(one) and is_judged(two)]
    counts: dict[PromptKey, _Count] = {}
    for base, passes_now in [*judged, *((base, False) for base in failed)]:
        n, n_base, n_candidate = counts.get(cluster_of(base), (0, 0, 0))
        counts[cluster_of(base)] = _Count(n + 1, n_base + has_passed(base), n_candidate + passes_now)
    return [*counts.values()]


# --- outcomes of tool use ---------------------------------------------------------------------------


@dataclass(frozen=True, kw_only=True)
class OutcomeChange:
    """The number of tool cells with an outcome, over the cells that were answered in both runs."""

    outcome: ToolOutcome
    n_base: int
    n_candidate: int


def _outcome_changes(pairs: Sequence[Pair]) -> Iterator[OutcomeChange]:
    of_tools = [pair for pair in pairs if all(row.tool_outcome for row in pair)]
    before, after = (Counter(pair[run].tool_outcome for pair in of_tools) for run in (0, 1))
    for outcome in OUTCOMES:
        if before[outcome] != after[outcome]:
            yield OutcomeChange(outcome=outcome, n_base=before[outcome], n_candidate=after[outcome])


# --- times, tokens and money ------------------------------------------------------------------------


@dataclass(frozen=True, kw_only=True)
class RatioChange:
    """How a measurement has changed: the median over prompts of candidate / baseline.

    Attributes:
        n_prompts: prompts with the measurement in both runs; a prompt's ratio is the ratio of its cells'
            geometric means.
        interval_95: of the median, as for every percentile; None under 6 prompts.
        p: by the exact sign test over prompts, adjusted for all targets.
        word: the direction, or `no difference seen`.
    """

    n_prompts: int
    ratio: float
    interval_95: Interval | None
    p: float
    word: str


class Measure(NamedTuple):
    """A field of a row that is compared, with the words for a smaller and a larger value.

    Attributes:
        least: the smallest ratio that has a word; times of the same server vary by a few percent.
    """

    field: str
    less: str
    more: str
    least: float = 1


MeasureName = Literal["latency", "ttft", "output_tokens", "cost"]
MEASURES: Mapping[MeasureName, Measure] = {
    "latency": Measure("e2e_ms", "faster", "slower", 1.05),
    "ttft": Measure("ttft_ms", "faster", "slower", 1.05),
    "output_tokens": Measure("output_tokens", "fewer", "more"),
    "cost": Measure("cost_usd", "cheaper", "dearer"),
}


def _ratio_changes(paired: Sequence[_Paired]) -> list[dict[MeasureName, RatioChange]]:
    changes: list[dict[MeasureName, RatioChange]] = [{} for _ in paired]
    for name, measure in MEASURES.items():
        logs = [_logs(one.pairs, measure.field) for one in paired]
        tests = adjusted_together([[(one > 0) - (one < 0) for one in each] for each in logs])
        words = {1: measure.more, -1: measure.less, 0: NO_DIFFERENCE}
        for of_target, each, test in zip(changes, logs, tests, strict=True):
            if each:
                of_target[name] = RatioChange(
                    n_prompts=len(each),
                    ratio=exp(median(each)),
                    interval_95=percentile_interval(([exp(one)] for one in each), 50),
                    p=test.p,
                    word=words[test.significant if abs(median(each)) >= log(measure.least) else 0],
                )
    return changes


def _logs(pairs: Iterable[Pair], field_name: str) -> list[float]:
    """Return each prompt's mean logarithm of the ratios of its cells that succeeded in both runs."""
    logs: defaultdict[PromptKey, list[float]] = defaultdict(list)
    for base, candidate in pairs:
        before, after = getattr(base, field_name), getattr(candidate, field_name)
        if base.success and candidate.success and before and after:
            logs[cluster_of(base)].append(log(after / before))
    return [fmean(each) for each in logs.values()]


# --- the comparison ---------------------------------------------------------------------------------


@dataclass(frozen=True, kw_only=True)
class Comparison:
    """One target in two runs.

    Attributes:
        target, base_target: the target's label in the candidate and in the baseline.
        ratios: by `latency`, `ttft`, `output_tokens` and `cost`, as far as both runs have them.
        outcomes: outcomes of tool use that now occur more or less often.
        notes: different conditions, which also change the ratios.
    """

    target: str
    base_target: str
    verdicts: VerdictChange
    ratios: Mapping[MeasureName, RatioChange]
    outcomes: tuple[OutcomeChange, ...] = ()
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True)
class ComparedRuns:
    """The comparison of two runs: one entry per target, and the cells that are left out.

    Attributes:
        baseline: the run id of the baseline.
        notes: statements about all targets.
    """

    baseline: str
    targets: tuple[Comparison, ...]
    set_aside: tuple[SetAside, ...]
    notes: tuple[str, ...] = ()

    def of(self, target: str) -> Comparison | None:
        """Return the comparison of a target, by its label; None if it was not compared."""
        return next((one for one in self.targets if one.target == target), None)


def compare_records(
    before: Mapping[Target, Sequence[Record]],
    after: Mapping[Target, Sequence[Record]],
    targets: Sequence[tuple[Target, Target]],
    obstacles: Obstacles,
    *,
    baseline: str,
    same_model: bool = True,
    unfinished: frozenset[Target] = frozenset(),
    notes: Sequence[str] = (),
) -> ComparedRuns:
    """Compare the rows of two runs by the cells that were answered in both; the rows may lack texts.

    `unfinished` are the candidate's targets with cells that were not asked; `notes` are about all targets.
    With `same_model` it is an obstacle if another model has answered.
    """
    between = partial(_obstacle, obstacles, same_model)
    paired = [
        _pair(before.get(one, ()), after.get(other, ()), between, is_unfinished=other in unfinished)
        for one, other in targets
    ]
    apart = [one for each in paired for one in each.set_aside]
    compared = {one for one, _ in targets}, {other for _, other in targets}
    left_over: tuple[Reason, Reason] = ("only_in_baseline", "only_in_candidate")
    for rows_of, known, reason in zip((before, after), compared, left_over, strict=True):
        # A target of both runs may be left out by choice.
        others = known | (before.keys() & after.keys())
        apart += [_set_aside(Obstacle(reason), rows) for one, rows in rows_of.items() if one not in others]
    verdicts, ratios = _verdict_changes(paired), _ratio_changes(paired)
    return ComparedRuns(
        baseline=baseline,
        targets=tuple(
            Comparison(
                target=other.label,
                base_target=one.label,
                verdicts=verdicts[n],
                ratios=ratios[n],
                outcomes=tuple(_outcome_changes(paired[n].pairs)),
                notes=tuple(_conditions(paired[n].pairs)),
            )
            for n, (one, other) in enumerate(targets)
        ),
        set_aside=tuple(apart),
        notes=tuple(notes),
    )


def _conditions(pairs: Sequence[Pair]) -> Iterator[str]:
    """Yield the usual conditions of measurement that differ between the two runs."""
    for what, name in (("host", "host"), ("requests in flight", "in_flight")):
        usual = [
            Counter(value for row in rows if (value := getattr(row, name)) is not None).most_common(1)
            for rows in zip(*pairs, strict=True)
        ]
        if usual and all(usual) and usual[0][0][0] != usual[1][0][0]:
            yield f"{what}: {usual[0][0][0]} -> {usual[1][0][0]}"
