"""Whether a target has become better or worse: its verdicts in two runs, prompt by prompt."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal

from pytest_openclaw.stats.intervals import Interval, mean_difference_95
from pytest_openclaw.stats.rates import cluster_of, is_judged
from pytest_openclaw.stats.significance import LEVEL, Difference, adjusted, exchange

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pytest_openclaw.stats.pairing import Paired, PromptKey
    from pytest_openclaw.types.records import Record

Word = Literal["better", "worse", "no difference seen", "not compared"]


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
    """Compare the verdicts of each target; all of them are looked at together.

    Args:
        paired: of each target, the candidate's cells with those of each baseline.
    """
    seen = [_tallies(one) for one in paired]
    tests = _tests(seen)
    # What the words would be if the cells without an answer had gone one way or the other.
    with_open = {passed: [_tallies(one, open_cells=passed) for one in paired] for passed in (True, False)}
    words = {
        passed: [word for *_, word in (_tests(all_of) if any(map(_n_open, paired)) else tests)]
        for passed, all_of in with_open.items()
    }
    changes = []
    for place, (one, tallies, (found, p_adjusted, word)) in enumerate(zip(paired, seen, tests, strict=True)):
        n_cells, total = sum(tally.n for tally in tallies), sum(tally.total for tally in tallies)
        changes.append(
            VerdictChange(
                n_prompts=len(tallies),
                n_cells=n_cells,
                n_base=sum(tally.n_base for tally in tallies),
                n_candidate=sum(tally.n_candidate for tally in tallies),
                difference=total / n_cells if n_cells else None,
                interval_95=_interval(tallies, found),
                n_better=sum(tally.total > 0 for tally in tallies),
                n_worse=sum(tally.total < 0 for tally in tallies),
                p=found.p,
                p_adjusted=p_adjusted,
                word=word,
                range_95=_range(tallies),
                range_if_well=_range(with_open[True][place]),
                range_if_ill=_range(with_open[False][place]),
                if_well=words[True][place],
                if_ill=words[False][place],
                n_open=_n_open(one),
            )
        )
    return changes


@dataclass
class _Tally:
    """The judged cells of one prompt, in pairs of a baseline's and the candidate's; whether they passed."""

    n: int = 0
    n_base: int = 0
    n_candidate: int = 0
    by_baseline: dict[int, dict[tuple[str, int], tuple[bool, bool]]] = field(default_factory=dict)

    def add(self, baseline: int, cell: tuple[str, int], base: bool, candidate: bool) -> None:
        self.n += 1
        self.n_base += base
        self.n_candidate += candidate
        self.by_baseline.setdefault(baseline, {})[cell] = base, candidate

    @property
    def total(self) -> int:
        return self.n_candidate - self.n_base

    @property
    def by_run(self) -> list[int]:
        """The candidate's passed cells, then those of each baseline that has answered the same cells."""
        first = max(self.by_baseline.values(), key=len)
        same = [cells for cells in self.by_baseline.values() if cells.keys() == first.keys()]
        return [
            sum(candidate for _, candidate in first.values()),
            *(sum(base for base, _ in cells.values()) for cells in same),
        ]


def _tests(targets: Sequence[Sequence[_Tally]]) -> list[tuple[Difference, float, Word]]:
    found = [exchange([tally.by_run for tally in tallies]) for tallies in targets]
    # A target without a cell is no test, and asks nothing of the others.
    tested = [place for place, tallies in enumerate(targets) if tallies]
    ps = dict(zip(tested, adjusted([found[place] for place in tested]), strict=True))
    return [
        (one, ps.get(place, 1.0), _word(one, ps[place]) if place in ps else "not compared")
        for place, one in enumerate(found)
    ]


def _word(found: Difference, p_adjusted: float) -> Word:
    if p_adjusted >= LEVEL:
        return "no difference seen"
    return "better" if found.sign > 0 else "worse"


def _tallies(paired: Sequence[Paired], *, open_cells: bool | None = None) -> list[_Tally]:
    """Count the judged cells by prompt; open cells too, if they are to have passed or failed.

    Args:
        paired: the candidate's cells with those of each baseline.
        open_cells: whether these have passed; None leaves them out.
    """
    tallies: dict[PromptKey, _Tally] = {}
    for number, each in enumerate(paired):
        for base, candidate in each.pairs:
            before, after = _passed(base), _passed(candidate)
            if before is not None and after is not None:
                tallies.setdefault(cluster_of(base), _Tally()).add(
                    number, (base.prompt_id, base.repeat), before, after
                )
        for base in each.open if open_cells is not None else ():
            if (before := _passed(base)) is not None:
                tallies.setdefault(cluster_of(base), _Tally()).add(
                    number, (base.prompt_id, base.repeat), before, open_cells is True
                )
    return list(tallies.values())


def _n_open(paired: Sequence[Paired]) -> int:
    """Open cells of the candidate, counted once, whichever baselines have them."""
    return len(
        {
            (record.suite, record.prompt_id, record.repeat)
            for each in paired
            for record in each.open
            if _passed(record) is not None
        }
    )


def _passed(record: Record) -> bool | None:
    """Whether an answered cell has passed, as in `Group.passed`; None if it has no verdict to reach."""
    return record.objective_pass is True if is_judged(record) else None


def _range(tallies: Sequence[_Tally]) -> Interval | None:
    return mean_difference_95([(tally.total, tally.n) for tally in tallies])


def _interval(tallies: Sequence[_Tally], found: Difference) -> Interval | None:
    """Return the range, made to hold 0 where the test sees no difference, and to end there where it does.

    That is wrong in at most one of forty cases more.
    """
    if (plain := _range(tallies)) is None:
        return None
    if found.p >= LEVEL:
        return Interval(low=min(plain.low, 0.0), high=max(plain.high, 0.0))
    if found.sign > 0:
        return Interval(low=max(plain.low, 0.0), high=plain.high)
    return Interval(low=plain.low, high=min(plain.high, 0.0))
