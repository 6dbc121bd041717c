"""Two runs → the changes from baseline to candidate: of verdicts, outcomes, times, tokens and money.

A baseline and a candidate are compared by the cells that both have answered. Prompts are taken as a sample of
what a user asks, so a prompt counts once, however often it was repeated.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from dataclasses import dataclass, field
from math import exp, log
from statistics import fmean, median
from typing import TYPE_CHECKING, Literal, NamedTuple

from pytest_openclaw.stats.intervals import (
    Interval,
    cluster_of,
    is_judged,
    mean_difference_95,
    percentile_interval,
)
from pytest_openclaw.stats.significance import (
    LEVEL,
    Tested,
    adjusted_together,
    exchange,
    sign_flip,
    sign_test,
)
from pytest_openclaw.stats.tool_use import OUTCOMES
from pytest_openclaw.values.tool_calls import ToolOutcome

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence

    from pytest_openclaw.values.requests import Target
    from pytest_openclaw.values.rows import Record


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

PromptKey = tuple[str, str]
"""Suite and prompt id."""
_Place = tuple[str, str, int]


class Obstacle(NamedTuple):
    """Why cells may not be compared: the reason, and what exactly differs."""

    reason: Reason
    detail: str = ""


@dataclass(frozen=True, kw_only=True)
class Obstacles:
    """Differences between two runs other than their rows.

    Attributes:
        of_targets: by the candidate's target.
        of_prompts: by suite and id.
        with_answering_model: whether another answering model, as the server reports it, counts as one.
    """

    of_targets: Mapping[Target, Obstacle] = field(default_factory=dict)
    of_prompts: Mapping[PromptKey, Obstacle] = field(default_factory=dict)
    with_answering_model: bool = True


class Pair(NamedTuple):
    """One cell in both runs."""

    base: Record
    candidate: Record


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


@dataclass(frozen=True, kw_only=True)
class Paired:
    """The cells of one target in both runs.

    Attributes:
        base, candidate: the target, which may be another one in the candidate.
        pairs: answered in both.
        open: the baseline's rows of cells that the candidate has not answered, or may not have asked yet.
    """

    base: Target
    candidate: Target
    pairs: tuple[Pair, ...]
    open: tuple[Record, ...]
    set_aside: tuple[SetAside, ...]


def pair_cells(
    base: Sequence[Record],
    candidate: Sequence[Record],
    targets: Iterable[tuple[Target, Target]],
    obstacles: Obstacles,
    unfinished: frozenset[Target] = frozenset(),
) -> tuple[Paired, ...]:
    """Pair cells by suite, prompt id, target and repeat; of a cell the last row counts."""
    of_base, of_candidate = _by_target(base), _by_target(candidate)
    return tuple(
        _pair_target(
            one, other, of_base.get(one, {}), of_candidate.get(other, {}), obstacles, other in unfinished
        )
        for one, other in targets
    )


def _by_target(records: Iterable[Record]) -> dict[Target, dict[_Place, Record]]:
    found: dict[Target, dict[_Place, Record]] = {}
    for record in records:
        found.setdefault(record.target, {})[record.suite, record.prompt_id, record.repeat] = record
    return found


def _pair_target(
    one: Target,
    other: Target,
    base: Mapping[_Place, Record],
    candidate: Mapping[_Place, Record],
    obstacles: Obstacles,
    is_unfinished: bool,
) -> Paired:
    pairs: list[Pair] = []
    still_open: list[Record] = []
    apart: dict[Obstacle, list[Record]] = {}
    for place in dict.fromkeys([*base, *candidate]):
        before, after = base.get(place), candidate.get(place)
        known = obstacles.of_targets.get(other) or obstacles.of_prompts.get(place[:2])
        if before is None:
            apart.setdefault(Obstacle("only_in_candidate"), []).append(candidate[place])
        elif after is None:
            apart.setdefault(Obstacle("only_in_baseline"), []).append(before)
            if is_unfinished and not known and _is_answered(before):
                still_open.append(before)
        elif found := known or _obstacle(before, after, obstacles):
            apart.setdefault(found, []).append(after)
            if found.reason == "not_answered_in_candidate":
                still_open.append(before)
        else:
            pairs.append(Pair(before, after))
    return Paired(
        base=one,
        candidate=other,
        pairs=tuple(pairs),
        open=tuple(still_open),
        set_aside=tuple(_set_aside(obstacle, rows) for obstacle, rows in apart.items()),
    )


def _obstacle(base: Record, candidate: Record, obstacles: Obstacles) -> Obstacle | None:
    if not _is_answered(base):
        return Obstacle("not_answered_in_baseline")
    if not _is_answered(candidate):
        return Obstacle("not_answered_in_candidate")
    models = base.effective_model, candidate.effective_model
    if obstacles.with_answering_model and all(models) and models[0] != models[1]:
        return Obstacle("served_differently", f"answered by {models[0]} -> {models[1]}")
    return None


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


def _left_over(records: Iterable[Record], compared: Collection[Target], reason: Reason) -> list[SetAside]:
    """Return the targets that the other run does not have."""
    return [
        _set_aside(Obstacle(reason), [*rows.values()])
        for target, rows in _by_target(records).items()
        if target not in compared
    ]


# --- verdicts ---------------------------------------------------------------------------------------

NoDifference = Literal["no difference seen"]
NO_DIFFERENCE: NoDifference = "no difference seen"
Word = Literal["better", "worse", NoDifference, "not compared"]


@dataclass(frozen=True, kw_only=True)
class VerdictChange:
    """How verdicts have changed, over the judged cells that both runs have answered.

    Attributes:
        n_prompts: with their harder forms and repeats; what the test is made of.
        n_cells: pairs of cells; a candidate's cell has one with each baseline. `n_base` and `n_candidate` of
            them passed.
        difference: the candidate's rate less the baseline's, -1 to 1.
        interval_95: of the difference in all that could be asked; beyond 0 only where `p` is not below 0.05.
        n_better, n_worse: prompts of which more cells pass now, or fewer.
        p, p_adjusted: two-sided; adjusted for all targets that were compared.
        range_95: of the difference as well, whatever the test says; a loss is ruled out or shown by it.
        range_if_well, range_if_ill: the same if all of the `n_open` cells had passed, or had failed.
        if_well, if_ill: the word if all of the `n_open` cells had passed, or had failed.
        n_open: cells that the candidate has not answered, or has not asked to the end.
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
    p_adjusted: float
    word: Word
    range_95: Interval | None
    range_if_well: Interval | None
    range_if_ill: Interval | None
    if_well: Word
    if_ill: Word
    n_open: int


def verdict_changes(paired: Sequence[Sequence[Paired]]) -> list[VerdictChange]:
    """Compare the verdicts of each target; all of them are looked at together."""
    n_open = [_n_open(one) for one in paired]
    seen = _tested([_tallies(one) for one in paired])
    well, ill = seen, seen
    if any(n_open):  # the results if the cells without an answer had all passed, or had all failed
        well, ill = (_tested([_tallies(one, open_passed) for one in paired]) for open_passed in (True, False))
    return [
        VerdictChange(
            n_prompts=len(now.tallies),
            n_cells=(n_cells := sum(tally.n for tally in now.tallies)),
            n_base=sum(tally.n_base for tally in now.tallies),
            n_candidate=sum(tally.n_candidate for tally in now.tallies),
            difference=sum(tally.total for tally in now.tallies) / n_cells if n_cells else None,
            interval_95=now.interval,
            n_better=sum(tally.total > 0 for tally in now.tallies),
            n_worse=sum(tally.total < 0 for tally in now.tallies),
            p=now.test.p,
            p_adjusted=now.test.p_adjusted,
            word=now.word,
            range_95=now.range,
            range_if_well=if_well.range,
            range_if_ill=if_ill.range,
            if_well=if_well.word,
            if_ill=if_ill.word,
            n_open=n,
        )
        for n, now, if_well, if_ill in zip(n_open, seen, well, ill, strict=True)
    ]


class _Tally:
    """The judged cells of one prompt: for each baseline and cell, whether baseline and candidate passed."""

    def __init__(self) -> None:
        self._cells: defaultdict[int, dict[tuple[str, int], tuple[bool, bool]]] = defaultdict(dict)

    def add(self, baseline: int, cell: Record, base: bool, candidate: bool) -> None:
        self._cells[baseline][cell.prompt_id, cell.repeat] = base, candidate

    @property
    def n(self) -> int:
        return sum(map(len, self._cells.values()))

    @property
    def n_base(self) -> int:
        return sum(base for cells in self._cells.values() for base, _ in cells.values())

    @property
    def n_candidate(self) -> int:
        return sum(candidate for cells in self._cells.values() for _, candidate in cells.values())

    @property
    def total(self) -> int:
        return self.n_candidate - self.n_base

    @property
    def by_run(self) -> list[int]:
        """The candidate's passed cells, then those of each baseline that has answered the same cells."""
        first = max(self._cells.values(), key=len)
        same = [cells for cells in self._cells.values() if cells.keys() == first.keys()]
        return [
            sum(candidate for _, candidate in first.values()),
            *(sum(base for base, _ in cells.values()) for cells in same),
        ]


class _TestedVerdicts(NamedTuple):
    tallies: Sequence[_Tally]
    test: Tested

    @property
    def word(self) -> Word:
        if not self.tallies:
            return "not compared"
        words: dict[int, Word] = {1: "better", -1: "worse"}
        return words.get(self.test.significant, NO_DIFFERENCE)

    @property
    def range(self) -> Interval | None:
        return mean_difference_95([(tally.total, tally.n) for tally in self.tallies])

    @property
    def interval(self) -> Interval | None:
        """The range, extended to 0 where the test sees no difference, and cut off at 0 where it does.

        That is wrong in at most one of forty cases more.
        """
        if (plain := self.range) is None:
            return None
        if self.test.p >= LEVEL:
            return Interval(low=min(plain.low, 0.0), high=max(plain.high, 0.0))
        if self.test.sign > 0:
            return Interval(low=max(plain.low, 0.0), high=plain.high)
        return Interval(low=plain.low, high=min(plain.high, 0.0))


def _tested(targets: Sequence[Sequence[_Tally]]) -> list[_TestedVerdicts]:
    found = [exchange([tally.by_run for tally in tallies]) if tallies else None for tallies in targets]
    return [*map(_TestedVerdicts, targets, adjusted_together(found))]


def _tallies(paired: Sequence[Paired], open_passed: bool | None = None) -> list[_Tally]:
    """Count the judged cells by prompt.

    Args:
        paired: the candidate's cells with those of each baseline.
        open_passed: whether open cells count as passed or as failed; None leaves them out.
    """
    tallies: defaultdict[PromptKey, _Tally] = defaultdict(_Tally)
    for number, each in enumerate(paired):
        cells = [(base, _passed(candidate)) for base, candidate in each.pairs]
        cells += [(base, open_passed) for base in each.open]
        for base, after in cells:
            before = _passed(base)
            if before is not None and after is not None:
                tallies[cluster_of(base)].add(number, base, before, after)
    return [*tallies.values()]


def _n_open(paired: Sequence[Paired]) -> int:
    """Return the number of the candidate's open cells, each counted once for all baselines."""
    return len({record.key for each in paired for record in each.open if _passed(record) is not None})


def _passed(record: Record) -> bool | None:
    """Whether an answered cell has passed, as in `Group.passed`; None if it has no verdict to reach."""
    return record.objective_pass is True if is_judged(record) else None


# --- outcomes of tool use ---------------------------------------------------------------------------


@dataclass(frozen=True, kw_only=True)
class OutcomeChange:
    """How often tool use ended so, over the tool cells that both runs have answered.

    Attributes:
        n_cells: on each side; `n_base` and `n_candidate` of them ended so.
        p_adjusted: two-sided, of whole prompts, adjusted for all outcomes of all targets.
        word: `more`, `fewer` or `no difference seen`.
    """

    outcome: ToolOutcome
    n_cells: int
    n_base: int
    n_candidate: int
    p_adjusted: float
    word: Literal["more", "fewer", NoDifference]


def outcome_changes(paired: Sequence[Paired]) -> list[tuple[OutcomeChange, ...]]:
    """Compare each outcome that occurs in either run of a target."""
    pairs = [
        [pair for pair in one.pairs if pair.base.tool_outcome and pair.candidate.tool_outcome]
        for one in paired
    ]
    occurred = [
        (place, outcome)
        for place, its in enumerate(pairs)
        for outcome in OUTCOMES
        if any(outcome in (pair.base.tool_outcome, pair.candidate.tool_outcome) for pair in its)
    ]
    tests = adjusted_together([sign_flip(_totals(pairs[place], outcome)) for place, outcome in occurred])
    words: dict[int, Literal["more", "fewer"]] = {1: "more", -1: "fewer"}
    changes: list[list[OutcomeChange]] = [[] for _ in paired]
    for (place, outcome), test in zip(occurred, tests, strict=True):
        changes[place].append(
            OutcomeChange(
                outcome=outcome,
                n_cells=len(pairs[place]),
                n_base=sum(pair.base.tool_outcome == outcome for pair in pairs[place]),
                n_candidate=sum(pair.candidate.tool_outcome == outcome for pair in pairs[place]),
                p_adjusted=test.p_adjusted,
                word=words.get(test.significant, NO_DIFFERENCE),
            )
        )
    return [tuple(each) for each in changes]


def _totals(pairs: Sequence[Pair], outcome: ToolOutcome) -> list[int]:
    """Return, by prompt, in how many more cells tool use ends in this outcome now."""
    totals: Counter[PromptKey] = Counter()
    for base, candidate in pairs:
        totals[cluster_of(base)] += (candidate.tool_outcome == outcome) - (base.tool_outcome == outcome)
    return [*totals.values()]


# --- times, tokens and money ------------------------------------------------------------------------


@dataclass(frozen=True, kw_only=True)
class RatioChange:
    """How a measurement has changed: the median over prompts of candidate / baseline.

    Attributes:
        n_prompts: that have it on both sides; a prompt's own ratio is that of its cells' geometric means.
        interval_95: of that median, as of every percentile; None under 6 prompts.
        word: which way, or `no difference seen`.
    """

    n_prompts: int
    ratio: float
    interval_95: Interval | None
    p: float
    p_adjusted: float
    word: str


class Measure(NamedTuple):
    """A field of a row that is compared, and the words for less and more of it."""

    field: str
    less: str
    more: str


MEASURES: Mapping[str, Measure] = {
    "latency": Measure("e2e_ms", "faster", "slower"),
    "ttft": Measure("ttft_ms", "faster", "slower"),
    "output_tokens": Measure("output_tokens", "fewer", "more"),
    "cost": Measure("cost_usd", "cheaper", "dearer"),
}


def ratio_changes(paired: Sequence[Paired], measure: Measure) -> list[RatioChange | None]:
    """Compare one measurement of each target; None where no cell has it in both runs."""
    logs = [_logs(one.pairs, measure.field) for one in paired]
    tests = adjusted_together(
        [
            sign_test(sum(one > 0 for one in each), sum(one < 0 for one in each)) if each else None
            for each in logs
        ]
    )
    words = {1: measure.more, -1: measure.less}
    return [
        RatioChange(
            n_prompts=len(each),
            ratio=exp(median(each)),
            interval_95=percentile_interval(([exp(one)] for one in each), 50).interval,
            p=test.p,
            p_adjusted=test.p_adjusted,
            word=words.get(test.significant, NO_DIFFERENCE),
        )
        if each
        else None
        for each, test in zip(logs, tests, strict=True)
    ]


def _logs(pairs: Iterable[Pair], field_name: str) -> list[float]:
    """Return for each prompt the mean logarithm of its cells' ratios, where they succeeded in both runs."""
    logs: dict[PromptKey, list[float]] = {}
    for base, candidate in pairs:
        before, after = getattr(base, field_name), getattr(candidate, field_name)
        if base.success and candidate.success and before and after:
            logs.setdefault(cluster_of(base), []).append(log(after / before))
    return [fmean(each) for each in logs.values()]


# --- two runs ---------------------------------------------------------------------------------------


@dataclass(frozen=True, kw_only=True)
class Comparison:
    """One target in two runs.

    Attributes:
        target: its label in the candidate; `base_target` that in the baseline.
        outcomes: how tool use ended, as far as it ended so in either run.
        notes: conditions that differ, and change the ratios too.
    """

    target: str
    base_target: str
    verdicts: VerdictChange
    latency: RatioChange | None
    ttft: RatioChange | None
    output_tokens: RatioChange | None
    cost: RatioChange | None
    outcomes: tuple[OutcomeChange, ...] = ()
    notes: tuple[str, ...] = ()

    @property
    def ratios(self) -> dict[str, RatioChange]:
        """Those that there are, by what was measured."""
        measured = {name: getattr(self, name) for name in MEASURES}
        return {name: ratio for name, ratio in measured.items() if ratio}


@dataclass(frozen=True, kw_only=True)
class ComparedRuns:
    """The comparison of two runs: one entry per target, and the cells that are left out.

    Attributes:
        baseline: its run id.
        notes: what is true of all targets.
    """

    baseline: str
    targets: tuple[Comparison, ...]
    set_aside: tuple[SetAside, ...]
    notes: tuple[str, ...] = ()

    def of(self, target: str) -> Comparison | None:
        """Return the comparison of a target, by its label; None if it was not compared."""
        return next((one for one in self.targets if one.target == target), None)


def compare_records(
    base: Sequence[Record],
    candidate: Sequence[Record],
    targets: Sequence[tuple[Target, Target]],
    obstacles: Obstacles,
    *,
    baseline: str,
    unfinished: frozenset[Target] = frozenset(),
    notes: Sequence[str] = (),
    pool: Sequence[Sequence[Paired]] = (),
) -> ComparedRuns:
    """Compare two runs by the cells that both have answered.

    Verdicts are compared with all baselines together, everything else with the first: times of one run have
    one distribution, and the mean of several another.

    Args:
        base: rows of the baseline; texts may be left out.
        candidate: rows of the candidate.
        targets: of both runs, those to be compared.
        obstacles: what must not be compared.
        baseline: the run id of the baseline.
        unfinished: the candidate's targets of which not every cell was asked.
        notes: what is true of all targets.
        pool: the candidate's cells with those of further baselines, of each the same targets.
    """
    first = pair_cells(base, candidate, targets, obstacles, unfinished)
    apart = [one for target in first for one in target.set_aside]
    apart += _left_over(base, {one for one, _ in targets}, "only_in_baseline")
    apart += _left_over(candidate, {other for _, other in targets}, "only_in_candidate")
    ratios = {name: ratio_changes(first, measure) for name, measure in MEASURES.items()}
    verdicts = verdict_changes([*zip(first, *pool, strict=True)])
    outcomes = outcome_changes(first)
    return ComparedRuns(
        baseline=baseline,
        targets=tuple(
            Comparison(
                target=one.candidate.label,
                base_target=one.base.label,
                verdicts=verdicts[place],
                **{name: found[place] for name, found in ratios.items()},
                outcomes=outcomes[place],
                notes=tuple(_conditions(one.pairs)),
            )
            for place, one in enumerate(first)
        ),
        set_aside=tuple(apart),
        notes=tuple(notes),
    )


def _conditions(pairs: Sequence[Pair]) -> Iterator[str]:
    """Yield the conditions in which the two runs were usually measured, where they differ."""
    for what, name in (("host", "host"), ("requests in flight", "in_flight")):
        usual = _most_frequent(getattr(pair.base, name) for pair in pairs)
        now = _most_frequent(getattr(pair.candidate, name) for pair in pairs)
        if None not in (usual, now) and usual != now:
            yield f"{what}: {usual} -> {now}"


def _most_frequent(values: Iterable[object]) -> str | None:
    """Return the most frequent value; of equally frequent ones the first by name."""
    counted = Counter(str(value) for value in values if value is not None)
    return min(counted, key=lambda value: (-counted[value], value), default=None)
