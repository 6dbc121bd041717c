"""Whether a target has become better or worse: its verdicts in two runs, prompt by prompt."""

from __future__ import annotations

from dataclasses import dataclass
from math import sqrt
from statistics import fmean
from typing import TYPE_CHECKING, Literal

from pytest_openclaw.stats.intervals import Interval, student_t_95
from pytest_openclaw.stats.power import smallest_loss
from pytest_openclaw.stats.rates import cluster_of, is_judged
from pytest_openclaw.stats.significance import LEVEL, Difference, adjusted, sign_flip

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
        n_cells: on each side; `n_base` and `n_candidate` of them passed.
        difference: the candidate's rate less the baseline's, -1 to 1.
        interval_95: of the difference in all that could be asked; beyond 0 only where `p` is not below 0.05.
        n_better, n_worse: prompts of which more cells pass now, or fewer.
        p, p_adjusted: two-sided; adjusted for all targets that were compared.
        could_see: the smallest loss, 0 to 1, that four runs in five would have shown; None if none would.
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
    could_see: float | None
    if_well: Word
    if_ill: Word
    n_open: int


def verdict_changes(paired: Sequence[Paired]) -> list[VerdictChange]:
    """Compare the verdicts of each target; all of them are looked at together."""
    seen = [_tallies(one) for one in paired]
    tests = _tests(seen)
    # What the words would be if the cells without an answer had gone one way or the other.
    well, ill = (
        [word for *_, word in _tests([_tallies(one, open_cells=passed) for one in paired])]
        if any(map(_n_open, paired))
        else [word for *_, word in tests]
        for passed in (True, False)
    )
    n_tested = sum(map(bool, seen))
    return [
        _verdict_change(
            tallies,
            *test,
            if_well=well[place],
            if_ill=ill[place],
            n_open=_n_open(one),
            could_see=_could_see(tallies, test[0], n_tested),
        )
        for place, (one, tallies, test) in enumerate(zip(paired, seen, tests, strict=True))
    ]


@dataclass
class _Tally:
    """The judged cells of one prompt."""

    n: int = 0
    n_base: int = 0
    n_candidate: int = 0

    def add(self, base: bool, candidate: bool) -> None:
        self.n += 1
        self.n_base += base
        self.n_candidate += candidate

    @property
    def total(self) -> int:
        return self.n_candidate - self.n_base


def _tests(targets: Sequence[Sequence[_Tally]]) -> list[tuple[Difference, float, Word]]:
    found = [sign_flip([tally.total for tally in tallies]) for tallies in targets]
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


def _verdict_change(
    tallies: Sequence[_Tally],
    found: Difference,
    p_adjusted: float,
    word: Word,
    *,
    if_well: Word,
    if_ill: Word,
    n_open: int,
    could_see: float | None,
) -> VerdictChange:
    n_cells = sum(tally.n for tally in tallies)
    total = sum(tally.total for tally in tallies)
    return VerdictChange(
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
        could_see=could_see,
        if_well=if_well,
        if_ill=if_ill,
        n_open=n_open,
    )


def _tallies(paired: Paired, *, open_cells: bool | None = None) -> list[_Tally]:
    """Count the judged cells by prompt; open cells too, if they are to have passed or failed."""
    tallies: dict[PromptKey, _Tally] = {}
    for base, candidate in paired.pairs:
        before, after = _passed(base), _passed(candidate)
        if before is not None and after is not None:
            tallies.setdefault(cluster_of(base), _Tally()).add(before, after)
    if open_cells is not None:
        for base in paired.open:
            if (before := _passed(base)) is not None:
                tallies.setdefault(cluster_of(base), _Tally()).add(before, open_cells)
    return list(tallies.values())


def _n_open(paired: Paired) -> int:
    return sum(_passed(record) is not None for record in paired.open)


def _passed(record: Record) -> bool | None:
    """Whether an answered cell has passed, as in `Group.passed`; None if it has no verdict to reach."""
    return record.objective_pass is True if is_judged(record) else None


def _interval(tallies: Sequence[_Tally], found: Difference) -> Interval | None:
    """Return the interval of the difference, as if two more prompts had been asked: one better, one worse.

    Bonett & Price (2012), "Adjusted Wald confidence interval for a difference of binomial proportions
    based on paired data", J. Educ. Behav. Stat. 37; here of whole prompts, each with the weight of its
    cells, and with Student's t. It is made to hold 0 where the exact test sees no difference, and to end
    there where it sees one: that is wrong in at most one of forty cases more.
    """
    if not tallies:
        return None
    n = sum(tally.n for tally in tallies)
    size = n / len(tallies)
    units = [(float(tally.total), float(tally.n)) for tally in tallies] + [(size, size), (-size, size)]
    weight = n + 2 * size
    centre = sum(total for total, _ in units) / weight
    half = student_t_95(len(units) - 1) * sqrt(sum((t - centre * m) ** 2 for t, m in units)) / weight
    low, high = max(-1.0, centre - half), min(1.0, centre + half)
    if found.p >= LEVEL:
        low, high = min(low, 0.0), max(high, 0.0)
    elif found.sign > 0:
        low = max(low, 0.0)
    else:
        high = min(high, 0.0)
    return Interval(low=low, high=high)


def _could_see(tallies: Sequence[_Tally], found: Difference, n_targets: int) -> float | None:
    """Return the smallest loss that would be seen where prompts differ from run to run as these do."""
    if not tallies:
        return None
    n = len(tallies)
    repeats = max(1, round(fmean(tally.n for tally in tallies)))
    means = [tally.total / tally.n for tally in tallies]
    # What `power` would make of a loss that was seen is no unsteadiness.
    change = abs(fmean(means)) if found.p < LEVEL else 0.0
    spread = (sum(mean**2 for mean in means) / n - change) / (1 - change) if change < 1 else 0.0
    flips = round(min(1.0, max(0.0, spread * repeats)), 2)
    return smallest_loss(n, repeats, flips, n_targets=n_targets)
