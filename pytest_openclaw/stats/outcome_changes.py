"""Which ways in which tool use ended have become more or less frequent."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from pytest_openclaw.stats.rates import cluster_of
from pytest_openclaw.stats.significance import LEVEL, adjusted, sign_flip
from pytest_openclaw.stats.tool_use import OUTCOMES

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pytest_openclaw.stats.pairing import Pair, Paired
    from pytest_openclaw.types.tool_calls import ToolOutcome


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
    word: Literal["more", "fewer", "no difference seen"]


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
    tests = [sign_flip(_totals(pairs[place], outcome)) for place, outcome in occurred]
    changes: list[list[OutcomeChange]] = [[] for _ in paired]
    for (place, outcome), test, p in zip(occurred, tests, adjusted(tests), strict=True):
        changes[place].append(
            OutcomeChange(
                outcome=outcome,
                n_cells=len(pairs[place]),
                n_base=sum(pair.base.tool_outcome == outcome for pair in pairs[place]),
                n_candidate=sum(pair.candidate.tool_outcome == outcome for pair in pairs[place]),
                p_adjusted=p,
                word="no difference seen" if p >= LEVEL else "more" if test.sign > 0 else "fewer",
            )
        )
    return [tuple(each) for each in changes]


def _totals(pairs: Sequence[Pair], outcome: ToolOutcome) -> list[int]:
    """Return of each prompt in how many more cells tool use ends so now."""
    totals: Counter[tuple[str, str]] = Counter()
    for base, candidate in pairs:
        totals[cluster_of(base)] += (candidate.tool_outcome == outcome) - (base.tool_outcome == outcome)
    return [*totals.values()]
